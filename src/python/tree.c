/* SPDX-License-Identifier: Apache-2.0
 *
 * tq._core._Tree and _Node: a model's tables, to be changed and written.  Internal: what users see is
 * made of them in tq/editor.py, and values are turned into the schema's kinds in tq/fields.py.
 */
#include "python/tree.h"

#include "base/pages.h"
#include "model/rewrite.h"
#include "python/convert.h"
#include "python/data.h"
#include "python/errors.h"
#include "python/model.h"

typedef struct {
    PyObject_HEAD
    tq_tree tree;
    bool is_open;
    bool is_busy;       /* being written, without the GIL: may be read, but not changed */
    uint64_t end;       /* of what the tree borrows from the model's file; what follows is no part of it */
    uint64_t changes;   /* how often something was set */
    PyObject *model;    /* whose bytes the tree borrows, or NULL */
    PyObject *borrowed; /* list of memoryviews: what else it borrows from */
} TreeObject;

typedef struct {
    PyObject_HEAD
    TreeObject *tree;
    tq_node *node;
} NodeObject;

enum { COPIED = 4096 }; /* bytes; what is larger is borrowed from its owner */

/* ---- what both share ---- */

static PyObject *node_object(TreeObject *tree, tq_node *node)
{
    PyTypeObject *type = (PyTypeObject *)tq_state_of((PyObject *)tree)->Node;
    NodeObject *self = (NodeObject *)type->tp_alloc(type, 0);
    if (self) {
        self->tree = (TreeObject *)Py_NewRef(tree);
        self->node = node;
    }
    return (PyObject *)self;
}

static int raise_status(TreeObject *tree, tq_status status, const tq_error *error)
{
    if (status == TQ_OK)
        return 0;
    tq_py_raise(tq_state_of((PyObject *)tree), error, NULL);
    return -1;
}

/* 0, or -1 while another thread writes the tree. */
static int may_allocate(TreeObject *tree)
{
    if (!tree->is_busy)
        return 0;
    PyErr_SetString(PyExc_RuntimeError, "another thread is writing this model");
    return -1;
}

/* The same, and one change more. */
static int begin_change(TreeObject *tree)
{
    tree->changes++;
    return may_allocate(tree);
}

/* Bytes of an object with a buffer, which live as long as the tree. */
static int take_bytes(TreeObject *tree, PyObject *object, tq_bytes *out)
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
    return failed < 0 ? -1 : raise_status(tree, status, &error);
}

/* ---- getting ---- */

static const tq_field *look_up(tq_table_id id, PyObject *name)
{
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(name, &size); /* of ASCII no copy is made */
    if (!text)
        PyErr_Clear(); /* lone surrogates, which no field has */
    for (unsigned i = tq_tables[id].first; text && i < tq_tables[id + 1].first; i++)
        if (strcmp(text, tq_fields[i].name) == 0 && strlen(text) == (size_t)size)
            return &tq_fields[i];
    return NULL;
}

static const tq_field *find_field(NodeObject *self, PyObject *name)
{
    tq_table_id id = self->node->id;
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "a field's name is a str, not %.100s", Py_TYPE(name)->tp_name), NULL;
    const tq_field *found = id == TQ_TABLE_NONE ? NULL : look_up(id, name);
    if (found)
        return found;
    PyErr_Format(PyExc_KeyError, "the schema's table %s has no field %R", id == TQ_TABLE_NONE ? "of unknown type" : tq_tables[id].name, name);
    return NULL;
}

static tq_field_id id_of(const tq_field *field)
{
    return (tq_field_id)(field - tq_fields);
}

static PyObject *scalar_object(const tq_field *field, tq_value value)
{
    if (field->scalar == TQ_BOOL)
        return PyBool_FromLong(value.i != 0);
    switch (value.kind) {
    case TQ_VALUE_UINT: return PyLong_FromUnsignedLongLong(value.u);
    case TQ_VALUE_FLOAT: return PyFloat_FromDouble(value.f);
    case TQ_VALUE_INT: break;
    }
    return PyLong_FromLongLong(value.i);
}

