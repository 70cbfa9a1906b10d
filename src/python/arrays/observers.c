/* SPDX-License-Identifier: Apache-2.0
 *
 * The array work of tq's observers, whose state (NumPy arrays) tq/calibration/observers.py keeps.
 *
 * These functions are tq's own: they check what keeps memory safe, and no more.
 */
#include "python/arrays/observers.h"
#include "base/threads.h"
#include "python/errors.h"

#include "kernels/arrays/observe.h"
#include "python/arrays/operands.h"
#include "quant/histogram.h"

static const char *const method_names[] = {
#define HISTOGRAM_METHOD(symbol, name, text) name,
#include "quant/histogram.def"
#undef HISTOGRAM_METHOD
};

static const char *const rule_names[] = {
#define PARAMS_RULE(symbol, name, int16_is_symmetric, text) name,
#include "quant/params.def"
#undef PARAMS_RULE
};

static int reals_of(PyObject *value, PyObject *axis, PyArrayObject **array, tq_reals *reals)
{
    *array = tq_py_dense_reals(value, "x");
    if (!*array)
        return -1;
    *reals = (tq_reals){PyArray_DATA(*array), PyArray_TYPE(*array) == NPY_FLOAT64, {0, 0, 0}};
    if (tq_py_axis_view(*array, axis, &reals->view) == 0)
        return 0;
    Py_CLEAR(*array);
    return -1;
}

/* _reals(x) -> x as a dense array of float32 or float64, or itself: to convert it once for what follows. */
static PyObject *reals(PyObject *module, PyObject *value)
{
    (void)module;
    return (PyObject *)tq_py_dense_reals(value, "x");
}

static PyObject *observed_arrays(const tq_observed *observed, npy_intp channels)
{
    PyArrayObject *min = (PyArrayObject *)PyArray_SimpleNew(1, &channels, NPY_FLOAT64);
    PyArrayObject *max = (PyArrayObject *)PyArray_SimpleNew(1, &channels, NPY_FLOAT64);
    npy_intp shape[2] = {channels, 3};
    PyArrayObject *counts = (PyArrayObject *)PyArray_SimpleNew(2, shape, NPY_UINT64);
    for (npy_intp c = 0; min && max && counts && c < channels; c++) {
        ((double *)PyArray_DATA(min))[c] = observed[c].min;
        ((double *)PyArray_DATA(max))[c] = observed[c].max;
        npy_uint64 *count = (npy_uint64 *)PyArray_DATA(counts) + 3 * c;
        count[0] = observed[c].finite;
        count[1] = observed[c].nan;
        count[2] = observed[c].infinite;
    }
    return Py_BuildValue("NNN", min, max, counts); /* fails, and frees the rest, if one is NULL */
}

/* _observe(x, axis, num_threads) -> min, max, counts[channels, 3]: of the finite, NaN and infinite values. */
static PyObject *observe(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *value, *axis, *num_threads, *made = NULL;
    PyArrayObject *array;
    tq_reals x;
    int threads;
    if (!PyArg_ParseTuple(args, "OOO:_observe", &value, &axis, &num_threads) ||
        tq_py_threads(num_threads, &threads) < 0 || reals_of(value, axis, &array, &x) < 0)
        return NULL;
    tq_observed *observed = PyMem_New(tq_observed, x.view.channels + 1);
    if (observed) {
        Py_BEGIN_ALLOW_THREADS
        tq_observe(&x, threads, observed);
        Py_END_ALLOW_THREADS
        made = observed_arrays(observed, (npy_intp)x.view.channels);
    } else
        PyErr_NoMemory();
    PyMem_Free(observed);
    Py_DECREF(array);
    return made;
}

static int is_table(PyArrayObject *array, int type, int rank)
{
    return PyArray_TYPE(array) == type && PyArray_NDIM(array) == rank && PyArray_ISCARRAY(array);
}

static int check_histogram(PyArrayObject *exponents, PyArrayObject *counts)
{
    if (is_table(exponents, NPY_INT32, 1) && is_table(counts, NPY_UINT64, 2) &&
        PyArray_DIM(exponents, 0) == PyArray_DIM(counts, 0)) {
        npy_intp bins = PyArray_DIM(counts, 1);
        if (bins >= TQ_HISTOGRAM_LEAST_BINS && bins <= TQ_HISTOGRAM_MOST_BINS && (bins & (bins - 1)) == 0)
            return 0;
    }
    PyErr_SetString(PyExc_ValueError,
                    "a histogram needs int32 exponents [channels] and uint64 counts [channels, bins], "
                    "bins a power of two");
    return -1;
}

