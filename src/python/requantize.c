/* SPDX-License-Identifier: Apache-2.0
 *
 * requantize().
 */
#include "python/array_args.h"
#include "python/arrays.h"
#include "python/operands.h"

const char tq_py_requantize_doc[] =
    "requantize(q, multiplier, zero_point=0, *, input_zero_point=0, dtype='int8', axis=None,\n"
    "           rounding='double', out=None, num_threads=None)\n--\n\n"
    "Integers to codes of another scale: clamp(round((q - input_zero_point) * multiplier) + zero_point).\n\n"
    "q: int8, uint8, int16, or int32 (accumulators), of any shape, strides and byte order.\n"
    "multiplier: input scale / output scale (for an accumulator, input scale * weight scale / output\n"
    "    scale), finite and not negative. One, or with axis one a channel.\n"
    "zero_point, input_zero_point: codes of dtype and of q's type; one, or one a channel.\n"
    "dtype: int8, uint8, int16 or int32.\n"
    "rounding, with acc = q - input_zero_point (saturating), M the multiplier, z the zero point, and M as\n"
    "    m * 2**(e - 31), 2**30 <= m < 2**31:\n"
#define REQUANTIZE_RULE(symbol, name, text) "    '" name "': " text ".\n"
#include "quant/rounding.def"
    "    Where the runtime's left shift or conversion would overflow, undefined in C, these saturate.\n"
    "out, num_threads: as for quantize; out may be q itself where element sizes are equal.\n\n"
    ">>> requantize(numpy.int32([7984, -7984]), 0.0014402704)\n"
    "array([ 12, -12], dtype=int8)\n"
    ">>> requantize(numpy.int32([7984, -7984]), 0.0014402704, rounding='float64-away')\n"
    "array([ 11, -11], dtype=int8)";

static const char needed[] = "int8, uint8, int16 or int32";

static bool is_requantizable(const tq_py_type *type)
{
    return !type->masked && tq_kernel_find(TQ_OP_requantize_double, type->element, type->element) != NULL &&
           type->low == tq_element_low(type->element);
}

static PyObject *refuse_type(const char *argument, const tq_py_type *type)
{
    PyErr_Format(PyExc_TypeError, "%s is %s: it must be %s", argument, type->name, needed);
    return NULL;
}

PyObject *tq_py_requantize(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)
{
    enum { Q, MULTIPLIER, ZERO_POINT, INPUT_ZERO_POINT, DTYPE, AXIS, ROUNDING, OUT, NUM_THREADS, COUNT };
    static const char *const names[] = {"q",    "multiplier", "zero_point", "input_zero_point", "dtype",
                                        "axis", "rounding",   "out",        "num_threads"};
    static const tq_py_signature signature = {"requantize", names, COUNT, 3, 2};
    static const char *const rules[] = {
#define REQUANTIZE_RULE(symbol, name, text) name,
#include "quant/rounding.def"
    };
    PyObject *v[COUNT];
    if (!tq_py_bind(&signature, args, nargs, keywords, v))
        return NULL;

    int rule = tq_py_choice(v[ROUNDING], "rounding", rules, TQ_REQUANTIZE_RULES, TQ_REQUANTIZE_DOUBLE), threads;
    if (rule < 0 || tq_py_threads(v[NUM_THREADS], &threads) < 0)
        return NULL;

    tq_py_type in_type, out_type;
    PyArray_Descr *descr;
    PyArrayObject *input = tq_py_integer_input(v[Q], "q", needed, &in_type);
    if (!input)
        return NULL;
    tq_py_parameters p;
    tq_py_column multiplier = {.array = NULL}, zero_point = {.array = NULL}, input_zero_point = {.array = NULL};
    tq_py_output output = {.array = NULL};
    PyObject *result = NULL;
    if (!is_requantizable(&in_type)) {
        refuse_type("q's dtype", &in_type);
        goto end;
    }
    if (!tq_py_type_of_dtype(v[DTYPE], "int8", true, &out_type, &descr))
        goto end;
    if (!is_requantizable(&out_type)) {
        refuse_type("dtype", &out_type);
        Py_DECREF(descr);
        goto end;
    }
    if (!tq_py_layout(&p, input, v[AXIS], NULL, v[OUT]) ||
        !tq_py_multipliers(&multiplier, v[MULTIPLIER], &p, rule == TQ_REQUANTIZE_FLOAT32_EVEN) ||
        !tq_py_zero_points(&zero_point, v[ZERO_POINT], "zero_point", &p, out_type.low, out_type.high, out_type.name) ||
        !tq_py_zero_points(&input_zero_point, v[INPUT_ZERO_POINT], "input_zero_point", &p, in_type.low, in_type.high,
                           in_type.name)) {
        Py_DECREF(descr);
        goto end;
    }
    if (!tq_py_output_begin(&output, input, v[OUT], &out_type, descr))
        goto end;

    tq_array_job job = {PyArray_DATA(input), PyArray_DATA(output.array), in_type.element, out_type.element, p.layout,
                        threads, 0, NULL};
    tq_error error;
    tq_status status;
    PyThreadState *saved = PyArray_SIZE(input) >= TQ_PY_RELEASE_ELEMENTS ? PyEval_SaveThread() : NULL;
    status = tq_requantize_array(&job, tq_py_f64(&multiplier), tq_py_i32(&input_zero_point), tq_py_i32(&zero_point),
                                 (tq_requantize_rule)rule, &error);
    if (saved)
        PyEval_RestoreThread(saved);
    result = tq_py_output_end(&output, module, status, &error);
end:
    tq_py_column_free(&multiplier);
    tq_py_column_free(&zero_point);
    tq_py_column_free(&input_zero_point);
    Py_DECREF(input);
    return result;
}
