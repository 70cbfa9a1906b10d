/* SPDX-License-Identifier: Apache-2.0
 *
 * pack() and unpack(): quantized values narrower than a byte, as TFLite stores them.
 */
#include "python/arrays/array_args.h"
#include "python/arrays/functions.h"
#include "python/arrays/operands.h"
#include "quant/packing.h"

const char tq_py_pack_doc[] =
    "pack(values, dtype)\n--\n\n"
    "Quantized values to TensorFlow Lite's packed bytes: int4 and uint4 two a byte, int2 four a byte, the first\n"
    "element in the low bits, in C order; unused bits of the last byte are zero\n"
    "(tflite/kernels/internal/portable_tensor_utils.cc).\n\n"
    "values: integers of any shape and type, each in dtype's range, or ml_dtypes' narrow integers.\n"
    "dtype: int4, uint4 or int2, as a string or as ml_dtypes' type.\n\n"
    "Returns a uint8 array of one dimension. Raises ValueError for a value outside the range.\n\n"
    ">>> pack([1, -1, 7], 'int4')\n"
    "array([241,   7], dtype=uint8)";

const char tq_py_unpack_doc[] =
    "unpack(packed, shape, dtype)\n--\n\n"
    "The inverse of pack.\n\n"
    "packed: bytes, a uint8 or int8 array, or another buffer; exactly as many bytes as shape needs.\n"
    "shape: the result's shape, or its number of elements.\n"
    "dtype: int4, uint4 or int2. By a string: int4 and int2 come in an int8 array, uint4 in a uint8\n"
    "    array; by ml_dtypes' type: as that.\n\n"
    "Returns an array of that shape. ValueError: another number of bytes. TypeError: another dtype.\n\n"
    ">>> unpack(bytes([241, 7]), 3, 'int4')\n"
    "array([ 1, -1,  7], dtype=int8)";

static const char narrow_types[] = "int4, uint4 or int2";

/* Bits of a type narrower than a byte; 0, with an exception, for others. */
static int narrow_bits(const tq_py_type *type)
{
    bool is_byte = type->element == TQ_i8 || type->element == TQ_u8;
    int span = is_byte ? type->high - type->low : 0; /* int32's would overflow */
    if (span == 15 || span == 3)
        return span == 15 ? 4 : 2;
    PyErr_Format(PyExc_TypeError, "dtype is %s: it must be %s", type->name, narrow_types);
    return 0;
}

/* The values' low bytes, if all are in range: int8, uint8 or wider integers alike. */
static bool check_values(PyArrayObject *values, const tq_py_type *type)
{
    npy_intp count = PyArray_SIZE(values);
    const int64_t *from = PyArray_DATA(values);
    for (npy_intp i = 0; i < count; i++)
        if (from[i] < type->low || from[i] > type->high) {
            PyErr_Format(PyExc_ValueError, "values holds %lld (element %zd): %s goes from %d to %d", (long long)from[i],
                         (Py_ssize_t)i, type->name, type->low, type->high);
            return false;
        }
    return true;
}

static bool check_bytes(const uint8_t *quantized, npy_intp count, bool is_signed, const tq_py_type *type)
{
    for (npy_intp i = 0; i < count; i++) {
        int value = is_signed ? (int8_t)quantized[i] : quantized[i];
        if (value < type->low || value > type->high) {
            PyErr_Format(PyExc_ValueError, "values holds %d (element %zd): %s goes from %d to %d", value, (Py_ssize_t)i,
                         type->name, type->low, type->high);
            return false;
        }
    }
    return true;
}

/* Whether elements are bytes: int8, uint8, and the narrow types. */
static bool is_bytes(PyArrayObject *array)
{
    tq_py_type found;
    return tq_py_type_of_array(array, &found) && (found.element == TQ_i8 || found.element == TQ_u8);
}

/* Any integers as bytes, checked against the type. */
static PyArrayObject *checked_bytes(PyObject *values, const tq_py_type *type)
{
    PyArrayObject *quantized = tq_py_array(values, "values", true);
    if (quantized && is_bytes(quantized)) {
        tq_py_type found;
        Py_SETREF(quantized, tq_py_integer_input((PyObject *)quantized, "values", "integers", &found));
        if (quantized && !check_bytes(PyArray_DATA(quantized), PyArray_SIZE(quantized), found.element == TQ_i8, type))
            Py_CLEAR(quantized);
        return quantized;
    }
    if (quantized)
        Py_SETREF(quantized, tq_py_integers(values, "values", NPY_INT64));
    if (quantized)
        Py_SETREF(quantized,
                  (PyArrayObject *)PyArray_FROMANY((PyObject *)quantized, NPY_INT64, 0, 0, NPY_ARRAY_CARRAY));
    if (quantized && !check_values(quantized, type))
        Py_CLEAR(quantized);
    if (quantized)
        Py_SETREF(quantized, (PyArrayObject *)PyArray_FROMANY((PyObject *)quantized, NPY_INT8, 0, 0,
                                                              NPY_ARRAY_CARRAY | NPY_ARRAY_FORCECAST));
    return quantized;
}

