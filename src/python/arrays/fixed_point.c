/* SPDX-License-Identifier: Apache-2.0
 *
 * Fixed-point arithmetic on arrays, and the steps of one requantization.
 */
#include "python/arrays/fixed_point.h"

#include <math.h>

#include "python/arrays/operands.h"
#include "quant/fixed.h"

static const char *const rounding_names[] = {
#define REQUANTIZE_RULE(symbol, name, text) name,
#include "quant/rounding.def"
};

static int rounding_of(PyObject *value)
{
    return tq_py_choice(value, "rounding", rounding_names, TQ_REQUANTIZE_RULES, TQ_REQUANTIZE_DOUBLE);
}

/* The context of every loop here is a tq_fixed_loop *. */
static tq_status run_fixed(char **data, const npy_intp *strides, npy_intp n, const void *context, tq_error *error)
{
    (void)error;
    (*(const tq_fixed_loop *)context)(data, strides, (size_t)n);
    return TQ_OK;
}

typedef struct operand {
    PyObject *value;
    const char *name;
    int type;
} operand;

/* A function of up to three integer operands, with int32 results. */
static PyObject *integer_function(PyObject *module, const operand *operands, int count, tq_fixed_loop loop)
{
    PyArrayObject *arrays[3] = {NULL}, *out = NULL;
    const char *names[3];
    const int out_type = NPY_INT32;
    int i = 0;
    for (int k = 0; k < count; k++)
        names[k] = operands[k].name;
    while (i < count && (arrays[i] = tq_py_integers(operands[i].value, operands[i].name, operands[i].type)))
        i++;
    if (i == count)
        tq_py_broadcast(PyModule_GetState(module), arrays, names, count, &out_type, 1, &out, run_fixed, &loop);
    for (i = 0; i < count; i++)
        Py_XDECREF(arrays[i]);
    return out ? PyArray_Return(out) : NULL;
}

PyDoc_STRVAR(
    high_mul_doc,
    "saturating_rounding_doubling_high_mul(a, b)\n--\n\n"
    "a * b / 2^31 rounded to the nearest int32, ties toward +infinity: gemmlowp's H.\n\n"
    "a, b: integers that fit int32, broadcast. Only (-2^31)^2 saturates, to 2^31 - 1. Returns int32.\n"
    "ValueError: integers beyond int32, shapes that do not broadcast. Source: SaturatingRoundingDoublingHighMul\n"
    "(gemmlowp/fixedpoint/fixedpoint.h).");

static PyObject *high_mul(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"a", "b", NULL};
    operand o[2] = {{NULL, "a", NPY_INT32}, {NULL, "b", NPY_INT32}};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:saturating_rounding_doubling_high_mul", names, &o[0].value,
                                     &o[1].value))
        return NULL;
    return integer_function(module, o, 2, tq_fixed_high_mul);
}

PyDoc_STRVAR(
    divide_by_pot_doc,
    "rounding_divide_by_pot(x, exponent)\n--\n\n"
    "x / 2^exponent rounded to the nearest integer, ties away from zero: gemmlowp's R.\n\n"
    "x, exponent: integers that fit int32, broadcast. The runtime's exponents are 0 to 31; a negative one counts\n"
    "as 0, and beyond 32 the result is 0. Returns int32. ValueError: integers beyond int32, shapes that do not "
    "broadcast.\n"
    "Source: RoundingDivideByPOT (gemmlowp/fixedpoint/fixedpoint.h).");

static PyObject *divide_by_pot(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"x", "exponent", NULL};
    operand o[2] = {{NULL, "x", NPY_INT32}, {NULL, "exponent", NPY_INT32}};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:rounding_divide_by_pot", names, &o[0].value, &o[1].value))
        return NULL;
    return integer_function(module, o, 2, tq_fixed_divide_by_pot);
}

