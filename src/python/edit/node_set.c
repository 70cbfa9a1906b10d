/* SPDX-License-Identifier: Apache-2.0
 *
 * Setting fields of a _Node: a fast path for integers (store), and the general one (set).
 */
#include "python/edit/tree_objects.h"

#include "python/convert.h"

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
    tq_status status = tq_tree_node_set_scalar(&self->tree->tree, self->node, tq_py_field_id(field), bytes, &error);
    return tq_py_tree_result(self->tree, status, &error);
}

static int put_cell(NodeObject *self, const tq_cell *cell)
{
    tq_error error;
    return tq_py_tree_result(self->tree, tq_tree_node_put(&self->tree->tree, self->node, cell, &error), &error);
}

static int set_vector(NodeObject *self, const tq_field *field, PyObject *value)
{
    bool is_text = field->shape == TQ_SHAPE_STRING;
    unsigned size = is_text ? 1 : tq_scalar_size[field->scalar];
    tq_bytes bytes;
    tq_error error;
    if (tq_py_tree_take_bytes(self->tree, value, &bytes) < 0)
        return -1;
    if (tq_py_field_id(field) == TQ_Buffer_data)
        return tq_py_tree_result(self->tree, tq_buffer_node_set(&self->tree->tree, self->node, bytes, &error), &error);
    if (bytes.size % size || bytes.size / size > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s: %zu bytes are no vector of %u-byte elements", field->name, bytes.size,
                     size);
        return -1;
    }
    tq_cell cell = {.slot = field->slot,
                    .kind = TQ_CELL_VECTOR,
                    .align = (uint8_t)size,
                    .is_text = is_text,
                    .count = (uint32_t)(bytes.size / size),
                    .length = bytes.size};
    cell.bytes = bytes.data;
    return put_cell(self, &cell);
}

static int set_strings(NodeObject *self, const tq_field *field, PyObject *value)
{
    PyObject *items = tq_py_tuple_of(value, "a sequence of bytes is needed");
    if (!items)
        return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    tq_bytes *strings;
    tq_error error;
    tq_status status = tq_region_get(&self->tree->tree.region, (uint64_t)count, sizeof *strings, &strings, &error);
    int result = tq_py_tree_result(self->tree, status, &error);
    for (Py_ssize_t i = 0; result == 0 && i < count; i++)
        result = tq_py_tree_take_bytes(self->tree, PyTuple_GET_ITEM(items, i), &strings[i]);
    Py_DECREF(items);
    tq_cell cell = {.slot = field->slot, .kind = TQ_CELL_STRINGS, .align = 4, .count = (uint32_t)count};
    if (result == 0)
        cell.strings = strings;
    return result == 0 ? put_cell(self, &cell) : -1;
}

/* ---- the fast path ---- */

/* The little-endian bytes of an int; false: not an exact int, or it does not fit. */
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
    if (tq_py_tree_result(self->tree, tq_region_get(&self->tree->tree.region, count, size, &bytes, &error), &error) < 0)
        return -1;
    if (count)
        memcpy(bytes, from, count * size);
    tq_cell cell = {.slot = field->slot,
                    .kind = TQ_CELL_VECTOR,
                    .align = (uint8_t)size,
                    .count = (uint32_t)count,
                    .length = count * size};
    cell.bytes = bytes;
    return put_cell(self, &cell);
}

/* 1: stored; 0: an item is no exact int, or does not fit; -1: an exception. */
static int store_items(NodeObject *self, const tq_field *field, PyObject *value)
{
    enum { MOST = 64 };
    uint8_t bytes[8 * MOST + 8];
    const size_t size = tq_scalar_size[field->scalar];
    if (PySequence_Fast_GET_SIZE(value) > MOST || !tq_py_is_integer(field))
        return 0;
    PyObject *items = tq_py_tuple_of(value, "a sequence is needed");
    if (!items)
        return -1;
    const Py_ssize_t count = PyTuple_GET_SIZE(items);
    bool plain = count <= MOST;
    for (Py_ssize_t i = 0; plain && i < count; i++)
        plain = plain_integer(field, PyTuple_GET_ITEM(items, i), bytes + (size_t)i * size);
    Py_DECREF(items);
    return !plain ? 0 : store_vector(self, field, bytes, (size_t)count) < 0 ? -1 : 1;
}

static int store_array(NodeObject *self, const tq_field *field, PyArrayObject *array)
{
    if (NPY_BYTE_ORDER == NPY_BIG_ENDIAN)
        return 0;
    if (PyArray_NDIM(array) != 1 || PyArray_TYPE(array) != tq_py_vector_types[field->scalar] ||
        !PyArray_ISCARRAY_RO(array) || PyArray_SIZE(array) > INT32_MAX)
        return 0;
    return store_vector(self, field, PyArray_DATA(array), (size_t)PyArray_SIZE(array)) < 0 ? -1 : 1;
}

