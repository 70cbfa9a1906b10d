/* SPDX-License-Identifier: Apache-2.0
 *
 * Scales, multipliers and zero points: one, or an array of them, each checked by its rule.
 */
#include "python/arrays/array_internal.h"

#include "kernels/arrays/parameter_checks.h"

#include <float.h>

/* Sets an error with "scale" or "scale[3]" and its value. */
static bool refuse_entry(const char *argument, npy_intp at, bool many, double value, const char *rule)
{
    PyObject *number = PyFloat_FromDouble(value);
    if (number && many)
        PyErr_Format(PyExc_ValueError, "%s[%zd] is %R: %s", argument, (Py_ssize_t)at, number, rule);
    else if (number)
        PyErr_Format(PyExc_ValueError, "%s is %R: %s", argument, number, rule);
    Py_XDECREF(number);
    return false;
}

/* The value of a Python float or int, or of a NumPy scalar; *is_one: whether `object` is one. */
static bool one_value(PyObject *object, double *value, bool *is_one)
{
    *is_one = true;
    if (PyFloat_CheckExact(object)) {
        *value = PyFloat_AS_DOUBLE(object);
        return true;
    }
    *is_one = PyFloat_Check(object) || PyLong_Check(object) || PyArray_IsScalar(object, Floating) ||
              PyArray_IsScalar(object, Integer);
    if (!*is_one)
        return true;
    *value = PyFloat_AsDouble(object);
    if (*value == -1.0 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return false;
        PyErr_Clear(); /* an int beyond float64 */
        *value = INFINITY;
    }
    return true;
}

static bool is_scale(float scale)
{
    return scale >= FLT_MIN && scale <= FLT_MAX;
}

#define SCALE_RULE "a scale must be finite, above 0 and not denormal as float32 (at least 2**-126)"

/* Refuses the first invalid scale.  wide: the values before rounding to float32, or NULL. */
static bool check_scales(tq_py_column *c, npy_intp count, const double *wide)
{
    const float *scale = c->data;
    if (tq_scales_fit(scale, (size_t)count))
        return true;
    for (npy_intp i = 0; i < count; i++)
        if (!is_scale(scale[i])) {
            refuse_entry("scale", i, c->many, wide ? wide[i] : scale[i], SCALE_RULE);
            tq_py_column_free(c);
            return false;
        }
    return true;
}

/* Rounds to float32, without NumPy's warnings about values that are refused anyway. */
static bool many_scales(tq_py_column *c, PyArrayObject *wide)
{
    npy_intp count = PyArray_SIZE(wide);
    const double *from = PyArray_DATA(wide);
    c->array = (PyArrayObject *)PyArray_SimpleNew(1, &count, NPY_FLOAT32);
    if (!c->array)
        return false;
    float *to = PyArray_DATA(c->array);
    c->data = to;
    c->many = count != 1;
    for (npy_intp i = 0; i < count; i++)
        to[i] = (float)from[i];
    return check_scales(c, count, from);
}

bool tq_py_scales(tq_py_column *c, PyObject *object, const tq_py_parameters *p)
{
    double value;
    bool is_one;
    *c = (tq_py_column){.data = &c->one};
    if (!one_value(object, &value, &is_one))
        return false;
    if (is_one) {
        c->one.f32 = (float)value;
        return is_scale(c->one.f32) || refuse_entry("scale", 0, false, value, SCALE_RULE);
    }
    bool narrow = PyArray_Check(object) && PyArray_TYPE((PyArrayObject *)object) == NPY_FLOAT32;
    PyArrayObject *wide =
        tq_py_parameter_array(object, "scale", "fiu", "real numbers", narrow ? NPY_FLOAT32 : NPY_FLOAT64, p);
    if (!wide)
        return false;
    if (narrow) {
        npy_intp count = PyArray_SIZE(wide);
        c->array = wide;
        c->data = PyArray_DATA(wide);
        c->many = count != 1;
        return check_scales(c, count, NULL);
    }
    bool read = many_scales(c, wide);
    Py_DECREF(wide);
    return read;
}

bool tq_py_multipliers(tq_py_column *c, PyObject *object, const tq_py_parameters *p, bool float32)
{
    const char *rule = float32 ? "a multiplier must be finite as float32 and not negative"
                               : "a multiplier must be finite and not negative";
    const double most = float32 ? FLT_MAX : DBL_MAX;
    bool is_one;
    *c = (tq_py_column){.data = &c->one};
    if (!one_value(object, &c->one.f64, &is_one))
        return false;
    if (!is_one) {
        c->array = tq_py_parameter_array(object, "multiplier", "fiu", "real numbers", NPY_FLOAT64, p);
        if (!c->array)
            return false;
        c->data = PyArray_DATA(c->array);
        c->many = PyArray_SIZE(c->array) != 1;
    }
    const double *multiplier = c->data;
    npy_intp count = is_one ? 1 : PyArray_SIZE(c->array);
    for (npy_intp i = 0; i < count; i++)
        if (!(multiplier[i] >= 0 && multiplier[i] <= most)) {
            refuse_entry("multiplier", i, c->many, multiplier[i], rule);
            tq_py_column_free(c);
            return false;
        }
    return true;
}