PyDoc_STRVAR(
    multiply_doc,
    "multiply_by_quantized_multiplier(x, multiplier, shift, rounding='double')\n--\n\n"
    "x * multiplier * 2^(shift - 31), rounded to int32 by the rule that `rounding` names.\n\n"
    "x, multiplier, shift: integers that fit int32, broadcast. The rules are those of requantize (tq.rules()).\n"
    "Rules 'double' and 'up' first shift x left by a positive shift; where that overflows, undefined in the\n"
    "runtime's C, it saturates, and so does every rule's result. 'single' takes shifts from -31 to 30 and reads "
    "others\n"
    "as the nearest of these. Returns int32. ValueError: integers beyond int32, shapes that do not broadcast. Source:\n"
    "MultiplyByQuantizedMultiplier (tflite/kernels/internal/common.cc).");

static PyObject *multiply(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"x", "multiplier", "shift", "rounding", NULL};
    operand o[3] = {{NULL, "x", NPY_INT32}, {NULL, "multiplier", NPY_INT32}, {NULL, "shift", NPY_INT32}};
    PyObject *rounding = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O:multiply_by_quantized_multiplier", names, &o[0].value,
                                     &o[1].value, &o[2].value, &rounding))
        return NULL;
    int rule = rounding_of(rounding);
    return rule < 0 ? NULL : integer_function(module, o, 3, tq_fixed_multiply((tq_requantize_rule)rule));
}

PyDoc_STRVAR(
    multiply_i64_doc,
    "multiply_by_quantized_multiplier_int64(x, multiplier, shift)\n--\n\n"
    "The 64-bit form, of operators with int16 activations: floor((x * m + 2^(14 - shift)) / 2^(15 - shift)), where m "
    "is\n"
    "the multiplier's upper 15 bits, rounded: (multiplier + 2^15) >> 16, at most 0x7FFF.\n\n"
    "x: integers that fit int64; multiplier, shift: int32; broadcast. The runtime's contract is\n"
    "-2^47 <= x < 2^47, multiplier >= 0, -31 <= shift <= 14; arguments beyond it count as its ends, and the result\n"
    "saturates to int32. Returns int32. ValueError: integers beyond int64 or int32, shapes that do not broadcast. "
    "Source:\n"
    "MultiplyByQuantizedMultiplier of int64 (tflite/kernels/internal/common.cc).");

static PyObject *multiply_i64(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"x", "multiplier", "shift", NULL};
    operand o[3] = {{NULL, "x", NPY_INT64}, {NULL, "multiplier", NPY_INT32}, {NULL, "shift", NPY_INT32}};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO:multiply_by_quantized_multiplier_int64", names, &o[0].value,
                                     &o[1].value, &o[2].value))
        return NULL;
    return integer_function(module, o, 3, tq_fixed_multiply_i64);
}

static PyStructSequence_Field multiplier_fields[] = {
    {"multiplier", "int32, a scalar or an array"},
    {"shift", "int32, a scalar or an array"},
    {"error", "float64: multiplier * 2^(shift - bits) less the real number; not an item of the tuple"},
    {"bits", "int: the multiplier's; not an item of the tuple"},
    {NULL, NULL},
};

static PyStructSequence_Desc multiplier_desc = {
    "tq.QuantizedMultiplier",
    "(multiplier, shift): the real number multiplier * 2^(shift - bits); `error` is what it has too much.",
    multiplier_fields,
    2,
};

typedef struct multiplier_form {
    int bits;
    bool is_single; /* a shift above 30 saturates */
} multiplier_form;

static tq_status run_quantize(char **data, const npy_intp *strides, npy_intp n, const void *context, tq_error *error)
{
    const multiplier_form *form = context;
    for (npy_intp i = 0; i < n; i++) {
        const double real = *(const double *)(data[0] + i * strides[0]);
        int32_t multiplier;
        int shift;
        if (!isfinite(real))
            return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "real is %g; it must be finite", real);
        if (form->is_single)
            tq_quantize_multiplier_single(real, &multiplier, &shift);
        else
            tq_quantize_multiplier_bits(real, form->bits, &multiplier, &shift);
        *(int32_t *)(data[1] + i * strides[1]) = multiplier;
        *(int32_t *)(data[2] + i * strides[2]) = shift;
        *(double *)(data[3] + i * strides[3]) = ldexp(multiplier, shift - form->bits) - real;
    }
    return TQ_OK;
}

