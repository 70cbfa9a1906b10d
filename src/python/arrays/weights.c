/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantized values and scales of constant weights.
 */
#include "python/arrays/weights.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/arrays/quantize_weights.h"
#include "python/arrays/array_args.h"
#include "python/errors.h"
#include "python/arrays/operands.h"

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
    "(codes, scale): the real value of a quantized value q is scale * (q - zero_point), and the zero point 0 but for "
    "rule 'toco'.",
    weights_fields,
    2,
};

/* ---- the plan ---- */

static tq_weight_rule usual_rule(const tq_weight_target *target)
{
    if (target->type == TQ_INTEGER_uint8)
        return TQ_WEIGHTS_TOCO;
    return target->type == TQ_INTEGER_int8 && !target->blocks ? TQ_WEIGHTS_MLIR : TQ_WEIGHTS_AI_EDGE;
}

/* Plans blocks of `size` elements along dimension `at` of w, around which `view` is. */
static int plan_blocks(PyArrayObject *w, int at, const tq_axis_view *view, long size, tq_py_weight_plan *plan)
{
    if (view->channels % (size_t)size) {
        PyErr_Format(PyExc_ValueError, "block_size is %ld: it must divide the length of axis %d, which is %zd", size,
                     at, (Py_ssize_t)view->channels);
        return -1;
    }
    const size_t blocks = view->outer * (view->channels / (size_t)size);
    plan->layout = view->inner == 1 ? (tq_weight_layout){1, {1, blocks, (size_t)size}}
                                    : (tq_weight_layout){blocks, {(size_t)size, view->inner, 1}};
    plan->rank = PyArray_NDIM(w);
    for (int i = 0; i < plan->rank; i++)
        plan->shape[i] = i == at ? PyArray_DIM(w, i) / size : PyArray_DIM(w, i);
    return 0;
}

int tq_py_weight_plan_of(PyArrayObject *w, tq_integer_type integer_type, PyObject *axis, PyObject *block_size,
                         tq_py_weight_plan *plan)
{
    tq_axis_view view;
    bool blocks;
    long size = 0;
    if (!tq_py_optional_int(block_size, "block_size", 1, LONG_MAX, &blocks, &size))
        return -1;
    PyObject *along = blocks && axis == Py_None ? PyLong_FromLong(-1) : Py_NewRef(axis); /* blocks have an axis */
    int at = -1, failed = !along || tq_py_axis_view(w, along, &view) < 0 || tq_py_axis(w, along, &at) < 0;
    Py_XDECREF(along);
    if (failed)
        return -1;
    plan->target = (tq_weight_target){.type = integer_type, .blocks = blocks, .per_channel = blocks || axis != Py_None};
    plan->target.rule = usual_rule(&plan->target);
    if (blocks)
        return plan_blocks(w, at, &view, size, plan);
    plan->layout = (tq_weight_layout){1, view};
    plan->rank = plan->target.per_channel;
    *plan->shape = (npy_intp)view.channels;
    return 0;
}

/* ---- quantized values and scales ---- */

/* The arguments of quantize_weights, and its outputs. */
typedef struct weights_job {
    tq_py_weight_plan plan;
    bool narrow;
    bool has_min, has_max;
    double min, max;
    const float *w;
    size_t size;
    const float *given; /* scales, or NULL to choose them */
    float *bounds, *scales;
    void *quantized;
    tq_params params; /* of rule toco */
} weights_job;

static bool is_wide(const weights_job *job)
{
    return job->plan.target.type == TQ_INTEGER_int16;
}

/* The requirement that a given scale does not meet; NULL: none. */
static const char *lacks(float scale, bool of_block)
{
    if (!isnormal(scale) || scale < 0)
        return "it must be finite, above 0 and not denormal";
    if (of_block && tq_half_to_float(tq_float_to_half(scale)) != scale)
        return "float16, in which scales of blocks are stored, must hold it exactly";
    return NULL;
}

static tq_status use_given(weights_job *job, size_t count, tq_error *error)
{
    const bool blocks = job->plan.target.blocks;
    for (size_t c = 0; c < count; c++) {
        const char *needed = lacks(job->given[c], blocks);
        if (needed)
            return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "scale is %g in %s %zu; %s", (double)job->given[c],
                           blocks ? "block" : "channel", c, needed);
        job->scales[c] = job->given[c];
        job->bounds[c] = tq_weight_factor(&job->plan.target, job->given[c]);
    }
    return TQ_OK;
}

