/* SPDX-License-Identifier: Apache-2.0
 *
 * TOPK_V2: the k greatest elements of each row and their indices.  Of equal elements the first comes first; NaN is
 * below all others.
 *
 * Source: LiteRT f6745779, tflite/kernels/topk_v2.cc.
 */
#include <string.h>

#include "kernels/isa.h"
#include "ops/check.h"

/* ---- keys: integers in the order of elements, NaN the least, -0 equal to 0 ---- */

enum { BLOCK = 64 };

TQ_BODY int64_t key_f32(float x)
{
    const float y = x + 0.0f; /* -0 to 0 */
    int32_t bits;
    memcpy(&bits, &y, sizeof bits);
    bits ^= (bits >> 31) & INT32_MAX;
    return x != x ? INT64_MIN : bits;
}

/* Writes the keys of n <= BLOCK elements; whether one is above limit. */
#define KEYS(name, target, type, key)                                                              \
    target static bool name(const void *row, size_t first, size_t n, int64_t limit, int64_t *keys) \
    {                                                                                              \
        const type *from = (const type *)row + first;                                              \
        int64_t above = 0;                                                                         \
        for (size_t i = 0; i < n; i++) {                                                           \
            const type x = from[i];                                                                \
            keys[i] = key;                                                                         \
            above |= keys[i] > limit;                                                              \
        }                                                                                          \
        return above != 0;                                                                         \
    }
TQ_ISA_DEFINE(KEYS, keys_f32, float, key_f32(x))
TQ_ISA_DEFINE(KEYS, keys_i8, int8_t, x)
TQ_ISA_DEFINE(KEYS, keys_u8, uint8_t, x)
TQ_ISA_DEFINE(KEYS, keys_i16, int16_t, x)
TQ_ISA_DEFINE(KEYS, keys_i32, int32_t, x)
TQ_ISA_DEFINE(KEYS, keys_i64, int64_t, x)

typedef bool (*keys_fn)(const void *row, size_t first, size_t n, int64_t limit, int64_t *keys);

static keys_fn keys_of(int32_t type)
{
    static const struct {
        int32_t type;
        keys_fn keys[TQ_ISAS];
    } rows[] = {
        {TQ_TensorType_FLOAT32, TQ_ISA_FUNCTIONS(keys_f32)}, {TQ_TensorType_INT8, TQ_ISA_FUNCTIONS(keys_i8)},
        {TQ_TensorType_UINT8, TQ_ISA_FUNCTIONS(keys_u8)},    {TQ_TensorType_INT16, TQ_ISA_FUNCTIONS(keys_i16)},
        {TQ_TensorType_INT32, TQ_ISA_FUNCTIONS(keys_i32)},   {TQ_TensorType_INT64, TQ_ISA_FUNCTIONS(keys_i64)},
    };
    size_t i = 0;
    while (rows[i].type != type) /* prepare has checked it */
        i++;
    return rows[i].keys[tq_isa()];
}

/* ---- the greatest ---- */

typedef struct entry {
    int64_t key;
    int32_t index;
} entry;

static bool before(entry a, entry b)
{
    return a.key > b.key || (a.key == b.key && a.index < b.index);
}

/* A heap with the last-ranked entry on top: sinks `moved` from `at`. */
static void sink(entry *heap, size_t count, size_t at, entry moved)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(heap[child], heap[child + 1]))
            child++;
        if (before(heap[child], moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* heap[0 .. k): the first k >= 1 of n elements, in order.  The order is total, so any algorithm gives the same result.
   An element that equals the heap's top does not come before it, since its index is greater. */
static void top(entry *heap, size_t k, size_t n, keys_fn keys, const void *row)
{
    size_t work = 0;
    int64_t block[BLOCK];
    for (size_t i = 0; i < k; i++) {
        if (i % BLOCK == 0)
            keys(row, i, k - i < BLOCK ? k - i : BLOCK, 0, block);
        heap[i] = (entry){block[i % BLOCK], (int32_t)i};
    }
    for (size_t i = k / 2; i-- > 0 && !tq_stop_count(&work, 4);)
        sink(heap, k, i, heap[i]);
    for (size_t first = k; first < n && !tq_stop_count(&work, BLOCK / 4); first += BLOCK) {
        const size_t count = n - first < BLOCK ? n - first : BLOCK;
        if (!keys(row, first, count, heap[0].key, block))
            continue;
        for (size_t i = 0; i < count; i++)
            if (block[i] > heap[0].key)
                sink(heap, k, 0, (entry){block[i], (int32_t)(first + i)});
    }
    for (size_t left = k; left > 1 && !tq_stop_count(&work, 16); left--) {
        const entry last = heap[0];
        sink(heap, left - 1, 0, heap[left - 1]);
        heap[left - 1] = last;
    }
}

static tq_status eval_topk(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_tensor *in = node->in[0], *index = node->out[1];
    size_t n = (size_t)in->shape.dims[in->shape.rank - 1], bytes = tq_element_bytes(in->type);
    size_t k = (size_t)index->shape.dims[in->shape.rank - 1];
    size_t rows = k ? tq_tensor_count(index) / k : 0;
    entry *heap = node->scratch;
    const keys_fn keys = keys_of(in->type);
    for (size_t r = 0; r < rows && !tq_stop_after(n); r++) {
        const char *row = (const char *)in->data + r * n * bytes;
        top(heap, k, n, keys, row);
        for (size_t i = 0; i < k; i++) {
            if (node->out[0] != NULL)
                memcpy((char *)node->out[0]->data + (r * k + i) * bytes, row + (size_t)heap[i].index * bytes, bytes);
            if (index->type == TQ_TensorType_INT16)
                ((int16_t *)index->data)[r * k + i] = (int16_t)heap[i].index;
            else
                ((int32_t *)index->data)[r * k + i] = heap[i].index;
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
    TQ_TRY(tq_node_scratch(node, (uint64_t)n * sizeof(entry), error));
    node->eval = eval_topk;
    return tq_shape_from_values(node, 1u << 1, topk_shape, error);
}