PyObject *tq_py_pack(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)
{
    static const char *const names[] = {"values", "dtype"};
    static const tq_py_signature signature = {"pack", names, 2, 2, 2};
    PyObject *v[2];
    tq_py_type type;
    PyArray_Descr *descr;
    (void)module;
    if (!tq_py_bind(&signature, args, nargs, keywords, v) ||
        !tq_py_type_of_dtype(v[1], "int4", narrow_types, &type, &descr))
        return NULL;
    Py_DECREF(descr);
    int bits = narrow_bits(&type);
    PyArrayObject *quantized = bits ? checked_bytes(v[0], &type) : NULL;
    if (!quantized)
        return NULL;
    size_t count = (size_t)PyArray_SIZE(quantized);
    npy_intp size = (npy_intp)tq_packed_size(count, bits);
    PyObject *packed = PyArray_SimpleNew(1, &size, NPY_UINT8);
    if (packed)
        tq_pack_values(PyArray_DATA(quantized), count, bits, PyArray_DATA((PyArrayObject *)packed));
    Py_DECREF(quantized);
    return packed;
}

static PyArrayObject *bytes_of(PyObject *packed)
{
    PyObject *view = PyBytes_Check(packed) ? PyMemoryView_FromObject(packed) : Py_NewRef(packed);
    PyArrayObject *bytes = view ? tq_py_array(view, "packed", true) : NULL;
    Py_XDECREF(view);
    if (bytes && PyArray_TYPE(bytes) != NPY_UINT8 && PyArray_TYPE(bytes) != NPY_INT8) {
        PyErr_Format(PyExc_TypeError, "packed has dtype %R: it must be bytes, or uint8 or int8",
                     (PyObject *)PyArray_DESCR(bytes));
        Py_CLEAR(bytes);
    }
    if (bytes)
        Py_SETREF(bytes,
                  (PyArrayObject *)PyArray_FROM_OF((PyObject *)bytes, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_ENSUREARRAY));
    return bytes;
}

/* Adds the argument's name to NumPy's error. */
static bool refuse_shape(PyObject *object, const char *why)
{
    PyObject *kind = PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError) ? PyExc_TypeError : PyExc_ValueError;
    PyErr_Clear();
    PyErr_Format(kind, "shape is %R: %s", object, why);
    return false;
}

static bool read_shape(PyObject *object, PyArray_Dims *dims)
{
    if (!PyArray_IntpConverter(object, dims))
        return refuse_shape(object, "it must be an int, or a sequence of as many as an array has dimensions");
    npy_intp total = 1; /* without zeros, as NumPy computes it */
    for (int i = 0; i < dims->len; i++) {
        if (dims->ptr[i] < 0)
            return refuse_shape(object, "no dimension may be negative");
        if (dims->ptr[i] && total > NPY_MAX_INTP / dims->ptr[i])
            return refuse_shape(object, "that is too many elements");
        total *= dims->ptr[i] ? dims->ptr[i] : 1;
    }
    return true;
}

static PyObject *unpack(PyArrayObject *bytes, PyArray_Dims *dims, const tq_py_type *type, PyArray_Descr *descr,
                        int bits)
{
    size_t count = 1;
    for (int i = 0; i < dims->len; i++)
        count *= (size_t)dims->ptr[i];
    size_t needed = tq_packed_size(count, bits);
    if ((size_t)PyArray_SIZE(bytes) != needed) {
        Py_DECREF(descr);
        PyErr_Format(PyExc_ValueError, "packed holds %zd bytes: %zu elements of %s need %zu",
                     (Py_ssize_t)PyArray_SIZE(bytes), count, type->name, needed);
        return NULL;
    }
    PyObject *result = PyArray_NewFromDescr(&PyArray_Type, descr, dims->len, dims->ptr, NULL, NULL, 0, NULL);
    if (result) /* no sign extension: the upper bits of ml_dtypes' types are zero */
        tq_unpack_values(PyArray_DATA(bytes), count, bits, type->masked ? 0 : type->low,
                         PyArray_DATA((PyArrayObject *)result));
    return result;
}

PyObject *tq_py_unpack(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)
{
    static const char *const names[] = {"packed", "shape", "dtype"};
    static const tq_py_signature signature = {"unpack", names, 3, 3, 3};
    PyObject *v[3];
    tq_py_type type;
    PyArray_Descr *descr;
    PyArray_Dims dims = {NULL, 0};
    (void)module;
    if (!tq_py_bind(&signature, args, nargs, keywords, v) ||
        !tq_py_type_of_dtype(v[2], "int4", narrow_types, &type, &descr))
        return NULL;
    int bits = narrow_bits(&type);
    PyArrayObject *bytes = bits ? bytes_of(v[0]) : NULL;
    PyObject *result = NULL;
    if (bytes && read_shape(v[1], &dims))
        result = unpack(bytes, &dims, &type, descr, bits);
    else
        Py_DECREF(descr);
    PyDimMem_FREE(dims.ptr);
    Py_XDECREF(bytes);
    return result;
}
