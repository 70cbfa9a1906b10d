/* SPDX-License-Identifier: Apache-2.0
 *
 * tq._core._Tree: the tables of an editable model; _Node is one table (node.c).  Internal: users see the classes of
 * tq/editing/editor.py; tq/editing/fields.py converts values to the schema's kinds.
 */
#include "python/edit/tree.h"

#include "base/pages.h"
#include "python/edit/tree_objects.h"
#include "python/model/data.h"
#include "python/errors.h"
#include "python/model/model_object.h"

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"model", NULL};
    PyObject *model = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:_Tree", names, &model))
        return NULL;
    TreeObject *self = (TreeObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    tq_state *state = tq_state_of((PyObject *)self);
    tq_error error;
    tq_status status;
    self->borrowed = PyList_New(0);
    if (!self->borrowed || (model != Py_None && !PyObject_TypeCheck(model, (PyTypeObject *)state->Model))) {
        if (self->borrowed)
            PyErr_Format(PyExc_TypeError, "model must be a tq.Model, not %.100s", Py_TYPE(model)->tp_name);
        Py_DECREF(self);
        return NULL;
    }
    if (model == Py_None) {
        status = tq_rewrite_new(&tq_default_allocator, &self->tree, &error);
    } else {
        self->model = Py_NewRef(model);
        Py_BEGIN_ALLOW_THREADS
        status = tq_rewrite_open(&((ModelObject *)model)->model, &self->tree, &error);
        if (status == TQ_OK)
            self->end = tq_tree_end(&self->tree, ((ModelObject *)model)->model.file);
        Py_END_ALLOW_THREADS
    }
    self->is_open = status == TQ_OK;
    if (tq_py_tree_result(self, status, &error) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void dealloc(TreeObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (self->is_open)
        tq_tree_close(&self->tree);
    Py_XDECREF(self->borrowed);
    Py_XDECREF(self->model);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *make_node(TreeObject *self, PyObject *name)
{
    tq_tree_node *node;
    tq_error error;
    for (unsigned id = 0; PyUnicode_Check(name) && id < TQ_TABLE_COUNT; id++) {
        if (PyUnicode_CompareWithASCIIString(name, tq_tables[id].name) != 0)
            continue;
        if (tq_py_tree_may_allocate(self) < 0 ||
            tq_py_tree_result(self, tq_tree_node_make(&self->tree, id, &node, &error), &error) < 0)
            return NULL;
        return tq_py_node(self, node);
    }
    return PyErr_Format(PyExc_KeyError, "the schema has no table %R", name);
}

static PyObject *copy_node(TreeObject *self, PyObject *value)
{
    PyObject *type = tq_state_of((PyObject *)self)->Node;
    tq_tree_node *node;
    tq_error error;
    if (!PyObject_TypeCheck(value, (PyTypeObject *)type))
        return PyErr_Format(PyExc_TypeError, "a table is needed, not %.100s", Py_TYPE(value)->tp_name);
    NodeObject *from = (NodeObject *)value;
    if (from->tree != self) /* this tree does not keep the other's bytes alive */
        return PyErr_Format(PyExc_ValueError, "the table belongs to another model");
    if (tq_py_tree_may_allocate(self) < 0)
        return NULL;
    if (tq_py_tree_result(self, tq_tree_node_copy(&self->tree, from->node, &node, &error), &error) < 0)
        return NULL;
    return tq_py_node(self, node);
}

/* The data behind the planned bytes: trailing(size), or none. */
static int find_trailing(PyObject *trailing, uint64_t size, Py_buffer *out)
{
    *out = (Py_buffer){.obj = NULL};
    if (trailing == Py_None)
        return 0;
    PyObject *made = PyObject_CallFunction(trailing, "K", (unsigned long long)size);
    if (!made)
        return -1;
    int result = PyObject_GetBuffer(made, out, PyBUF_SIMPLE);
    Py_DECREF(made);
    return result;
}

static PyObject *write_memory(TreeObject *self, tq_plan *plan, const Py_buffer *trailing)
{
    if (plan->size > (uint64_t)PY_SSIZE_T_MAX - (uint64_t)trailing->len)
        return PyErr_NoMemory();
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)plan->size + trailing->len);
    if (!bytes)
        return NULL;
    tq_pages_prefer_large(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    tq_memory_sink memory = {(uint8_t *)PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)};
    tq_sink sink = tq_sink_to_memory(&memory);
    tq_error error;
    tq_status status;
    Py_BEGIN_ALLOW_THREADS
    status = tq_plan_write(plan, &sink, &error);
    if (status == TQ_OK && trailing->len)
        status = sink.put(sink.context, (tq_bytes){trailing->buf, (size_t)trailing->len}, &error);
    Py_END_ALLOW_THREADS
    if (tq_py_tree_result(self, status, &error) < 0)
        Py_CLEAR(bytes);
    return bytes;
}

static PyObject *write_file(TreeObject *self, tq_plan *plan, const Py_buffer *trailing, int descriptor)
{
    tq_file_sink *file = PyMem_Malloc(sizeof *file);
    if (!file)
        return PyErr_NoMemory();
    file->descriptor = descriptor;
    file->used = 0;
    tq_sink sink = tq_sink_to_file(file);
    tq_error error;
    tq_status status;
    Py_BEGIN_ALLOW_THREADS
    status = tq_plan_write(plan, &sink, &error);
    if (status == TQ_OK && trailing->len)
        status = sink.put(sink.context, (tq_bytes){trailing->buf, (size_t)trailing->len}, &error);
    if (status == TQ_OK)
        status = tq_file_sink_end(file, &error);
    Py_END_ALLOW_THREADS
    PyMem_Free(file);
    if (tq_py_tree_result(self, status, &error) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(plan->size + (uint64_t)trailing->len);
}

static PyObject *write_tree(TreeObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"descriptor", "share_constants", "trailing", "limit", NULL};
    int descriptor = -1, share = 0;
    long long limit = TQ_FLATBUFFER_LIMIT;
    PyObject *trailing = Py_None, *result = NULL;
    Py_buffer behind;
    tq_plan plan;
    tq_error error;
    tq_status status;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|ipOL:write", names, &descriptor, &share, &trailing, &limit))
        return NULL;
    if (tq_py_tree_begin_change(self) < 0)
        return NULL;
    self->is_busy = true;
    status = tq_rewrite_plan(&self->tree, limit < 0 ? 0 : (uint64_t)limit, share, &plan, &error); /* may move cells */
    if (tq_py_tree_result(self, status, &error) == 0) {
        if (find_trailing(trailing, plan.size, &behind) == 0) {
            result = descriptor < 0 ? write_memory(self, &plan, &behind) : write_file(self, &plan, &behind, descriptor);
            PyBuffer_Release(&behind);
        }
        tq_plan_close(&plan);
    }
    self->is_busy = false;
    return result;
}

/* The size of write() with the same arguments, without trailing data. */
static PyObject *size_of(TreeObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"share_constants", "limit", NULL};
    int share = 0;
    long long limit = TQ_FLATBUFFER_LIMIT;
    tq_plan plan;
    tq_error error;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pL:size", names, &share, &limit) ||
        tq_py_tree_begin_change(self) < 0)
        return NULL;
    tq_status status = tq_rewrite_plan(&self->tree, limit < 0 ? 0 : (uint64_t)limit, share, &plan, &error);
    if (tq_py_tree_result(self, status, &error) < 0)
        return NULL;
    uint64_t size = plan.size;
    tq_plan_close(&plan);
    return PyLong_FromUnsignedLongLong(size);
}

