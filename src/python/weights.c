/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes and scales of constant weights and biases.
 */
#include "python/weights.h"
#include "python/errors.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "python/array_args.h"
#include "python/operands.h"
#include "python/tree.h"
#include "convert/halves.h"
#include "convert/weights.h"
#include "kernels/weight_codes.h"
#include "model/rewrite.h"

static const char *const rule_names[] = {
#define WEIGHT_RULE(symbol, name, text) name,
#include "quant/weights.def"
#undef WEIGHT_RULE
};

static PyStructSequence_Field weights_fields[] = {
    {"codes", "int8, uint8 or int16, of the weights' shape; int4 and int2 values lie in int8"},
    {"scale", "float32: a scalar, one a channel, or one a block in the weights' shape with its axis counting blocks"},
    {"zero_point", "int32: 0, but for rule 'toco'; an attribute, and no item of the tuple"},
    {NULL, NULL},
};

static PyStructSequence_Desc weights_desc = {
    "tq.QuantizedWeights",
    "(codes, scale): the real value of a code q is scale * (q - zero_point), and the zero point 0 but for rule 'toco'.",
    weights_fields,
    2,
};

/* What quantize_weights was asked for, and the memory that it fills. */
typedef struct weights_job {
    tq_weight_target target;
    tq_weight_layout layout;
    bool narrow;
    bool has_min, has_max;
    double min, max;
    const float *w;
    size_t size;
    const float *given; /* scales, or NULL to choose them */
    float *bounds, *scales;
    void *codes;
    tq_params params; /* rule toco's */
} weights_job;

static bool is_wide(const weights_job *job)
{
    return job->target.code == TQ_CODE_int16;
}

static tq_status use_given(weights_job *job, size_t count, tq_error *error)
{
    for (size_t c = 0; c < count; c++) {
        if (!isnormal(job->given[c]) || job->given[c] < 0)
            return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                           "scale is %g in %s %zu; it must be finite, above 0 and not denormal", (double)job->given[c],
                           job->target.blocks ? "block" : "channel", c);
        job->scales[c] = job->given[c];
        job->bounds[c] = tq_weight_factor(&job->target, job->given[c]);
    }
    return TQ_OK;
}

static tq_status quantize_symmetric(weights_job *job, tq_error *error)
{
    size_t count = tq_weight_scale_count(&job->layout);
    tq_weight_bounds(job->w, &job->layout, 0, job->bounds);
    tq_status status = tq_weight_scales(&job->target, job->bounds, count, job->scales, error);
    if (!status && job->given)
        status = use_given(job, count, error);
    if (!status)
        tq_weight_codes(&job->target, job->w, &job->layout, job->bounds, 0, is_wide(job) ? NULL : job->codes,
                        is_wide(job) ? job->codes : NULL);
    return status;
}

static tq_status quantize_toco(weights_job *job, tq_error *error)
{
    double min, max;
    tq_status status = tq_weight_range(job->w, job->size, &min, &max, error);
    if (status)
        return status;
    status = tq_weight_toco(job->target.code, job->narrow, job->has_min ? job->min : min, job->has_max ? job->max : max,
                            job->w, job->size, &job->params, is_wide(job) ? NULL : job->codes,
                            is_wide(job) ? job->codes : NULL, error);
    *job->scales = job->params.scale;
    return status;
}

/* Steals both, which may be NULL. */
static PyObject *make_weights(tq_state *state, PyArrayObject *codes, PyArrayObject *scales, int32_t zero_point)
{
    PyObject *made = PyStructSequence_New((PyTypeObject *)state->QuantizedWeights);
    PyArray_Descr *type = PyArray_DescrFromType(NPY_INT32);
    PyObject *zero = made ? PyArray_Scalar(&zero_point, type, NULL) : NULL;
    Py_DECREF(type);
    if (!zero) {
        Py_XDECREF(made);
        Py_XDECREF(codes);
        Py_XDECREF(scales);
        return NULL;
    }
    PyStructSequence_SetItem(made, 0, (PyObject *)codes);
    PyStructSequence_SetItem(made, 1, PyArray_Return(scales));
    PyStructSequence_SetItem(made, 2, zero);
    return made;
}