static bool refuse_zero_point(const char *argument, npy_intp at, bool many, PyObject *value, int32_t low, int32_t high,
                              const char *of)
{
    if (value && many)
        PyErr_Format(PyExc_ValueError, "%s[%zd] is %R: it must be a value of %s, from %d to %d", argument,
                     (Py_ssize_t)at, value, of, low, high);
    else if (value)
        PyErr_Format(PyExc_ValueError, "%s is %R: it must be a value of %s, from %d to %d", argument, value, of, low,
                     high);
    return false;
}

static bool one_zero_point(tq_py_column *c, PyObject *object, const char *argument, int32_t low, int32_t high,
                           const char *of)
{
    PyObject *index = PyNumber_Index(object);
    if (!index)
        return false;
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(index, &overflow);
    bool fits = !overflow && value >= low && value <= high;
    if (fits)
        c->one.i32 = (int32_t)value;
    else
        refuse_zero_point(argument, 0, false, index, low, high, of);
    Py_DECREF(index);
    return fits;
}

/* Refuses the first zero point outside [low, high]. */
static void refuse_zero_points(PyArrayObject *array, const char *argument, int32_t low, int32_t high, const char *of)
{
    bool wide = PyArray_ITEMSIZE(array) == 8;
    npy_intp count = PyArray_SIZE(array);
    const void *from = PyArray_DATA(array);
    for (npy_intp i = 0; i < count; i++) {
        int64_t value = wide ? ((const int64_t *)from)[i] : ((const int32_t *)from)[i];
        if (value >= low && value <= high)
            continue;
        PyObject *number = PyLong_FromLongLong(value);
        refuse_zero_point(argument, i, count != 1, number, low, high, of);
        Py_XDECREF(number);
        return;
    }
}

/* Zero points of int64 or int32 as int32, in a new array; if all are equal, such as the zeros of weights, as one value.
 */
static bool many_zero_points(tq_py_column *c, PyArrayObject *array, const char *argument, int32_t low, int32_t high,
                             const char *of)
{
    npy_intp count = PyArray_SIZE(array);
    const void *from = PyArray_DATA(array);
    c->array = (PyArrayObject *)PyArray_SimpleNew(1, &count, NPY_INT32);
    if (!c->array)
        return false;
    int32_t *to = PyArray_DATA(c->array);
    bool differ;
    if (!(PyArray_ITEMSIZE(array) == 8 ? tq_zero_points_fit_i64(from, (size_t)count, low, high, to, &differ)
                                       : tq_zero_points_fit_i32(from, (size_t)count, low, high, to, &differ))) {
        refuse_zero_points(array, argument, low, high, of);
        tq_py_column_free(c);
        return false;
    }
    c->data = to;
    c->many = count == 0 || differ;
    return true;
}

bool tq_py_zero_points(tq_py_column *c, PyObject *object, const char *argument, const tq_py_parameters *p, int32_t low,
                       int32_t high, const char *of)
{
    *c = (tq_py_column){.data = &c->one};
    if (!object) {
        /* 0 is the default; narrow ranges of unsigned types begin at 1 */
        if (low <= 0)
            return true;
        PyObject *zero = PyLong_FromLong(0);
        refuse_zero_point(argument, 0, false, zero, low, high, of);
        Py_XDECREF(zero);
        return false;
    }
    if (PyLong_Check(object) || PyArray_IsScalar(object, Integer) ||
        (PyIndex_Check(object) && !PyObject_HasAttrString(object, "__array__") &&
         !PyObject_HasAttrString(object, "__dlpack__"))) /* tensors of any size have __index__, too */
        return one_zero_point(c, object, argument, low, high, of);
    bool narrow = PyArray_Check(object) && PyArray_TYPE((PyArrayObject *)object) == NPY_INT32;
    PyArrayObject *array = tq_py_parameter_array(object, argument, "iu", "integers", narrow ? NPY_INT32 : NPY_INT64, p);
    if (!array)
        return false;
    bool read = many_zero_points(c, array, argument, low, high, of);
    Py_DECREF(array);
    return read;
}

void tq_py_column_free(tq_py_column *c)
{
    Py_CLEAR(c->array);
}
