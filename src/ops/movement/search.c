/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements found by their values.
 *
 *     WHERE     the positions of all that are not 0, in order, as rows of INT64
 *     UNIQUE    the different elements of a vector, in the order in which they first occur, and for each
 *               element which of these it is; -0 equals 0, and a NaN equals NaNs of the same bits
 *     TOPK_V2   the k greatest of each row and their places; of equal ones the first, NaN below all
 *
 * Source: LiteRT f6745779, tflite/kernels/{where,unique,topk_v2}.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/movement/movement.h"

/* ---- WHERE ---- */

static bool is_set(const tq_tensor *tensor, size_t i)
{
    switch (tensor->type) {
    case TQ_TensorType_FLOAT32: return ((const float *)tensor->data)[i] != 0;
    case TQ_TensorType_UINT32: return ((const uint32_t *)tensor->data)[i] != 0;
    default: return tq_integer_at(tensor, i) != 0;
    }
}

static tq_status where_shape(tq_node *node, tq_error *error)
{
    size_t count = 0, all = tq_tensor_count(node->in[0]);
    TQ_EACH(i, all)
        count += is_set(node->in[0], i);
    tq_shape shape = {2, {0, node->in[0]->shape.rank}};
    TQ_TRY(tq_dim_of(node, (int64_t)count, &shape.dims[0], error));
    return tq_output_shape(node, 0, &shape, error);
}

static tq_status eval_where(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_shape *shape = &node->in[0]->shape;
    int64_t *to = node->out[0]->data;
    const size_t count = tq_tensor_count(node->in[0]);
    TQ_EACH(i, count) {
        if (!is_set(node->in[0], i))
            continue;
        size_t rest = i;
        for (int d = shape->rank - 1; d >= 0; d--) {
            to[d] = (int64_t)(rest % (size_t)shape->dims[d]);
            rest /= (size_t)shape->dims[d];
        }
        to += shape->rank;
    }
    return TQ_OK;
}

tq_status tq_prepare_where(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(BOOL) | TQ_T(FLOAT32) | TQ_T(INT64) | TQ_T(INT32) | TQ_T(INT16) | TQ_T(INT8) |
                                       TQ_T(UINT8) | TQ_T(UINT32), error));
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT64), error));
    node->eval = eval_where;
    return tq_shape_from_values(node, 1u << 0, where_shape, error);
}

/* ---- UNIQUE ---- */

/* A hash table of places: 0 is free, p + 1 is the first occurrence at p of the p-th element.  It has more than
   twice as many slots as there are elements, so that a search ends. */
typedef struct unique {
    size_t slots; /* a power of two */
} unique;

static uint64_t key_of(const tq_tensor *tensor, size_t i)
{
    uint64_t key = 0;
    size_t bytes = tq_element_bytes(tensor->type);
    memcpy(&key, (const char *)tensor->data + i * bytes, bytes);
    if (tensor->type == TQ_TensorType_FLOAT32 && ((const float *)tensor->data)[i] == 0)
        key = 0;
    return key;
}

static tq_status eval_unique(tq_node *node, tq_error *error)
{
    const unique *u = node->state;
    const tq_tensor *in = node->in[0], *index = node->out[1];
    size_t count = tq_tensor_count(in), found = 0, bytes = tq_element_bytes(in->type);
    uint32_t *slots = node->scratch, *number = slots + u->slots, *first = number + count;
    tq_fill(slots, 0, u->slots * sizeof *slots);
    if (tq_stop_now())
        return TQ_INTERRUPTED; /* slots hold anything */
    size_t looks = 0;
    TQ_EACH(i, count) {
        uint64_t key = key_of(in, i);
        size_t slot = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (u->slots - 1);
        while (slots[slot] && key_of(in, slots[slot] - 1) != key) {
            slot = (slot + 1) & (u->slots - 1);
            if (++looks % TQ_CHUNK == 0 && tq_stop_after(TQ_CHUNK)) /* keys may be such that all meet in one slot */
                return TQ_INTERRUPTED;
        }
        if (!slots[slot]) {
            slots[slot] = (uint32_t)i + 1;
            number[i] = (uint32_t)found;
            first[found++] = (uint32_t)i;
        }
        uint32_t which = number[slots[slot] - 1];
        if (index->type == TQ_TensorType_INT64)
            ((int64_t *)index->data)[i] = which;
        else
            ((int32_t *)index->data)[i] = (int32_t)which;
    }
    tq_shape shape = {1, {(int32_t)found}};
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    TQ_EACH(k, found)
        memcpy((char *)node->out[0]->data + k * bytes, (const char *)in->data + first[k] * bytes, bytes);
    return TQ_OK;
}

tq_status tq_prepare_unique(tq_node *node, tq_error *error)
{
    unique *u = NULL;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16) | TQ_T(INT32) | TQ_T(INT64),
                          error));
    TQ_TRY(tq_check_rank(node, 0, 1, 1, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_output(node, 1, TQ_T(INT32) | TQ_T(INT64), error));
    TQ_TRY(tq_node_state(node, sizeof *u, &u, error));
    size_t count = tq_tensor_count(node->in[0]);
    for (u->slots = 4; u->slots <= 2 * count;)
        u->slots *= 2;
    TQ_TRY(tq_node_scratch(node, (u->slots + 2 * count) * sizeof(uint32_t), error));
    tq_output_later(node, 0);
    node->eval = eval_unique;
    return tq_output_shape(node, 1, &node->in[0]->shape, error);
}

/* ---- TOPK_V2 ---- */

/* Whether the a-th of a row comes before the b-th. */
typedef bool (*before_fn)(const void *row, int32_t a, int32_t b);

#define BEFORE(name, type)                                                     \
    static bool before_##name(const void *row, int32_t a, int32_t b)           \
    {                                                                          \
        type x = ((const type *)row)[a], y = ((const type *)row)[b];           \
        return x != y ? x > y : a < b;                                         \
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

/* A heap of places whose last-ranked is on top: sinks the one at `at`. */
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

/* The first k of a row of n, in order.  The order is total, so how it is found does not show. */
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
