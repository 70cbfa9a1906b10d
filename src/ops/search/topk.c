/* SPDX-License-Identifier: Apache-2.0
 *
 * TOPK_V2: the k greatest elements of each row and their indices.  Of equal elements the first comes first; NaN is
 * below all others.
 *
 * Source: LiteRT f6745779, tflite/kernels/topk_v2.cc.
 */
#include <string.h>

#include "ops/check.h"

/* Whether element a of a row comes before element b. */
typedef bool (*before_fn)(const void *row, int32_t a, int32_t b);

#define BEFORE(name, type)                                           \
    static bool before_##name(const void *row, int32_t a, int32_t b) \
    {                                                                \
        type x = ((const type *)row)[a], y = ((const type *)row)[b]; \
        return x != y ? x > y : a < b;                               \
    }
BEFORE(i8, int8_t)
BEFORE(u8, uint8_t)
BEFORE(i16, int16_t)
BEFORE(i32, int32_t)
BEFORE(i64, int64_t)

static bool before_f32(const void *row, int32_t a, int32_t b)
{
    float x = ((const float *)row)[a], y = ((const float *)row)[b];
    bool x_nan = x != x, y_nan = y != y;
    return x_nan != y_nan ? y_nan : x > y || (!(x < y) && a < b);
}

static before_fn before_of(int32_t type)
{
    switch (type) {
    case TQ_TensorType_FLOAT32: return before_f32;
    case TQ_TensorType_INT8: return before_i8;
    case TQ_TensorType_UINT8: return before_u8;
    case TQ_TensorType_INT16: return before_i16;
    case TQ_TensorType_INT32: return before_i32;
    default: return before_i64;
    }
}

/* A heap of indices with the last-ranked element on top: sinks the index at `at`. */
static void sink(int32_t *heap, size_t count, size_t at, before_fn before, const void *row)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(row, heap[child], heap[child + 1]))
            child++;
        if (before(row, heap[child], heap[at]))
            break;
        int32_t swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

/* heap[0 .. k): the indices of the first k of n elements, in order.  The order is total, so any algorithm gives the
   same result. */
static void top(int32_t *heap, size_t k, size_t n, before_fn before, const void *row)
{
    size_t work = 0;
    for (size_t i = 0; i < k; i++)
        heap[i] = (int32_t)i;
    for (size_t i = k / 2; i-- > 0 && !tq_stop_count(&work, 4);)
        sink(heap, k, i, before, row);
    for (size_t i = k; i < n && (i % TQ_CHUNK || !tq_stop_count(&work, TQ_CHUNK)); i++)
        if (before(row, (int32_t)i, heap[0])) {
            heap[0] = (int32_t)i;
            sink(heap, k, 0, before, row);
        }
    for (size_t left = k; left > 1 && !tq_stop_count(&work, 16); left--) {
        int32_t last = heap[0];
        heap[0] = heap[left - 1];
        heap[left - 1] = last;
        sink(heap, left - 1, 0, before, row);
    }
}

static tq_status eval_topk(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_tensor *in = node->in[0], *index = node->out[1];
    size_t n = (size_t)in->shape.dims[in->shape.rank - 1], bytes = tq_element_bytes(in->type);
    size_t k = (size_t)index->shape.dims[in->shape.rank - 1];
    size_t rows = k ? tq_tensor_count(index) / k : 0;
    int32_t *heap = node->scratch;
    for (size_t r = 0; r < rows && !tq_stop_after(n); r++) {
        const char *row = (const char *)in->data + r * n * bytes;
        top(heap, k, n, before_of(in->type), row);
        for (size_t i = 0; i < k; i++) {
            if (node->out[0] != NULL)
                memcpy((char *)node->out[0]->data + (r * k + i) * bytes, row + (size_t)heap[i] * bytes, bytes);
            if (index->type == TQ_TensorType_INT16)
                ((int16_t *)index->data)[r * k + i] = (int16_t)heap[i];
            else
                ((int32_t *)index->data)[r * k + i] = heap[i];
        }
    }
    return TQ_OK;
}

static tq_status topk_shape(tq_node *node, tq_error *error)
{
    tq_shape shape = node->in[0]->shape;
    int32_t *last = &shape.dims[shape.rank - 1];
    int64_t k = tq_integer_at(node->in[1], 0);
    if (k > *last)
        return tq_input_fail(node, 1, error, "is %lld; rows have %d elements", (long long)k, (int)*last);
    *last = k < 0 ? 0 : (int32_t)k;
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    return tq_output_shape(node, 1, &shape, error);
}

tq_status tq_prepare_topk_v2(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16) | TQ_T(INT32) | TQ_T(INT64),
                          error));
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS, error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT16) | TQ_T(INT32), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_output(node, 1, TQ_T(INT16) | TQ_T(INT32), error));
    int32_t n = node->in[0]->shape.dims[node->in[0]->shape.rank - 1];
    if (tq_tensor_count(node->in[1]) != 1)
        return tq_input_fail(node, 1, error, "has %zu elements; it needs 1", tq_tensor_count(node->in[1]));
    if (node->out[1]->type == TQ_TensorType_INT16 && n > INT16_MAX)
        return tq_output_fail(node, 1, error, "is INT16, which cannot number %d elements", (int)n);
    TQ_TRY(tq_node_scratch(node, (uint64_t)n * sizeof(int32_t), error));
    node->eval = eval_topk;
    return tq_shape_from_values(node, 1u << 1, topk_shape, error);
}
