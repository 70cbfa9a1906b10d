/* SPDX-License-Identifier: Apache-2.0
 *
 * get_tensor_details: LiteRT's dicts, with the range that it drops.
 *
 * The rules are those of LiteRT 2.3 (python/interpreter.py, python/interpreter_wrapper, and
 * InterpreterBuilder::ParseQuantization), as far as it answers:
 *   shape_signature   the shape for constants, and where the file stores none or an empty one
 *   scales            empty counts as unquantized: no zero points, dimension 0
 *   blockwise         scales are the scale tensor's bytes as float16, zero_points those of the
 *                     zero-point tensor as int32, both flat and whatever the tensors' types are;
 *                     Quantization.scale has the values
 *   multi-axis        everything empty
 *   quantization      (scale, zero point) of exactly one scale
 *   zero points       cut off to int32
 *   sparsity          only of tensors with a buffer
 * Where LiteRT refuses a model or leaves a tensor out, the file's own values stand.
 */
#include "python/details.h"

#include "model/quantization.h"
#include "model/tensor.h"
#include "python/convert.h"
#include "python/dtypes.h"
#include "python/quantization.h"
#include "python/tensor.h"

static PyObject *no_values(int type)
{
    npy_intp none = 0;
    return PyArray_SimpleNew(1, &none, type);
}

/* The name as a C string: LiteRT's ends at a NUL. */
static PyObject *name_of(const tq_table *tensor)
{
    tq_bytes name = tq_get_string(tensor, TQ_Tensor_name);
    const uint8_t *end = name.data ? memchr(name.data, 0, name.size) : NULL;
    if (end)
        name.size = (size_t)(end - name.data);
    return tq_py_text(name);
}

static PyObject *signature_of(const tq_model *model, const tq_table *tensor, const tq_vector *shape)
{
    tq_vector signature = tq_get_vector(tensor, TQ_Tensor_shape_signature);
    bool shown = signature.count && !tq_tensor_is_constant(model, tensor);
    return tq_py_array_i32(shown ? &signature : shape);
}

/* (scale, zero point) where there is exactly one scale. */
static PyObject *legacy_tuple(const tq_quantization *q)
{
    bool one = q->kind == TQ_QUANTIZATION_PER_TENSOR;
    int32_t zero = (int32_t)(uint32_t)(uint64_t)tq_vector_i64(&q->zero_point, 0);
    return Py_BuildValue("(di)", one ? (double)tq_vector_f32(&q->scale, 0) : 0.0, one ? zero : 0);
}

/* ---- quantization_parameters ---- */

typedef struct {
    PyObject *scales, *zero_points, *range_min, *range_max;
} arrays;

/* One scale or one an index of the axis: everything stands in the file's own vectors. */
static int affine_arrays(const tq_type_row *row, const tq_quantization *q, arrays *out)
{
    npy_intp count = row && row->kind == TQ_KIND_INTEGER ? q->scale.count : 0;
    out->scales = tq_py_array_f32(&q->scale);
    out->zero_points = tq_py_array_i32_from_i64(&q->zero_point);
    out->range_min = PyArray_SimpleNew(1, &count, NPY_FLOAT32);
    out->range_max = PyArray_SimpleNew(1, &count, NPY_FLOAT32);
    if (!out->range_min || !out->range_max)
        return -1;
    float *low = PyArray_DATA((PyArrayObject *)out->range_min), *high = PyArray_DATA((PyArrayObject *)out->range_max);
    uint32_t zeros = q->zero_point.count;
    for (uint32_t i = 0; i < count; i++) {
        double zero = zeros ? (double)tq_vector_i64(&q->zero_point, i < zeros ? i : zeros - 1) : 0;
        low[i] = tq_py_real(tq_vector_f32(&q->scale, i), row->low, zero);
        high[i] = tq_py_real(tq_vector_f32(&q->scale, i), row->high, zero);
    }
    return 0;
}

/* A parameter tensor without data stands for zeros; of no more bytes than this, since its shape may
   say anything. */
enum { LARGEST_ZEROS = 1 << 20 };

/* LiteRT takes the parameter tensor's bytes for `item`-byte numbers of `type`, whatever its own type
   is, and one that has no data yet for zeros. */
static PyObject *parameter_bytes(PartObject *tensor, int64_t index, int type, size_t item)
{
    tq_subgraph subgraph = tq_py_subgraph_of(tensor);
    tq_table other = tq_vector_table(&subgraph.tensors, index < 0 ? SIZE_MAX : (size_t)index);
    tq_bytes bytes = {NULL, 0};
    uint64_t size = 0;
    if (tq_get_int(&other, TQ_Tensor_external_buffer))
        return tq_py_parameter_values(tensor, index, type);
    if (!other.at || tq_tensor_bytes(&tensor->model->model, &other, &bytes, NULL) != TQ_OK)
        return no_values(type);
    if (bytes.data)
        size = bytes.size;
    else if (tq_tensor_size(&other, &size, NULL) != TQ_OK || size > LARGEST_ZEROS)
        size = 0;
    npy_intp count = (npy_intp)(size / item);
    PyObject *array = PyArray_ZEROS(1, &count, type, 0);
    if (array && bytes.data)
        memcpy(PyArray_DATA((PyArrayObject *)array), bytes.data, (size_t)count * item);
    return array;
}