/* _histogram_grow(exponents, counts, min, max): folds each channel until it holds [min, max]; both
   float64 [channels], +infinity and -infinity where there is nothing to hold. */
static PyObject *histogram_grow(PyObject *module, PyObject *args)
{
    (void)module;
    PyArrayObject *exponents, *counts, *min, *max;
    if (!PyArg_ParseTuple(args, "O!O!O!O!:_histogram_grow", &PyArray_Type, &exponents, &PyArray_Type, &counts,
                          &PyArray_Type, &min, &PyArray_Type, &max) ||
        check_histogram(exponents, counts) < 0)
        return NULL;
    npy_intp channels = PyArray_DIM(counts, 0), bins = PyArray_DIM(counts, 1);
    if (!is_table(min, NPY_FLOAT64, 1) || !is_table(max, NPY_FLOAT64, 1) || PyArray_DIM(min, 0) != channels ||
        PyArray_DIM(max, 0) != channels) {
        PyErr_SetString(PyExc_ValueError, "min and max must be float64, one value a channel");
        return NULL;
    }
    for (npy_intp c = 0; c < channels; c++) {
        double low = ((const double *)PyArray_DATA(min))[c], high = ((const double *)PyArray_DATA(max))[c];
        int32_t *exponent = (int32_t *)PyArray_DATA(exponents) + c;
        if (!(low <= high))
            continue;
        int needed = tq_histogram_exponent(low, high, (uint32_t)bins);
        if (needed > *exponent) {
            tq_histogram_fold((uint64_t *)PyArray_DATA(counts) + c * bins, (uint32_t)bins, *exponent, needed);
            *exponent = needed;
        }
    }
    Py_RETURN_NONE;
}

/* _histogram_fold(exponents, counts, to): folds each channel to the exponent `to` says, if higher. */
static PyObject *histogram_fold(PyObject *module, PyObject *args)
{
    (void)module;
    PyArrayObject *exponents, *counts, *to;
    if (!PyArg_ParseTuple(args, "O!O!O!:_histogram_fold", &PyArray_Type, &exponents, &PyArray_Type, &counts,
                          &PyArray_Type, &to) ||
        check_histogram(exponents, counts) < 0)
        return NULL;
    npy_intp channels = PyArray_DIM(counts, 0), bins = PyArray_DIM(counts, 1);
    if (!is_table(to, NPY_INT32, 1) || PyArray_DIM(to, 0) != channels) {
        PyErr_SetString(PyExc_ValueError, "exponents must be int32, one a channel");
        return NULL;
    }
    for (npy_intp c = 0; c < channels; c++) {
        int32_t *from = (int32_t *)PyArray_DATA(exponents) + c, wanted = ((const int32_t *)PyArray_DATA(to))[c];
        if (wanted <= *from)
            continue;
        tq_histogram_fold((uint64_t *)PyArray_DATA(counts) + c * bins, (uint32_t)bins, *from, wanted);
        *from = wanted;
    }
    Py_RETURN_NONE;
}

/* _histogram_counts(x, axis, exponents, bins, num_threads) -> counts[channels, bins] of x alone, in new memory, so
   that nothing is shared while the GIL is away. */
static PyObject *histogram_counts(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *value, *axis, *num_threads;
    PyArrayObject *exponents, *array, *counts = NULL;
    Py_ssize_t bins;
    tq_reals x;
    int threads;
    if (!PyArg_ParseTuple(args, "OOO!nO:_histogram_counts", &value, &axis, &PyArray_Type, &exponents, &bins,
                          &num_threads) ||
        tq_py_threads(num_threads, &threads) < 0 || reals_of(value, axis, &array, &x) < 0)
        return NULL;
    npy_intp shape[2] = {(npy_intp)x.view.channels, bins};
    counts = (PyArrayObject *)PyArray_ZEROS(2, shape, NPY_UINT64, 0);
    tq_histogram_unit *units = PyMem_New(tq_histogram_unit, x.view.channels + 1);
    if (!units)
        PyErr_NoMemory();
    if (counts && (!units || check_histogram(exponents, counts) < 0))
        Py_CLEAR(counts);
    if (counts) {
        Py_INCREF(exponents);
        Py_BEGIN_ALLOW_THREADS
        tq_histogram_add(&x, (uint32_t)bins, PyArray_DATA(exponents), units, threads, PyArray_DATA(counts));
        Py_END_ALLOW_THREADS
        Py_DECREF(exponents);
    }
    PyMem_Free(units);
    Py_DECREF(array);
    return (PyObject *)counts;
}

