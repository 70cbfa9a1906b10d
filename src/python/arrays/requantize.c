/* SPDX-License-Identifier: Apache-2.0
 *
 * requantize().
 */
#include "python/arrays/requantize.h"

#include "python/arrays/functions.h"
#include "python/arrays/operands.h"
#include "python/arrays/requantize_i64.h"

const char tq_py_requantize_doc[] =
    "requantize(q, multiplier, zero_point=0, *, input_zero_point=0, dtype='int8', axis=None,\n"
    "           rounding='double', out=None, num_threads=None)\n--\n\n"
    "Integers to quantized values of another scale: clamp(round((q - input_zero_point) * multiplier) + zero_point).\n\n"
    "q: int8, uint8, int16, int32 or int64 (accumulators), of any shape, strides and byte order.\n"
    "multiplier: input scale / output scale (for an accumulator, input scale * weight scale / output\n"
    "    scale), finite and not negative. One, or with axis one a channel.\n"
    "zero_point, input_zero_point: quantized values of dtype and of q's type; one, or one a channel.\n"
    "dtype: int8, uint8, int16 or int32.\n"
    "rounding, with acc = q - input_zero_point (saturating), M the multiplier, z the zero point, and M as\n"
    "    m * 2**(e - 31), 2**30 <= m < 2**31:\n"
#define REQUANTIZE_RULE(symbol, name, text) "    '" name "': " text ".\n"
#include "quant/rounding.def"
    "  of int64 accumulators, 16x8 operators' (the first where rounding is left out):\n"
#define REQUANTIZE_I64_RULE(symbol, name, text) "    '" name "': " text ".\n"
#include "quant/rounding.def"
    "    Where the runtime's left shift or conversion would overflow, undefined in C, these saturate.\n"
    "out, num_threads: as for quantize; out may be q itself where element sizes are equal.\n\n"
    "Returns a new array of q's shape, or out. TypeError: types that do not fit. ValueError: values that do not.\n\n"
    ">>> requantize(numpy.int32([7984, -7984]), 0.0014402704)\n"
    "array([ 12, -12], dtype=int8)\n"
    ">>> requantize(numpy.int32([7984, -7984]), 0.0014402704, rounding='float64-away')\n"
    "array([ 11, -11], dtype=int8)";

static const char needed[] = "int8, uint8, int16 or int32", needed_of_q[] = "int8, uint8, int16, int32 or int64";

static bool is_requantizable(const tq_py_type *type)
{
    return !type->masked && tq_kernel_find(TQ_KERNEL_requantize_double, type->element, type->element) != NULL &&
           type->low == tq_element_low(type->element);
}

static bool refuse_type(const char *argument, const tq_py_type *type)
{
    PyErr_Format(PyExc_TypeError, "%s is %s: it must be %s", argument, type->name, needed);
    return false;
}

const char *const tq_py_requantize_rules[TQ_REQUANTIZE_RULES] = {
#define REQUANTIZE_RULE(symbol, name, text) name,
#include "quant/rounding.def"
};

static bool read_types(tq_py_requantization *r, PyObject *dtype)
{
    if (!is_requantizable(&r->in))
        return refuse_type("q's dtype", &r->in);
    if (!tq_py_type_of_dtype(dtype, "int8", needed, &r->out, &r->descr))
        return false;
    return is_requantizable(&r->out) || refuse_type("dtype", &r->out);
}

static bool read_parameters(tq_py_requantization *r, PyObject *const *v)
{
    return tq_py_layout(&r->parameters, r->input, v[TQ_RQ_AXIS], NULL, v[TQ_RQ_OUT]) &&
           tq_py_multipliers(&r->multiplier, v[TQ_RQ_MULTIPLIER], &r->parameters,
                             r->rule == TQ_REQUANTIZE_FLOAT32_EVEN) &&
           tq_py_zero_points(&r->zero_point, v[TQ_RQ_ZERO_POINT], "zero_point", &r->parameters, r->out.low, r->out.high,
                             r->out.name) &&
           tq_py_zero_points(&r->input_zero_point, v[TQ_RQ_INPUT_ZERO_POINT], "input_zero_point", &r->parameters,
                             r->in.low, r->in.high, r->in.name);
}

