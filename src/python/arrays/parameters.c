/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing scale and zero point, and the listing of every rule that has a name.
 */
#include "python/arrays/parameters.h"

#include <math.h>

#include "python/arrays/array_args.h"
#include "python/arrays/operands.h"
#include "quant/params.h"
#include "quant/weights.h"

static const char *const rule_names[] = {
#define PARAMS_RULE(symbol, name, int16_is_symmetric, text) name,
#include "quant/params.def"
#undef PARAMS_RULE
};

static PyStructSequence_Field params_fields[] = {
    {"scale", "float32, a scalar or one a channel"},
    {"zero_point", "int32, a scalar or one a channel"},
    {NULL, NULL},
};

static PyStructSequence_Desc params_desc = {
    "tq.QuantizationParams",
    "(scale, zero_point): the real value of a code q is scale * (q - zero_point).",
    params_fields,
    2,
};

/* Steals both; either may be NULL, with an exception set. */
static PyObject *make_params(tq_state *state, PyObject *scale, PyObject *zero_point)
{
    PyObject *made = scale && zero_point ? PyStructSequence_New((PyTypeObject *)state->QuantizationParams) : NULL;
    if (!made) {
        Py_XDECREF(scale);
        Py_XDECREF(zero_point);
        return NULL;
    }
    PyStructSequence_SetItem(made, 0, scale);
    PyStructSequence_SetItem(made, 1, zero_point);
    return made;
}

static tq_status run_choose(char **data, const npy_intp *strides, npy_intp n, const void *context, tq_error *error)
{
    for (npy_intp i = 0; i < n; i++) {
        tq_params params;
        tq_status status = tq_params_choose(context, *(const double *)(data[0] + i * strides[0]),
                                            *(const double *)(data[1] + i * strides[1]), &params, error);
        if (status)
            return status;
        *(float *)(data[2] + i * strides[2]) = params.scale;
        *(int32_t *)(data[3] + i * strides[3]) = params.zero_point;
    }
    return TQ_OK;
}

static PyObject *choose_arrays(PyObject *module, PyObject *min, PyObject *max, const tq_params_target *target)
{
    static const int types[] = {NPY_FLOAT32, NPY_INT32};
    static const char *const names[] = {"min", "max"};
    tq_state *state = PyModule_GetState(module);
    PyObject *const values[] = {min, max};
    PyArrayObject *out[2];
    if (tq_py_broadcast_doubles(state, values, names, 2, types, 2, out, run_choose, target) < 0)
        return NULL;
    return make_params(state, PyArray_Return(out[0]), PyArray_Return(out[1]));
}

PyDoc_STRVAR(
    choose_doc,
    "choose_quantization_params(min, max, dtype='int8', *, symmetric=False, narrow_range=False, rule='toco')\n--\n\n"
    "(scale, zero_point) for values from min to max, as a QuantizationParams.\n\n"
    "min, max: finite numbers, min <= max; arrays (broadcast) give one pair an element, for per-axis quantization.\n"
    "The range is first widened to hold 0, so that 0 has a code. dtype: 'int8', 'uint8', 'int16', 'uint16', 'int32',\n"
    "'int4', 'uint4' or 'int2', or a NumPy or ml_dtypes dtype. symmetric: the zero point is the middle code.\n"
    "narrow_range: the lowest code is not used. rule: 'toco', 'tflite', 'mlir', 'power-of-two' or\n"
    "'ai-edge-quantizer', each in its source's own precision; tq.rules()['parameters'] has their formulas. 'tflite',\n"
    "'mlir' and 'power-of-two' make int16 symmetric unasked. Where min = max = 0 the scale is 0 under 'toco', "
    "'tflite'\n"
    "and 'power-of-two', as there: such parameters stand for zeros alone.\n\n"
    "Returns float32 and int32: scalars, or arrays of the shape that min and max broadcast to. ValueError: min or max "
    "is\n"
    "not finite, min exceeds max, or the range is so wide that the scale is infinite; an unknown rule. TypeError: no "
    "real\n"
    "numbers, or no dtype of quantized values.\n\n"
    ">>> choose_quantization_params(-1.0, 3.0, 'uint8')\n"
    "tq.QuantizationParams(scale=np.float32(0.015686275), zero_point=np.int32(64))");

static PyObject *choose(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"min", "max", "dtype", "symmetric", "narrow_range", "rule", NULL};
    PyObject *min, *max, *dtype = NULL, *rule = NULL, *symmetric = NULL, *narrow = NULL;
    tq_params_target target;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$OOO:choose_quantization_params", names, &min, &max, &dtype,
                                     &symmetric, &narrow, &rule) ||
        !tq_py_flag(symmetric, "symmetric", &target.symmetric) || !tq_py_flag(narrow, "narrow_range", &target.narrow))
        return NULL;
    int index = tq_py_choice(rule, "rule", rule_names, TQ_PARAMS_RULES, TQ_PARAMS_TOCO);
    if (index < 0 || tq_py_integer_type(dtype, &target.type) < 0)
        return NULL;
    target.rule = (tq_params_rule)index;
    return choose_arrays(module, min, max, &target);
}

