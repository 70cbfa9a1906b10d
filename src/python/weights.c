/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes and scales of constant weights and biases.
 */
#include "python/weights.h"
#include "python/errors.h"

#include <math.h>

#include "python/operands.h"
#include "quant/params.h"
#include "quant/weights.h"

static const char *const rule_names[] = {
#define WEIGHT_RULE(symbol, name, text) name,
#include "quant/weights.def"
#undef WEIGHT_RULE
};

static PyStructSequence_Field weights_fields[] = {
    {"codes", "int8 (or int16), of the weights' shape; int4 and int2 values lie in int8"},
    {"scale", "float32, a scalar or one a channel"},
    {NULL, NULL},
};

static PyStructSequence_Desc weights_desc = {
    "tq.QuantizedWeights",
    "(codes, scale): the real value of a code q is scale * q.",
    weights_fields,
    2,
};

static tq_status quantize_all(const tq_weight_target *target, const float *w, tq_axis_view view, float *bounds,
                              float *scales, void *codes, tq_error *error)
{
    bool is_wide = target->code == TQ_CODE_int16;
    tq_weight_bounds(w, view, bounds);
    tq_status status = tq_weight_scales(target, bounds, view.channels, scales, error);
    if (!status)
        tq_weight_codes(target, w, view, bounds, is_wide ? NULL : codes, is_wide ? codes : NULL);
    return status;
}

/* Steals both, which may be NULL. */
static PyObject *make_weights(tq_state *state, PyArrayObject *codes, PyArrayObject *scales)
{
    PyObject *made = PyStructSequence_New((PyTypeObject *)state->QuantizedWeights);
    if (!made) {
        Py_XDECREF(codes);
        Py_XDECREF(scales);
        return NULL;
    }
    PyStructSequence_SetItem(made, 0, (PyObject *)codes);
    PyStructSequence_SetItem(made, 1, PyArray_Return(scales));
    return made;
}

static PyObject *quantize_array(tq_state *state, PyArrayObject *w, tq_weight_target target, tq_axis_view view)
{
    npy_intp channels = (npy_intp)view.channels;
    int type = target.code == TQ_CODE_int16 ? NPY_INT16 : NPY_INT8;
    PyArrayObject *codes = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(w), PyArray_DIMS(w), type);
    PyArrayObject *scales = (PyArrayObject *)PyArray_SimpleNew(target.per_channel ? 1 : 0, &channels, NPY_FLOAT32);
    float *bounds = PyMem_RawMalloc(view.channels * sizeof *bounds + 1);
    tq_error error;
    tq_status status = TQ_NO_MEMORY;
    if (!bounds)
        PyErr_NoMemory();
    else if (codes && scales) {
        Py_BEGIN_ALLOW_THREADS
        status = quantize_all(&target, PyArray_DATA(w), view, bounds, PyArray_DATA(scales), PyArray_DATA(codes), &error);
        Py_END_ALLOW_THREADS
        if (status)
            tq_py_raise(state, &error, NULL);
    }
    PyMem_RawFree(bounds);
    if (status) {
        Py_XDECREF(codes);
        Py_XDECREF(scales);
        return NULL;
    }
    return make_weights(state, codes, scales);
}

PyDoc_STRVAR(quantize_weights_doc,
"quantize_weights(w, axis, dtype='int8', *, rule=None)\n--\n\n"
"(codes, scale) of constant weights, symmetric (zero point 0), as a QuantizedWeights.\n\n"
"w: finite real numbers, read as float32. axis: the axis along which each slice has its own scale, or None for one\n"
"scale. dtype: 'int8', 'int16', 'int4' or 'int2'; the codes of the last two are values in an int8 array\n"
"(tq.pack packs them). rule: 'mlir' (what TFLiteConverter writes; int8), 'tflite' (the post-training tool) or\n"
"'ai-edge-quantizer'; None is 'mlir' for int8 and 'ai-edge-quantizer' for other types, the tool that writes\n"
"them. tq.rules()['weights'] has their formulas. A converter may afterwards enlarge a scale whose bias would\n"
"overflow int32.");

