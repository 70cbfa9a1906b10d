/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantized values and scales of constant biases.
 */
#include "python/arrays/biases.h"

#include <math.h>

#include "python/arrays/operands.h"
#include "quant/weights.h"

/* The context is a bool: whether the scales are per channel. */
static tq_status run_fit(char **data, const npy_intp *strides, npy_intp n, const void *context, tq_error *error)
{
    for (npy_intp i = 0; i < n; i++) {
        float weight_scale = (float)*(const double *)(data[0] + i * strides[0]);
        float input_scale = (float)*(const double *)(data[1] + i * strides[1]);
        double b = fabsf((float)*(const double *)(data[2] + i * strides[2]));
        tq_status status = tq_bias_fit(input_scale, b, *(const bool *)context, weight_scale,
                                       (float *)(data[3] + i * strides[3]), (float *)(data[4] + i * strides[4]), error);
        if (status)
            return status;
    }
    return TQ_OK;
}

PyDoc_STRVAR(
    fit_doc,
    "fit_scales_to_bias(weight_scale, input_scale, b)\n--\n\n"
    "(weight_scale, bias_scale), float32, grown where the bias's quantized value would pass 2^30 - 1, as "
    "TFLiteConverter does.\n\n"
    "weight_scale: one, or one a channel. input_scale: the activation's. b: the bias, one value a channel; with one\n"
    "weight scale the greatest |b| counts. Where the quantized value |b| / (input_scale * weight_scale) is too great, "
    "the\n"
    "bias's scale becomes |b| / (2^30 - 1) and the weight's that divided by input_scale. Quantize the weights with\n"
    "the result as `scale`, and the bias by quantize_bias(b, bias_scale, 1). Channels of zeros need this often.\n"
    "ValueError: a scale or b that is not finite, weight_scale negative, input_scale not over 0. Source: kBiasMax of\n"
    "tflite/converter/quantization/common/quantization_lib/quantization_driver.cc.");

/* The greatest |b|, an array of rank 0. */
static PyArrayObject *greatest(PyArrayObject *b)
{
    PyObject *sizes = PyNumber_Absolute((PyObject *)b);
    PyObject *most = sizes ? PyObject_CallMethod(sizes, "max", NULL) : NULL;
    PyArrayObject *made = most ? tq_py_doubles(most, "b") : NULL;
    Py_XDECREF(sizes);
    Py_XDECREF(most);
    return made;
}

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
        if (!per_channel && PyArray_SIZE(in[2]) > 0) { /* one scale: the greatest bias decides */
            Py_SETREF(in[2], greatest(in[2]));
            ready = in[2] != NULL;
        }
    }
    if (ready && tq_py_broadcast(PyModule_GetState(module), in, (const char *const *)names, 3, types, 2, out, run_fit,
                                 &per_channel) == 0)
        made = Py_BuildValue("NN", PyArray_Return(out[0]), PyArray_Return(out[1]));
    for (int i = 0; i < 3; i++)
        Py_XDECREF(in[i]);
    return made;
}

/* The context is a bool: whether quantized values are int64. */
static tq_status run_bias(char **data, const npy_intp *strides, npy_intp n, const void *context, tq_error *error)
{
    bool is_wide = *(const bool *)context;
    for (npy_intp i = 0; i < n; i++) {
        float b = (float)*(const double *)(data[0] + i * strides[0]);
        float scale;
        tq_status status = tq_bias_scale(*(const double *)(data[1] + i * strides[1]),
                                         *(const double *)(data[2] + i * strides[2]), &scale, error);
        if (status)
            return status;
        int64_t integer_type = tq_bias_value(b, scale, is_wide ? INT64_MAX : INT32_MAX);
        if (is_wide)
            *(int64_t *)(data[3] + i * strides[3]) = integer_type;
        else
            *(int32_t *)(data[3] + i * strides[3]) = (int32_t)integer_type;
    }
    return TQ_OK;
}

PyDoc_STRVAR(quantize_bias_doc, "quantize_bias(b, input_scale, weight_scale, dtype='int32')\n--\n\n"
                                "The quantized values of a bias: b times the float32 reciprocal of its scale "
                                "(bias_quantization_params), rounded ties away from\n"
                                "zero, within plus or minus the highest value; 0 where the scale is 0, and for NaN.\n\n"
                                "b, input_scale, weight_scale: numbers or arrays, broadcast, read as float32. dtype: "
                                "'int32', or 'int64' for int16\n"
                                "activations. Returns an array of that type, of the shape that the arguments broadcast "
                                "to, or a scalar. ValueError: a\n"
                                "scale that is negative or not finite. Source: SymmetricBiasQuantize "
                                "(tflite/tools/optimize/quantization_utils.cc).");

/* The index in `types` of dtype, a string or a NumPy dtype; -1 with an exception. */
static int bias_type(PyObject *dtype, const char *const *types)
{
    PyArray_Descr *descr = NULL;
    if (dtype && !PyUnicode_Check(dtype) && dtype != Py_None && PyArray_DescrConverter(dtype, &descr)) {
        PyObject *name = PyObject_GetAttrString((PyObject *)descr, "name");
        int index = name ? tq_py_choice(name, "dtype", types, 2, 0) : -1;
        Py_DECREF(descr);
        Py_XDECREF(name);
        return index;
    }
    PyErr_Clear();
    return tq_py_choice(dtype, "dtype", types, 2, 0);
}

static PyObject *quantize_bias(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"b", "input_scale", "weight_scale", "dtype", NULL};
    static const char *const types[] = {"int32", "int64"};
    PyObject *values[3], *dtype = NULL;
    PyArrayObject *out;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O:quantize_bias", names, &values[0], &values[1], &values[2],
                                     &dtype))
        return NULL;
    const int index = bias_type(dtype, types), type = index == 1 ? NPY_INT64 : NPY_INT32;
    const bool is_wide = index == 1;
    if (index < 0 || tq_py_broadcast_doubles(PyModule_GetState(module), values, (const char *const *)names, 3, &type, 1,
                                             &out, run_bias, &is_wide) < 0)
        return NULL;
    return PyArray_Return(out);
}

static PyMethodDef functions[] = {
    {"fit_scales_to_bias", (PyCFunction)(void (*)(void))fit_scales, METH_VARARGS | METH_KEYWORDS, fit_doc},
    {"quantize_bias", (PyCFunction)(void (*)(void))quantize_bias, METH_VARARGS | METH_KEYWORDS, quantize_bias_doc},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_biases(PyObject *module, tq_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
