/* SPDX-License-Identifier: Apache-2.0
 *
 * What is given as an array, as kernels read it: contiguous, aligned, in native byte order, of a type that tq has.
 */
#include "python/arrays/array_internal.h"

#include "kernels/arrays/narrow_values.h"
#include "python/arrays/operands.h"

static PyArrayObject *refuse_input(PyArrayObject *array, const char *argument, const char *needed)
{
    PyErr_Format(PyExc_TypeError, "%s has dtype %R: it must be %s", argument, (PyObject *)PyArray_DESCR(array), needed);
    Py_DECREF(array);
    return NULL;
}

/* Python's integers have no width: they become int32 where they fit. */
static PyArrayObject *narrow_integers(PyArrayObject *array, const char *argument)
{
    PyArrayObject *wide =
        (PyArrayObject *)PyArray_FROMANY((PyObject *)array, NPY_INT64, 0, 0, NPY_ARRAY_CARRAY | NPY_ARRAY_FORCECAST);
    Py_DECREF(array);
    PyArrayObject *narrow =
        wide ? (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(wide), PyArray_DIMS(wide), NPY_INT32) : NULL;
    if (!narrow) {
        Py_XDECREF(wide);
        return NULL;
    }
    const int64_t *from = PyArray_DATA(wide);
    int32_t *to = PyArray_DATA(narrow);
    npy_intp count = PyArray_SIZE(wide);
    for (npy_intp i = 0; i < count; i++) {
        if (from[i] < INT32_MIN || from[i] > INT32_MAX) {
            PyErr_Format(PyExc_ValueError, "%s holds %lld, which is not in the range of int32", argument,
                         (long long)from[i]);
            Py_CLEAR(narrow);
            break;
        }
        to[i] = (int32_t)from[i];
    }
    Py_DECREF(wide);
    return narrow;
}

/* ml_dtypes' narrow integers as int8 or uint8, and the type to match. */
static PyArrayObject *unmask(PyArrayObject *array, tq_py_type *type)
{
    PyArrayObject *wide =
        (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(array), PyArray_DIMS(array), tq_py_numpy_type(type->element));
    if (wide) {
        tq_extend_values(PyArray_DATA(array), (size_t)PyArray_SIZE(array), tq_py_type_mask(type), type->low < 0,
                         PyArray_DATA(wide));
        type->masked = false;
    }
    Py_DECREF(array);
    return wide;
}

PyArrayObject *tq_py_contiguous(PyObject *object, const char *argument, bool integers)
{
    if (PyArray_CheckExact(object) && PyArray_ISCARRAY_RO((PyArrayObject *)object))
        return (PyArrayObject *)Py_NewRef(object);
    PyArrayObject *array = tq_py_array(object, argument, integers);
    if (array)
        Py_SETREF(array, (PyArrayObject *)PyArray_FROM_OF((PyObject *)array,
                                                          NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED |
                                                              NPY_ARRAY_NOTSWAPPED | NPY_ARRAY_ENSUREARRAY));
    return array;
}

/* NumPy makes int64 of lists of Python's integers and float64 of empty lists, which says nothing of what they are. */
static bool has_no_width(PyArrayObject *array, PyObject *object)
{
    return (PyTypeNum_ISINTEGER(PyArray_TYPE(array)) || PyArray_SIZE(array) == 0) && !PyArray_Check(object) &&
           !PyArray_IsScalar(object, Generic) && !PyObject_CheckBuffer(object);
}

PyArrayObject *tq_py_quantized_input(PyObject *object, const char *argument, const char *needed, tq_py_type *type)
{
    PyArrayObject *array = tq_py_contiguous(object, argument, true);
    if (!array)
        return NULL;
    bool known = tq_py_type_of_array(array, type);
    if ((!known || tq_py_is_float(type)) && has_no_width(array, object)) {
        array = narrow_integers(array, argument);
        if (array)
            tq_py_type_of_array(array, type);
        return array;
    }
    if (!known || tq_py_is_float(type))
        return refuse_input(array, argument, needed);
    return array;
}

PyArrayObject *tq_py_integer_input(PyObject *object, const char *argument, const char *needed, tq_py_type *type)
{
    PyArrayObject *array = tq_py_quantized_input(object, argument, needed, type);
    return array && type->masked ? unmask(array, type) : array;
}

PyArrayObject *tq_py_real_input(PyObject *object, const char *argument, tq_py_type *type)
{
    PyArrayObject *array = tq_py_contiguous(object, argument, false);
    if (!array)
        return NULL;
    int number = PyArray_TYPE(array);
    bool known = tq_py_type_of_array(array, type);
    if (PyTypeNum_ISINTEGER(number) || number == NPY_LONGDOUBLE || (known && type->masked)) {
        Py_SETREF(array, (PyArrayObject *)PyArray_FROMANY((PyObject *)array, NPY_DOUBLE, 0, 0,
                                                          NPY_ARRAY_CARRAY | NPY_ARRAY_FORCECAST));
        if (array)
            tq_py_type_of_array(array, type);
        return array;
    }
    if (!known || !tq_py_is_float(type))
        return refuse_input(array, argument, "float32, float64, float16, bfloat16, or integers, which become float64");
    return array;
}