static PyObject *quantize_weights(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"w", "axis", "dtype", "rule", NULL};
    PyObject *value, *axis, *dtype = NULL, *rule = NULL, *made = NULL;
    tq_weight_target target;
    tq_axis_view view;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$O:quantize_weights", names, &value, &axis, &dtype, &rule) ||
        tq_py_code(dtype, &target.code) < 0)
        return NULL;
    int usual = target.code == TQ_CODE_int8 ? TQ_WEIGHTS_MLIR : TQ_WEIGHTS_AI_EDGE;
    int index = tq_py_choice(rule == Py_None ? NULL : rule, "rule", rule_names, TQ_WEIGHT_RULES, usual);
    PyArrayObject *w = index < 0 ? NULL : tq_py_dense_floats(value, "w");
    if (!w)
        return NULL;
    target.rule = (tq_weight_rule)index;
    target.per_channel = axis != Py_None;
    if (tq_py_axis_view(w, axis, &view) == 0)
        made = quantize_array(PyModule_GetState(module), w, target, view);
    Py_DECREF(w);
    return made;
}

typedef struct bias_context {
    bool is_wide;
} bias_context;

static tq_status run_bias(char **data, const npy_intp *strides, npy_intp n, const void *context, tq_error *error)
{
    bool is_wide = ((const bias_context *)context)->is_wide;
    for (npy_intp i = 0; i < n; i++) {
        float b = (float)*(const double *)(data[0] + i * strides[0]);
        float scale = tq_bias_scale((float)*(const double *)(data[1] + i * strides[1]),
                                    (float)*(const double *)(data[2] + i * strides[2]));
        if (!isfinite(scale) || scale < 0)
            return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                           "input_scale * weight_scale is %g; it must be finite and not negative", (double)scale);
        int64_t code = tq_bias_code(b, scale, is_wide ? INT64_MAX : INT32_MAX);
        if (is_wide)
            *(int64_t *)(data[3] + i * strides[3]) = code;
        else
            *(int32_t *)(data[3] + i * strides[3]) = (int32_t)code;
    }
    return TQ_OK;
}

PyDoc_STRVAR(quantize_bias_doc,
"quantize_bias(b, input_scale, weight_scale, dtype='int32')\n--\n\n"
"The codes of a bias: b times the float32 reciprocal of its scale (bias_quantization_params), rounded ties away from\n"
"zero, within plus or minus the highest code; 0 where the scale is 0, and for NaN.\n\n"
"b, input_scale, weight_scale: numbers or arrays, broadcast, read as float32. dtype: 'int32', or 'int64' for int16\n"
"activations.");

static PyObject *quantize_bias(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"b", "input_scale", "weight_scale", "dtype", NULL};
    static const char *const argument_names[] = {"b", "input_scale", "weight_scale"};
    static const char *const types[] = {"int32", "int64"};
    PyObject *values[3], *dtype = NULL;
    PyArrayObject *in[3] = {NULL}, *out = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O:quantize_bias", names, &values[0], &values[1], &values[2], &dtype))
        return NULL;
    int index = tq_py_choice(dtype, "dtype", types, 2, 0);
    bias_context context = {index == 1};
    int i = index < 0 ? 3 : 0, type = context.is_wide ? NPY_INT64 : NPY_INT32;
    bool ready = index >= 0;
    for (; i < 3 && ready; i++)
        ready = (in[i] = tq_py_doubles(values[i], argument_names[i])) != NULL;
    if (ready)
        tq_py_broadcast(PyModule_GetState(module), in, 3, &type, 1, &out, run_bias, &context);
    for (i = 0; i < 3; i++)
        Py_XDECREF(in[i]);
    return out ? PyArray_Return(out) : NULL;
}

static PyMethodDef functions[] = {
    {"quantize_weights", (PyCFunction)(void (*)(void))quantize_weights, METH_VARARGS | METH_KEYWORDS,
     quantize_weights_doc},
    {"quantize_bias", (PyCFunction)(void (*)(void))quantize_bias, METH_VARARGS | METH_KEYWORDS, quantize_bias_doc},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_weights(PyObject *module, tq_state *state)
{
    state->QuantizedWeights = (PyObject *)PyStructSequence_NewType(&weights_desc);
    if (!state->QuantizedWeights || PyModule_AddObjectRef(module, "QuantizedWeights", state->QuantizedWeights) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
