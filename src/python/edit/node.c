/* SPDX-License-Identifier: Apache-2.0
 *
 * tq._core._Node: one table of an editable model.  node_set.c sets its fields.
 */
#include "python/edit/tree_objects.h"

#include "python/convert.h"
#include "python/model/data.h"

/* ---- getting ---- */

/* A read-only array: a view of bytes, a copy of wider elements. */
static PyObject *vector_object(TreeObject *tree, const tq_field *field, tq_bytes bytes, uint32_t count)
{
    npy_intp size = count;
    if (field->scalar == TQ_U8) {
        PyArray_Descr *dtype = PyArray_DescrFromType(NPY_UINT8);
        size = (npy_intp)bytes.size;
        PyObject *view = tq_py_view(bytes, dtype, 1, &size, Py_NewRef(tree));
        Py_DECREF(dtype);
        return view;
    }
    PyObject *array = PyArray_SimpleNew(1, &size, tq_py_vector_types[field->scalar]);
    if (!array)
        return NULL;
    if (bytes.size)
        memcpy(PyArray_DATA((PyArrayObject *)array), bytes.data, bytes.size);
#if NPY_BYTE_ORDER == NPY_BIG_ENDIAN
    Py_XDECREF(PyArray_Byteswap((PyArrayObject *)array, NPY_TRUE));
#endif
    PyArray_CLEARFLAGS((PyArrayObject *)array, NPY_ARRAY_WRITEABLE);
    return array;
}