static PyObject *get_root(TreeObject *self, void *closure)
{
    (void)closure;
    return tq_py_node(self, self->tree.root);
}

static PyObject *get_lost(TreeObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(self->tree.lost);
}

static PyObject *get_changes(TreeObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(self->changes);
}

static PyObject *get_end(TreeObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(self->end);
}

TQ_HELD(self, make_node, (TreeObject * self, PyObject *name), (self, name))
TQ_HELD(self, copy_node, (TreeObject * self, PyObject *value), (self, value))
TQ_HELD(self, size_of, (TreeObject * self, PyObject *args, PyObject *kwargs), (self, args, kwargs))
TQ_HELD(self, write_tree, (TreeObject * self, PyObject *args, PyObject *kwargs), (self, args, kwargs))
TQ_HELD(self, get_lost, (TreeObject * self, void *closure), (self, closure))
TQ_HELD(self, get_changes, (TreeObject * self, void *closure), (self, closure))

static PyGetSetDef properties[] = {
    {"root", (getter)get_root, NULL, "The table Model.", NULL},
    {"end", (getter)get_end, NULL, "The end of the last byte of the source that belongs to the model; 0 without one.",
     NULL},
    {"lost", (getter)held_get_lost, NULL, "How many stored unions of unknown type are no tables, and were left out.",
     NULL},
    {"changes", (getter)held_get_changes, NULL,
     "A number that rises whenever a field is set, and when the tree is written.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"make", (PyCFunction)held_make_node, METH_O,
     "make($self, table, /)\n--\n\nA new, empty table of that name, as a _Node."},
    {"copy", (PyCFunction)held_copy_node, METH_O,
     "copy($self, node, /)\n--\n\nA copy of a table and of all below it, of this tree."},
    {"size", (PyCFunction)(void (*)(void))held_size_of, METH_VARARGS | METH_KEYWORDS,
     "size($self, share_constants=False, limit=2147483647)\n--\n\nHow many bytes write() would give, without trailing "
     "data."},
    {"write", (PyCFunction)(void (*)(void))held_write_tree, METH_VARARGS | METH_KEYWORDS,
     "write($self, descriptor=-1, share_constants=False, trailing=None, limit=2147483647)\n--\n\n"
     "The model as bytes; with a file descriptor, written to it, and the number of bytes.  trailing(size) gives\n"
     "what follows the model's own bytes.  A flatbuffer that would pass limit gets its constants behind it."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, new}, {Py_tp_dealloc, dealloc}, {Py_tp_getset, properties}, {Py_tp_methods, methods}, {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core._Tree",
    .basicsize = sizeof(TreeObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tq_py_add_tree(PyObject *module, tq_state *state)
{
    if (tq_py_add_node(module, state) < 0 || tq_py_add_type(module, &spec, &state->Tree) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "_Tree", state->Tree);
}
