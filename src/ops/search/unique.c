/* SPDX-License-Identifier: Apache-2.0
 *
 * UNIQUE: the distinct elements of a vector, in the order of their first occurrence, and for each element the index of
 * its equal among them.  -0 equals 0, and a NaN equals NaNs of the same bits.
 * Source: LiteRT f6745779, tflite/kernels/unique.cc.
 */
#include <string.h>

#include "ops/check.h"

/* A hash table of element indices: 0 is a free slot, i + 1 a value that first occurs at element i.  It has more than
   twice as many slots as there are elements, so a search ends. */
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
    uint32_t *slots = node->scratch, *output_index = slots + u->slots, *first = output_index + count;
    tq_fill(slots, 0, u->slots * sizeof *slots);
    if (tq_stop_now())
        return TQ_INTERRUPTED; /* the slots are not initialized */
    size_t probes = 0;
    TQ_EACH (i, count) {
        uint64_t key = key_of(in, i);
        size_t slot = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (u->slots - 1);
        while (slots[slot] && key_of(in, slots[slot] - 1) != key) {
            slot = (slot + 1) & (u->slots - 1);
            if (++probes % TQ_CHUNK == 0 && tq_stop_after(TQ_CHUNK)) /* all keys may have the same slot */
                return TQ_INTERRUPTED;
        }
        if (!slots[slot]) {
            slots[slot] = (uint32_t)i + 1;
            output_index[i] = (uint32_t)found;
            first[found++] = (uint32_t)i;
        }
        uint32_t at = output_index[slots[slot] - 1];
        if (index->type == TQ_TensorType_INT64)
            ((int64_t *)index->data)[i] = at;
        else
            ((int32_t *)index->data)[i] = (int32_t)at;
    }
    tq_shape shape = {1, {(int32_t)found}};
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    TQ_EACH (k, found)
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