static const int vector_types[TQ_SCALAR_COUNT] = {NPY_BOOL,   NPY_INT8,  NPY_UINT8,  NPY_INT16,   NPY_UINT16, NPY_INT32,
                                                  NPY_UINT32, NPY_INT64, NPY_UINT64, NPY_FLOAT32, NPY_FLOAT64};

/* A read-only array: of bytes a view, of wider elements a copy. */
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
    PyObject *array = PyArray_SimpleNew(1, &size, vector_types[field->scalar]);
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
        PyObject *item = cell->kind == TQ_CELL_TABLES ? node_object(tree, cell->tables[i]) : tq_py_text(cell->strings[i]);
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
    case TQ_CELL_TABLE:
        return node_object(tree, cell->table);
    case TQ_CELL_TABLES:
    case TQ_CELL_STRINGS:
        return list_object(tree, cell);
    case TQ_CELL_VECTOR:
        if (cell->is_text)
            return tq_py_text((tq_bytes){cell->bytes, (size_t)cell->length});
        return vector_object(tree, field, (tq_bytes){cell->bytes, (size_t)cell->length}, cell->count);
    case TQ_CELL_INLINE:
    case TQ_CELL_OUTSIDE:
        break;
    }
    Py_RETURN_NONE;
}

/* The cell that holds what a field stands for: the bytes of a buffer and of custom options may stand
   outside, in another slot. */
static tq_cell *cell_of(const tq_node *node, const tq_field *field)
{
    tq_cell *cell = tq_node_cell(node, field->slot), *outside = NULL;
    if (id_of(field) == TQ_Buffer_data)
        return tq_buffer_node_cell(node);
    if (id_of(field) == TQ_Operator_custom_options)
        outside = tq_node_field(node, TQ_Operator_large_custom_options_offset);
    return outside && outside->kind == TQ_CELL_OUTSIDE && !cell ? outside : cell;
}

static PyObject *get(NodeObject *self, PyObject *name)
{
    const tq_field *field = find_field(self, name);
    if (!field)
        return NULL;
    if (field->shape == TQ_SHAPE_SCALAR || field->shape == TQ_SHAPE_ENUM)
        return scalar_object(field, tq_node_scalar(self->node, id_of(field)));
    tq_cell *cell = cell_of(self->node, field);
    if (!cell)
        Py_RETURN_NONE;
    if (cell->is_made) {
        tq_error error;
        if (may_allocate(self->tree) < 0 ||
            raise_status(self->tree, tq_cell_settle(&self->tree->tree, cell, &error), &error) < 0)
            return NULL;
    }
    if (cell->kind == TQ_CELL_OUTSIDE)
        return vector_object(self->tree, field, (tq_bytes){cell->bytes, (size_t)cell->length}, 0);
    return cell_object(self->tree, field, cell);
}

static PyObject *has(NodeObject *self, PyObject *name)
{
    const tq_field *field = find_field(self, name);
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
            known |= tq_fields[k].slot == slot || (tq_fields[k].shape == TQ_SHAPE_UNION && tq_fields[k].slot == slot + 1);
        PyObject *number = known ? NULL : PyLong_FromUnsignedLong(slot);
        if (!known && (!number || PyList_Append(list, number) < 0))
            Py_CLEAR(list);
        Py_XDECREF(number);
    }
    return list;
}

/* ---- setting ---- */

static int set_scalar(NodeObject *self, const tq_field *field, PyObject *value)
{
    uint8_t bytes[8];
    unsigned size = tq_scalar_size[field->scalar];
    if (field->scalar == TQ_F32 || field->scalar == TQ_F64) {
        double number = PyFloat_AsDouble(value);
        if (number == -1 && PyErr_Occurred())
            return -1;
        float narrow = (float)number;
        uint32_t bits;
        uint64_t wide;
        memcpy(&bits, &narrow, sizeof bits);
        memcpy(&wide, &number, sizeof wide);
        tq_store_u64(bytes, field->scalar == TQ_F32 ? bits : wide);
    } else if (field->scalar == TQ_U64) {
        unsigned long long number = PyLong_AsUnsignedLongLong(value);
        if (number == (unsigned long long)-1 && PyErr_Occurred())
            return -1;
        tq_store_u64(bytes, number);
    } else {
        long long number = PyLong_AsLongLong(value);
        if (number == -1 && PyErr_Occurred())
            return -1;
        tq_store_u64(bytes, (uint64_t)number);
        tq_value stored = tq_load_scalar(bytes, field->scalar);
        if (stored.i != number) {
            PyErr_Format(PyExc_OverflowError, "%s: %lld does not fit its %u bytes", field->name, number, size);
            return -1;
        }
    }
    tq_error error;
    return raise_status(self->tree, tq_node_set_scalar(&self->tree->tree, self->node, id_of(field), bytes, &error), &error);
}