PyDoc_STRVAR(
    quantize_multiplier_doc,
    "quantize_multiplier(real, *, rounding='double', bits=31)\n--\n\n"
    "(multiplier, shift) with real = multiplier * 2^(shift - bits), 2^(bits - 1) <= |multiplier| < 2^bits, ties away\n"
    "from zero; its attributes `error`, multiplier * 2^(shift - bits) - real, and `bits` are no items.\n\n"
    "real: finite numbers, of any shape and sign. 0 and what is below 2^-32 gives (0, 0). bits: 2 to 31, of the\n"
    "multiplier; TFLite's kernels have 31, other hardware 16 or 8. With rounding='single', which needs 31 bits, a "
    "shift\n"
    "above 30 saturates to (2^31 - 1, 30), as in builds with TFLITE_SINGLE_ROUNDING. Returns two int32 and a float64 "
    "of\n"
    "real's shape. ValueError: NaN or infinity, bits out of range. Source: QuantizeMultiplier\n"
    "(tflite/kernels/internal/quantization_util.cc).");

/* Steals the arrays. */
static PyObject *multiplier_result(tq_state *state, PyArrayObject *out[3], int bits)
{
    PyObject *made = PyStructSequence_New((PyTypeObject *)state->QuantizedMultiplier);
    for (int i = 0; i < 3; i++) {
        PyObject *value = PyArray_Return(out[i]);
        if (made)
            PyStructSequence_SetItem(made, i, value);
        else
            Py_XDECREF(value);
    }
    PyObject *width = made ? PyLong_FromLong(bits) : NULL;
    if (width)
        PyStructSequence_SetItem(made, 3, width);
    else
        Py_CLEAR(made);
    return made;
}

static PyObject *quantize_multiplier(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"real", "rounding", "bits", NULL};
    static const int types[] = {NPY_INT32, NPY_INT32, NPY_FLOAT64};
    tq_state *state = PyModule_GetState(module);
    multiplier_form form = {31, false};
    PyObject *value, *rounding = NULL;
    PyArrayObject *out[3];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$Oi:quantize_multiplier", names, &value, &rounding, &form.bits))
        return NULL;
    const int rule = rounding_of(rounding);
    form.is_single = rule == TQ_REQUANTIZE_SINGLE;
    if (rule < 0)
        return NULL;
    if (form.bits < 2 || form.bits > 31 || (form.is_single && form.bits != 31))
        return PyErr_Format(PyExc_ValueError, "bits is %d; it must be %s", form.bits,
                            form.is_single ? "31 with rounding='single'" : "from 2 to 31");
    if (tq_py_broadcast_doubles(state, &value, (const char *const *)names, 1, types, 3, out, run_quantize, &form) < 0)
        return NULL;
    return multiplier_result(state, out, form.bits);
}

/* A real multiplier, or a pair of quantize_multiplier. */
static int multiplier_of(PyObject *value, tq_requantize_rule rule, tq_multiplier *multiplier)
{
    if (PyTuple_Check(value)) {
        int fixed, shift;
        if (!PyArg_ParseTuple(value, "ii;multiplier is a tuple; it must be (multiplier, shift), two int32", &fixed,
                              &shift))
            return -1;
        if (shift < -31 || shift > 1024) {
            PyErr_Format(PyExc_ValueError, "multiplier has shift %d; it must be from -31 to 1024", shift);
            return -1;
        }
        double real = ldexp(fixed, shift - 31);
        *multiplier = (tq_multiplier){real, (float)real, fixed, shift, rule};
        return 0;
    }
    double real = PyFloat_AsDouble(value);
    if (real == -1 && PyErr_Occurred())
        return -1;
    if (!isfinite(real)) {
        PyErr_Format(PyExc_ValueError, "multiplier is %R; it must be finite", value);
        return -1;
    }
    *multiplier = tq_multiplier_of(real, rule);
    return 0;
}