static tq_status quantize_symmetric(weights_job *job, tq_error *error)
{
    size_t count = tq_weight_scale_count(&job->plan.layout);
    tq_weight_bounds(job->w, &job->plan.layout, 0, job->bounds);
    tq_status status = tq_weight_scales(&job->plan.target, job->bounds, count, job->scales, error);
    if (!status && job->given)
        status = use_given(job, count, error);
    if (!status)
        tq_quantize_weights(&job->plan.target, job->w, &job->plan.layout, job->bounds, 0,
                            is_wide(job) ? NULL : job->quantized, is_wide(job) ? job->quantized : NULL);
    return status;
}

static tq_status quantize_toco(weights_job *job, tq_error *error)
{
    double min, max;
    tq_status status = tq_weight_range(job->w, job->size, &min, &max, error);
    if (status)
        return status;
    status = tq_weight_toco(job->plan.target.type, job->narrow, job->has_min ? job->min : min,
                            job->has_max ? job->max : max, job->w, job->size, &job->params,
                            is_wide(job) ? NULL : job->quantized, is_wide(job) ? job->quantized : NULL, error);
    *job->scales = job->params.scale;
    return status;
}

/* Steals both, which may be NULL. */
static PyObject *make_weights(tq_state *state, PyArrayObject *quantized, PyArrayObject *scales, int32_t zero_point)
{
    PyObject *made = PyStructSequence_New((PyTypeObject *)state->QuantizedWeights);
    PyArray_Descr *type = PyArray_DescrFromType(NPY_INT32);
    PyObject *zero = made ? PyArray_Scalar(&zero_point, type, NULL) : NULL;
    Py_DECREF(type);
    if (!zero) {
        Py_XDECREF(made);
        Py_XDECREF(quantized);
        Py_XDECREF(scales);
        return NULL;
    }
    PyStructSequence_SetItem(made, 0, (PyObject *)quantized);
    PyStructSequence_SetItem(made, 1, PyArray_Return(scales));
    PyStructSequence_SetItem(made, 2, zero);
    return made;
}

static PyObject *quantize_array(tq_state *state, weights_job *job, PyArrayObject *w)
{
    int type = is_wide(job) ? NPY_INT16 : tq_integer_is_signed(job->plan.target.type) ? NPY_INT8 : NPY_UINT8;
    PyArrayObject *quantized = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(w), PyArray_DIMS(w), type);
    PyArrayObject *scales = (PyArrayObject *)PyArray_SimpleNew(job->plan.rank, job->plan.shape, NPY_FLOAT32);
    float *bounds = PyMem_RawMalloc(tq_weight_scale_count(&job->plan.layout) * sizeof *bounds + 1);
    tq_error error;
    tq_status status = TQ_NO_MEMORY;
    if (!bounds)
        PyErr_NoMemory();
    else if (quantized && scales) {
        job->bounds = bounds;
        job->scales = PyArray_DATA(scales);
        job->quantized = PyArray_DATA(quantized);
        Py_BEGIN_ALLOW_THREADS
        status =
            job->plan.target.rule == TQ_WEIGHTS_TOCO ? quantize_toco(job, &error) : quantize_symmetric(job, &error);
        Py_END_ALLOW_THREADS
        if (status)
            tq_py_raise(state, &error, NULL);
    }
    PyMem_RawFree(bounds);
    if (status) {
        Py_XDECREF(quantized);
        Py_XDECREF(scales);
        return NULL;
    }
    return make_weights(state, quantized, scales, job->params.zero_point);
}

PyDoc_STRVAR(
    quantize_weights_doc,
    "quantize_weights(w, axis, dtype='int8', *, rule=None, scale=None, block_size=None, min=None, max=None,\n"
    "                 narrow_range=False)\n--\n\n"
    "(codes, scale) of constant weights, as a QuantizedWeights: the bytes that converters write.\n\n"
    "w: finite numbers, read as float32. axis: the axis that scales run along (0 for CONV_2D and FULLY_CONNECTED, 3 "
    "for\n"
    "DEPTHWISE_CONV_2D), or None for one scale. dtype: 'int8', 'int16', 'int4', 'int2' or 'uint8', or such a dtype;\n"
    "narrow integers come in int8.\n"
    "rule: one of tq.rules()['weights']. By default 'mlir' for int8, as TFLiteConverter writes; 'toco' for uint8, as\n"
    "old models hold; 'ai-edge-quantizer', as that package writes, for others and for blocks.\n"
    "block_size: elements along axis (None: the last) that share a scale; it divides the length. scale then has w's\n"
    "shape with that axis counting blocks, and values that float16 holds exactly, as TFLite's BlockwiseQuantization\n"
    "stores them; a block whose scale float16 rounds to 0 has values 0, or the extremes for weights other than 0.\n"
    "scale: scales chosen elsewhere (fit_scales_to_bias), of the shape that the result's would have, finite and over "
    "0;\n"
    "of blocks, values of float16.\n"
    "min, max, narrow_range: for rule 'toco' alone: the range of training's fake quantization in place of the "
    "weights'\n"
    "own, and whether that left out the lowest value; toco has axis None.\n"
    "The zero point is 0, but for 'toco': the result's attribute zero_point.\n"
    "ValueError: weights that are not finite, what a rule does not take, shapes that do not fit.\n\n"
    ">>> quantized, scale = quantize_weights([[0.5, -1.0], [0.25, 0.0]], 0)\n"
    ">>> quantized\n"
    "array([[  64, -127],\n"
    "       [ 127,    0]], dtype=int8)");