/* Blocks: scales and zero points stand in tensors of their own. */
static int blockwise_arrays(PartObject *tensor, int64_t type, const tq_quantization *q, arrays *out)
{
    PyObject *scale, *zero_point;
    if (tq_py_scales(tensor, q, &scale, &zero_point) < 0)
        return -1;
    int failed = tq_py_range(type, scale, zero_point, &out->range_min, &out->range_max);
    Py_DECREF(scale);
    Py_DECREF(zero_point);
    if (failed < 0)
        return -1;
    out->scales = parameter_bytes(tensor, q->scales_tensor, NPY_FLOAT16, 2);
    out->zero_points = parameter_bytes(tensor, q->zero_points_tensor, NPY_INT32, 4);
    return 0;
}

static int find_arrays(PartObject *tensor, const tq_table *view, const tq_quantization *q, arrays *out)
{
    int64_t type = tq_get_int(view, TQ_Tensor_type);
    if (q->kind == TQ_QUANTIZATION_PER_TENSOR || q->kind == TQ_QUANTIZATION_PER_AXIS)
        return affine_arrays(tq_type(type), q, out);
    if (q->kind == TQ_QUANTIZATION_BLOCKWISE)
        return blockwise_arrays(tensor, type, q, out);
    *out = (arrays){no_values(NPY_FLOAT32), no_values(NPY_INT32), no_values(NPY_FLOAT32), no_values(NPY_FLOAT32)};
    return 0;
}

static PyObject *parameters_of(tq_state *state, PartObject *tensor, const tq_table *view, const tq_quantization *q)
{
    bool shown = q->kind != TQ_QUANTIZATION_NONE && q->kind != TQ_QUANTIZATION_MULTI_AXIS && q->kind != TQ_QUANTIZATION_CUSTOM;
    arrays a = {NULL, NULL, NULL, NULL};
    PyObject *dict = PyDict_New();
    int failed = !dict || find_arrays(tensor, view, q, &a) < 0;
    if (failed) {
        Py_XDECREF(a.scales);
        Py_XDECREF(a.zero_points);
        Py_XDECREF(a.range_min);
        Py_XDECREF(a.range_max);
        Py_XDECREF(dict);
        return NULL;
    }
    failed |= tq_py_set(dict, state->key.scales, a.scales);
    failed |= tq_py_set(dict, state->key.zero_points, a.zero_points);
    failed |= tq_py_set(dict, state->key.quantized_dimension, PyLong_FromLong(shown ? q->quantized_dimension : 0));
    failed |= tq_py_set(dict, state->key.block_size, PyLong_FromLong(shown ? q->block_size : 0));
    failed |= tq_py_set(dict, state->key.min, tq_py_array_f32(&q->min));
    failed |= tq_py_set(dict, state->key.max, tq_py_array_f32(&q->max));
    failed |= tq_py_set(dict, state->key.range_min, a.range_min);
    failed |= tq_py_set(dict, state->key.range_max, a.range_max);
    if (failed)
        Py_CLEAR(dict);
    return dict;
}

/* ---- the whole ---- */

static PyObject *details_of(tq_state *state, PartObject *tensor, const tq_table *view)
{
    const tq_model *model = &tensor->model->model;
    tq_vector shape = tq_get_vector(view, TQ_Tensor_shape);
    tq_quantization q = tq_tensor_quantization(view);
    bool sparse = tq_get_table(view, TQ_Tensor_sparsity).at && tq_tensor_is_constant(model, view);
    PyObject *dict = PyDict_New();
    if (!dict)
        return NULL;
    int failed = tq_py_set(dict, state->key.name, name_of(view));
    failed |= tq_py_set(dict, state->key.index, PyLong_FromUnsignedLong(tensor->index));
    failed |= tq_py_set(dict, state->key.shape, tq_py_array_i32(&shape));
    failed |= tq_py_set(dict, state->key.shape_signature, signature_of(model, view, &shape));
    failed |= tq_py_set(dict, state->key.dtype, Py_XNewRef(tq_py_details_class(state, tq_get_int(view, TQ_Tensor_type))));
    failed |= tq_py_set(dict, state->key.quantization, legacy_tuple(&q));
    failed |= tq_py_set(dict, state->key.quantization_parameters, parameters_of(state, tensor, view, &q));
    failed |= tq_py_set(dict, state->key.sparsity_parameters, sparse ? tq_py_sparsity(state, view) : PyDict_New());
    if (failed)
        Py_CLEAR(dict);
    return dict;
}

/* Appends the dict of one tensor. */
static int append_details(PyObject *list, tq_state *state, ModelObject *model, size_t subgraph, const tq_vector *tensors, int64_t index)
{
    if (index < 0 || index >= tensors->count)
        return 0;
    PyObject *part = tq_py_part(state->Tensor, model, subgraph, (size_t)index);
    tq_table view = tq_vector_table(tensors, (size_t)index);
    PyObject *dict = part ? details_of(state, (PartObject *)part, &view) : NULL;
    int result = dict ? PyList_Append(list, dict) : -1;
    Py_XDECREF(dict);
    Py_XDECREF(part);
    return result;
}

PyObject *tq_py_details(ModelObject *model, size_t subgraph, tq_py_details_of what)
{
    tq_state *state = tq_state_of((PyObject *)model);
    tq_subgraph view = tq_model_subgraph(&model->model, subgraph);
    const tq_vector *chosen = what == TQ_PY_INPUTS ? &view.inputs : &view.outputs;
    uint32_t count = what == TQ_PY_ALL_TENSORS ? view.tensors.count : chosen->count;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < count; i++) {
        int64_t index = what == TQ_PY_ALL_TENSORS ? (int64_t)i : tq_vector_i32(chosen, i);
        if (append_details(list, state, model, subgraph, &view.tensors, index) < 0)
            Py_CLEAR(list);
    }
    return list;
}
