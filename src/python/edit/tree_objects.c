/* SPDX-License-Identifier: Apache-2.0
 *
 * The helpers that tree.c, node.c and node_set.c share: failing, changing, borrowing bytes, and objects for nodes.
 */
#include "python/edit/tree_objects.h"

#include "python/convert.h"
#include "python/errors.h"

enum { COPIED = 4096 }; /* bytes; what is larger is borrowed from its owner */

int tq_py_tree_result(TreeObject *tree, tq_status status, const tq_error *error)
{
    if (status == TQ_OK)
        return 0;
    tq_py_raise(tq_state_of((PyObject *)tree), error, NULL);
    return -1;
}

int tq_py_tree_may_allocate(TreeObject *tree)
{
    if (!tree->is_busy)
        return 0;
    PyErr_SetString(PyExc_RuntimeError, "another thread is writing this model");
    return -1;
}

int tq_py_tree_begin_change(TreeObject *tree)
{
    tree->changes++;
    return tq_py_tree_may_allocate(tree);
}

int tq_py_tree_take_bytes(TreeObject *tree, PyObject *object, tq_bytes *out)
{
    PyObject *memory = PyMemoryView_FromObject(object);
    if (!memory)
        return -1;
    const Py_buffer *view = PyMemoryView_GET_BUFFER(memory);
    if (!PyBuffer_IsContiguous(view, 'C')) {
        PyErr_SetString(PyExc_ValueError, "bytes must be C-contiguous");
        Py_DECREF(memory);
        return -1;
    }
    tq_error error;
    tq_status status = TQ_OK;
    int failed = 0;
    *out = (tq_bytes){view->buf, (size_t)view->len};
    if (view->len <= COPIED) {
        uint8_t *copy;
        status = tq_region_get(&tree->tree.region, (uint64_t)view->len, 1, &copy, &error);
        if (status == TQ_OK) {
            if (view->len)
                memcpy(copy, view->buf, (size_t)view->len);
            out->data = copy;
        }
    } else {
        failed = PyList_Append(tree->borrowed, memory);
    }
    Py_DECREF(memory);
    return failed < 0 ? -1 : tq_py_tree_result(tree, status, &error);
}

tq_tree *tq_py_change_node(tq_state *state, PyObject *object, const char *table, tq_tree_node **node)
{
    NodeObject *self = (NodeObject *)object;
    if (!PyObject_TypeCheck(object, (PyTypeObject *)state->Node) || self->node->id == TQ_TABLE_NONE ||
        strcmp(tq_tables[self->node->id].name, table) != 0) {
        PyErr_Format(PyExc_TypeError, "a table %s is needed", table);
        return NULL;
    }
    *node = self->node;
    return tq_py_tree_begin_change(self->tree) < 0 ? NULL : &self->tree->tree;
}

PyObject *tq_py_tree_of(tq_state *state, PyObject *object)
{
    bool is_node = object && PyObject_TypeCheck(object, (PyTypeObject *)state->Node);
    return is_node ? (PyObject *)((NodeObject *)object)->tree : NULL;
}

int tq_py_hold_for_node(PyObject *object, PyObject *owner)
{
    return PyList_Append(((NodeObject *)object)->tree->borrowed, owner);
}

/* ---- nodes ---- */

PyObject *tq_py_node(TreeObject *tree, tq_tree_node *node)
{
    PyTypeObject *type = (PyTypeObject *)tq_state_of((PyObject *)tree)->Node;
    NodeObject *self = (NodeObject *)type->tp_alloc(type, 0);
    if (self) {
        self->tree = (TreeObject *)Py_NewRef(tree);
        self->node = node;
    }
    return (PyObject *)self;
}

const char *tq_py_table_name(const tq_tree_node *node)
{
    return node->id == TQ_TABLE_NONE ? "of unknown type" : tq_tables[node->id].name;
}

const tq_field *tq_py_node_field(NodeObject *self, PyObject *name)
{
    tq_table_id id = self->node->id;
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "a field's name is a str, not %.100s", Py_TYPE(name)->tp_name), NULL;
    const tq_field *found = id == TQ_TABLE_NONE ? NULL : tq_py_find_field(id, name);
    if (found)
        return found;
    PyErr_Format(PyExc_KeyError, "the schema's table %s has no field %R", tq_py_table_name(self->node), name);
    return NULL;
}

const int tq_py_vector_types[TQ_SCALAR_COUNT] = {NPY_BOOL,   NPY_INT8,  NPY_UINT8,  NPY_INT16,   NPY_UINT16, NPY_INT32,
                                                 NPY_UINT32, NPY_INT64, NPY_UINT64, NPY_FLOAT32, NPY_FLOAT64};