static PyObject *list_object(TreeObject *tree, const tq_cell *cell)
{
    PyObject *list = PyList_New(cell->count);
    for (uint32_t i = 0; list && i < cell->count; i++) {
        if (tq_py_hears(i) < 0) {
            Py_CLEAR(list);
            break;
        }
        const bool of_tables = cell->kind == TQ_CELL_TABLES;
        PyObject *item = of_tables ? tq_py_node(tree, cell->tables[i]) : tq_py_text(cell->strings[i]);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

static PyObject *cell_object(TreeObject *tree, const tq_field *field, const tq_cell *cell)
{
    switch ((tq_cell_kind)cell->kind) {
    case TQ_CELL_TABLE: return tq_py_node(tree, cell->table);
    case TQ_CELL_TABLES:
    case TQ_CELL_STRINGS: return list_object(tree, cell);
    case TQ_CELL_VECTOR:
        if (cell->is_text)
            return tq_py_text((tq_bytes){cell->bytes, (size_t)cell->length});
        return vector_object(tree, field, (tq_bytes){cell->bytes, (size_t)cell->length}, cell->count);
    case TQ_CELL_INLINE:
    case TQ_CELL_OUTSIDE: break;
    }
    Py_RETURN_NONE;
}

/* The cell of a field's value.  It may have another slot: the bytes of a buffer and custom options may be outside the
   flatbuffer. */
static tq_cell *cell_of(const tq_tree_node *node, const tq_field *field)
{
    tq_cell *cell = tq_tree_node_cell(node, field->slot), *outside = NULL;
    if (tq_py_field_id(field) == TQ_Buffer_data)
        return tq_buffer_node_cell(node);
    if (tq_py_field_id(field) == TQ_Operator_custom_options)
        outside = tq_tree_node_field(node, TQ_Operator_large_custom_options_offset);
    return outside && outside->kind == TQ_CELL_OUTSIDE && !cell ? outside : cell;
}

static PyObject *get(NodeObject *self, PyObject *name)
{
    const tq_field *field = tq_py_node_field(self, name);
    if (!field)
        return NULL;
    if (field->shape == TQ_SHAPE_SCALAR || field->shape == TQ_SHAPE_ENUM)
        return tq_py_scalar(field, tq_tree_node_scalar(self->node, tq_py_field_id(field)));
    tq_cell *cell = cell_of(self->node, field);
    if (!cell)
        Py_RETURN_NONE;
    if (cell->is_made) {
        tq_error error;
        if (tq_py_tree_may_allocate(self->tree) < 0 ||
            tq_py_tree_result(self->tree, tq_cell_settle(&self->tree->tree, cell, &error), &error) < 0)
            return NULL;
    }
    if (cell->kind == TQ_CELL_OUTSIDE)
        return vector_object(self->tree, field, (tq_bytes){cell->bytes, (size_t)cell->length}, 0);
    return cell_object(self->tree, field, cell);
}

static PyObject *has(NodeObject *self, PyObject *name)
{
    const tq_field *field = tq_py_node_field(self, name);
    return field ? PyBool_FromLong(cell_of(self->node, field) != NULL) : NULL;
}

static PyObject *unknown_slots(NodeObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    tq_table_id id = self->node->id;
    for (uint32_t i = 0; list && i < self->node->count; i++) {
        unsigned slot = self->node->cells[i].slot;
        bool known = false;
        for (unsigned k = tq_tables[id].first; id != TQ_TABLE_NONE && k < tq_tables[id + 1].first; k++)
            known |=
                tq_fields[k].slot == slot || (tq_fields[k].shape == TQ_SHAPE_UNION && tq_fields[k].slot == slot + 1);
        PyObject *number = known ? NULL : PyLong_FromUnsignedLong(slot);
        if (!known && (!number || PyList_Append(list, number) < 0))
            Py_CLEAR(list);
        Py_XDECREF(number);
    }
    return list;
}

/* The number of elements of a vector, without making it; 0: not stored. */
static PyObject *length_of(NodeObject *self, PyObject *name)
{
    const tq_field *field = tq_py_node_field(self, name);
    const tq_cell *cell = field ? tq_tree_node_cell(self->node, field->slot) : NULL;
    if (!field)
        return NULL;
    return PyLong_FromUnsignedLong(cell && cell->kind != TQ_CELL_INLINE ? cell->count : 0);
}

/* A vector of integers as a tuple; empty: not stored. */
static PyObject *numbers(NodeObject *self, PyObject *name)
{
    const tq_field *field = tq_py_node_field(self, name);
    if (!field)
        return NULL;
    const tq_cell *cell = tq_tree_node_cell(self->node, field->slot);
    if (field->shape != TQ_SHAPE_VEC_SCALAR || !tq_py_is_integer(field) || !cell || cell->kind != TQ_CELL_VECTOR ||
        cell->is_made)
        return PyTuple_New(0);
    PyObject *tuple = PyTuple_New(cell->count);
    for (uint32_t i = 0; tuple && i < cell->count; i++) {
        const uint8_t *p = cell->bytes + (size_t)i * tq_scalar_size[field->scalar];
        PyObject *item = tq_py_scalar(field, tq_load_scalar(p, field->scalar));
        if (!item)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

/* ---- the type ---- */

TQ_HELD(self->tree, get, (NodeObject * self, PyObject *name), (self, name))
TQ_HELD(self->tree, has, (NodeObject * self, PyObject *name), (self, name))
TQ_HELD(self->tree, numbers, (NodeObject * self, PyObject *name), (self, name))
TQ_HELD(self->tree, length_of, (NodeObject * self, PyObject *name), (self, name))
TQ_HELD(self->tree, unknown_slots, (NodeObject * self, PyObject *unused), (self, unused))
TQ_HELD(self->tree, tq_py_node_set, (NodeObject * self, PyObject *args), (self, args))
TQ_HELD(self->tree, tq_py_node_store, (NodeObject * self, PyObject *const *args, Py_ssize_t count), (self, args, count))

static PyObject *get_type(NodeObject *self, void *closure)
{
    (void)closure;
    if (self->node->id == TQ_TABLE_NONE)
        Py_RETURN_NONE;
    return PyUnicode_FromString(tq_tables[self->node->id].name);
}

static PyObject *get_tree(NodeObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self->tree);
}

static PyObject *compare(PyObject *a, PyObject *b, int op)
{
    if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((((NodeObject *)a)->node == ((NodeObject *)b)->node) == (op == Py_EQ));
}

static Py_hash_t hash(PyObject *self)
{
    return (Py_hash_t)((uintptr_t)((NodeObject *)self)->node >> 4); /* nodes are aligned to 16 */
}

static PyObject *repr(NodeObject *self)
{
    return PyUnicode_FromFormat("<tq._core._Node %s: %u fields>", tq_py_table_name(self->node), self->node->count);
}

static void dealloc(NodeObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->tree);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyGetSetDef properties[] = {
    {"type", (getter)get_type, NULL, "The table's name in the schema, or None for one that it does not know.", NULL},
    {"tree", (getter)get_tree, NULL, "The _Tree that it belongs to.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"get", (PyCFunction)held_get, METH_O,
     "get($self, field, /)\n--\n\n"
     "A scalar, or its default where it is not stored; an str; a read-only array; a _Node; a list of\n"
     "them or of str.  None: not stored, and no scalar."},
    {"has", (PyCFunction)held_has, METH_O, "has($self, field, /)\n--\n\nWhether the field is stored."},
    {"numbers", (PyCFunction)held_numbers, METH_O,
     "numbers($self, field, /)\n--\n\nA vector of integers as a tuple; empty where it is not stored."},
    {"length", (PyCFunction)held_length_of, METH_O,
     "length($self, field, /)\n--\n\nHow many elements a vector has; 0 where it is not stored."},
    {"store", (PyCFunction)(void (*)(void))held_tq_py_node_store, METH_FASTCALL,
     "store($self, field, value, /)\n--\n\n"
     "Sets a field to an int or a bool, a short list of ints or an array of its own dtype; False, and nothing is\n"
     "done, for other values, and for values that do not fit."},
    {"set", (PyCFunction)held_tq_py_node_set, METH_VARARGS,
     "set($self, field, value, /)\n--\n\n"
     "A number for a scalar, bytes for a string or a vector of scalars, a _Node of the same tree, a\n"
     "sequence of them or of bytes; None takes the field away."},
    {"unknown_slots", (PyCFunction)held_unknown_slots, METH_NOARGS,
     "unknown_slots($self, /)\n--\n\nThe slots of stored fields that the schema does not know."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_repr, repr},
    {Py_tp_richcompare, compare},
    {Py_tp_hash, hash},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core._Node",
    .basicsize = sizeof(NodeObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tq_py_add_node(PyObject *module, tq_state *state)
{
    if (tq_py_add_type(module, &spec, &state->Node) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "_Node", state->Node);
}