static tq_status all_ranges(PyArrayObject *const *state, const tq_params_target *target, tq_histogram_method method,
                            double percentile, double *low, double *high, tq_error *error)
{
    npy_intp channels = PyArray_DIM(state[1], 0), bins = PyArray_DIM(state[1], 1);
    for (npy_intp c = 0; c < channels; c++) {
        tq_histogram h = {(const uint64_t *)PyArray_DATA(state[1]) + c * bins, (uint32_t)bins,
                          ((const int32_t *)PyArray_DATA(state[0]))[c], ((const double *)PyArray_DATA(state[2]))[c],
                          ((const double *)PyArray_DATA(state[3]))[c]};
        tq_status status = tq_histogram_range(&h, method, percentile, target, &low[c], &high[c], error);
        if (status)
            return status;
    }
    return TQ_OK;
}

/* _histogram_range(exponents, counts, min, max, method, percentile, dtype, symmetric, narrow_range, rule)
   -> low, high, float64 [channels].  Every channel holds a value. */
static PyObject *histogram_range(PyObject *module, PyObject *args)
{
    PyArrayObject *state[4];
    PyObject *method_name, *dtype, *rule_name;
    double percentile;
    int symmetric, narrow;
    tq_params_target target;
    if (!PyArg_ParseTuple(args, "O!O!O!O!OdOppO:_histogram_range", &PyArray_Type, &state[0], &PyArray_Type, &state[1],
                          &PyArray_Type, &state[2], &PyArray_Type, &state[3], &method_name, &percentile, &dtype,
                          &symmetric, &narrow, &rule_name) ||
        check_histogram(state[0], state[1]) < 0 || tq_py_integer_type(dtype, &target.type) < 0)
        return NULL;
    int rule = tq_py_choice(rule_name, "rule", rule_names, TQ_PARAMS_RULES, TQ_PARAMS_TOCO);
    int method = tq_py_choice(method_name, "method", method_names, TQ_HISTOGRAM_METHODS, TQ_HISTOGRAM_MINMAX);
    npy_intp channels = PyArray_DIM(state[1], 0);
    if (rule < 0 || method < 0)
        return NULL;
    for (int i = 2; i < 4; i++)
        if (!is_table(state[i], NPY_FLOAT64, 1) || PyArray_DIM(state[i], 0) != channels)
            return PyErr_Format(PyExc_ValueError, "min and max must be float64, one value a channel");
    target.rule = (tq_params_rule)rule;
    target.symmetric = symmetric;
    target.narrow = narrow;
    PyArrayObject *low = (PyArrayObject *)PyArray_SimpleNew(1, &channels, NPY_FLOAT64);
    PyArrayObject *high = (PyArrayObject *)PyArray_SimpleNew(1, &channels, NPY_FLOAT64);
    if (low && high) {
        tq_error error;
        tq_status status;
        Py_BEGIN_ALLOW_THREADS
        status = all_ranges(state, &target, (tq_histogram_method)method, percentile, PyArray_DATA(low),
                            PyArray_DATA(high), &error);
        Py_END_ALLOW_THREADS
        if (status) {
            tq_py_raise(PyModule_GetState(module), &error, NULL);
            Py_CLEAR(low);
        }
    }
    return Py_BuildValue("NN", low, high);
}

static PyObject *default_threads(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLong(tq_default_threads());
}

static PyMethodDef functions[] = {
    {"_default_threads", default_threads, METH_NOARGS, NULL},
    {"_reals", reals, METH_O, NULL},
    {"_observe", observe, METH_VARARGS, NULL},
    {"_histogram_grow", histogram_grow, METH_VARARGS, NULL},
    {"_histogram_fold", histogram_fold, METH_VARARGS, NULL},
    {"_histogram_counts", histogram_counts, METH_VARARGS, NULL},
    {"_histogram_range", histogram_range, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_observers(PyObject *module, tq_state *state)
{
    (void)state;
    if (PyModule_AddIntConstant(module, "_LEAST_BINS", TQ_HISTOGRAM_LEAST_BINS) < 0 ||
        PyModule_AddIntConstant(module, "_MOST_BINS", TQ_HISTOGRAM_MOST_BINS) < 0 ||
        PyModule_AddIntConstant(module, "_LEAST_EXPONENT", TQ_HISTOGRAM_LEAST_EXPONENT) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