static int put_cell(NodeObject *self, const tq_cell *cell)
{
    tq_error error;
    return raise_status(self->tree, tq_node_put(&self->tree->tree, self->node, cell, &error), &error);
}

static int set_vector(NodeObject *self, const tq_field *field, PyObject *value)
{
    bool is_text = field->shape == TQ_SHAPE_STRING;
    unsigned size = is_text ? 1 : tq_scalar_size[field->scalar];
    tq_bytes bytes;
    tq_error error;
    if (take_bytes(self->tree, value, &bytes) < 0)
        return -1;
    if (id_of(field) == TQ_Buffer_data)
        return raise_status(self->tree, tq_buffer_node_set(&self->tree->tree, self->node, bytes, &error), &error);
    if (bytes.size % size || bytes.size / size > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s: %zu bytes are no vector of %u-byte elements", field->name, bytes.size, size);
        return -1;
    }
    tq_cell cell = {.slot = field->slot, .kind = TQ_CELL_VECTOR, .align = (uint8_t)size, .is_text = is_text,
                    .count = (uint32_t)(bytes.size / size), .length = bytes.size};
    cell.bytes = bytes.data;
    return put_cell(self, &cell);
}

static int set_strings(NodeObject *self, const tq_field *field, PyObject *value)
{
    PyObject *items = PySequence_Fast(value, "a sequence of bytes is needed");
    if (!items)
        return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    tq_bytes *strings;
    tq_error error;
    int result = raise_status(self->tree, tq_region_get(&self->tree->tree.region, (uint64_t)count, sizeof *strings, &strings, &error), &error);
    for (Py_ssize_t i = 0; result == 0 && i < count; i++)
        result = take_bytes(self->tree, PySequence_Fast_GET_ITEM(items, i), &strings[i]);
    Py_DECREF(items);
    tq_cell cell = {.slot = field->slot, .kind = TQ_CELL_STRINGS, .align = 4, .count = (uint32_t)count};
    if (result == 0)
        cell.strings = strings;
    return result == 0 ? put_cell(self, &cell) : -1;
}

/* ---- numbers, without a detour ---- */

static bool is_integer(const tq_field *field)
{
    return field->scalar != TQ_BOOL && field->scalar != TQ_F32 && field->scalar != TQ_F64;
}

/* An int as the file has it, in the first bytes; false: it is no plain int, or does not fit. */
static bool plain_integer(const tq_field *field, PyObject *value, uint8_t bytes[8])
{
    int overflow;
    if (!PyLong_CheckExact(value))
        return false;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || (field->scalar == TQ_U64 && number < 0))
        return false;
    tq_store_u64(bytes, (uint64_t)number);
    return field->scalar == TQ_U64 || tq_load_scalar(bytes, field->scalar).i == number;
}

static int store_vector(NodeObject *self, const tq_field *field, const uint8_t *from, size_t count)
{
    const size_t size = tq_scalar_size[field->scalar];
    uint8_t *bytes;
    tq_error error;
    if (raise_status(self->tree, tq_region_get(&self->tree->tree.region, count, size, &bytes, &error), &error) < 0)
        return -1;
    if (count)
        memcpy(bytes, from, count * size);
    tq_cell cell = {.slot = field->slot, .kind = TQ_CELL_VECTOR, .align = (uint8_t)size, .count = (uint32_t)count,
                    .length = count * size};
    cell.bytes = bytes;
    return put_cell(self, &cell);
}

/* 1: stored; 0: not all of them are plain and fit; -1: an exception. */
static int store_items(NodeObject *self, const tq_field *field, PyObject *items)
{
    enum { MOST = 64 };
    uint8_t bytes[8 * MOST + 8];
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    if (count > MOST || !is_integer(field))
        return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!plain_integer(field, PySequence_Fast_GET_ITEM(items, i), bytes + (size_t)i * tq_scalar_size[field->scalar]))
            return 0;
    return store_vector(self, field, bytes, (size_t)count) < 0 ? -1 : 1;
}