/* `shape` is the scales'. */
static PyObject *quantize_array(tq_state *state, weights_job *job, PyArrayObject *w, int rank, npy_intp *shape)
{
    int type = is_wide(job) ? NPY_INT16 : tq_code_is_signed(job->target.code) ? NPY_INT8 : NPY_UINT8;
    PyArrayObject *codes = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(w), PyArray_DIMS(w), type);
    PyArrayObject *scales = (PyArrayObject *)PyArray_SimpleNew(rank, shape, NPY_FLOAT32);
    float *bounds = PyMem_RawMalloc(tq_weight_scale_count(&job->layout) * sizeof *bounds + 1);
    tq_error error;
    tq_status status = TQ_NO_MEMORY;
    if (!bounds)
        PyErr_NoMemory();
    else if (codes && scales) {
        job->bounds = bounds;
        job->scales = PyArray_DATA(scales);
        job->codes = PyArray_DATA(codes);
        Py_BEGIN_ALLOW_THREADS
        status = job->target.rule == TQ_WEIGHTS_TOCO ? quantize_toco(job, &error) : quantize_symmetric(job, &error);
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
    return make_weights(state, codes, scales, job->params.zero_point);
}

PyDoc_STRVAR(quantize_weights_doc,
"quantize_weights(w, axis, dtype='int8', *, rule=None, scale=None, block_size=None, min=None, max=None,\n"
"                 narrow_range=False)\n--\n\n"
"(codes, scale) of constant weights, as a QuantizedWeights: the bytes that converters write.\n\n"
"w: finite numbers, read as float32. axis: the axis that scales run along (0 for CONV_2D and FULLY_CONNECTED, 3 for\n"
"DEPTHWISE_CONV_2D), or None for one scale. dtype: 'int8', 'int16', 'int4', 'int2' or 'uint8', or such a dtype;\n"
"narrow integers come in int8.\n"
"rule: one of tq.rules()['weights']. By default 'mlir' for int8, as TFLiteConverter writes; 'toco' for uint8, as\n"
"old models hold; 'ai-edge-quantizer', as that package writes, for others and for blocks.\n"
"block_size: elements along axis (None: the last) that share a scale; it divides the length. scale then has w's\n"
"shape with that axis counting blocks, and values that float16 holds exactly, as TFLite's BlockwiseQuantization\n"
"stores them; a block whose scale float16 rounds to 0 has the codes 0, or the extremes for weights other than 0.\n"
"scale: scales chosen elsewhere (fit_scales_to_bias), of the shape that the result's would have, finite and over 0.\n"
"min, max, narrow_range: for rule 'toco' alone: the range of training's fake quantization in place of the weights'\n"
"own, and whether that left out the lowest code; toco has axis None.\n"
"The zero point is 0, but for 'toco': the result's attribute zero_point.\n"
"ValueError: weights that are not finite, what a rule does not take, shapes that do not fit.\n\n"
">>> codes, scale = quantize_weights([[0.5, -1.0], [0.25, 0.0]], 0)\n"
">>> codes\n"
"array([[  64, -127],\n"
"       [ 127,    0]], dtype=int8)");