bool tq_py_requantization_begin(tq_py_requantization *r, PyObject *const v[TQ_RQ_ARGUMENTS])
{
    memset(r, 0, sizeof *r);
    r->rule =
        tq_py_choice(v[TQ_RQ_ROUNDING], "rounding", tq_py_requantize_rules, TQ_REQUANTIZE_RULES, TQ_REQUANTIZE_DOUBLE);
    if (r->rule < 0 || tq_py_threads(v[TQ_RQ_NUM_THREADS], &r->threads) < 0)
        return false;
    r->input = tq_py_integer_input(v[TQ_RQ_Q], "q", needed_of_q, &r->in);
    if (r->input && read_types(r, v[TQ_RQ_DTYPE]) && read_parameters(r, v))
        return true;
    tq_py_requantization_end(r);
    return false;
}

void tq_py_requantization_end(tq_py_requantization *r)
{
    tq_py_column_free(&r->multiplier);
    tq_py_column_free(&r->zero_point);
    tq_py_column_free(&r->input_zero_point);
    Py_CLEAR(r->input);
    Py_CLEAR(r->descr);
}

PyObject *tq_py_requantize_by(PyObject *module, PyObject *const v[TQ_RQ_ARGUMENTS], const tq_requantize_sets *sets)
{
    tq_py_requantization r;
    if (!tq_py_requantization_begin(&r, v))
        return NULL;
    tq_py_output output;
    PyObject *result = NULL;
    Py_INCREF(r.descr); /* the output steals it */
    if (tq_py_output_begin(&output, r.input, v[TQ_RQ_OUT], &r.out, r.descr)) {
        tq_array_job job = {PyArray_DATA(r.input),
                            PyArray_DATA(output.array),
                            r.in.element,
                            r.out.element,
                            r.parameters.layout,
                            r.threads,
                            0,
                            NULL};
        tq_error error;
        PyThreadState *saved = PyArray_SIZE(r.input) >= TQ_PY_RELEASE_ELEMENTS ? PyEval_SaveThread() : NULL;
        tq_status status = tq_requantize_array(&job, tq_py_f64(&r.multiplier), tq_py_i32(&r.input_zero_point),
                                               tq_py_i32(&r.zero_point), (tq_requantize_rule)r.rule, sets, &error);
        if (saved)
            PyEval_RestoreThread(saved);
        result = tq_py_output_end(&output, module, status, &error);
    }
    tq_py_requantization_end(&r);
    return result;
}

PyObject *tq_py_requantize(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)
{
    static const char *const names[TQ_RQ_ARGUMENTS] = {[TQ_RQ_Q] = "q",
                                                       [TQ_RQ_MULTIPLIER] = "multiplier",
                                                       [TQ_RQ_ZERO_POINT] = "zero_point",
                                                       [TQ_RQ_INPUT_ZERO_POINT] = "input_zero_point",
                                                       [TQ_RQ_DTYPE] = "dtype",
                                                       [TQ_RQ_AXIS] = "axis",
                                                       [TQ_RQ_ROUNDING] = "rounding",
                                                       [TQ_RQ_OUT] = "out",
                                                       [TQ_RQ_NUM_THREADS] = "num_threads"};
    static const tq_py_signature signature = {"requantize", names, TQ_RQ_ARGUMENTS, 3, 2};
    PyObject *v[TQ_RQ_ARGUMENTS];
    if (!tq_py_bind(&signature, args, nargs, keywords, v))
        return NULL;
    return tq_py_is_int64(v[TQ_RQ_Q]) ? tq_py_requantize_i64(module, v) : tq_py_requantize_by(module, v, NULL);
}
