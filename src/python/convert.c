/* SPDX-License-Identifier: Apache-2.0 */
#include "python/convert.h"

PyObject *tq_py_text(tq_bytes bytes)
{
    return PyUnicode_DecodeUTF8((const char *)bytes.data, (Py_ssize_t)bytes.size, "backslashreplace");
}

PyObject *tq_py_text_or_none(tq_bytes bytes)
{
    return bytes.data ? tq_py_text(bytes) : Py_NewRef(Py_None);
}

PyObject *tq_py_bytes(tq_bytes bytes)
{
    if (!bytes.data)
        return Py_NewRef(Py_None);
    return PyBytes_FromStringAndSize((const char *)bytes.data, (Py_ssize_t)bytes.size);
}

static PyObject *new_array(uint32_t count, int type)
{
    npy_intp size = count;
    return PyArray_SimpleNew(1, &size, type);
}

static PyObject *copy_array(const tq_vector *vector, int type, size_t element_size)
{
    PyObject *array = new_array(vector->count, type);
    if (array && vector->count) {
        memcpy(PyArray_DATA((PyArrayObject *)array), vector->file.data + vector->at, vector->count * element_size);
#if NPY_BYTE_ORDER == NPY_BIG_ENDIAN
        Py_XDECREF(PyArray_Byteswap((PyArrayObject *)array, NPY_TRUE));
#endif
    }
    return array;
}

PyObject *tq_py_array_i32(const tq_vector *vector)
{
    return copy_array(vector, NPY_INT32, 4);
}

PyObject *tq_py_array_f32(const tq_vector *vector)
{
    return copy_array(vector, NPY_FLOAT32, 4);
}

PyObject *tq_py_array_i64(const tq_vector *vector)
{
    return copy_array(vector, NPY_INT64, 8);
}

PyObject *tq_py_array_i32_from_i64(const tq_vector *vector)
{
    PyObject *array = new_array(vector->count, NPY_INT32);
    if (array) {
        int32_t *out = PyArray_DATA((PyArrayObject *)array);
        const uint8_t *in = vector->file.data + vector->at; /* tq_vector_find checked all elements */
        for (uint32_t i = 0; i < vector->count; i++)
            out[i] = (int32_t)tq_load_u32(in + 8 * (size_t)i); /* the low half: little-endian */
    }
    return array;
}

PyObject *tq_py_tuple_i32(const tq_vector *vector)
{
    PyObject *tuple = PyTuple_New(vector->count);
    for (uint32_t i = 0; tuple && i < vector->count; i++) {
        PyObject *item = PyLong_FromLong(tq_vector_i32(vector, i));
        if (!item)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

PyObject *tq_py_tuple_of(PyObject *sequence, const char *needed)
{
    PyObject *items = PySequence_Fast(sequence, needed);
    if (!items || PyTuple_CheckExact(items))
        return items;
    PyObject *tuple = PyList_AsTuple(items);
    Py_DECREF(items);
    return tuple;
}

int tq_py_set(PyObject *dict, PyObject *key, PyObject *value)
{
    int result = value ? PyDict_SetItem(dict, key, value) : -1;
    Py_XDECREF(value);
    return result;
}

int tq_py_append(PyObject *list, PyObject *item)
{
    int result = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return result;
}

int tq_py_set_string(PyObject *dict, const char *key, PyObject *value)
{
    int result = value ? PyDict_SetItemString(dict, key, value) : -1;
    Py_XDECREF(value);
    return result;
}

PyObject *tq_py_call(const char *module_name, const char *function_name, PyObject *argument)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *function = module ? PyObject_GetAttrString(module, function_name) : NULL;
    PyObject *result = function ? PyObject_CallOneArg(function, argument) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}

PyObject *tq_py_call_with(const char *module_name, const char *function_name, PyObject *first, PyObject *args,
                          PyObject *kwargs)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *function = module ? PyObject_GetAttrString(module, function_name) : NULL;
    PyObject *own = function ? PyTuple_Pack(1, first) : NULL;
    PyObject *all = own ? PySequence_Concat(own, args) : NULL;
    PyObject *result = all ? PyObject_Call(function, all, kwargs) : NULL;
    Py_XDECREF(all);
    Py_XDECREF(own);
    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}

PyObject *tq_py_enum_member(tq_state *state, tq_enum_id which, int64_t value)
{
    PyObject *members = state->members[which];
    if (!members) {
        PyObject *name = PyUnicode_FromString(tq_enums[which].name);
        members = tq_py_publish(&state->members[which], name ? tq_py_call("tq.enums", "members_by_value", name) : NULL);
        Py_XDECREF(name);
        if (!members)
            return NULL;
    }
    PyObject *number = PyLong_FromLongLong(value);
    PyObject *member = number ? PyDict_GetItemWithError(members, number) : NULL;
    if (!member)
        return number && !PyErr_Occurred() ? number : (Py_XDECREF(number), NULL);
    Py_DECREF(number);
    return Py_NewRef(member);
}