static tq_status run_bias(char **data, const npy_intp *strides, npy_intp n, const void *context, tq_error *error)
{
    (void)context;
    for (npy_intp i = 0; i < n; i++) {
        tq_status status =
            tq_bias_scale(*(const double *)(data[0] + i * strides[0]), *(const double *)(data[1] + i * strides[1]),
                          (float *)(data[2] + i * strides[2]), error);
        if (status)
            return status;
        *(int32_t *)(data[3] + i * strides[3]) = 0;
    }
    return TQ_OK;
}

PyDoc_STRVAR(
    bias_doc,
    "bias_quantization_params(input_scale, weight_scale)\n--\n\n"
    "(scale, zero_point) of a bias, as a QuantizationParams: the float32 product of the scales, and 0.\n\n"
    "input_scale, weight_scale: numbers or arrays, broadcast, read as float32. A bias is added to accumulators, whose\n"
    "unit is the product of the two scales, so this is no choice. All of TFLite's converters agree.\n\n"
    "Returns float32 and int32, of the shape that the scales broadcast to. ValueError: a scale that is negative or "
    "not\n"
    "finite, or an infinite product.");

static PyObject *bias(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"input_scale", "weight_scale", NULL};
    static const int types[] = {NPY_FLOAT32, NPY_INT32};
    tq_state *state = PyModule_GetState(module);
    PyObject *values[2];
    PyArrayObject *out[2];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:bias_quantization_params", names, &values[0], &values[1]) ||
        tq_py_broadcast_doubles(state, values, (const char *const *)names, 2, types, 2, out, run_bias, NULL) < 0)
        return NULL;
    return make_params(state, PyArray_Return(out[0]), PyArray_Return(out[1]));
}

/* The families of rules, each a table of name and text. */
static const struct {
    const char *family, *name, *text;
} all_rules[] = {
#define QUANTIZE_RULE(symbol, name, text) {"quantize", name, text},
#include "quant/rounding.def"
#define REQUANTIZE_RULE(symbol, name, text) {"requantize", name, text},
#include "quant/rounding.def"
#define REQUANTIZE_I64_RULE(symbol, name, text) {"requantize_int64", name, text},
#include "quant/rounding.def"
#define PARAMS_RULE(symbol, name, int16_is_symmetric, text) {"parameters", name, text},
#include "quant/params.def"
#undef PARAMS_RULE
#define WEIGHT_RULE(symbol, name, text) {"weights", name, text},
#include "quant/weights.def"
#undef WEIGHT_RULE
#define HISTOGRAM_METHOD(symbol, name, text) {"histogram", name, text},
#include "quant/histogram.def"
#undef HISTOGRAM_METHOD
#define FAKE_QUANT_RULE(symbol, name, text) {"fake_quant", name, text},
#include "quant/fake_quant.def"
#undef FAKE_QUANT_RULE
};

PyDoc_STRVAR(
    rules_doc,
    "rules()\n--\n\n"
    "Every rule that has a name: {family: {name: formula and source}}.\n\n"
    "Families: 'quantize', 'requantize' and 'requantize_int64' (their `rounding`; the last of requantize's int64\n"
    "accumulators), 'parameters' and 'weights' (`rule` of choose_quantization_params and quantize_weights),\n"
    "'histogram' (`method` of a HistogramObserver), 'fake_quant'.");

static PyObject *rules(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *families = PyDict_New();
    for (size_t i = 0; i < sizeof all_rules / sizeof *all_rules && families; i++) {
        PyObject *family = PyUnicode_FromString(all_rules[i].family), *empty = PyDict_New();
        PyObject *names = family && empty ? PyDict_SetDefault(families, family, empty) : NULL;
        PyObject *text = PyUnicode_FromString(all_rules[i].text);
        if (!names || !text || PyDict_SetItemString(names, all_rules[i].name, text) < 0)
            Py_CLEAR(families);
        Py_XDECREF(family);
        Py_XDECREF(empty);
        Py_XDECREF(text);
    }
    return families;
}

static PyMethodDef functions[] = {
    {"choose_quantization_params", (PyCFunction)(void (*)(void))choose, METH_VARARGS | METH_KEYWORDS, choose_doc},
    {"bias_quantization_params", (PyCFunction)(void (*)(void))bias, METH_VARARGS | METH_KEYWORDS, bias_doc},
    {"rules", rules, METH_NOARGS, rules_doc},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_parameters(PyObject *module, tq_state *state)
{
    state->QuantizationParams = (PyObject *)PyStructSequence_NewType(&params_desc);
    if (!state->QuantizationParams ||
        PyModule_AddObjectRef(module, "QuantizationParams", state->QuantizationParams) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
