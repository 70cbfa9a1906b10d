/* SPDX-License-Identifier: Apache-2.0
 *
 * STABLEHLO_RNG_BIT_GENERATOR: a state of 2 or 3 UINT64 to the next state and random bits.  The file gives the shape of
 * the bits, in elements of 32 or 64 bits.
 *
 *   THREEFRY           state: key, counter; 2 values of Threefry 2x32-20 at a time
 *   PHILOX, DEFAULT    state: key, counter, and the counter's upper half, by default the key; 4 values at a time
 * Only the counter's lower two 32-bit values are incremented.
 *
 * Source: LiteRT f6745779, tflite/kernels/rng_bit_generator.cc, rng_util.cc; Salmon and others, 2011.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/random/philox.h"

static uint32_t rotate_left(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

static void threefry(const uint32_t counter[2], const uint32_t key[2], uint32_t out[2])
{
    static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
    uint32_t a = counter[0] + keys[0], b = counter[1] + keys[1];
    for (uint32_t group = 1; group <= 5; group++) {
        for (int i = 0; i < 4; i++) {
            a += b;
            b = rotate_left(b, rotations[(group - 1) % 2][i]) ^ a;
        }
        a += keys[group % 3];
        b += keys[(group + 1) % 3] + group;
    }
    out[0] = a;
    out[1] = b;
}

static tq_status eval_bits(tq_node *node, tq_error *error)
{
    size_t work = 0;
    (void)error;
    bool is_threefry = *(const bool *)node->state;
    size_t values = node->out[1]->bytes / sizeof(uint32_t), step = is_threefry ? 2 : 4;
    uint32_t state[6] = {0}, random[4];
    memcpy(state, node->in[0]->data, node->in[0]->bytes);
    bool whole = node->in[0]->bytes == sizeof state;
    uint32_t counter[4] = {state[2], state[3], state[whole ? 4 : 0], state[whole ? 5 : 1]};
    for (size_t i = 0; i < values && !tq_stop_count(&work, 16); i += step) {
        if (is_threefry)
            threefry(counter, state, random);
        else
            tq_philox(counter, state, random);
        size_t n = values - i < step ? values - i : step;
        memcpy((uint32_t *)node->out[1]->data + i, random, n * sizeof *random);
        if (++counter[0] == 0)
            ++counter[1];
    }
    state[2] = counter[0];
    state[3] = counter[1];
    memcpy(node->out[0]->data, state, node->out[0]->bytes);
    return TQ_OK;
}

tq_status tq_prepare_rng_bit_generator(tq_node *node, tq_error *error)
{
    bool *is_threefry = NULL;
    int64_t algorithm = tq_get_int(&node->options.table, TQ_StablehloRngBitGeneratorOptions_algorithm);
    TQ_TRY(tq_check_input(node, 0, TQ_T(UINT64), error));
    TQ_TRY(tq_check_rank(node, 0, 1, 1, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_output(node, 1, TQ_T(INT32) | TQ_T(INT64) | TQ_T(UINT32) | TQ_T(UINT64), error));
    if (algorithm < TQ_RngAlgorithm_DEFAULT || algorithm > TQ_RngAlgorithm_THREEFRY)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has algorithm %lld, which is none", (long long)algorithm);
    int32_t count = node->in[0]->shape.dims[0];
    if (count != 2 && (count != 3 || algorithm == TQ_RngAlgorithm_THREEFRY))
        return tq_input_fail(node, 0, error, "is a state of %d; it needs 2%s", (int)count,
                             algorithm == TQ_RngAlgorithm_THREEFRY ? "" : " or 3");
    TQ_TRY(tq_node_state(node, sizeof *is_threefry, &is_threefry, error));
    *is_threefry = algorithm == TQ_RngAlgorithm_THREEFRY;
    tq_shape shape = node->out[1]->shape; /* the file's */
    node->eval = eval_bits;
    TQ_TRY(tq_output_shape(node, 0, &node->in[0]->shape, error));
    return tq_output_shape(node, 1, &shape, error);
}