/* ---- tables to dicts ---- */

PyObject *tq_py_scalar(const tq_field *field, tq_value value)
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

static PyObject *scalar_object(tq_state *state, const tq_field *field, tq_value value)
{
    if (field->shape == TQ_SHAPE_ENUM || field->shape == TQ_SHAPE_VEC_ENUM)
        return tq_py_enum_member(state, field->detail, value.i);
    return tq_py_scalar(field, value);
}

static PyObject *element_object(tq_state *state, const tq_field *field, const tq_vector *vector, uint32_t index)
{
    switch ((tq_field_shape)field->shape) {
    case TQ_SHAPE_VEC_STRING: return tq_py_text_or_none(tq_vector_string(vector, index));
    case TQ_SHAPE_VEC_TABLE: {
        tq_table table = tq_vector_table(vector, index);
        return tq_py_table(state, field->detail, &table);
    }
    default: {
        const uint8_t *p = vector->file.data + vector->at + (size_t)index * tq_scalar_size[field->scalar];
        return scalar_object(state, field, tq_load_scalar(p, field->scalar));
    }
    }
}

static PyObject *vector_object(tq_state *state, const tq_field *field, const tq_vector *vector)
{
    if (!vector->at)
        return Py_NewRef(Py_None);
    if (field->shape == TQ_SHAPE_VEC_SCALAR && field->scalar == TQ_U8)
        return tq_py_bytes(tq_vector_bytes(vector, 1));
    PyObject *list = PyList_New(vector->count);
    for (uint32_t i = 0; list && i < vector->count; i++) {
        PyObject *item = element_object(state, field, vector, i);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

PyObject *tq_py_union(tq_state *state, tq_union_id which, const tq_union *value)
{
    tq_table_id id = tq_union_member(which, value->type);
    if (id == TQ_TABLE_NONE || !value->value.at)
        return Py_NewRef(Py_None);
    PyObject *dict = tq_py_table(state, id, &value->value);
    if (dict && tq_py_set_string(dict, "type", PyUnicode_FromString(tq_tables[id].name)) < 0)
        Py_CLEAR(dict);
    return dict;
}

static PyObject *field_object(tq_state *state, tq_field_id id, const tq_table *table)
{
    const tq_field *field = &tq_fields[id];
    switch ((tq_field_shape)field->shape) {
    case TQ_SHAPE_SCALAR:
    case TQ_SHAPE_ENUM: return scalar_object(state, field, tq_get_scalar(table, id));
    case TQ_SHAPE_STRING: return tq_py_text_or_none(tq_get_string(table, id));
    case TQ_SHAPE_TABLE: {
        tq_table inner = tq_get_table(table, id);
        return inner.at ? tq_py_table(state, field->detail, &inner) : Py_NewRef(Py_None);
    }
    case TQ_SHAPE_UNION: {
        tq_union value = tq_get_union(table, id);
        return tq_py_union(state, field->detail, &value);
    }
    default: {
        tq_vector vector = tq_get_vector(table, id);
        return vector_object(state, field, &vector);
    }
    }
}

PyObject *tq_py_table(tq_state *state, tq_table_id id, const tq_table *table)
{
    PyObject *dict = PyDict_New();
    for (unsigned i = tq_tables[id].first; dict && i < tq_tables[id + 1].first; i++)
        if (tq_py_set_string(dict, tq_fields[i].name, field_object(state, i, table)) < 0)
            Py_CLEAR(dict);
    return dict;
}

const tq_field *tq_py_find_field(tq_table_id id, PyObject *name)
{
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(name, &size); /* no copy, if ASCII */
    if (!text)
        PyErr_Clear(); /* lone surrogates: the name of no field */
    for (unsigned i = tq_tables[id].first; text && i < tq_tables[id + 1].first; i++)
        if (strcmp(text, tq_fields[i].name) == 0 && strlen(text) == (size_t)size)
            return &tq_fields[i];
    return NULL;
}

PyObject *tq_py_stored(tq_state *state, tq_table_id id, const tq_table *table, PyObject *name)
{
    const tq_field *field = tq_py_find_field(id, name);
    if (!field)
        return PyErr_Format(PyExc_ValueError, "the schema's table %s has no field %R", tq_tables[id].name, name);
    bool stored = table->at && tq_slot_at(table, field->slot);
    return stored ? field_object(state, (tq_field_id)(field - tq_fields), table) : Py_NewRef(Py_None);
}

PyObject *tq_py_reduced(PyObject *self, PyObject *positional, PyObject *keywords)
{
    PyObject *copyreg = positional && keywords ? PyImport_ImportModule("copyreg") : NULL;
    PyObject *make = copyreg ? PyObject_GetAttrString(copyreg, "__newobj_ex__") : NULL;
    PyObject *result = make ? Py_BuildValue("O(OOO)", make, Py_TYPE(self), positional, keywords) : NULL;
    Py_XDECREF(make);
    Py_XDECREF(copyreg);
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    return result;
}
