/* SPDX-License-Identifier: Apache-2.0
 *
 * get_tensor_details: LiteRT's dicts, with the range that it drops.
 *
 * The rules are those of LiteRT 2.3 (python/interpreter.py, python/interpreter_wrapper, and
 * InterpreterBuilder::ParseQuantization):
 *   shape_signature   the shape for constants, and where the file stores none or an empty one
 *   scales            empty means unquantized: no zero points, dimension 0
 *   blockwise         scales are the scale tensor's bytes as float16, zero_points those of the
 *                     zero-point tensor as int32, both flat and whatever the tensors' types are;
 *                     Quantization.scale has the values
 *   multi-axis        everything empty
 *   quantization      (scale, zero point) of exactly one scale
 *   zero points       cut off to int32
 *   sparsity          only of tensors with a buffer
 * Where LiteRT refuses a model or leaves a tensor out, the details have the file's values.
 */
#include "python/model/details.h"

#include "model/quantization.h"
#include "model/tensor.h"
#include "python/convert.h"
#include "python/dtypes.h"
#include "python/model/parameter_values.h"
#include "python/model/tensor.h"

/* The name up to its first NUL, as LiteRT's. */
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
static PyObject *legacy_tuple(tq_state *state, const tq_quantization *q)
{
    if (q->kind != TQ_QUANTIZATION_PER_TENSOR)
        return Py_NewRef(state->no_scale);
    int32_t zero = (int32_t)(uint32_t)(uint64_t)tq_vector_i64(&q->zero_point, 0);
    PyObject *tuple = PyTuple_New(2);
    PyObject *scale = PyFloat_FromDouble(tq_vector_f32(&q->scale, 0)), *zero_point = PyLong_FromLong(zero);
    if (tuple && scale && zero_point) {
        PyTuple_SET_ITEM(tuple, 0, scale);
        PyTuple_SET_ITEM(tuple, 1, zero_point);
        return tuple;
    }
    Py_XDECREF(tuple);
    Py_XDECREF(scale);
    Py_XDECREF(zero_point);
    return NULL;
}

/* ---- quantization_parameters ---- */

/* Per tensor and per axis: the parameters are vectors of the file. */
static int set_affine(tq_state *state, PyObject *dict, int64_t type, const tq_quantization *q)
{
    PyObject *range_min, *range_max;
    tq_bytes scales = tq_vector_bytes(&q->scale, 4), zero_points = tq_vector_bytes(&q->zero_point, 8);
    int failed = tq_py_set(dict, state->key.scales, tq_py_array_f32(&q->scale));
    if (q->zero_point.count)
        failed |= tq_py_set(dict, state->key.zero_points, tq_py_array_i32_from_i64(&q->zero_point));
    if (tq_py_range(type, scales.data, q->scale.count, zero_points.data, q->zero_point.count, &range_min, &range_max) <
        0)
        return -1;
    failed |= tq_py_set(dict, state->key.range_min, range_min);
    failed |= tq_py_set(dict, state->key.range_max, range_max);
    return failed;
}

/* The most bytes of zeros for a parameter tensor without data, whose shape may be arbitrarily large. */
enum { LARGEST_ZEROS = 1 << 20 };

/* LiteRT reads the parameter tensor's bytes as elements of `type`, of `item` bytes, whatever the tensor's type is, and
   a tensor without data as zeros. */