static int store_array(NodeObject *self, const tq_field *field, PyArrayObject *array)
{
    if (NPY_BYTE_ORDER == NPY_BIG_ENDIAN)
        return 0;
    if (PyArray_NDIM(array) != 1 || PyArray_TYPE(array) != vector_types[field->scalar] || !PyArray_ISCARRAY_RO(array) ||
        PyArray_SIZE(array) > INT32_MAX)
        return 0;
    return store_vector(self, field, PyArray_DATA(array), (size_t)PyArray_SIZE(array)) < 0 ? -1 : 1;
}

static int store_number(NodeObject *self, const tq_field *field, PyObject *value)
{
    uint8_t bytes[8];
    tq_error error;
    if (field->scalar == TQ_BOOL && PyBool_Check(value))
        bytes[0] = value == Py_True;
    else if (!is_integer(field) || !plain_integer(field, value, bytes))
        return 0;
    tq_status status = tq_node_set_scalar(&self->tree->tree, self->node, id_of(field), bytes, &error);
    return raise_status(self->tree, status, &error) < 0 ? -1 : 1;
}

static PyObject *store(NodeObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "store takes a field and a value");
        return NULL;
    }
    const tq_field *field = self->node->id == TQ_TABLE_NONE ? NULL : look_up(self->node->id, args[0]);
    PyObject *value = args[1];
    int stored = 0;
    if (!field || id_of(field) == TQ_Buffer_data)
        Py_RETURN_FALSE;
    if (begin_change(self->tree) < 0)
        return NULL;
    if (field->shape == TQ_SHAPE_SCALAR || field->shape == TQ_SHAPE_ENUM)
        stored = store_number(self, field, value);
    else if (field->shape == TQ_SHAPE_VEC_SCALAR && (PyList_CheckExact(value) || PyTuple_CheckExact(value)))
        stored = store_items(self, field, value);
    else if (field->shape == TQ_SHAPE_VEC_SCALAR && PyArray_CheckExact(value))
        stored = store_array(self, field, (PyArrayObject *)value);
    return stored < 0 ? NULL : PyBool_FromLong(stored);
}

/* How many elements a vector has; 0 where it is not stored.  Nothing is made for it. */
static PyObject *length_of(NodeObject *self, PyObject *name)
{
    const tq_field *field = find_field(self, name);
    const tq_cell *cell = field ? tq_node_cell(self->node, field->slot) : NULL;
    if (!field)
        return NULL;
    return PyLong_FromUnsignedLong(cell && cell->kind != TQ_CELL_INLINE ? cell->count : 0);
}

