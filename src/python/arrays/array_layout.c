/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of parameters along an array (per tensor, per axis, in blocks), and arrays of parameters.
 */
#include "python/arrays/array_internal.h"

#include <string.h>

static size_t product(const npy_intp *dims, int from, int to)
{
    size_t count = 1;
    for (int i = from; i < to; i++)
        count *= (size_t)dims[i];
    return count;
}

bool tq_py_layout(tq_py_parameters *p, PyArrayObject *input, PyObject *axis, PyObject *block_size, PyObject *out)
{
    int rank = PyArray_NDIM(input);
    const npy_intp *dims = PyArray_DIMS(input);
    size_t total = (size_t)PyArray_SIZE(input);
    long at = -1, size = 0;
    *p = (tq_py_parameters){.layout = {1, 1, 1, total}, .sets = 1, .array = input};
    if (out && PyArray_Check(out) && PyArray_ISCARRAY((PyArrayObject *)out))
        p->out = (PyArrayObject *)out;
    if ((!axis || axis == Py_None) && (!block_size || block_size == Py_None))
        return true;
    if (!tq_py_optional_int(block_size, "block_size", 1, LONG_MAX, &p->has_blocks, &size))
        return false;
    if (axis && axis != Py_None && rank == 0) {
        PyErr_Format(PyExc_ValueError, "axis is %R: an array of no dimensions has no axis", axis);
        return false;
    }
    if (!tq_py_optional_int(axis, "axis", -rank, rank - 1, &p->has_axis, &at))
        return false;
    if (rank == 0) {
        PyErr_SetString(PyExc_ValueError, "block_size needs an array of at least one dimension");
        return false;
    }
    p->has_axis = true;
    p->axis = (int)(at < 0 ? at + rank : at);
    size_t before = product(dims, 0, p->axis), after = product(dims, p->axis + 1, rank);
    size_t length = (size_t)dims[p->axis];
    if (!p->has_blocks) {
        p->layout = (tq_layout){1, before, length, after};
        p->sets = (npy_intp)length;
        return true;
    }
    if (length % (size_t)size != 0) {
        PyErr_Format(PyExc_ValueError, "block_size is %R: it must divide the length of axis %d, which is %zd",
                     block_size, p->axis, (Py_ssize_t)length);
        return false;
    }
    size_t blocks = before * (length / (size_t)size);
    p->blocks = (npy_intp)length / size;
    p->layout = after == 1 ? (tq_layout){1, 1, blocks, (size_t)size} : (tq_layout){blocks, (size_t)size, after, 1};
    p->sets = (npy_intp)(blocks * after);
    return true;
}

/* The valid shapes of an array of parameters, as text; new reference. */
static PyObject *wanted_shapes(const tq_py_parameters *p)
{
    if (!p->has_axis)
        return PyUnicode_FromString("one value (or give axis, for one value a channel)");
    if (!p->has_blocks)
        return PyUnicode_FromFormat("one value, or %zd, the length of axis %d", (Py_ssize_t)p->sets, p->axis);
    npy_intp dims[NPY_MAXDIMS];
    memcpy(dims, PyArray_DIMS(p->array), (size_t)PyArray_NDIM(p->array) * sizeof *dims);
    dims[p->axis] = p->blocks;
    PyObject *shape = PyArray_IntTupleFromIntp(PyArray_NDIM(p->array), dims);
    PyObject *text = shape
                         ? PyUnicode_FromFormat("one value, or the shape %R: the input's, with axis %d counting blocks",
                                                shape, p->axis)
                         : NULL;
    Py_XDECREF(shape);
    return text;
}

/* Whether the shape is (sets,), or the input's shape with 1 for dimensions along which parameters do not vary. */
static bool has_wanted_shape(PyArrayObject *array, const tq_py_parameters *p)
{
    int rank = PyArray_NDIM(array);
    if (PyArray_SIZE(array) != p->sets || !p->has_axis)
        return false;
    if (rank == 1 && (!p->has_blocks || PyArray_NDIM(p->array) == 1))
        return true;
    if (rank != PyArray_NDIM(p->array))
        return false;
    for (int i = 0; i < rank; i++) {
        npy_intp wanted =
            i == p->axis ? (p->has_blocks ? p->blocks : p->sets) : (p->has_blocks ? PyArray_DIM(p->array, i) : 1);
        if (PyArray_DIM(array, i) != wanted)
            return false;
    }
    return true;
}

static bool check_shape(PyArrayObject *array, const char *argument, const tq_py_parameters *p)
{
    if (PyArray_SIZE(array) == 1 || has_wanted_shape(array, p))
        return true;
    PyObject *found = PyObject_GetAttrString((PyObject *)array, "shape"), *wanted = found ? wanted_shapes(p) : NULL;
    if (wanted)
        PyErr_Format(PyExc_ValueError, "%s has shape %R: it needs %U", argument, found, wanted);
    Py_XDECREF(found);
    Py_XDECREF(wanted);
    return false;
}

/* uint64 as int64, saturated: large values must not become negative. */
static PyArrayObject *saturate_unsigned(PyArrayObject *array)
{
    PyArrayObject *copy = (PyArrayObject *)PyArray_NewCopy(array, NPY_CORDER);
    if (copy) {
        uint64_t *values = PyArray_DATA(copy);
        npy_intp count = PyArray_SIZE(copy);
        for (npy_intp i = 0; i < count; i++)
            values[i] = values[i] > INT64_MAX ? INT64_MAX : values[i];
    }
    return copy;
}

PyArrayObject *tq_py_parameter_array(PyObject *object, const char *argument, const char *kinds, const char *needed,
                                     int number, const tq_py_parameters *p)
{
    PyArrayObject *array = tq_py_contiguous(object, argument, number == NPY_INT64 || number == NPY_INT32);
    if (!array)
        return NULL;
    char kind = PyArray_DESCR(array)->kind;
    tq_py_type type;
    bool registered = tq_py_type_of_array(array, &type) && PyArray_TYPE(array) >= NPY_USERDEF;
    if (registered)
        kind = tq_py_is_float(&type) ? 'f' : 'i';
    if (!strchr(kinds, kind) && PyArray_SIZE(array) != 0) {
        PyErr_Format(PyExc_TypeError, "%s has dtype %R: it must be %s", argument, (PyObject *)PyArray_DESCR(array),
                     needed);
        Py_DECREF(array);
        return NULL;
    }
    PyArrayObject *cast = NULL;
    if (check_shape(array, argument, p))
        cast = (PyArrayObject *)PyArray_FROMANY((PyObject *)array, number, 0, 0,
                                                NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST | NPY_ARRAY_ENSUREARRAY);
    if (cast && number == NPY_INT64 && PyTypeNum_ISUNSIGNED(PyArray_TYPE(array)) && PyArray_ITEMSIZE(array) == 8)
        Py_SETREF(cast, saturate_unsigned(array));
    if (cast && p->out && tq_py_overlap(cast, p->out))
        Py_SETREF(cast, (PyArrayObject *)PyArray_NewCopy(cast, NPY_CORDER));
    Py_DECREF(array);
    return cast;
}
