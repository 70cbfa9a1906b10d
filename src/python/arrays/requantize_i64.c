/* SPDX-License-Identifier: Apache-2.0 */
#include "python/arrays/requantize_i64.h"

#include "kernels/arrays/requantize_i64.h"
#include "python/arrays/array_internal.h"
#include "python/arrays/operands.h"

static const char *const rules[TQ_REQUANTIZE_I64_RULES] = {
#define REQUANTIZE_I64_RULE(symbol, name, text) name,
#include "quant/rounding.def"
};

bool tq_py_is_int64(PyObject *q)
{
    if (!q)
        return false;
    if (PyArray_Check(q))
        return PyArray_DESCR((PyArrayObject *)q)->kind == 'i' && PyArray_ITEMSIZE((PyArrayObject *)q) == 8;
    return PyArray_IsScalar(q, Int64);
}

/* The arguments of one call, but for q and out. */
typedef struct arguments {
    tq_py_type out;
    PyArray_Descr *descr;
    tq_py_parameters parameters;
    tq_py_column multiplier, zero_point, input_zero_point;
    int rule, threads;
} arguments;

static void end(arguments *a)
{
    tq_py_column_free(&a->multiplier);
    tq_py_column_free(&a->zero_point);
    tq_py_column_free(&a->input_zero_point);
    Py_CLEAR(a->descr);
}

static bool read_output(arguments *a, PyObject *dtype)
{
    static const char needed[] = "int8, uint8, int16 or int32";
    if (!tq_py_type_of_dtype(dtype, "int8", needed, &a->out, &a->descr))
        return false;
    const tq_element e = a->out.element;
    if (!a->out.masked && (e == TQ_i8 || e == TQ_u8 || e == TQ_i16 || e == TQ_i32) && a->out.low == tq_element_low(e))
        return true;
    PyErr_Format(PyExc_TypeError, "dtype is %s: it must be %s", a->out.name, needed);
    return false;
}

static bool read_all(arguments *a, PyArrayObject *input, PyObject *const *v)
{
    a->rule = tq_py_choice(v[TQ_RQ_ROUNDING], "rounding", rules, TQ_REQUANTIZE_I64_RULES, TQ_REQUANTIZE_I64_UP);
    return a->rule >= 0 && tq_py_threads(v[TQ_RQ_NUM_THREADS], &a->threads) >= 0 && read_output(a, v[TQ_RQ_DTYPE]) &&
           tq_py_layout(&a->parameters, input, v[TQ_RQ_AXIS], NULL, v[TQ_RQ_OUT]) &&
           tq_py_multipliers(&a->multiplier, v[TQ_RQ_MULTIPLIER], &a->parameters, false) &&
           tq_py_zero_points(&a->zero_point, v[TQ_RQ_ZERO_POINT], "zero_point", &a->parameters, a->out.low, a->out.high,
                             a->out.name) &&
           tq_py_zero_points(&a->input_zero_point, v[TQ_RQ_INPUT_ZERO_POINT], "input_zero_point", &a->parameters,
                             INT32_MIN, INT32_MAX, "int32");
}

static PyObject *run(PyObject *module, arguments *a, PyArrayObject *input, PyObject *out)
{
    tq_py_output output;
    Py_INCREF(a->descr); /* which the output takes */
    if (!tq_py_output_begin(&output, input, out, &a->out, a->descr))
        return NULL;
    const tq_requantize_i64_job job = {PyArray_DATA(input),
                                       PyArray_DATA(output.array),
                                       a->out.element,
                                       a->parameters.layout,
                                       tq_py_f64(&a->multiplier),
                                       tq_py_i32(&a->input_zero_point),
                                       tq_py_i32(&a->zero_point),
                                       a->out.low,
                                       a->out.high,
                                       (tq_requantize_i64_rule)a->rule,
                                       a->threads};
    tq_error error;
    PyThreadState *saved = PyEval_SaveThread();
    tq_requantize_i64_array(&job);
    PyEval_RestoreThread(saved);
    return tq_py_output_end(&output, module, TQ_OK, &error);
}

PyObject *tq_py_requantize_i64(PyObject *module, PyObject *const v[TQ_RQ_ARGUMENTS])
{
    arguments a = {0};
    PyArrayObject *input = tq_py_contiguous(v[TQ_RQ_Q], "q", true);
    PyObject *result = input && read_all(&a, input, v) ? run(module, &a, input, v[TQ_RQ_OUT]) : NULL;
    end(&a);
    Py_XDECREF(input);
    return result;
}
