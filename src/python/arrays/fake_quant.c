/* SPDX-License-Identifier: Apache-2.0
 *
 * Fake quantization and its gradient.
 */
#include "python/arrays/fake_quant.h"
#include "python/errors.h"

#include "python/arrays/array_args.h"
#include "python/arrays/operands.h"
#include "quant/fake_quant.h"

static const char *const rule_names[] = {
#define FAKE_QUANT_RULE(symbol, name, text) name,
#include "quant/fake_quant.def"
#undef FAKE_QUANT_RULE
};

/* What both functions take beside arrays. */
typedef struct options {
    PyObject *min, *max, *axis, *bits_value, *narrow_value, *threads_value;
    long bits;
    bool narrow;
    int threads;
} options;

static int read_options(options *o)
{
    bool given;
    o->bits = 8;
    return tq_py_optional_int(o->bits_value, "num_bits", 2, 16, &given, &o->bits) &&
                   tq_py_flag(o->narrow_value, "narrow_range", &o->narrow)
               ? tq_py_threads(o->threads_value, &o->threads)
               : -1;
}

/* One dimension of `count` values, or x's dimensions with 1 for all but the axis, as NumPy's keepdims gives them. */
static bool has_channels(PyArrayObject *array, PyArrayObject *x, int axis, size_t count)
{
    bool fits = (size_t)PyArray_SIZE(array) == count;
    if (PyArray_NDIM(array) == 1)
        return fits;
    fits &= PyArray_NDIM(array) == PyArray_NDIM(x);
    for (int i = 0; fits && i < PyArray_NDIM(x); i++)
        fits = PyArray_DIM(array, i) == (i == axis ? PyArray_DIM(x, i) : 1);
    return fits;
}

/* A scalar or one value a channel of x, as floats at *out; 0 or -1. */
static int channel_values(PyObject *value, const char *name, const options *o, PyArrayObject *x, size_t count,
                          PyArrayObject **out)
{
    int axis;
    PyArrayObject *array = tq_py_axis(x, o->axis, &axis) < 0 ? NULL : tq_py_dense_floats(value, name);
    if (!array)
        return -1;
    bool per_axis = o->axis != Py_None;
    if (PyArray_SIZE(array) != 1 && !(per_axis && has_channels(array, x, axis, count))) {
        if (per_axis)
            PyErr_Format(PyExc_ValueError,
                         "%s has %zd values in %d dimensions; axis %S needs 1, or %zu in one or in x's", name,
                         PyArray_SIZE(array), PyArray_NDIM(array), o->axis, count);
        else
            PyErr_Format(PyExc_ValueError, "%s has %zd values; without axis it must be one number", name,
                         PyArray_SIZE(array));
        Py_DECREF(array);
        return -1;
    }
    *out = array;
    return 0;
}

static float value_at(PyArrayObject *array, size_t i)
{
    return ((const float *)PyArray_DATA(array))[PyArray_SIZE(array) == 1 ? 0 : i];
}

/* One nudged range a channel, in new memory; NULL with an exception. */
static tq_nudged *nudge_all(tq_state *state, const options *o, PyArrayObject *x, size_t channels)
{
    PyArrayObject *min = NULL, *max = NULL;
    tq_nudged *nudged = NULL;
    tq_error error;
    if (channel_values(o->min, "min", o, x, channels, &min) < 0 ||
        channel_values(o->max, "max", o, x, channels, &max) < 0)
        goto done;
    nudged = PyMem_New(tq_nudged, channels + 1);
    if (!nudged) {
        PyErr_NoMemory();
        goto done;
    }
    for (size_t c = 0; c < channels; c++)
        if (tq_fake_quant_nudge(value_at(min, c), value_at(max, c), (int)o->bits, o->narrow, &nudged[c], &error)) {
            tq_py_raise(state, &error, NULL);
            PyMem_Free(nudged);
            nudged = NULL;
            break;
        }
done:
    Py_XDECREF(min);
    Py_XDECREF(max);
    return nudged;
}

PyDoc_STRVAR(
    fake_quant_doc,
    "fake_quant(x, min, max, num_bits=8, narrow_range=False, axis=None, *, rule='tflite', num_threads=None)\n--\n\n"
    "x moved to the nearest of the 2^num_bits values that quantized values between min and max stand for, as "
    "float32.\n\n"
    "x: real numbers, read as float32. min, max: the range, before it is nudged so that 0 has a code; numbers, or "
    "with\n"
    "axis one a channel, in one dimension or as keepdims=True leaves them; min < max, or both 0, which gives zeros.\n"
    "num_bits: 2 to 16. narrow_range: the lowest code is not used. rule: 'tflite', the FAKE_QUANT operator's "
    "arithmetic,\n"
    "or 'tensorflow', FakeQuantWithMinMaxVars' and, with axis, its PerChannel form's (tq.rules()['fake_quant']): they\n"
    "differ in the last bits, and next to a tie by a step. NaN stays NaN; infinities go to the ends of the range.\n"
    "num_threads: at most so many; None: as many as pay.\n\n"
    "Returns an array of x's shape. ValueError: a range that is empty, not finite, or whose scale or its reciprocal "
    "float32\n"
    "cannot hold; counts, an axis or num_bits that do not fit. TypeError: no real numbers.\n\n"
    ">>> fake_quant([-0.1, 0.0, 0.3, 2.0], -1.0, 1.0, num_bits=2)\n"
    "array([0.       , 0.       , 0.       , 0.6666666], dtype=float32)");

