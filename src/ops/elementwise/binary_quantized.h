/* SPDX-License-Identifier: Apache-2.0
 *
 * ADD, SUB, MUL, DIV and SQUARED_DIFFERENCE of quantized values: what add.c, mul.c and div.c share.  Of plain numbers
 * they are rows of binary.def.
 *
 * Where the runtime aborts or loses bits because an output multiplier is 1 or more, the same formula is used with the
 * left shift that it needs (docs/deviations.md).
 */
#ifndef TQ_OPS_ELEMENTWISE_BINARY_QUANTIZED_H
#define TQ_OPS_ELEMENTWISE_BINARY_QUANTIZED_H

#include "ops/elementwise/binary.h"
#include "ops/elementwise/fixed_point_lanes.h"

/* The parameters of two inputs and an output. */
typedef struct tq_pair {
    tq_fixed first, second, output;
    tq_lane_fixed lane_first, lane_second, lane_output;
    int32_t zero_first, zero_second, zero_output;
    int32_t left_shift; /* 2^L */
    int32_t low, high;  /* codes */
    int32_t least, most; /* the same less zero_output */
    /* XNNPACK's */
    int32_t factor_first, factor_second, offset, right;
    float by;
} tq_pair;

/* How states of such nodes begin. */
typedef struct tq_pair_state {
    tq_broadcast walk;
    tq_pair c;
} tq_pair_state;

/* Whether the node's inputs are codes; others are plain numbers.  INT16 of ADD and MUL is plain where it has no scale.
 */
bool tq_pair_is_quantized(const tq_node *node);

/* Two inputs of one type. */
tq_status tq_pair_check_types(const tq_node *node, tq_error *error);

/* Zero points of 0, which INT16 needs. */
tq_status tq_pair_check_symmetric(const tq_node *node, tq_error *error);

/* Whether XNNPACK's rule holds, which is one of 8 bits. */
bool tq_pair_is_xnnpack(const tq_node *node);

/* Gives the node a state of `size` bytes that begins with a tq_pair_state: the walk is planned, zero points and bounds
   are there; the multipliers and what the walk runs are the caller's to set. */
tq_status tq_pair_prepare(tq_node *node, size_t size, tq_error *error);

TQ_BODY int32_t tq_pair_output(int32_t x, const tq_pair *c)
{
    return tq_requantize_fixed(tq_multiply_fixed(x, c->output), c->zero_output, c->low, c->high);
}

TQ_BODY int32_t tq_pair_lane_output(int32_t x, const tq_pair *c)
{
    return tq_lane_quantized(tq_lane_multiply(x, c->lane_output), c->least, c->most, c->zero_output);
}

/* An element function for INT8, UINT8 and INT16: plain, and by lanes for every instruction set. */
#define TQ_PAIR_GENERAL(name, T) TQ_BROADCAST_2(name##_##T, , T##_t, T##_t, T##_t, tq_pair, name(x, y, &p))
#define TQ_PAIR_LANES_OF(name, T, isa, target) \
    TQ_BROADCAST_2(name##_##T##_##isa, target, T##_t, T##_t, T##_t, tq_pair, name(x, y, &p))
#define TQ_PAIR_BYTES(DEFINE, name) DEFINE(name, int8) DEFINE(name, uint8)
#define TQ_PAIR_TYPES(DEFINE, name) TQ_PAIR_BYTES(DEFINE, name) DEFINE(name, int16)
#if TQ_X86
#define TQ_PAIR_LANES(name, T)                      \
    TQ_PAIR_LANES_OF(name, T, scalar, )             \
    TQ_PAIR_LANES_OF(name, T, avx2, TQ_TARGET_AVX2) \
    TQ_PAIR_LANES_OF(name, T, avx512, TQ_TARGET_AVX512)
#else
#define TQ_PAIR_LANES(name, T) TQ_PAIR_LANES_OF(name, T, scalar, )
#endif

/* The functions of each type. */
typedef struct tq_pair_loops {
    tq_broadcast_fn plain[3], lanes[3][TQ_ISAS];
} tq_pair_loops;

#define TQ_PAIR_LOOPS(general, fast)                                                                      \
    {                                                                                                     \
        {general##_int8, general##_uint8, general##_int16},                                               \
        {                                                                                                 \
            TQ_ISA_FUNCTIONS(fast##_int8), TQ_ISA_FUNCTIONS(fast##_uint8), TQ_ISA_FUNCTIONS(fast##_int16) \
        }                                                                                                 \
    }

/* The function for a type: of `lanes` where they fit. */
tq_broadcast_fn tq_pair_choose(const tq_pair_loops *of, int32_t type, bool fits);

#endif