static PyObject *parameter_bytes(ItemObject *tensor, int64_t index, int type, size_t item)
{
    tq_subgraph subgraph = tq_py_subgraph_of(tensor);
    tq_table other = tq_vector_table(&subgraph.tensors, index < 0 ? SIZE_MAX : (size_t)index);
    tq_bytes bytes = {NULL, 0};
    uint64_t size = 0;
    if (tq_get_int(&other, TQ_Tensor_external_buffer))
        return tq_py_parameter_values(tensor, index, type);
    if (!other.at || tq_tensor_bytes(&tensor->model->model, &other, &bytes, NULL) != TQ_OK)
        return tq_py_empty_array(type);
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

/* (scales, zero_points, range_min, range_max) of blocks, from the parameter tensors. */
static PyObject *block_arrays(ItemObject *tensor, int64_t type, const tq_quantization *q)
{
    PyObject *scale, *zero_point, *range_min, *range_max;
    if (tq_py_tensor_scales(tensor, q, &scale, &zero_point) < 0)
        return NULL;
    int failed = tq_py_range_of_arrays(type, scale, zero_point, &range_min, &range_max);
    Py_DECREF(scale);
    Py_DECREF(zero_point);
    if (failed < 0)
        return NULL;
    return Py_BuildValue("(NNNN)", parameter_bytes(tensor, q->scales_tensor, NPY_FLOAT16, 2),
                         parameter_bytes(tensor, q->zero_points_tensor, NPY_INT32, 4), range_min, range_max);
}

/* In a few bytes a file can give many tensors the same large parameter tensors, so these share the arrays: `shared` is
   a dict by type, scales and zero points. */
static int set_blockwise(tq_state *state, PyObject *dict, PyObject *shared, ItemObject *tensor, int64_t type,
                         const tq_quantization *q)
{
    PyObject *key = Py_BuildValue("(Lii)", (long long)type, q->scales_tensor, q->zero_points_tensor);
    PyObject *arrays = key ? Py_XNewRef(PyDict_GetItemWithError(shared, key)) : NULL;
    if (key && !arrays && !PyErr_Occurred()) {
        arrays = block_arrays(tensor, type, q);
        if (arrays && PyDict_SetItem(shared, key, arrays) < 0)
            Py_CLEAR(arrays);
    }
    Py_XDECREF(key);
    int failed = !arrays ? -1
                         : PyDict_SetItem(dict, state->key.scales, PyTuple_GET_ITEM(arrays, 0)) |
                               PyDict_SetItem(dict, state->key.zero_points, PyTuple_GET_ITEM(arrays, 1)) |
                               PyDict_SetItem(dict, state->key.range_min, PyTuple_GET_ITEM(arrays, 2)) |
                               PyDict_SetItem(dict, state->key.range_max, PyTuple_GET_ITEM(arrays, 3));
    Py_XDECREF(arrays);
    return failed;
}

static int set_quantized(ItemObject *tensor, PyObject *dict, PyObject *shared, const tq_table *view,
                         const tq_quantization *q)
{
    tq_state *state = tq_state_of((PyObject *)tensor);
    int64_t type = tq_get_int(view, TQ_Tensor_type);
    int failed = q->kind == TQ_QUANTIZATION_BLOCKWISE ? set_blockwise(state, dict, shared, tensor, type, q)
                                                      : set_affine(state, dict, type, q);
    if (q->quantized_dimension)
        failed |= tq_py_set(dict, state->key.quantized_dimension, PyLong_FromLong(q->quantized_dimension));
    if (q->block_size)
        failed |= tq_py_set(dict, state->key.block_size, PyLong_FromLong(q->block_size));
    return failed;
}

/* A copy of the template, whose values are empty or 0, with the file's values. */
static PyObject *parameters_of(tq_state *state, PyObject *tensor, PyObject *shared, const tq_table *view,
                               const tq_quantization *q)
{
    PyObject *dict = PyDict_Copy(state->parameters_template);
    int failed = !dict;
    if (!failed && q->min.count)
        failed |= tq_py_set(dict, state->key.min, tq_py_array_f32(&q->min));
    if (!failed && q->max.count)
        failed |= tq_py_set(dict, state->key.max, tq_py_array_f32(&q->max));
    bool shown = q->kind == TQ_QUANTIZATION_PER_TENSOR || q->kind == TQ_QUANTIZATION_PER_AXIS ||
                 q->kind == TQ_QUANTIZATION_BLOCKWISE;
    if (!failed && shown)
        failed |= set_quantized((ItemObject *)tensor, dict, shared, view, q);
    if (failed)
        Py_CLEAR(dict);
    return dict;
}

/* ---- a tensor's dict ---- */

static PyObject *details_of(tq_state *state, PyObject *tensor, PyObject *shared, const tq_table *view)
{
    const tq_model *model = &((ItemObject *)tensor)->model->model;
    tq_vector shape = tq_get_vector(view, TQ_Tensor_shape);
    tq_quantization q = tq_tensor_quantization(view);
    bool sparse = tq_get_table(view, TQ_Tensor_sparsity).at && tq_tensor_is_constant(model, view);
    PyObject *dict = PyDict_Copy(state->details_template);
    if (!dict)
        return NULL;
    int failed = tq_py_set(dict, state->key.name, name_of(view));
    failed |= tq_py_set(dict, state->key.index, PyLong_FromUnsignedLong(((ItemObject *)tensor)->index));
    failed |= tq_py_set(dict, state->key.shape, tq_py_array_i32(&shape));
    failed |= tq_py_set(dict, state->key.shape_signature, signature_of(model, view, &shape));
    failed |=
        tq_py_set(dict, state->key.dtype, Py_XNewRef(tq_py_details_class(state, tq_get_int(view, TQ_Tensor_type))));
    failed |= tq_py_set(dict, state->key.quantization, legacy_tuple(state, &q));
    failed |= tq_py_set(dict, state->key.quantization_parameters, parameters_of(state, tensor, shared, view, &q));
    failed |= tq_py_set(dict, state->key.sparsity_parameters, sparse ? tq_py_sparsity(state, view) : PyDict_New());
    if (failed)
        Py_CLEAR(dict);
    return dict;
}

PyObject *tq_py_details(ModelObject *model, size_t subgraph, tq_py_details_of which)
{
    tq_state *state = tq_state_of((PyObject *)model);
    tq_subgraph view = tq_model_subgraph(&model->model, subgraph);
    const tq_vector *chosen = which == TQ_PY_INPUTS ? &view.inputs : &view.outputs;
    uint32_t count = which == TQ_PY_ALL_TENSORS ? view.tensors.count : chosen->count;
    PyObject *list = PyList_New(0), *item = tq_py_item(state->Tensor, model, subgraph, 0), *shared = PyDict_New();
    for (uint32_t i = 0; list && item && shared && i < count; i++) {
        int64_t index = which == TQ_PY_ALL_TENSORS ? (int64_t)i : tq_vector_i32(chosen, i);
        if (index < 0 || index >= view.tensors.count)
            continue;
        ((ItemObject *)item)->index = (uint32_t)index; /* one object for all tensors; no one else has a reference */
        tq_table tensor = tq_vector_table(&view.tensors, (size_t)index);
        PyObject *dict = details_of(state, item, shared, &tensor);
        if (!dict || PyList_Append(list, dict) < 0 || tq_py_hears(i) < 0)
            Py_CLEAR(list);
        Py_XDECREF(dict);
    }
    if (!item || !shared)
        Py_CLEAR(list);
    Py_XDECREF(item);
    Py_XDECREF(shared);
    return list;
}

/* ---- the templates ---- */

int tq_py_add_details(PyObject *module, tq_state *state)
{
    (void)module;
    PyObject *parameters = state->parameters_template = PyDict_New();
    PyObject *details = state->details_template = PyDict_New();
    PyObject *no_f32 = tq_py_empty_array(NPY_FLOAT32), *no_i32 = tq_py_empty_array(NPY_INT32);
    state->no_scale = Py_BuildValue("(di)", 0.0, 0);
    int failed = !parameters || !details || !no_f32 || !no_i32 || !state->no_scale;
    struct {
        PyObject *dict, *key, *value;
    } rows[] = {
        {details, state->key.name, Py_None},
        {details, state->key.index, Py_None},
        {details, state->key.shape, Py_None},
        {details, state->key.shape_signature, Py_None},
        {details, state->key.dtype, Py_None},
        {details, state->key.quantization, Py_None},
        {details, state->key.quantization_parameters, Py_None},
        {details, state->key.sparsity_parameters, Py_None},
        {parameters, state->key.scales, no_f32},
        {parameters, state->key.zero_points, no_i32},
        {parameters, state->key.quantized_dimension, Py_False},
        {parameters, state->key.block_size, Py_False},
        {parameters, state->key.min, no_f32},
        {parameters, state->key.max, no_f32},
        {parameters, state->key.range_min, no_f32},
        {parameters, state->key.range_max, no_f32},
    };
    for (size_t i = 0; !failed && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value == Py_False)
            failed = tq_py_set(rows[i].dict, rows[i].key, PyLong_FromLong(0));
        else
            failed = PyDict_SetItem(rows[i].dict, rows[i].key, rows[i].value);
    Py_XDECREF(no_f32);
    Py_XDECREF(no_i32);
    return failed ? -1 : 0;
}