static PyObject *fake_quant(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"x", "min", "max", "num_bits", "narrow_range", "axis", "rule", "num_threads", NULL};
    options o = {.axis = Py_None};
    PyObject *value, *rule_name = NULL;
    tq_axis_view view;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|OOO$OO:fake_quant", names, &value, &o.min, &o.max,
                                     &o.bits_value, &o.narrow_value, &o.axis, &rule_name, &o.threads_value) ||
        read_options(&o) < 0)
        return NULL;
    int rule = tq_py_choice(rule_name, "rule", rule_names, TQ_FAKE_QUANT_RULES, TQ_FAKE_QUANT_TFLITE);
    PyArrayObject *x = rule < 0 ? NULL : tq_py_dense_floats(value, "x"), *y = NULL;
    tq_nudged *nudged = NULL;
    if (x && tq_py_axis_view(x, o.axis, &view) == 0)
        nudged = nudge_all(PyModule_GetState(module), &o, x, view.channels);
    if (nudged)
        y = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(x), PyArray_DIMS(x), NPY_FLOAT32);
    if (y) {
        Py_BEGIN_ALLOW_THREADS
        tq_fake_quant((tq_fake_quant_rule)rule, o.axis != Py_None, nudged, view, PyArray_DATA(x), o.threads,
                      PyArray_DATA(y));
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(nudged);
    Py_XDECREF(x);
    return y ? PyArray_Return(y) : NULL;
}

/* The sums as float32: a scalar, or one a channel. */
static PyObject *sums_array(const double *sums, size_t count, bool per_axis)
{
    npy_intp length = (npy_intp)count;
    PyArrayObject *array = (PyArrayObject *)PyArray_SimpleNew(per_axis, &length, NPY_FLOAT32);
    for (size_t c = 0; array && c < count; c++)
        ((float *)PyArray_DATA(array))[c] = (float)sums[c];
    return array ? PyArray_Return(array) : NULL;
}

static PyObject *gradient_arrays(PyObject *module, PyArrayObject *dy, PyArrayObject *x, const tq_nudged *nudged,
                                 tq_axis_view view, const options *o)
{
    PyArrayObject *dx = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(x), PyArray_DIMS(x), NPY_FLOAT32);
    double *sums = PyMem_New(double, 2 * view.channels + 1);
    PyObject *made = NULL;
    if (!sums)
        PyErr_NoMemory();
    if (dx && sums) {
        double *dmin = sums, *dmax = sums + view.channels;
        bool per_axis = o->axis != Py_None;
        tq_error error;
        tq_status status;
        Py_BEGIN_ALLOW_THREADS
        status = tq_fake_quant_gradient(nudged, view, PyArray_DATA(dy), PyArray_DATA(x), o->threads, PyArray_DATA(dx),
                                        dmin, dmax, &error);
        Py_END_ALLOW_THREADS
        if (status)
            tq_py_raise(PyModule_GetState(module), &error, NULL);
        else {
            PyObject *low = sums_array(dmin, view.channels, per_axis),
                     *high = sums_array(dmax, view.channels, per_axis);
            made = Py_BuildValue("NNN", PyArray_Return(dx), low, high); /* a NULL among them fails it */
            dx = NULL;
        }
    }
    PyMem_Free(sums);
    Py_XDECREF(dx);
    return made;
}

PyDoc_STRVAR(
    gradient_doc,
    "fake_quant_gradient(dy, x, min, max, num_bits=8, narrow_range=False, axis=None, *, num_threads=None)\n--\n\n"
    "(dx, dmin, dmax): the gradient of fake_quant, given dy, the gradient by its result. All float32.\n\n"
    "dx is dy where x lies within the nudged range and 0 elsewhere; dmin is the sum of dy where x lies below it and "
    "dmax\n"
    "where above, over everything or, with axis, over each channel, summed in double. Where min = max = 0, dx is dy.\n"
    "A NaN x has gradient 0. dy and x have the same shape; the rest as fake_quant's. Equal to TensorFlow's\n"
    "FakeQuantWithMinMaxVarsGradient and its PerChannel form (tensorflow/core/kernels/fake_quant_ops_functor.h). dx "
    "has\n"
    "x's shape, dmin and dmax are scalars or one a channel. ValueError and TypeError as fake_quant's.");

static PyObject *fake_quant_gradient(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dy", "x", "min", "max", "num_bits", "narrow_range", "axis", "num_threads", NULL};
    options o = {.axis = Py_None};
    PyObject *dy_value, *x_value, *made = NULL;
    tq_axis_view view;
    tq_nudged *nudged = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO|OOO$O:fake_quant_gradient", names, &dy_value, &x_value, &o.min,
                                     &o.max, &o.bits_value, &o.narrow_value, &o.axis, &o.threads_value) ||
        read_options(&o) < 0)
        return NULL;
    PyArrayObject *dy = tq_py_dense_floats(dy_value, "dy"), *x = dy ? tq_py_dense_floats(x_value, "x") : NULL;
    if (x && !PyArray_SAMESHAPE(x, dy))
        tq_py_refuse_shapes("dy", dy, "x", x);
    else if (x && tq_py_axis_view(x, o.axis, &view) == 0)
        nudged = nudge_all(PyModule_GetState(module), &o, x, view.channels);
    if (nudged)
        made = gradient_arrays(module, dy, x, nudged, view, &o);
    PyMem_Free(nudged);
    Py_XDECREF(dy);
    Py_XDECREF(x);
    return made;
}

static PyMethodDef functions[] = {
    {"fake_quant", (PyCFunction)(void (*)(void))fake_quant, METH_VARARGS | METH_KEYWORDS, fake_quant_doc},
    {"fake_quant_gradient", (PyCFunction)(void (*)(void))fake_quant_gradient, METH_VARARGS | METH_KEYWORDS,
     gradient_doc},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_fake_quant(PyObject *module, tq_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
