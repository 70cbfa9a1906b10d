/* SPDX-License-Identifier: Apache-2.0
 *
 * LSH_PROJECTION: locality sensitive hashing.  A bit of a hash seed is the sign of the sum, over the items of the input's first
 * dimension, of weight * fingerprint(seed, item); the fingerprint is taken for a signed number.
 *
 *   DENSE    [hashes, bits] seeds to hashes * bits bits
 *   SPARSE   to hashes numbers: i * 2^bits + the bits of hash i, the first the highest; in 32 bits, which wrap
 *
 * Source: LiteRT f6745779, tflite/kernels/lsh_projection.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/fingerprint.h"

enum { SEEDS, INPUT, WEIGHTS };

static bool is_positive(const tq_node *node, const uint8_t *seed, uint8_t *key)
{
    const tq_tensor *in = node->in[INPUT];
    const float *weights = node->in_count > WEIGHTS && node->in[WEIGHTS] ? node->in[WEIGHTS]->data : NULL;
    size_t items = (size_t)in->shape.dims[0], bytes = in->bytes / items;
    double sum = 0;
    memcpy(key, seed, sizeof(float));
    for (size_t i = 0; i < items; i++) {
        if (bytes > 0)
            memcpy(key + sizeof(float), (const char *)in->data + i * bytes, bytes);
        double value = (double)(int64_t)tq_fingerprint(key, sizeof(float) + bytes);
        sum += weights ? (double)weights[i] * value : value;
    }
    return sum > 0;
}

static tq_status eval_lsh(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_shape *shape = &node->in[SEEDS]->shape;
    const uint8_t *seeds = node->in[SEEDS]->data;
    bool sparse = tq_get_int(&node->options.table, TQ_LSHProjectionOptions_type) == TQ_LSHProjectionType_SPARSE;
    int32_t *out = node->out[0]->data;
    for (int32_t i = 0; i < shape->dims[0]; i++) {
        uint32_t bits = 0;
        for (int32_t j = 0; j < shape->dims[1]; j++, seeds += sizeof(float)) {
            bool bit = is_positive(node, seeds, node->scratch);
            bits = bits << 1 | bit;
            if (!sparse)
                *out++ = bit;
        }
        /* 1 << 32 is 1 on x86, as LiteRT's shift of 32 bits has it */
        if (sparse)
            *out++ = (int32_t)(bits + (uint32_t)i * (UINT32_C(1) << (shape->dims[1] & 31)));
    }
    return TQ_OK;
}

tq_status tq_prepare_lsh_projection(tq_node *node, tq_error *error)
{
    int64_t type = tq_get_int(&node->options.table, TQ_LSHProjectionOptions_type);
    TQ_TRY(tq_check_counts(node, 2, 3, 1, 1, error));
    TQ_TRY(tq_check_input(node, SEEDS, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, SEEDS, 2, 2, error));
    TQ_TRY(tq_check_rank(node, INPUT, 1, TQ_DIMS, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT32), error));
    const tq_tensor *in = node->in[INPUT];
    const int32_t *seeds = node->in[SEEDS]->shape.dims;
    size_t element = tq_element_bytes(in->type);
    if (seeds[1] > 32)
        return tq_input_fail(node, SEEDS, error, "has %d bits a hash; 32 are the most", (int)seeds[1]);
    if (element == 0 || in->shape.dims[0] < 1)
        return tq_input_fail(node, INPUT, error, "is %s with %d items; it needs numbers, and at least one item",
                             tq_type_name(in->type), (int)in->shape.dims[0]);
    if (node->in_count > WEIGHTS && node->in[WEIGHTS]) {
        TQ_TRY(tq_check_input(node, WEIGHTS, TQ_T(FLOAT32), error));
        TQ_TRY(tq_check_rank(node, WEIGHTS, 1, 1, error));
        if (node->in[WEIGHTS]->shape.dims[0] != in->shape.dims[0])
            return tq_input_fail(node, WEIGHTS, error, "has %d weights for %d items",
                                 (int)node->in[WEIGHTS]->shape.dims[0], (int)in->shape.dims[0]);
    }
    if (type != TQ_LSHProjectionType_SPARSE && type != TQ_LSHProjectionType_DENSE)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has type %lld; it needs SPARSE or DENSE", (long long)type);
    int64_t count = type == TQ_LSHProjectionType_SPARSE ? seeds[0] : (int64_t)seeds[0] * seeds[1];
    if (count > INT32_MAX)
        return tq_output_fail(node, 0, error, "would have %lld elements", (long long)count);
    TQ_TRY(tq_node_scratch(node, tq_tensor_count(in) / (size_t)in->shape.dims[0] * element + sizeof(float), error));
    tq_shape shape = {1, {(int32_t)count}};
    node->eval = eval_lsh;
    return tq_output_shape(node, 0, &shape, error);
}
