/* SPDX-License-Identifier: Apache-2.0
 *
 * HASHTABLE_LOOKUP: looks up INT32 values in ascending keys.  For a value that is a key, the output has the row of the
 * key's index and the hit 1; for any other value a row of zeros, or an empty string, and the hit 0.
 *
 * Source: LiteRT f6745779, tflite/kernels/hashtable_lookup.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/movement/movement.h"

/* The index of a key; -1: not found. */
static int64_t find_key(const tq_tensor *keys, int32_t key)
{
    const int32_t *all = keys->data;
    size_t low = 0, high = tq_tensor_count(keys);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (all[middle] == key)
            return (int64_t)middle;
        if (all[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static int64_t find_item(const tq_node *node, size_t i)
{
    return find_key(node->in[1], ((const int32_t *)node->in[0]->data)[i]);
}

static size_t string_of(const void *context, size_t i)
{
    int64_t at = find_item(context, i);
    return at < 0 ? SIZE_MAX : (size_t)at;
}

static void copy_row(const tq_node *node, size_t i, int64_t at)
{
    const tq_tensor *values = node->in[2];
    size_t row = tq_shape_span(&values->shape, 1, values->shape.rank) * tq_element_bytes(values->type);
    char *to = (char *)node->out[0]->data + i * row;
    if (at >= 0 && row > 0)
        tq_copy(to, (const char *)values->data + (size_t)at * row, row);
    else if (row > 0)
        tq_fill(to, 0, row);
}

static tq_status eval_lookup(tq_node *node, tq_error *error)
{
    size_t work = 0;
    bool strings = node->in[2]->type == TQ_TensorType_STRING;
    uint8_t *hits = node->out[1]->data;
    const size_t count = tq_tensor_count(node->in[0]);
    for (size_t i = 0; i < count && !tq_stop_count(&work, 16); i++) {
        int64_t at = find_item(node, i);
        hits[i] = at >= 0;
        if (!strings)
            copy_row(node, i, at);
    }
    return strings ? tq_output_strings(node, 0, &node->in[0]->shape, node->in[2], string_of, node, error) : TQ_OK;
}

tq_status tq_prepare_hashtable_lookup(tq_node *node, tq_error *error)
{
    for (int i = 0; i < 2; i++) {
        TQ_TRY(tq_check_input(node, i, TQ_T(INT32), error));
        TQ_TRY(tq_check_rank(node, i, 1, 1, error));
    }
    TQ_TRY(tq_check_rank(node, 2, 1, TQ_DIMS, error));
    TQ_TRY(tq_check_output_like(node, 0, 2, error));
    TQ_TRY(tq_check_output(node, 1, TQ_T(UINT8), error));
    tq_shape shape = node->in[2]->shape, hits = node->in[0]->shape;
    if (node->in[1]->shape.dims[0] != shape.dims[0])
        return tq_input_fail(node, 1, error, "has %d keys for %d rows", (int)node->in[1]->shape.dims[0],
                             (int)shape.dims[0]);
    if (tq_move_bytes(node->in[2]) == 0 || (node->in[2]->type == TQ_TensorType_STRING && shape.rank != 1))
        return tq_input_fail(node, 2, error, "is %s, which is not looked up", tq_type_name(node->in[2]->type));
    shape.dims[0] = hits.dims[0];
    node->eval = eval_lookup;
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    return tq_output_shape(node, 1, &hits, error);
}