/* The axis and block_size arguments; the scales' shape at *rank and shape. */
static int layout_of(PyArrayObject *w, PyObject *axis, PyObject *block_size, weights_job *job, int *rank,
                     npy_intp *shape)
{
    tq_axis_view view;
    long size = 0;
    if (!tq_py_optional_int(block_size, "block_size", 1, LONG_MAX, &job->target.blocks, &size))
        return -1;
    PyObject *last = job->target.blocks && axis == Py_None ? PyLong_FromLong(-1) : Py_NewRef(axis);
    int at = -1, failed = !last || tq_py_axis_view(w, last, &view) < 0 || tq_py_axis(w, last, &at) < 0;
    Py_XDECREF(last);
    if (failed)
        return -1;
    job->target.per_channel = job->target.blocks || axis != Py_None;
    job->layout = (tq_weight_layout){1, view};
    *rank = job->target.per_channel;
    *shape = (npy_intp)view.channels;
    if (!job->target.blocks)
        return 0;
    if (view.channels % (size_t)size) {
        PyErr_Format(PyExc_ValueError, "block_size is %R: it must divide the length of axis %d, which is %zd", block_size,
                     at, (Py_ssize_t)view.channels);
        return -1;
    }
    size_t blocks = view.outer * (view.channels / (size_t)size);
    job->layout = view.inner == 1 ? (tq_weight_layout){1, {1, blocks, (size_t)size}}
                                  : (tq_weight_layout){blocks, {(size_t)size, view.inner, 1}};
    *rank = PyArray_NDIM(w);
    for (int i = 0; i < *rank; i++)
        shape[i] = i == at ? PyArray_DIM(w, i) / size : PyArray_DIM(w, i);
    return 0;
}

/* The `scale` argument as dense floats of that shape; *given stays NULL for None. */
static int scales_of(PyObject *value, int rank, const npy_intp *shape, PyArrayObject **given)
{
    if (!value || value == Py_None)
        return 0;
    PyArrayObject *scales = tq_py_dense_floats(value, "scale");
    if (!scales)
        return -1;
    if (PyArray_NDIM(scales) != rank || !PyArray_CompareLists(PyArray_DIMS(scales), shape, rank)) {
        PyObject *found = PyObject_GetAttrString((PyObject *)scales, "shape");
        PyObject *needed = found ? PyArray_IntTupleFromIntp(rank, shape) : NULL;
        if (needed)
            PyErr_Format(PyExc_ValueError, "scale has shape %R; it must be %R", found, needed);
        Py_XDECREF(found);
        Py_XDECREF(needed);
        Py_DECREF(scales);
        return -1;
    }
    *given = scales;
    return 0;
}

static int refuse_argument(const char *name, const char *why)
{
    PyErr_Format(PyExc_ValueError, "%s is given; %s", name, why);
    return -1;
}

/* What goes with which rule. */
static int check_rule(weights_job *job, PyObject *axis, PyObject *scale)
{
    const char *only = "only rule 'toco' takes it";
    if (job->target.rule == TQ_WEIGHTS_TOCO) {
        if (job->target.blocks)
            return refuse_argument("block_size", "rule 'toco' has no blocks, only 'ai-edge-quantizer' has");
        if (axis != Py_None) {
            PyErr_Format(PyExc_ValueError, "axis is %R; rule 'toco' has one scale for all weights and needs None", axis);
            return -1;
        }
        return scale && scale != Py_None ? refuse_argument("scale", "rule 'toco' takes min and max instead") : 0;
    }
    if (job->has_min || job->has_max)
        return refuse_argument(job->has_min ? "min" : "max", only);
    return job->narrow ? refuse_argument("narrow_range", only) : 0;
}

/* None, or one number. */
static int optional_real(PyObject *value, const char *name, bool *given, double *real)
{
    *given = value && value != Py_None;
    if (!*given)
        return 0;
    PyArrayObject *array = tq_py_doubles(value, name);
    if (!array)
        return -1;
    if (PyArray_SIZE(array) == 1)
        memcpy(real, PyArray_DATA(array), sizeof *real);
    else
        PyErr_Format(PyExc_ValueError, "%s has %zd values; it must be one number", name, PyArray_SIZE(array));
    Py_DECREF(array);
    return PyErr_Occurred() ? -1 : 0;
}

static int usual_rule(const tq_weight_target *target)
{
    if (target->code == TQ_CODE_uint8)
        return TQ_WEIGHTS_TOCO;
    return target->code == TQ_CODE_int8 && !target->blocks ? TQ_WEIGHTS_MLIR : TQ_WEIGHTS_AI_EDGE;
}

