/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor.dequantized(): which scale belongs to which element, and the real values.
 */
#include "kernels/arrays/arrays.h"
#include "model/quantization.h"
#include "python/model/data.h"
#include "python/errors.h"
#include "python/model/parameter_values.h"
#include "quant/dequantize.h"

/* Everything that the dequantizer needs, held as contiguous arrays. */
typedef struct {
    PyObject *scale;      /* float32 */
    PyObject *zero_point; /* int64 */
    tq_scale_map map;
} parameters;

static void release(parameters *p)
{
    Py_CLEAR(p->scale);
    Py_CLEAR(p->zero_point);
}

/* Blocks lie along the last dimension, as LiteRT's FULLY_CONNECTED and EMBEDDING_LOOKUP read them; every
   other dimension has scales of its own. */
static tq_status map_blocks(int rank, const int64_t *dims, int32_t block_size, tq_scale_map *map, tq_error *error)
{
    int32_t axes[TQ_SCALE_MAP_MAX_RANK];
    if (block_size <= 0 || rank == 0)
        return tq_fail(error, TQ_BAD_QUANTIZATION, TQ_NO_OFFSET, "block size %d in a tensor of rank %d", block_size,
                       rank);
    for (int d = 0; d < rank; d++)
        axes[d] = d;
    return tq_scale_map_along(rank, dims, rank, axes, block_size, map, error);
}

static tq_status map_axes(int rank, const int64_t *dims, const tq_quantization *q, tq_scale_map *map, tq_error *error)
{
    int32_t axes[TQ_SCALE_MAP_MAX_RANK];
    int count = q->quantized_dimensions.count <= TQ_SCALE_MAP_MAX_RANK ? (int)q->quantized_dimensions.count : 0;
    for (int i = 0; i < count; i++)
        axes[i] = tq_vector_i32(&q->quantized_dimensions, (size_t)i);
    return tq_scale_map_along(rank, dims, count, axes, q->block_size, map, error);
}

static tq_status make_map(const tq_quantization *q, int rank, const int64_t *dims, tq_scale_map *map, tq_error *error)
{
    switch (q->kind) {
    case TQ_QUANTIZATION_PER_TENSOR: return tq_scale_map_per_tensor(rank, dims, map, error);
    case TQ_QUANTIZATION_PER_AXIS: {
        /* tflite-micro's person_detect keeps its weights' axis on biases of rank 1: there is only one
           dimension that their scales can belong to */
        int32_t axis = rank == 1 ? 0 : q->quantized_dimension;
        return tq_scale_map_along(rank, dims, 1, &axis, 0, map, error);
    }
    case TQ_QUANTIZATION_BLOCKWISE: return map_blocks(rank, dims, q->block_size, map, error);
    case TQ_QUANTIZATION_MULTI_AXIS: return map_axes(rank, dims, q, map, error);
    default: return tq_fail(error, TQ_BAD_QUANTIZATION, TQ_NO_OFFSET, "its quantized values have no scale");
    }
}

/* Fills `p`, which release() ends; 0, or -1 with an exception. */
static int find_parameters(ItemObject *tensor, int rank, const npy_intp *shape, parameters *p)
{
    tq_table view = tq_py_tensor_table(tensor);
    tq_quantization q = tq_tensor_quantization(&view);
    int64_t dims[TQ_SCALE_MAP_MAX_RANK];
    tq_error error;
    for (int d = 0; d < rank; d++)
        dims[d] = shape[d];
    if (make_map(&q, rank, dims, &p->map, &error) != TQ_OK) {
        tq_py_raise_at(tensor, &error);
        return -1;
    }
    if (tq_py_tensor_scales(tensor, &q, &p->scale, &p->zero_point) < 0)
        return -1;
    uint64_t scales = (uint64_t)PyArray_SIZE((PyArrayObject *)p->scale);
    uint64_t zeros = (uint64_t)PyArray_SIZE((PyArrayObject *)p->zero_point);
    if (scales == p->map.scales && (zeros <= 1 || zeros == scales))
        return 0;
    tq_fail(&error, TQ_BAD_QUANTIZATION, TQ_NO_OFFSET,
            "%llu scales and %llu zero points; shape and %s quantization need %llu", (unsigned long long)scales,
            (unsigned long long)zeros, tq_quantization_kind_name(q.kind), (unsigned long long)p->map.scales);
    tq_py_raise_at(tensor, &error);
    return -1;
}

/* Codes are stored in whole bytes by now: of 8 bits or more, as the row's sign says. */
static tq_scalar scalar_of(const tq_type_row *row)
{
    int is_unsigned = row->low >= 0;
    switch (row->bits) {
    case 16: return is_unsigned ? TQ_U16 : TQ_I16;
    case 32: return is_unsigned ? TQ_U32 : TQ_I32;
    case 64: return is_unsigned ? TQ_U64 : TQ_I64;
    default: return is_unsigned ? TQ_U8 : TQ_I8;
    }
}

/* The map as the kernels' layout: one run of dimensions with scales of their own, row by row, and those
   before and after it without.  False where it is not so, as with blocks that do not divide. */
