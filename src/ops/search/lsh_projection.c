/* SPDX-License-Identifier: Apache-2.0
 *
 * LSH_PROJECTION: bits of locality-sensitive hashes.
 *
 * Inputs: seeds [hashes, bits] of FLOAT32, items [n, ...] of any bytes, weights [n] of FLOAT32 (may be left out).
 * Bit (h, b) is 1 if the sum over i of weight[i] * double(int64(Fingerprint64(seed[h, b] ++ item[i]))) is above 0.
 * DENSE outputs the bits; SPARSE outputs for each hash h its bits as an integer, plus h * 2^bits.
 * Source: LiteRT f6745779, tflite/kernels/lsh_projection.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/search/fingerprint.h"

/* Scratch holds a seed followed by an item. */
static int hash_bit(const tq_node *node, float seed)
{
    const tq_tensor *items = node->in[1], *weights = node->in_count > 2 ? node->in[2] : NULL;
    size_t count = (size_t)items->shape.dims[0];
    size_t bytes = tq_tensor_count(items) / count * tq_element_bytes(items->type);
    unsigned char *key = node->scratch;
    double score = 0;
    memcpy(key, &seed, sizeof seed);
    for (size_t i = 0; i < count && !tq_stop_after(8 + bytes); i++) {
        if (bytes > 0)
            memcpy(key + sizeof seed, (const char *)items->data + i * bytes, bytes);
        double value = (double)(int64_t)tq_fingerprint64(key, sizeof seed + bytes);
        score += weights ? (double)((const float *)weights->data)[i] * value : value;
    }
    return score > 0;
}

static tq_status eval_lsh(tq_node *node, tq_error *error)
{
    (void)error;
    const int32_t *dims = node->in[0]->shape.dims;
    const float *seeds = node->in[0]->data;
    bool dense = tq_get_int(&node->options.table, TQ_LSHProjectionOptions_type) == TQ_LSHProjectionType_DENSE;
    int32_t *to = node->out[0]->data;
    for (int32_t h = 0; h < dims[0]; h++) {
        uint64_t number = 0;
        for (int32_t b = 0; b < dims[1]; b++, seeds++) {
            int bit = hash_bit(node, *seeds);
            number = number << 1 | (uint64_t)bit;
            if (dense)
                *to++ = bit;
        }
        if (!dense)
            *to++ = (int32_t)(uint32_t)(number + ((uint64_t)h << dims[1]));
    }
    return TQ_OK;
}

tq_status tq_prepare_lsh_projection(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 2, 2, error));
    TQ_TRY(tq_check_rank(node, 1, 1, TQ_DIMS, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT32), error));
    const tq_shape *seeds = &node->in[0]->shape, *items = &node->in[1]->shape;
    size_t element = tq_element_bytes(node->in[1]->type);
    if (seeds->dims[1] > 32)
        return tq_input_fail(node, 0, error, "has %d bits a hash; at most 32", (int)seeds->dims[1]);
    if (items->dims[0] < 1 || element == 0)
        return tq_input_fail(node, 1, error, "has %d items of %s; it needs 1, of numbers", (int)items->dims[0],
                             tq_type_name(node->in[1]->type));
    if (node->in_count > 2) {
        TQ_TRY(tq_check_input(node, 2, TQ_T(FLOAT32), error));
        TQ_TRY(tq_check_rank(node, 2, 1, 1, error));
        if (node->in[2]->shape.dims[0] != items->dims[0])
            return tq_input_fail(node, 2, error, "has %d weights for %d items", (int)node->in[2]->shape.dims[0],
                                 (int)items->dims[0]);
    }
    int64_t type = tq_get_int(&node->options.table, TQ_LSHProjectionOptions_type);
    if (type != TQ_LSHProjectionType_SPARSE && type != TQ_LSHProjectionType_DENSE)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has type %lld; it needs SPARSE or DENSE", (long long)type);
    tq_shape shape = {1, {seeds->dims[0]}};
    if (type == TQ_LSHProjectionType_DENSE)
        TQ_TRY(tq_dim_of(node, (int64_t)seeds->dims[0] * seeds->dims[1], &shape.dims[0], error));
    TQ_TRY(tq_node_scratch(node, sizeof(float) + tq_shape_span(items, 1, items->rank) * element, error));
    node->eval = eval_lsh;
    tq_node_work(node, tq_tensor_count(node->in[0]), tq_tensor_count(node->in[1]));
    return tq_output_shape(node, 0, &shape, error);
}