static PyObject *quantize_weights(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"w", "axis", "dtype", "rule", "scale", "block_size", "min", "max", "narrow_range", NULL};
    PyObject *value, *axis, *dtype = NULL, *rule = NULL, *scale = NULL, *block_size = NULL, *min = NULL, *max = NULL;
    PyObject *made = NULL;
    PyArrayObject *given = NULL;
    weights_job job = {.given = NULL};
    npy_intp shape[NPY_MAXDIMS];
    PyObject *narrow = NULL;
    int rank;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$OOOOOO:quantize_weights", names, &value, &axis, &dtype, &rule,
                                     &scale, &block_size, &min, &max, &narrow) ||
        !tq_py_flag(narrow, "narrow_range", &job.narrow) ||
        tq_py_code(dtype, &job.target.code) < 0 || optional_real(min, "min", &job.has_min, &job.min) < 0 ||
        optional_real(max, "max", &job.has_max, &job.max) < 0)
        return NULL;
    PyArrayObject *w = tq_py_dense_floats(value, "w");
    if (!w || layout_of(w, axis, block_size, &job, &rank, shape) < 0) {
        Py_XDECREF(w);
        return NULL;
    }
    int index = tq_py_choice(rule == Py_None ? NULL : rule, "rule", rule_names, TQ_WEIGHT_RULES,
                             usual_rule(&job.target));
    job.target.rule = (tq_weight_rule)index;
    job.w = PyArray_DATA(w);
    job.size = (size_t)PyArray_SIZE(w);
    if (index >= 0 && check_rule(&job, axis, scale) == 0 && scales_of(scale, rank, shape, &given) == 0) {
        job.given = given ? PyArray_DATA(given) : NULL;
        made = quantize_array(PyModule_GetState(module), &job, w, rank, shape);
    }
    Py_XDECREF(given);
    Py_DECREF(w);
    return made;
}

/* What the two functions below have in common. */
static PyObject *put_codes(tq_state *state, tq_tree *tree, tq_node *node, PyArrayObject *w, PyObject *axis, PyObject *dtype,
                           PyObject *block_size, const char *label)
{
    weights_job job = {.given = NULL};
    npy_intp shape[NPY_MAXDIMS];
    int rank;
    tq_error error;
    if (tq_py_code(dtype, &job.target.code) < 0 || layout_of(w, axis, block_size, &job, &rank, shape) < 0)
        return NULL;
    job.target.rule = (tq_weight_rule)usual_rule(&job.target);
    job.target.positive = true;
    const tq_weight_source source = {job.target, job.layout, PyArray_DATA(w), label};
    if (tq_convert_weights(tree, node, &source, &error) == TQ_OK)
        return PyArray_IntTupleFromIntp(rank, shape);
    tq_py_raise(state, &error, NULL);
    return NULL;
}

/* _codes_into(node, w, axis, dtype, block_size, label) -> shape of the scales.  Gives a node of a Buffer the codes of w,
   packed, as quantize_weights would make them by its usual rule, but without scales of 0, when the model is written.  w
   is not copied where it is dense: it must not change.  The tree keeps it, so that neither is freed if it is itself a
   view of that tree. */
static PyObject *codes_into(PyObject *module, PyObject *args)
{
    tq_state *state = PyModule_GetState(module);
    PyObject *object, *value, *axis, *dtype, *block_size, *made = NULL;
    const char *label;
    tq_node *node;
    if (!PyArg_ParseTuple(args, "OOOOOs:_codes_into", &object, &value, &axis, &dtype, &block_size, &label))
        return NULL;
    tq_tree *tree = tq_py_change_node(state, object, "Buffer", &node);
    PyArrayObject *w = tree ? tq_py_dense_floats(value, "w") : NULL;
    if (w && tq_py_keep_for_node(object, (PyObject *)w) == 0)
        made = put_codes(state, tree, node, w, axis, dtype, block_size, label);
    Py_XDECREF(w);
    return made;
}

/* The tree of a node of that table and of a Buffer's. */
static tq_tree *change_both(tq_state *state, PyObject *object, const char *table, tq_node **node, PyObject *buffer,
                            tq_node **codes)
{
    tq_tree *tree = tq_py_change_node(state, object, table, node);
    tq_tree *other = tree ? tq_py_change_node(state, buffer, "Buffer", codes) : NULL;
    if (!other || tree == other)
        return other;
    PyErr_SetString(PyExc_ValueError, "the buffer belongs to another model");
    return NULL;
}