static PyObject *steps_dict(const tq_requantize_steps *s, tq_requantize_rule rule)
{
    bool is_double = rule == TQ_REQUANTIZE_DOUBLE || rule == TQ_REQUANTIZE_UP;
    bool is_fixed = is_double || rule == TQ_REQUANTIZE_SINGLE;
    if (!is_fixed)
        return Py_BuildValue("{s:d,s:d,s:d,s:i}", "real_multiplier",
                             rule == TQ_REQUANTIZE_FLOAT32_EVEN ? (double)s->multiplier.f32 : s->multiplier.f64,
                             "product", s->real_product, "scaled", s->scaled, "code", (int)s->quantized);
    PyObject *high = is_double ? PyLong_FromLong(s->high) : Py_NewRef(Py_None);
    return Py_BuildValue("{s:d,s:i,s:i,s:i,s:L,s:N,s:i,s:L,s:d,s:i}", "real_multiplier", s->multiplier.f64,
                         "multiplier", (int)s->multiplier.fixed, "shift", s->multiplier.shift, "shifted",
                         (int)s->shifted, "product", (long long)s->product, "high", high, "right_shift", s->right_shift,
                         "remainder", (long long)s->remainder, "scaled", s->scaled, "code", (int)s->quantized);
}

/* _requantize_steps(acc, multiplier, zero_point, rounding, dtype): the steps that tq.explain_requantize shows. */
static PyObject *requantize_steps(PyObject *module, PyObject *args)
{
    (void)module;
    int acc, zero_point;
    PyObject *multiplier_value, *rounding, *dtype;
    tq_multiplier multiplier;
    tq_requantize_steps steps;
    tq_integer_type integer_type;
    if (!PyArg_ParseTuple(args, "iOiOO:_requantize_steps", &acc, &multiplier_value, &zero_point, &rounding, &dtype))
        return NULL;
    int rule = rounding_of(rounding);
    if (rule < 0 || tq_py_integer_type(dtype, &integer_type) < 0 ||
        multiplier_of(multiplier_value, (tq_requantize_rule)rule, &multiplier) < 0)
        return NULL;
    tq_value_range range = tq_value_range_of(integer_type, false);
    if (zero_point < range.low || zero_point > range.high)
        return PyErr_Format(PyExc_ValueError, "zero_point is %d; %s needs one from %d to %d", zero_point,
                            tq_integer_name(integer_type), (int)range.low, (int)range.high);
    tq_requantize_explain(acc, &multiplier, (tq_requantize_rule)rule, zero_point, range.low, range.high, &steps);
    PyObject *dict = steps_dict(&steps, (tq_requantize_rule)rule);
    return dict ? Py_BuildValue("Nsii", dict, tq_integer_name(integer_type), (int)range.low, (int)range.high) : NULL;
}

static PyMethodDef functions[] = {
    {"saturating_rounding_doubling_high_mul", (PyCFunction)(void (*)(void))high_mul, METH_VARARGS | METH_KEYWORDS,
     high_mul_doc},
    {"rounding_divide_by_pot", (PyCFunction)(void (*)(void))divide_by_pot, METH_VARARGS | METH_KEYWORDS,
     divide_by_pot_doc},
    {"multiply_by_quantized_multiplier", (PyCFunction)(void (*)(void))multiply, METH_VARARGS | METH_KEYWORDS,
     multiply_doc},
    {"multiply_by_quantized_multiplier_int64", (PyCFunction)(void (*)(void))multiply_i64, METH_VARARGS | METH_KEYWORDS,
     multiply_i64_doc},
    {"quantize_multiplier", (PyCFunction)(void (*)(void))quantize_multiplier, METH_VARARGS | METH_KEYWORDS,
     quantize_multiplier_doc},
    {"_requantize_steps", requantize_steps, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_fixed_point(PyObject *module, tq_state *state)
{
    state->QuantizedMultiplier = (PyObject *)PyStructSequence_NewType(&multiplier_desc);
    if (!state->QuantizedMultiplier ||
        PyModule_AddObjectRef(module, "QuantizedMultiplier", state->QuantizedMultiplier) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