static int store_number(NodeObject *self, const tq_field *field, PyObject *value)
{
    uint8_t bytes[8];
    tq_error error;
    if (field->scalar == TQ_BOOL && PyBool_Check(value))
        bytes[0] = value == Py_True;
    else if (!tq_py_is_integer(field) || !plain_integer(field, value, bytes))
        return 0;
    tq_status status = tq_tree_node_set_scalar(&self->tree->tree, self->node, tq_py_field_id(field), bytes, &error);
    return tq_py_tree_result(self->tree, status, &error) < 0 ? -1 : 1;
}

PyObject *tq_py_node_store(NodeObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "store takes a field and a value");
        return NULL;
    }
    const tq_field *field = self->node->id == TQ_TABLE_NONE ? NULL : tq_py_find_field(self->node->id, args[0]);
    PyObject *value = args[1];
    int stored = 0;
    if (!field || tq_py_field_id(field) == TQ_Buffer_data)
        Py_RETURN_FALSE;
    if (tq_py_tree_begin_change(self->tree) < 0)
        return NULL;
    if (field->shape == TQ_SHAPE_SCALAR || field->shape == TQ_SHAPE_ENUM)
        stored = store_number(self, field, value);
    else if (field->shape == TQ_SHAPE_VEC_SCALAR && (PyList_CheckExact(value) || PyTuple_CheckExact(value)))
        stored = store_items(self, field, value);
    else if (field->shape == TQ_SHAPE_VEC_SCALAR && PyArray_CheckExact(value))
        stored = store_array(self, field, (PyArrayObject *)value);
    return stored < 0 ? NULL : PyBool_FromLong(stored);
}

/* The node of a value, which must be a _Node of this tree and of this table (NONE: any); NULL with an exception. */
static tq_tree_node *node_of(NodeObject *self, const char *argument, PyObject *value, tq_table_id id)
{
    PyObject *type = tq_state_of((PyObject *)self)->Node;
    if (!PyObject_TypeCheck(value, (PyTypeObject *)type)) {
        PyErr_Format(PyExc_TypeError, "%s: a table is needed, not %.100s", argument, Py_TYPE(value)->tp_name);
        return NULL;
    }
    NodeObject *other = (NodeObject *)value;
    if (other->tree != self->tree) {
        PyErr_Format(PyExc_ValueError, "%s: the table belongs to another model; copy it into this one", argument);
        return NULL;
    }
    if (id != TQ_TABLE_NONE && other->node->id != id) {
        PyErr_Format(PyExc_ValueError, "%s: a table %s is needed", argument, tq_tables[id].name);
        return NULL;
    }
    return other->node;
}

static int set_tables(NodeObject *self, const tq_field *field, PyObject *value)
{
    PyObject *items = tq_py_tuple_of(value, "a sequence of tables is needed");
    if (!items)
        return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    tq_tree_node **tables;
    tq_error error;
    tq_status status = tq_region_get(&self->tree->tree.region, (uint64_t)count, sizeof *tables, &tables, &error);
    int result = tq_py_tree_result(self->tree, status, &error);
    for (Py_ssize_t i = 0; result == 0 && i < count; i++) {
        tables[i] = node_of(self, field->name, PyTuple_GET_ITEM(items, i), field->detail);
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
    tq_tree_node *node = node_of(self, field->name, value, is_union ? TQ_TABLE_NONE : field->detail);
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

/* Removes a field, with a union's type, and with offset and size of outside bytes. */
static void drop(NodeObject *self, const tq_field *field)
{
    tq_tree_node_drop(self->node, field->slot);
    if (field->shape == TQ_SHAPE_UNION)
        tq_tree_node_drop(self->node, field->slot - 1u);
    if (tq_py_field_id(field) == TQ_Buffer_data) {
        tq_tree_node_drop(self->node, tq_fields[TQ_Buffer_offset].slot);
        tq_tree_node_drop(self->node, tq_fields[TQ_Buffer_size].slot);
    }
    if (tq_py_field_id(field) == TQ_Operator_custom_options) {
        tq_tree_node_drop(self->node, tq_fields[TQ_Operator_large_custom_options_offset].slot);
        tq_tree_node_drop(self->node, tq_fields[TQ_Operator_large_custom_options_size].slot);
    }
}

static int set_field(NodeObject *self, const tq_field *field, PyObject *value)
{
    switch ((tq_field_shape)field->shape) {
    case TQ_SHAPE_SCALAR:
    case TQ_SHAPE_ENUM: return set_scalar(self, field, value);
    case TQ_SHAPE_TABLE:
    case TQ_SHAPE_UNION: return set_table(self, field, value);
    case TQ_SHAPE_VEC_TABLE: return set_tables(self, field, value);
    case TQ_SHAPE_VEC_STRING: return set_strings(self, field, value);
    default: return set_vector(self, field, value);
    }
}

PyObject *tq_py_node_set(NodeObject *self, PyObject *args)
{
    PyObject *name, *value;
    if (!PyArg_ParseTuple(args, "OO:set", &name, &value))
        return NULL;
    const tq_field *field = tq_py_node_field(self, name);
    if (!field || tq_py_tree_begin_change(self->tree) < 0)
        return NULL;
    if (value == Py_None || tq_py_field_id(field) == TQ_Operator_custom_options)
        drop(self, field);
    if (value != Py_None && set_field(self, field, value) < 0)
        return NULL;
    Py_RETURN_NONE;
}
