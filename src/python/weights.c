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

/* `given` scales, or NULL to choose them. */
static tq_status quantize_all(const tq_weight_target *target, const float *w, tq_axis_view view, const float *given,
                              float *bounds, float *scales, void *codes, tq_error *error)
{
    bool is_wide = target->code == TQ_CODE_int16;
    tq_weight_bounds(w, view, bounds);
    tq_status status = tq_weight_scales(target, bounds, view.channels, scales, error);
    for (size_t c = 0; given && !status && c < view.channels; c++) {
        if (!isfinite(given[c]) || given[c] <= 0)
            return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                           "scale is %g in channel %zu; it must be finite and over 0", (double)given[c], c);
        scales[c] = given[c];
        bounds[c] = tq_weight_factor(target, given[c]);
    }
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

static PyObject *quantize_array(tq_state *state, PyArrayObject *w, tq_weight_target target, tq_axis_view view,
                                PyArrayObject *given)
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
        status = quantize_all(&target, PyArray_DATA(w), view, given ? PyArray_DATA(given) : NULL, bounds,
                              PyArray_DATA(scales), PyArray_DATA(codes), &error);
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
"quantize_weights(w, axis, dtype='int8', *, rule=None, scale=None)\n--\n\n"
"(codes, scale) of constant weights, symmetric (zero point 0), as a QuantizedWeights.\n\n"
"w: finite real numbers, read as float32. axis: the axis along which each slice has its own scale, or None for one\n"
"scale. dtype: 'int8', 'int16', 'int4' or 'int2'; the codes of the last two are values in an int8 array\n"
"(tq.pack packs them). rule: 'mlir' (what TFLiteConverter writes; int8), 'tflite' (the post-training tool) or\n"
"'ai-edge-quantizer'; None is 'mlir' for int8 and 'ai-edge-quantizer' for other types, the tool that writes\n"
"them. tq.rules()['weights'] has their formulas. scale: scales to use instead of the rule's, one or one a channel;\n"
"the codes are then rounded from w * (1 / scale) or, under 'ai-edge-quantizer', w / scale. A converter grows a\n"
"scale whose bias would not fit: fit_scales_to_bias.");

/* The `scale` argument as dense floats that fit the view; *given stays NULL for None. */
static int scales_of(PyObject *value, const tq_weight_target *target, tq_axis_view view, PyArrayObject **given)
{
    if (!value || value == Py_None)
        return 0;
    PyArrayObject *scales = tq_py_dense_floats(value, "scale");
    if (!scales)
        return -1;
    if (PyArray_NDIM(scales) != target->per_channel || (size_t)PyArray_SIZE(scales) != view.channels) {
        PyErr_Format(PyExc_ValueError, "scale has %zd values in %d dimensions; it must have %zu in %d",
                     PyArray_SIZE(scales), PyArray_NDIM(scales), view.channels, (int)target->per_channel);
        Py_DECREF(scales);
        return -1;
    }
    *given = scales;
    return 0;
}

static PyObject *quantize_weights(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"w", "axis", "dtype", "rule", "scale", NULL};
    PyObject *value, *axis, *dtype = NULL, *rule = NULL, *scale = NULL, *made = NULL;
    PyArrayObject *given = NULL;
    tq_weight_target target;
    tq_axis_view view;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$OO:quantize_weights", names, &value, &axis, &dtype, &rule,
                                     &scale) ||
        tq_py_code(dtype, &target.code) < 0)
        return NULL;
    int usual = target.code == TQ_CODE_int8 ? TQ_WEIGHTS_MLIR : TQ_WEIGHTS_AI_EDGE;
    int index = tq_py_choice(rule == Py_None ? NULL : rule, "rule", rule_names, TQ_WEIGHT_RULES, usual);
    PyArrayObject *w = index < 0 ? NULL : tq_py_dense_floats(value, "w");
    if (!w)
        return NULL;
    target.rule = (tq_weight_rule)index;
    target.per_channel = axis != Py_None;
    if (tq_py_axis_view(w, axis, &view) == 0 && scales_of(scale, &target, view, &given) == 0)
        made = quantize_array(PyModule_GetState(module), w, target, view, given);
    Py_XDECREF(given);
    Py_DECREF(w);
    return made;
}

/* The context is a bool: whether the scales are per channel. */
static tq_status run_fit(char **data, const npy_intp *strides, npy_intp n, const void *context, tq_error *error)
{
    for (npy_intp i = 0; i < n; i++) {
        float weight_scale = (float)*(const double *)(data[0] + i * strides[0]);
        float input_scale = (float)*(const double *)(data[1] + i * strides[1]);
        double b = fabsf((float)*(const double *)(data[2] + i * strides[2]));
        if (!isfinite(weight_scale) || weight_scale < 0 || !isfinite(input_scale) || input_scale <= 0 || !isfinite(b))
            return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                           "weight_scale is %g, input_scale %g and |b| %g; all must be finite and the scales positive",
                           (double)weight_scale, (double)input_scale, b);
        tq_bias_fit(input_scale, b, *(const bool *)context, &weight_scale, (float *)(data[4] + i * strides[4]));
        *(float *)(data[3] + i * strides[3]) = weight_scale;
    }
    return TQ_OK;
}

PyDoc_STRVAR(fit_doc,
"fit_scales_to_bias(weight_scale, input_scale, b)\n--\n\n"
"(weight_scale, bias_scale), float32, grown where the bias's code would pass 2^30 - 1, as TFLiteConverter does.\n\n"
"weight_scale: one, or one a channel. input_scale: the activation's. b: the bias, one value a channel; with one\n"
"weight scale the greatest |b| counts. Where the code |b| / (input_scale * weight_scale) is too great, the\n"
"bias's scale becomes |b| / (2^30 - 1) and the weight's that divided by input_scale. Quantize the weights with\n"
"the result as `scale`, and the bias by quantize_bias(b, bias_scale, 1). Channels of zeros need this often.");

static PyObject *fit_scales(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"weight_scale", "input_scale", "b", NULL};
    static const int types[] = {NPY_FLOAT32, NPY_FLOAT32};
    PyObject *values[3], *made = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO:fit_scales_to_bias", names, &values[0], &values[1], &values[2]))
        return NULL;
    PyArrayObject *in[3] = {NULL}, *out[2];
    bool ready = true, per_channel = false;
    for (int i = 0; i < 3 && ready; i++)
        ready = (in[i] = tq_py_doubles(values[i], names[i])) != NULL;
    if (ready) {
        per_channel = PyArray_NDIM(in[0]) > 0;
        if (!per_channel && PyArray_SIZE(in[2]) > 0) { /* one scale serves the greatest bias */
            PyObject *size = PyNumber_Absolute((PyObject *)in[2]);
            PyObject *most = size ? PyObject_CallMethod(size, "max", NULL) : NULL;
            Py_XDECREF(size);
            Py_SETREF(in[2], most ? tq_py_doubles(most, "b") : NULL);
            Py_XDECREF(most);
            ready = in[2] != NULL;
        }
    }
    if (ready && tq_py_broadcast(PyModule_GetState(module), in, 3, types, 2, out, run_fit, &per_channel) == 0)
        made = Py_BuildValue("NN", PyArray_Return(out[0]), PyArray_Return(out[1]));
    for (int i = 0; i < 3; i++)
        Py_XDECREF(in[i]);
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
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O:quantize_bias", names, &values[0], &values[1], &values[2],
                                     &dtype))
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
    {"fit_scales_to_bias", (PyCFunction)(void (*)(void))fit_scales, METH_VARARGS | METH_KEYWORDS, fit_doc},
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
