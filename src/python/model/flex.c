/* SPDX-License-Identifier: Apache-2.0
 *
 * FlexBuffers as Python objects.
 *
 * The reader's budget bounds the walk, so nothing is verified first: at most size + 1024 objects and
 * 8 * size + 1 MiB characters are made before malformed or explosive bytes are refused.
 */
#include "python/model/flex.h"

#include "flatbuffer/flexbuffer.h"
#include "python/convert.h"
#include "python/errors.h"

static PyObject *convert(tq_flex_reader *reader, const tq_flex *value);

static PyObject *convert_number(const tq_flex_reader *reader, const tq_flex *value)
{
    tq_value number = tq_flex_scalar(reader, value);
    if (value->kind == TQ_FLEX_BOOL)
        return PyBool_FromLong(number.i != 0);
    switch (number.kind) {
    case TQ_VALUE_INT: return PyLong_FromLongLong(number.i);
    case TQ_VALUE_UINT: return PyLong_FromUnsignedLongLong(number.u);
    case TQ_VALUE_FLOAT: break;
    }
    return PyFloat_FromDouble(number.f);
}

/* NULL without a Python exception: the reader's error says why. */
static PyObject *convert_item(tq_flex_reader *reader, const tq_flex *vector, uint64_t index)
{
    tq_flex item;
    return tq_flex_item(reader, vector, index, &item) == TQ_OK ? convert(reader, &item) : NULL;
}

static PyObject *convert_vector(tq_flex_reader *reader, const tq_flex *vector)
{
    PyObject *list = PyList_New((Py_ssize_t)vector->count);
    for (uint64_t i = 0; list && i < vector->count; i++) {
        PyObject *item = convert_item(reader, vector, i);
        if (item)
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
        else
            Py_CLEAR(list);
    }
    return list;
}

static int set_item(tq_flex_reader *reader, PyObject *dict, const tq_flex *map, uint64_t index)
{
    tq_bytes bytes;
    if (tq_flex_map_key(reader, map, index, &bytes) != TQ_OK)
        return -1;
    PyObject *key = tq_py_text(bytes);
    PyObject *value = key ? convert_item(reader, map, index) : NULL;
    int result = value ? PyDict_SetItem(dict, key, value) : -1;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return result;
}

static PyObject *convert_map(tq_flex_reader *reader, const tq_flex *map)
{
    PyObject *dict = PyDict_New();
    for (uint64_t i = 0; dict && i < map->count; i++)
        if (set_item(reader, dict, map, i) < 0)
            Py_CLEAR(dict);
    return dict;
}

/* Recursion ends at TQ_FLEX_DEPTH, which the reader enforces. */
static PyObject *convert(tq_flex_reader *reader, const tq_flex *value)
{
    switch (value->kind) {
    case TQ_FLEX_NULL: return Py_NewRef(Py_None);
    case TQ_FLEX_BOOL:
    case TQ_FLEX_INT:
    case TQ_FLEX_UINT:
    case TQ_FLEX_FLOAT: return convert_number(reader, value);
    case TQ_FLEX_KEY:
    case TQ_FLEX_STRING: return tq_py_text(tq_flex_bytes(reader, value));
    case TQ_FLEX_BLOB: return tq_py_bytes(tq_flex_bytes(reader, value));
    case TQ_FLEX_VECTOR: return convert_vector(reader, value);
    case TQ_FLEX_MAP: return convert_map(reader, value);
    }
    Py_UNREACHABLE();
}

PyObject *tq_py_flex(tq_state *state, tq_bytes bytes)
{
    tq_error error;
    tq_flex_reader reader;
    tq_flex root;
    if (tq_flex_open(bytes, &reader, &root, &error) != TQ_OK)
        return tq_py_raise(state, &error, NULL);
    PyObject *result = convert(&reader, &root);
    if (!result && !PyErr_Occurred())
        return tq_py_raise(state, &error, NULL);
    return result;
}

static PyObject *decode_flexbuffer(PyObject *module, PyObject *source)
{
    Py_buffer view;
    if (PyObject_GetBuffer(source, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *result = tq_py_flex(PyModule_GetState(module), (tq_bytes){view.buf, (size_t)view.len});
    PyBuffer_Release(&view);
    return result;
}

PyDoc_STRVAR(decode_doc,
             "decode_flexbuffer(buffer, /)\n--\n\n"
             "What a FlexBuffer holds: maps as dict, vectors of every kind as list, blobs as bytes, keys and\n"
             "strings as str (a byte that is not UTF-8 becomes \\xNN), and int, float, bool, None.\n\n"
             "buffer: bytes or any contiguous buffer.  A key that a map holds twice has its last value.\n"
             "Raises ModelError, with the byte's offset in the buffer, where it is malformed, nests more than\n"
             "32 deep, or shares its parts so often that it would grow without bound.");

/* Where in the buffer the number stands that the root, a map, has under a key: (byte, width), or None. */
static PyObject *find_number(tq_flex_reader *reader, const tq_flex *root, tq_bytes wanted)
{
    tq_flex item;
    for (uint64_t i = 0; root->kind == TQ_FLEX_MAP && i < root->count; i++) {
        tq_bytes key;
        if (tq_flex_map_key(reader, root, i, &key) != TQ_OK || tq_flex_item(reader, root, i, &item) != TQ_OK)
            break;
        bool is_number = item.kind == TQ_FLEX_INT || item.kind == TQ_FLEX_UINT;
        if (is_number && key.size == wanted.size && memcmp(key.data, wanted.data, key.size) == 0)
            return Py_BuildValue("(nn)", (Py_ssize_t)item.at, (Py_ssize_t)item.width);
    }
    Py_RETURN_NONE;
}

static PyObject *flexbuffer_number_at(PyObject *module, PyObject *args)
{
    Py_buffer view;
    const char *key;
    Py_ssize_t length;
    tq_flex_reader reader;
    tq_flex root;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*s#:_flexbuffer_number_at", &view, &key, &length))
        return NULL;
    PyObject *result = NULL;
    if (tq_flex_open((tq_bytes){view.buf, (size_t)view.len}, &reader, &root, NULL) == TQ_OK)
        result = find_number(&reader, &root, (tq_bytes){(const uint8_t *)key, (size_t)length});
    else
        result = Py_NewRef(Py_None);
    PyBuffer_Release(&view);
    return result;
}

static PyMethodDef functions[] = {
    {"_flexbuffer_number_at", flexbuffer_number_at, METH_VARARGS,
     "_flexbuffer_number_at(buffer, key, /)\n--\n\n(byte, width) of the integer that a map has under a key, or None."},
    {"decode_flexbuffer", decode_flexbuffer, METH_O, decode_doc},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_flex(PyObject *module, tq_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