/* The scale argument as dense floats of the planned shape; *given: NULL for None. */
static int scales_of(PyObject *value, const tq_py_weight_plan *plan, PyArrayObject **given)
{
    if (!value || value == Py_None)
        return 0;
    PyArrayObject *scales = tq_py_dense_floats(value, "scale");
    if (!scales)
        return -1;
    if (PyArray_NDIM(scales) != plan->rank || !PyArray_CompareLists(PyArray_DIMS(scales), plan->shape, plan->rank)) {
        PyObject *found = PyObject_GetAttrString((PyObject *)scales, "shape");
        PyObject *needed = found ? PyArray_IntTupleFromIntp(plan->rank, plan->shape) : NULL;
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

/* Checks which arguments the rule accepts. */
static int check_rule(weights_job *job, PyObject *axis, PyObject *scale)
{
    const char *only = "only rule 'toco' takes it";
    if (job->plan.target.rule == TQ_WEIGHTS_TOCO) {
        if (job->plan.target.blocks)
            return refuse_argument("block_size", "rule 'toco' has no blocks, only 'ai-edge-quantizer' has");
        if (axis != Py_None) {
            PyErr_Format(PyExc_ValueError, "axis is %R; rule 'toco' has one scale for all weights and needs None",
                         axis);
            return -1;
        }
        return scale && scale != Py_None ? refuse_argument("scale", "rule 'toco' takes min and max instead") : 0;
    }
    if (job->has_min || job->has_max)
        return refuse_argument(job->has_min ? "min" : "max", only);
    return job->narrow ? refuse_argument("narrow_range", only) : 0;
}

/* None, or one real value. */
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

static PyObject *quantize_weights(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"w", "axis", "dtype", "rule", "scale", "block_size", "min", "max", "narrow_range", NULL};
    PyObject *value, *axis, *dtype = NULL, *rule = NULL, *scale = NULL, *block_size = NULL, *min = NULL, *max = NULL;
    PyObject *made = NULL;
    PyArrayObject *given = NULL;
    weights_job job = {.given = NULL};
    PyObject *narrow = NULL;
    tq_integer_type integer_type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$OOOOOO:quantize_weights", names, &value, &axis, &dtype, &rule,
                                     &scale, &block_size, &min, &max, &narrow) ||
        !tq_py_flag(narrow, "narrow_range", &job.narrow) || tq_py_integer_type(dtype, &integer_type) < 0 ||
        optional_real(min, "min", &job.has_min, &job.min) < 0 || optional_real(max, "max", &job.has_max, &job.max) < 0)
        return NULL;
    PyArrayObject *w = tq_py_dense_floats(value, "w");
    if (!w || tq_py_weight_plan_of(w, integer_type, axis, block_size, &job.plan) < 0) {
        Py_XDECREF(w);
        return NULL;
    }
    int index = tq_py_choice(rule == Py_None ? NULL : rule, "rule", rule_names, TQ_WEIGHT_RULES, job.plan.target.rule);
    job.plan.target.rule = (tq_weight_rule)index;
    job.w = PyArray_DATA(w);
    job.size = (size_t)PyArray_SIZE(w);
    if (index >= 0 && check_rule(&job, axis, scale) == 0 && scales_of(scale, &job.plan, &given) == 0) {
        job.given = given ? PyArray_DATA(given) : NULL;
        made = quantize_array(PyModule_GetState(module), &job, w);
    }
    Py_XDECREF(given);
    Py_DECREF(w);
    return made;
}

static PyMethodDef functions[] = {
    {"quantize_weights", (PyCFunction)(void (*)(void))quantize_weights, METH_VARARGS | METH_KEYWORDS,
     quantize_weights_doc},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_weights(PyObject *module, tq_state *state)
{
    state->QuantizedWeights = (PyObject *)PyStructSequence_NewType(&weights_desc);
    if (!state->QuantizedWeights || PyModule_AddObjectRef(module, "QuantizedWeights", state->QuantizedWeights) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