static bool layout_of(const tq_scale_map *map, tq_layout *out)
{
    *out = (tq_layout){1, 1, 1, 1};
    int d = 0;
    while (d < map->rank && map->stride[d] == 0)
        out->outer *= (size_t)map->dims[d++];
    uint64_t left = map->scales;
    for (; d < map->rank && map->stride[d] != 0; d++) {
        uint64_t block = map->block[d], own = map->dims[d] / block;
        if (map->dims[d] % block || map->stride[d] * own != left)
            return false;
        left = map->stride[d];
        out->channels *= (size_t)own;
        out->inner = (size_t)block;
        if (block > 1 && d + 1 < map->rank)
            return false;
    }
    for (; d < map->rank && map->stride[d] == 0; d++)
        out->inner *= (size_t)map->dims[d];
    return d == map->rank;
}

/* By kernels, for quantized values of up to 16 bits: they round wider values twice.  False: not possible. */
static bool run_kernel(tq_scalar type, const void *codes, const parameters *p, const int64_t *zero_point,
                       uint64_t zeros, float *out)
{
    static const tq_element elements[] = {[TQ_I8] = TQ_i8, [TQ_U8] = TQ_u8, [TQ_I16] = TQ_i16, [TQ_U16] = TQ_u16};
    tq_array_job job = {.in = codes, .out = out, .out_type = TQ_f32, .threads = 1};
    int32_t zero = zeros ? (int32_t)zero_point[0] : 0;
    for (uint64_t i = 0; i < zeros; i++)
        if (zero_point[i] != zero)
            return false; /* not one for all, which is rare, or more than 32 bits */
    if (type > TQ_U16 || !layout_of(&p->map, &job.layout))
        return false;
    job.in_type = elements[type];
    tq_column_f32 scale = {PyArray_DATA((PyArrayObject *)p->scale), p->map.scales > 1};
    tq_column_i32 zero_points = {&zero, false};
    return tq_dequantize_array(&job, scale, zero_points, NULL) == TQ_OK;
}

static PyObject *from_codes(ItemObject *tensor, PyArrayObject *codes, const tq_type_row *row)
{
    parameters p = {NULL, NULL, {0}};
    int rank = PyArray_NDIM(codes);
    PyObject *out = NULL;
    if (find_parameters(tensor, rank, PyArray_DIMS(codes), &p) == 0)
        out = PyArray_SimpleNew(rank, PyArray_DIMS(codes), NPY_FLOAT32);
    if (out) {
        const float *scale = PyArray_DATA((PyArrayObject *)p.scale);
        const int64_t *zero_point = PyArray_DATA((PyArrayObject *)p.zero_point);
        uint64_t zeros = (uint64_t)PyArray_SIZE((PyArrayObject *)p.zero_point);
        float *values = PyArray_DATA((PyArrayObject *)out);
        const void *data = PyArray_DATA(codes);
        Py_BEGIN_ALLOW_THREADS
        if (!run_kernel(scalar_of(row), data, &p, zero_point, zeros, values))
            tq_dequantize_values(scalar_of(row), data, &p.map, scale, zero_point, zeros, values);
        Py_END_ALLOW_THREADS
    }
    release(&p);
    return out;
}

/* The array, or a copy where its numbers have the other byte order: those of files are little-endian. */
static PyObject *in_native_order(PyArrayObject *codes)
{
    if (PyArray_ISNOTSWAPPED(codes))
        return Py_NewRef(codes);
    PyArray_Descr *native = PyArray_DescrNewByteorder(PyArray_DESCR(codes), NPY_NATIVE);
    return native ? PyArray_FromArray(codes, native, NPY_ARRAY_C_CONTIGUOUS) : NULL;
}

PyObject *tq_py_tensor_dequantized(ItemObject *tensor)
{
    tq_table view = tq_py_tensor_table(tensor);
    const tq_type_row *row = tq_type(tq_get_int(&view, TQ_Tensor_type));
    tq_error error;
    if (!row || (row->kind != TQ_KIND_INTEGER && row->kind != TQ_KIND_FLOAT)) {
        tq_fail(&error, TQ_BAD_TYPE, TQ_NO_OFFSET, "type %s has no real values", row ? row->name : "(unknown)");
        return tq_py_raise_at(tensor, &error);
    }
    PyObject *array = tq_py_tensor_densify(tensor), *out = NULL;
    if (!array)
        return NULL;
    if (array == Py_None) {
        tq_fail(&error, TQ_DATA_SIZE, TQ_NO_OFFSET, "it is no constant: its buffer is empty");
        tq_py_raise_at(tensor, &error);
    } else if (row->kind == TQ_KIND_FLOAT) {
        out = PyArray_CastToType((PyArrayObject *)array, PyArray_DescrFromType(NPY_FLOAT32), 0);
    } else {
        PyObject *codes = in_native_order((PyArrayObject *)array);
        out = codes ? from_codes(tensor, (PyArrayObject *)codes, row) : NULL;
        Py_XDECREF(codes);
    }
    Py_DECREF(array);
    return out;
}