/* The bytes of a Buffer as an array of floats, of that shape, which must not outlive the tree.  NULL with no exception:
   they are none as they lie there. */
static PyArrayObject *floats_of(const tq_node *buffer, PyObject *shape)
{
    const tq_cell *cell = tq_buffer_node_cell(buffer);
    PyArray_Dims dims = {NULL, 0};
    if (!PyArray_IntpConverter(shape, &dims))
        return NULL;
    uint64_t size = 4;
    bool fits = cell && !cell->is_made && (uintptr_t)cell->bytes % 4 == 0 && NPY_BYTE_ORDER == NPY_LITTLE_ENDIAN;
    for (int i = 0; fits && i < dims.len; i++)
        fits = dims.ptr[i] >= 0 && tq_mul_u64(size, (uint64_t)dims.ptr[i], &size);
    PyArrayObject *made = NULL;
    if (fits && size && size == cell->length)
        made = (PyArrayObject *)PyArray_New(&PyArray_Type, dims.len, dims.ptr, NPY_FLOAT32, NULL, (void *)(uintptr_t)cell->bytes, 0,
                                            NPY_ARRAY_CARRAY_RO, NULL);
    PyDimMem_FREE(dims.ptr);
    return made;
}

/* _codes_from(node, source, shape, axis, dtype, block_size, label): the same of weights that another Buffer of that tree
   holds.  None, and nothing is done: its bytes are no floats of that shape as they lie there. */
static PyObject *codes_from(PyObject *module, PyObject *args)
{
    tq_state *state = PyModule_GetState(module);
    PyObject *object, *source, *shape, *axis, *dtype, *block_size;
    const char *label;
    tq_node *node, *floats;
    if (!PyArg_ParseTuple(args, "OOOOOOs:_codes_from", &object, &source, &shape, &axis, &dtype, &block_size, &label))
        return NULL;
    tq_tree *tree = change_both(state, object, "Buffer", &node, source, &floats);
    PyArrayObject *w = tree ? floats_of(floats, shape) : NULL;
    if (!w)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    PyObject *made = put_codes(state, tree, node, w, axis, dtype, block_size, label);
    Py_DECREF(w);
    return made;
}

/* _halves_from(node, source, shape) -> whether it did: gives a node of a Buffer the floats of another, as float16.  False as
   _codes_from's None. */
static PyObject *halves_from(PyObject *module, PyObject *args)
{
    tq_state *state = PyModule_GetState(module);
    PyObject *object, *source, *shape;
    tq_node *node, *floats;
    tq_error error;
    if (!PyArg_ParseTuple(args, "OOO:_halves_from", &object, &source, &shape))
        return NULL;
    tq_tree *tree = change_both(state, object, "Buffer", &node, source, &floats);
    PyArrayObject *w = tree ? floats_of(floats, shape) : NULL;
    if (!w)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    tq_status status = tq_convert_halves(tree, node, PyArray_DATA(w), (uint64_t)PyArray_SIZE(w), &error);
    Py_DECREF(w);
    return status == TQ_OK ? Py_NewRef(Py_True) : tq_py_raise(state, &error, NULL);
}

/* _become_codes(tensor, buffer, index, type, axis): makes a node of a Tensor that of codes which _codes_into made. */
static PyObject *become_codes(PyObject *module, PyObject *args)
{
    tq_state *state = PyModule_GetState(module);
    PyObject *object, *buffer;
    tq_node *node, *codes;
    tq_error error;
    unsigned index;
    unsigned char type;
    int axis;
    if (!PyArg_ParseTuple(args, "OOIbi:_become_codes", &object, &buffer, &index, &type, &axis))
        return NULL;
    tq_tree *tree = change_both(state, object, "Tensor", &node, buffer, &codes);
    if (!tree)
        return NULL;
    if (tq_convert_tensor(tree, node, codes, index, type, axis, &error) == TQ_OK)
        Py_RETURN_NONE;
    tq_py_raise(state, &error, NULL);
    return NULL;
}