/* A vector of integers as a tuple; what is not stored has none. */
static PyObject *numbers(NodeObject *self, PyObject *name)
{
    const tq_field *field = find_field(self, name);
    if (!field)
        return NULL;
    const tq_cell *cell = tq_node_cell(self->node, field->slot);
    if (field->shape != TQ_SHAPE_VEC_SCALAR || !is_integer(field) || !cell || cell->kind != TQ_CELL_VECTOR || cell->is_made)
        return PyTuple_New(0);
    PyObject *tuple = PyTuple_New(cell->count);
    for (uint32_t i = 0; tuple && i < cell->count; i++) {
        PyObject *item = scalar_object(field, tq_load_scalar(cell->bytes + (size_t)i * tq_scalar_size[field->scalar], field->scalar));
        if (!item)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

/* The node of a value that must be one of this tree and, but for NONE, of that table. */
static tq_node *node_of(NodeObject *self, const char *what, PyObject *value, tq_table_id id)
{
    PyObject *type = tq_state_of((PyObject *)self)->Node;
    if (!PyObject_TypeCheck(value, (PyTypeObject *)type)) {
        PyErr_Format(PyExc_TypeError, "%s: a table is needed, not %.100s", what, Py_TYPE(value)->tp_name);
        return NULL;
    }
    NodeObject *other = (NodeObject *)value;
    if (other->tree != self->tree) {
        PyErr_Format(PyExc_ValueError, "%s: the table belongs to another model; copy it into this one", what);
        return NULL;
    }
    if (id != TQ_TABLE_NONE && other->node->id != id) {
        PyErr_Format(PyExc_ValueError, "%s: a table %s is needed", what, tq_tables[id].name);
        return NULL;
    }
    return other->node;
}

static int set_tables(NodeObject *self, const tq_field *field, PyObject *value)
{
    PyObject *items = PySequence_Fast(value, "a sequence of tables is needed");
    if (!items)
        return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    tq_node **tables;
    tq_error error;
    int result = raise_status(self->tree, tq_region_get(&self->tree->tree.region, (uint64_t)count, sizeof *tables, &tables, &error), &error);
    for (Py_ssize_t i = 0; result == 0 && i < count; i++) {
        tables[i] = node_of(self, field->name, PySequence_Fast_GET_ITEM(items, i), field->detail);
        result = tables[i] ? 0 : -1;
    }
    Py_DECREF(items);
    tq_cell cell = {.slot = field->slot, .kind = TQ_CELL_TABLES, .align = 4, .count = (uint32_t)count};
    if (result == 0)
        cell.tables = tables;
    return result == 0 ? put_cell(self, &cell) : -1;
}

/* The type byte that selects a table; 0: the union has no such member. */
static uint8_t union_type(tq_union_id which, tq_table_id id)
{
    for (unsigned type = 1; type <= UINT8_MAX; type++)
        if (tq_union_member(which, (uint8_t)type) == id)
            return (uint8_t)type;
    return 0;
}

static int set_table(NodeObject *self, const tq_field *field, PyObject *value)
{
    bool is_union = field->shape == TQ_SHAPE_UNION;
    tq_node *node = node_of(self, field->name, value, is_union ? TQ_TABLE_NONE : field->detail);
    if (!node)
        return -1;
    if (is_union) {
        uint8_t type = node->id == TQ_TABLE_NONE ? 0 : union_type(field->detail, node->id);
        if (!type) {
            PyErr_Format(PyExc_ValueError, "the union %s has no member %s", tq_union_name(field->detail),
                         node->id == TQ_TABLE_NONE ? "of unknown type" : tq_tables[node->id].name);
            return -1;
        }
        tq_cell byte = {.slot = (uint16_t)(field->slot - 1), .kind = TQ_CELL_INLINE, .align = 1, .length = 1};
        byte.scalar[0] = type;
        if (put_cell(self, &byte) < 0)
            return -1;
    }
    tq_cell cell = {.slot = field->slot, .kind = TQ_CELL_TABLE, .align = 4};
    cell.table = node;
    return put_cell(self, &cell);
}

/* Takes a field away; with a union its type, with outside bytes where they are. */
static void drop(NodeObject *self, const tq_field *field)
{
    tq_node_drop(self->node, field->slot);
    if (field->shape == TQ_SHAPE_UNION)
        tq_node_drop(self->node, field->slot - 1u);
    if (id_of(field) == TQ_Buffer_data) {
        tq_node_drop(self->node, tq_fields[TQ_Buffer_offset].slot);
        tq_node_drop(self->node, tq_fields[TQ_Buffer_size].slot);
    }
    if (id_of(field) == TQ_Operator_custom_options) {
        tq_node_drop(self->node, tq_fields[TQ_Operator_large_custom_options_offset].slot);
        tq_node_drop(self->node, tq_fields[TQ_Operator_large_custom_options_size].slot);
    }
}

static int set_field(NodeObject *self, const tq_field *field, PyObject *value)
{
    switch ((tq_field_shape)field->shape) {
    case TQ_SHAPE_SCALAR:
    case TQ_SHAPE_ENUM:
        return set_scalar(self, field, value);
    case TQ_SHAPE_TABLE:
    case TQ_SHAPE_UNION:
        return set_table(self, field, value);
    case TQ_SHAPE_VEC_TABLE:
        return set_tables(self, field, value);
    case TQ_SHAPE_VEC_STRING:
        return set_strings(self, field, value);
    default:
        return set_vector(self, field, value);
    }
}

static PyObject *set(NodeObject *self, PyObject *args)
{
    PyObject *name, *value;
    if (!PyArg_ParseTuple(args, "OO:set", &name, &value))
        return NULL;
    const tq_field *field = find_field(self, name);
    if (!field || begin_change(self->tree) < 0)
        return NULL;
    if (value == Py_None || id_of(field) == TQ_Operator_custom_options)
        drop(self, field);
    if (value != Py_None && set_field(self, field, value) < 0)
        return NULL;
    Py_RETURN_NONE;
}

tq_tree *tq_py_change_node(tq_state *state, PyObject *object, const char *table, tq_node **node)
{
    NodeObject *self = (NodeObject *)object;
    if (!PyObject_TypeCheck(object, (PyTypeObject *)state->Node) || self->node->id == TQ_TABLE_NONE ||
        strcmp(tq_tables[self->node->id].name, table) != 0) {
        PyErr_Format(PyExc_TypeError, "a table %s is needed", table);
        return NULL;
    }
    *node = self->node;
    return begin_change(self->tree) < 0 ? NULL : &self->tree->tree;
}

int tq_py_keep_for_node(PyObject *object, PyObject *owner)
{
    return PyList_Append(((NodeObject *)object)->tree->borrowed, owner);
}

/* ---- _Node ---- */

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

static PyObject *compare_nodes(PyObject *a, PyObject *b, int op)
{
    if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((((NodeObject *)a)->node == ((NodeObject *)b)->node) == (op == Py_EQ));
}

static Py_hash_t hash_node(PyObject *self)
{
    return (Py_hash_t)((uintptr_t)((NodeObject *)self)->node >> 4); /* nodes are aligned to 16 */
}

static PyObject *repr_node(NodeObject *self)
{
    tq_table_id id = self->node->id;
    return PyUnicode_FromFormat("<tq._core._Node %s: %u fields>", id == TQ_TABLE_NONE ? "of unknown type" : tq_tables[id].name, self->node->count);
}

static void dealloc_node(NodeObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->tree);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyGetSetDef node_properties[] = {
    {"type", (getter)get_type, NULL, "The table's name in the schema, or None for one that it does not know.", NULL},
    {"tree", (getter)get_tree, NULL, "The _Tree that it belongs to.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef node_methods[] = {
    {"get", (PyCFunction)get, METH_O,
     "get($self, field, /)\n--\n\nA scalar, or its default where it is not stored; an str; a read-only array; a _Node; a list of\nthem or of str.  None where what is no scalar is not stored."},
    {"has", (PyCFunction)has, METH_O, "has($self, field, /)\n--\n\nWhether the field is stored."},
    {"numbers", (PyCFunction)numbers, METH_O, "numbers($self, field, /)\n--\n\nA vector of integers as a tuple; empty where it is not stored."},
    {"length", (PyCFunction)length_of, METH_O, "length($self, field, /)\n--\n\nHow many elements a vector has; 0 where it is not stored."},
    {"store", (PyCFunction)(void (*)(void))store, METH_FASTCALL,
     "store($self, field, value, /)\n--\n\nSets a field to an int or a bool, a short list of ints or an array of its own dtype; False, and nothing is\ndone, for all else and for what does not fit."},
    {"set", (PyCFunction)set, METH_VARARGS,
     "set($self, field, value, /)\n--\n\nA number for a scalar, bytes for a string or a vector of scalars, a _Node of the same tree, a\nsequence of them or of bytes; None takes the field away."},
    {"unknown_slots", (PyCFunction)unknown_slots, METH_NOARGS, "unknown_slots($self, /)\n--\n\nThe slots of stored fields that the schema does not know."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot node_slots[] = {
    {Py_tp_dealloc, dealloc_node},
    {Py_tp_repr, repr_node},
    {Py_tp_richcompare, compare_nodes},
    {Py_tp_hash, hash_node},
    {Py_tp_getset, node_properties},
    {Py_tp_methods, node_methods},
    {0, NULL},
};

static PyType_Spec node_spec = {
    .name = "tq._core._Node",
    .basicsize = sizeof(NodeObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = node_slots,
};

/* ---- _Tree ---- */

static PyObject *new_tree(PyTypeObject *type, PyObject *args, PyObject *kwargs)
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
    if (raise_status(self, status, &error) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void dealloc_tree(TreeObject *self)
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
    tq_node *node;
    tq_error error;
    for (unsigned id = 0; PyUnicode_Check(name) && id < TQ_TABLE_COUNT; id++) {
        if (PyUnicode_CompareWithASCIIString(name, tq_tables[id].name) != 0)
            continue;
        if (may_allocate(self) < 0 || raise_status(self, tq_node_make(&self->tree, id, &node, &error), &error) < 0)
            return NULL;
        return node_object(self, node);
    }
    return PyErr_Format(PyExc_KeyError, "the schema has no table %R", name);
}

static PyObject *copy_node(TreeObject *self, PyObject *value)
{
    PyObject *type = tq_state_of((PyObject *)self)->Node;
    tq_node *node;
    tq_error error;
    if (!PyObject_TypeCheck(value, (PyTypeObject *)type))
        return PyErr_Format(PyExc_TypeError, "a table is needed, not %.100s", Py_TYPE(value)->tp_name);
    NodeObject *from = (NodeObject *)value;
    if (from->tree != self) /* whose bytes would have to live as long as this one */
        return PyErr_Format(PyExc_ValueError, "the table belongs to another model");
    if (may_allocate(self) < 0)
        return NULL;
    if (raise_status(self, tq_node_copy(&self->tree, from->node, &node, &error), &error) < 0)
        return NULL;
    return node_object(self, node);
}

/* The bytes that follow what is planned: tail(size), or none. */
static int find_tail(PyObject *tail, uint64_t size, Py_buffer *out)
{
    *out = (Py_buffer){.obj = NULL};
    if (tail == Py_None)
        return 0;
    PyObject *made = PyObject_CallFunction(tail, "K", (unsigned long long)size);
    if (!made)
        return -1;
    int result = PyObject_GetBuffer(made, out, PyBUF_SIMPLE);
    Py_DECREF(made);
    return result;
}

static PyObject *write_memory(TreeObject *self, tq_plan *plan, const Py_buffer *tail)
{
    if (plan->size > (uint64_t)PY_SSIZE_T_MAX - (uint64_t)tail->len)
        return PyErr_NoMemory();
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)plan->size + tail->len);
    if (!bytes)
        return NULL;
    tq_pages_prefer_large(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    tq_memory_sink memory = {(uint8_t *)PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)};
    tq_sink sink = tq_sink_to_memory(&memory);
    tq_error error;
    tq_status status;
    Py_BEGIN_ALLOW_THREADS
    status = tq_plan_write(plan, &sink, &error);
    if (status == TQ_OK && tail->len)
        status = sink.put(sink.context, (tq_bytes){tail->buf, (size_t)tail->len}, &error);
    Py_END_ALLOW_THREADS
    if (raise_status(self, status, &error) < 0)
        Py_CLEAR(bytes);
    return bytes;
}

static PyObject *write_file(TreeObject *self, tq_plan *plan, const Py_buffer *tail, int descriptor)
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
    if (status == TQ_OK && tail->len)
        status = sink.put(sink.context, (tq_bytes){tail->buf, (size_t)tail->len}, &error);
    if (status == TQ_OK)
        status = tq_file_sink_end(file, &error);
    Py_END_ALLOW_THREADS
    PyMem_Free(file);
    if (raise_status(self, status, &error) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(plan->size + (uint64_t)tail->len);
}

static PyObject *write_tree(TreeObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"descriptor", "share_constants", "tail", "limit", NULL};
    int descriptor = -1, share = 0;
    long long limit = TQ_FLATBUFFER_LIMIT;
    PyObject *tail = Py_None, *result = NULL;
    Py_buffer behind;
    tq_plan plan;
    tq_error error;
    tq_status status;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|ipOL:write", names, &descriptor, &share, &tail, &limit))
        return NULL;
    if (begin_change(self) < 0)
        return NULL;
    self->is_busy = true;
    status = tq_rewrite_plan(&self->tree, limit < 0 ? 0 : (uint64_t)limit, share, &plan, &error); /* may move cells */
    if (raise_status(self, status, &error) == 0) {
        if (find_tail(tail, plan.size, &behind) == 0) {
            result = descriptor < 0 ? write_memory(self, &plan, &behind) : write_file(self, &plan, &behind, descriptor);
            PyBuffer_Release(&behind);
        }
        tq_plan_close(&plan);
    }
    self->is_busy = false;
    return result;
}

/* The size that write() with the same arguments gives, without a tail. */
static PyObject *size_of(TreeObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"share_constants", "limit", NULL};
    int share = 0;
    long long limit = TQ_FLATBUFFER_LIMIT;
    tq_plan plan;
    tq_error error;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pL:size", names, &share, &limit) || begin_change(self) < 0)
        return NULL;
    if (raise_status(self, tq_rewrite_plan(&self->tree, limit < 0 ? 0 : (uint64_t)limit, share, &plan, &error), &error) < 0)
        return NULL;
    uint64_t size = plan.size;
    tq_plan_close(&plan);
    return PyLong_FromUnsignedLongLong(size);
}

static PyObject *get_root(TreeObject *self, void *closure)
{
    (void)closure;
    return node_object(self, self->tree.root);
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

static PyGetSetDef tree_properties[] = {
    {"root", (getter)get_root, NULL, "The table Model.", NULL},
    {"end", (getter)get_end, NULL, "The end of the last byte of the source that belongs to the model; 0 without one.", NULL},
    {"lost", (getter)get_lost, NULL, "How many stored unions of unknown type are no tables, and were not kept.", NULL},
    {"changes", (getter)get_changes, NULL, "A number that rises whenever a field is set, and when the tree is written.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef tree_methods[] = {
    {"make", (PyCFunction)make_node, METH_O, "make($self, table, /)\n--\n\nA new, empty table of that name, as a _Node."},
    {"copy", (PyCFunction)copy_node, METH_O, "copy($self, node, /)\n--\n\nA copy of a table and of all below it, of this tree."},
    {"size", (PyCFunction)(void (*)(void))size_of, METH_VARARGS | METH_KEYWORDS,
     "size($self, share_constants=False, limit=2147483647)\n--\n\nHow many bytes write() would give, without a tail."},
    {"write", (PyCFunction)(void (*)(void))write_tree, METH_VARARGS | METH_KEYWORDS,
     "write($self, descriptor=-1, share_constants=False, tail=None, limit=2147483647)\n--\n\n"
     "The model as bytes; with a file descriptor, written to it, and the number of bytes.  tail(size) gives\n"
     "what follows the model's own bytes.  A flatbuffer that would pass limit gets its constants behind it."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot tree_slots[] = {
    {Py_tp_new, new_tree},
    {Py_tp_dealloc, dealloc_tree},
    {Py_tp_getset, tree_properties},
    {Py_tp_methods, tree_methods},
    {0, NULL},
};

static PyType_Spec tree_spec = {
    .name = "tq._core._Tree",
    .basicsize = sizeof(TreeObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = tree_slots,
};

/* ---- rows ---- */

static PyObject *tensor_types(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(TQ_TYPE_COUNT);
    for (int i = 0; list && i < TQ_TYPE_COUNT; i++) {
        const tq_type_row *row = tq_type(i);
        PyObject *item = Py_BuildValue("(sis)", row->name, row->bits, row->dtype);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

static PyObject *callees(PyObject *module, PyObject *unused)
{
    static const struct {
        const char *op, *table, *field;
    } all[] = {
#define CALLEE(op, table, field, inputs, outputs) {#op, #table, #field},
#include "model/callees.def"
#undef CALLEE
    };
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(sizeof all / sizeof *all);
    for (size_t i = 0; list && i < sizeof all / sizeof *all; i++) {
        PyObject *item = Py_BuildValue("(sss)", all[i].op, all[i].table, all[i].field);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

static PyMethodDef functions[] = {
    {"callees", callees, METH_NOARGS, "[(operator, options table, field)], the rows of model/callees.def: options that name subgraphs."},
    {"tensor_types", tensor_types, METH_NOARGS, "[(name, bits of an element, dtype)], the rows of model/types.def, by TensorType."},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_tree(PyObject *module, tq_state *state)
{
    if (tq_py_add_type(module, &node_spec, &state->Node) < 0 || tq_py_add_type(module, &tree_spec, &state->Tree) < 0)
        return -1;
    if (PyModule_AddObjectRef(module, "_Tree", state->Tree) < 0)
        return -1;
    if (PyModule_AddObjectRef(module, "_Node", state->Node) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
