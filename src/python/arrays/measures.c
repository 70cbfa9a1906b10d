/* SPDX-License-Identifier: Apache-2.0
 *
 * sqnr_db(), mse(), max_error(), cosine(): how far one array lies from another.
 */
#include "python/arrays/measures.h"
#include "python/errors.h"

#include "python/arrays/array_args.h"
#include "python/arrays/operands.h"
#include "quant/measure.h"

#define COMMON_DOC                                                                                                    \
    "x, y: arrays of one shape, of any strides and byte orders, each of any real dtype (also bfloat16, float16,\n"    \
    "    integers, bool). Elements are read as float64, without a copy of the array unless its bytes are\n"           \
    "    swapped or its type is rarer than these: d = x - y.\n"                                                       \
    "axis: measure each index along it apart; None: everything together. num_threads: at most so many; None: as\n"    \
    "    many as pay, up to TQ_NUM_THREADS or the processors. The result does not depend on it.\n\n"                  \
    "Returns float64: a scalar, or with axis an array of its length. NaN in x or y gives NaN, and so do infinities\n" \
    "of one sign in one place. TypeError: no real numbers. ValueError: shapes that differ, an axis out of range."

/* An array whose elements the core reads: the value's own where it can. */
static PyArrayObject *measured_of(PyObject *value, const char *name, tq_measured *measured)
{
    PyArrayObject *array = tq_py_array(value, name, false);
    if (array && (PyArray_ISBYTESWAPPED(array) || tq_py_real_type(array) == TQ_REAL_TYPES)) {
        PyArrayObject *doubles = tq_py_doubles((PyObject *)array, name);
        Py_SETREF(array, doubles);
    }
    if (!array)
        return NULL;
    measured->data = PyArray_BYTES(array);
    measured->type = tq_py_real_type(array);
    for (int i = 0; i < PyArray_NDIM(array); i++)
        measured->strides[i] = PyArray_STRIDE(array, i);
    return array;
}

static PyObject *measure_arrays(PyObject *module, tq_measure_kind kind, PyArrayObject *x, const tq_measured operands[2],
                                PyObject *axis, int threads)
{
    tq_measure_shape shape = {.rank = PyArray_NDIM(x)};
    if (tq_py_axis(x, axis, &shape.axis) < 0)
        return NULL;
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = (size_t)PyArray_DIM(x, i);
    npy_intp *dims = PyArray_DIMS(x), length = shape.axis >= 0 ? dims[shape.axis] : 1;
    PyArrayObject *out = (PyArrayObject *)PyArray_SimpleNew(shape.axis >= 0, &length, NPY_FLOAT64);
    if (!out)
        return NULL;
    tq_error error;
    PyThreadState *saved = PyArray_SIZE(x) >= TQ_PY_RELEASE_ELEMENTS ? PyEval_SaveThread() : NULL;
    tq_status status = tq_measure(kind, &shape, &operands[0], &operands[1], threads, PyArray_DATA(out), &error);
    if (saved)
        PyEval_RestoreThread(saved);
    if (status) {
        Py_DECREF(out);
        return tq_py_raise(PyModule_GetState(module), &error, NULL);
    }
    return PyArray_Return(out);
}

static PyObject *measure(PyObject *module, tq_measure_kind kind, const char *name, PyObject *const *args,
                         Py_ssize_t nargs, PyObject *keywords)
{
    static const char *const names[] = {"x", "y", "axis", "num_threads"};
    const tq_py_signature signature = {name, names, 4, 3, 2};
    PyObject *v[4], *result = NULL;
    tq_measured operands[2];
    int threads;
    if (!tq_py_bind(&signature, args, nargs, keywords, v) || tq_py_threads(v[3], &threads) < 0)
        return NULL;
    PyArrayObject *x = measured_of(v[0], "x", &operands[0]), *y = x ? measured_of(v[1], "y", &operands[1]) : NULL;
    if (y && !PyArray_SAMESHAPE(x, y))
        tq_py_refuse_shapes("y", y, "x", x);
    else if (y)
        result = measure_arrays(module, kind, x, operands, v[2], threads);
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

#define MEASURE(symbol, name, text)                                                                                  \
    static PyObject *measure_##symbol(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords) \
    {                                                                                                                \
        return measure(module, TQ_MEASURE_##symbol, name, args, nargs, keywords);                                    \
    }
#include "quant/measure.def"
#undef MEASURE

/* What each does with nothing and with zeros. */
#define SQNR_DB_DOC                                                                                               \
    "The signal's power over the error's, where x is the original and y what became of it. Of no elements NaN,\n" \
    "of equal arrays infinity, where x is 0 and y is not -infinity.\n\n"                                          \
    ">>> sqnr_db([1.0, -1.0], [1.1, -0.9])\n"                                                                     \
    "np.float64(19.999999999999996)"
#define MSE_DOC "The mean squared error. Of no elements NaN.\n\n>>> mse([1, 2], [1, 4])\nnp.float64(2.0)"
#define MAX_ERROR_DOC "The greatest error. Of no elements 0.\n\n>>> max_error([1, 2], [1, 4])\nnp.float64(2.0)"
#define COSINE_DOC                                                                                       \
    "The cosine of the angle between x and y as vectors. Of no elements NaN, and where x or y is 0.\n\n" \
    ">>> cosine([1, 0], [1, 1])\nnp.float64(0.7071067811865476)"

static PyMethodDef functions[] = {
#define MEASURE(symbol, name, text)                                                      \
    {name, (PyCFunction)(void (*)(void))measure_##symbol, METH_FASTCALL | METH_KEYWORDS, \
     name "(x, y, axis=None, *, num_threads=None)\n--\n\n" text ".\n\n" COMMON_DOC "\n\n" symbol##_DOC},
#include "quant/measure.def"
#undef MEASURE
    {NULL, NULL, 0, NULL},
};

int tq_py_add_measures(PyObject *module, tq_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