/* _scales_of(buffer) -> the scales of codes that _codes_into made, one after the other. */
static PyObject *scales_of_codes(PyObject *module, PyObject *buffer)
{
    tq_state *state = PyModule_GetState(module);
    tq_node *codes;
    tq_error error;
    const float *scales;
    size_t found;
    if (!tq_py_change_node(state, buffer, "Buffer", &codes))
        return NULL;
    if (tq_convert_scales_now(codes, &scales, &found, &error) != TQ_OK) {
        tq_py_raise(state, &error, NULL);
        return NULL;
    }
    npy_intp size = (npy_intp)found;
    PyObject *made = PyArray_SimpleNew(1, &size, NPY_FLOAT32);
    if (made)
        memcpy(PyArray_DATA((PyArrayObject *)made), scales, found * sizeof *scales);
    return made;
}

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

PyDoc_STRVAR(fit_doc,
"fit_scales_to_bias(weight_scale, input_scale, b)\n--\n\n"
"(weight_scale, bias_scale), float32, grown where the bias's code would pass 2^30 - 1, as TFLiteConverter does.\n\n"
"weight_scale: one, or one a channel. input_scale: the activation's. b: the bias, one value a channel; with one\n"
"weight scale the greatest |b| counts. Where the code |b| / (input_scale * weight_scale) is too great, the\n"
"bias's scale becomes |b| / (2^30 - 1) and the weight's that divided by input_scale. Quantize the weights with\n"
"the result as `scale`, and the bias by quantize_bias(b, bias_scale, 1). Channels of zeros need this often.\n"
"ValueError: a scale or b that is not finite, weight_scale negative, input_scale not over 0. Source: kBiasMax of\n"
"tflite/converter/quantization/common/quantization_lib/quantization_driver.cc.");

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
    if (ready && tq_py_broadcast(PyModule_GetState(module), in, (const char *const *)names, 3, types, 2, out, run_fit,
                                 &per_channel) == 0)
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
        float scale;
        tq_status status = tq_bias_scale(*(const double *)(data[1] + i * strides[1]),
                                         *(const double *)(data[2] + i * strides[2]), &scale, error);
        if (status)
            return status;
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
"activations. Returns an array of that type, of the shape that the arguments broadcast to, or a scalar. ValueError: a\n"
"scale that is negative or not finite. Source: SymmetricBiasQuantize (tflite/tools/optimize/quantization_utils.cc).");

/* The row of `types` that dtype names, as a string or a NumPy dtype; -1 with an exception. */
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
    static const char *const argument_names[] = {"b", "input_scale", "weight_scale"};
    static const char *const types[] = {"int32", "int64"};
    PyObject *values[3], *dtype = NULL;
    PyArrayObject *in[3] = {NULL}, *out = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O:quantize_bias", names, &values[0], &values[1], &values[2],
                                     &dtype))
        return NULL;
    int index = bias_type(dtype, types);
    bias_context context = {index == 1};
    int i = index < 0 ? 3 : 0, type = context.is_wide ? NPY_INT64 : NPY_INT32;
    bool ready = index >= 0;
    for (; i < 3 && ready; i++)
        ready = (in[i] = tq_py_doubles(values[i], argument_names[i])) != NULL;
    if (ready)
        tq_py_broadcast(PyModule_GetState(module), in, argument_names, 3, &type, 1, &out, run_bias, &context);
    for (i = 0; i < 3; i++)
        Py_XDECREF(in[i]);
    return out ? PyArray_Return(out) : NULL;
}

static PyMethodDef functions[] = {
    {"_codes_from", codes_from, METH_VARARGS, NULL},
    {"_codes_into", codes_into, METH_VARARGS, NULL},
    {"_become_codes", become_codes, METH_VARARGS, NULL},
    {"_halves_from", halves_from, METH_VARARGS, NULL},
    {"_scales_of", scales_of_codes, METH_O, NULL},
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
