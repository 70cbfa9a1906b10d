/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared parts of add.c, mul.c and div.c: ADD, SUB, MUL, DIV and SQUARED_DIFFERENCE of quantized values.  The same
 * operators of real values are rows of binary.def.
 *
 * Where an output multiplier is 1 or more, the runtime aborts or loses bits.  tq computes the same formula with the
 * left shift that it needs (docs/deviations.md).
 */
#ifndef TQ_OPS_ELEMENTWISE_BINARY_QUANTIZED_H
#define TQ_OPS_ELEMENTWISE_BINARY_QUANTIZED_H

#include "kernels/elementwise/add_8bit.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/fixed_point_lanes.h"

/* The parameters of two inputs and an output.  An operator reads only those of its formula.

   One loop serves INT8 and UINT8: a value of UINT8 less 128 is its byte with the high bit flipped, as INT8.  With
   `flip` the zero points and the bounds here are less by 128, and differences from a zero point stay. */
typedef struct tq_pair {
    tq_fixed first, second, output;
    tq_lane_fixed lane_first, lane_second, lane_output; /* the same multipliers as lanes */
    uint8_t flip; /* UINT8: 128, else 0 */
    int32_t zero_first, zero_second, zero_output;
    int32_t left_shift;  /* 2^L, L from 0 to 20 */
    int32_t negates;     /* -1 for SUB, which adds the negative of its second term; else 0 */
    int32_t low, high;   /* the quantized values that the fused activation lets pass */
    int32_t least, most; /* low - zero_output, high - zero_output */
    /* XNNPACK's rules: ADD and SUB (integers, a right shift from 13 to 30), MUL (a finite float) */
    int32_t factor_first, factor_second, offset, right;
    float by;
    /* ADD and SUB of 8 bits by one sum; `exact` computes what it leaves undecided */
    tq_add_8bit quick;
    tq_add_8bit_fn add;
    /* The reference's MUL by one float32 product, decided where it lies `margin` or more from a step of 2^right; else
       `exact` computes its chunk (mul.c) */
    int32_t margin, below; /* below: the offset for products below 0 */
    tq_broadcast_fn exact;
} tq_pair;

/* The node's state, or its beginning. */
typedef struct tq_pair_state {
    tq_broadcast walk;
    tq_pair p;
    int read; /* the one input that eval reads, where the other's bytes are map[its byte]; -1: eval reads both */
    uint8_t map[256];
} tq_pair_state;

/* Whether input 0 holds quantized values: INT8, UINT8 or INT16.  ADD and MUL take INT16 without a scale as integers.
   False for a node without inputs. */
bool tq_pair_is_quantized(const tq_node *node);

/* Fails unless input 1 has the type of input 0. */
tq_status tq_pair_check_types(const tq_node *node, tq_error *error);

/* Fails unless the zero points of both inputs, and of an INT16 output, are 0, as INT16 needs. */
tq_status tq_pair_check_symmetric(const tq_node *node, tq_error *error);

/* Whether XNNPACK computes the node: numerics "xnnpack" and inputs of 8 bits. */
bool tq_pair_is_xnnpack(const tq_node *node);

/* Gives the node a state of `size` bytes, at least those of tq_pair_state, with which it begins, and sets eval to
   tq_pair_eval: the walk is planned; flip, zero points, low, high, least and most are set.  The caller sets the
   multipliers and walk.run. Fails where a scale is missing, shapes do not broadcast or memory is short. */
tq_status tq_pair_prepare(tq_node *node, size_t size, tq_error *error);

/* Runs the walk; many bytes with one element, or with a function of themselves, by a table of all bytes. */
tq_status tq_pair_eval(tq_node *node, tq_error *error);

/* Says of the output that its bytes are a function of one input's, where the other is a constant of one element.  At
   the end of prepare, for an eval that computes each element alike. */
tq_status tq_pair_note_map(tq_node *node, tq_error *error);

/* clamp(MBQM(x, output multiplier) + zero_output, low, high), for any x. */
TQ_BODY int32_t tq_pair_output(int32_t x, const tq_pair *p)
{
    return tq_requantize_fixed(tq_multiply_fixed(x, p->output), p->zero_output, p->low, p->high);
}

/* The same by lanes, for the x that tq_lane_fits allows. */
TQ_BODY int32_t tq_pair_lane_output(int32_t x, const tq_pair *p)
{
    return tq_lane_quantized(tq_lane_multiply(x, p->lane_output), p->least, p->most, p->zero_output);
}

/* The value of a byte of INT8 or UINT8, and the byte of a value. */
#define TQ_PAIR_VALUE(byte, flip) ((int8_t)((byte) ^ (flip)))
#define TQ_PAIR_BYTE(value, flip) ((uint8_t)(value) ^ (flip))

/* The expression of an element function name(x, y, &p) for bytes x and y and parameters p with a flip. */
#define TQ_PAIR_BYTES(name) TQ_PAIR_BYTE(name(TQ_PAIR_VALUE(x, p.flip), TQ_PAIR_VALUE(y, p.flip), &p), p.flip)

enum { TQ_PAIR_BLOCK = 64 };

/* Elements [at, at + n) of input k, in place or in `copy`, whose other elements then do not matter.  Of stride 0:
   `copy`, which holds its element in every place. */
TQ_BODY const void *tq_pair_block(const tq_broadcast_run *run, int k, size_t at, size_t n, size_t size, void *copy)
{
    if (run->scalar[k])
        return copy;
    const char *from = (const char *)run->in[k] + at * size;
    return n == TQ_PAIR_BLOCK ? from : memcpy(copy, from, n * size);
}

/* A loop by lanes: blocks of TQ_PAIR_BLOCK, which are whole vectors.  The last block is copied, so that short tensors
   and ends take no loop of scalars; so is an element of stride 0, so that one loop serves all. */
#define TQ_PAIR_LANES(loop, target, T, expression)                                            \
    target static void loop(const tq_broadcast_run *run)                                      \
    {                                                                                         \
        const tq_pair p = *(const tq_pair *)run->params;                                      \
        T copies[2][TQ_PAIR_BLOCK] = {{0}}, made[TQ_PAIR_BLOCK];                              \
        for (int k = 0; k < 2; k++)                                                           \
            for (size_t i = 0; run->scalar[k] && i < TQ_PAIR_BLOCK; i++)                      \
                copies[k][i] = *(const T *)run->in[k];                                        \
        for (size_t at = 0; at < run->n; at += TQ_PAIR_BLOCK) {                               \
            const size_t left = run->n - at, n = left < TQ_PAIR_BLOCK ? left : TQ_PAIR_BLOCK; \
            const T *a = tq_pair_block(run, 0, at, n, sizeof *a, copies[0]);                  \
            const T *b = tq_pair_block(run, 1, at, n, sizeof *b, copies[1]);                  \
            for (size_t i = 0; i < TQ_PAIR_BLOCK; i++) {                                      \
                const T x = a[i], y = b[i];                                                   \
                made[i] = (T)(expression);                                                    \
            }                                                                                 \
            if (n == TQ_PAIR_BLOCK)                                                           \
                memcpy((T *)run->out + at, made, sizeof made);                                \
            else                                                                              \
                memcpy((T *)run->out + at, made, n * sizeof *made);                           \
        }                                                                                     \
    }

/* The loop `loop` around an element function, for 8 bits and for INT16. */
#define TQ_PAIR_8BIT(loop, target, name) TQ_PAIR_LANES(loop, target, uint8_t, TQ_PAIR_BYTES(name))
#define TQ_PAIR_16BIT(loop, target, name) TQ_PAIR_LANES(loop, target, int16_t, name(x, y, &p))

/* Both, small: for any multipliers. */
#define TQ_PAIR_GENERAL(name)                                                                  \
    TQ_BROADCAST_2_SMALL(name##_8bit, uint8_t, uint8_t, uint8_t, tq_pair, TQ_PAIR_BYTES(name)) \
    TQ_BROADCAST_2_SMALL(name##_16bit, int16_t, int16_t, int16_t, tq_pair, name(x, y, &p))

/* The loops for 8 bits and for INT16: for any multipliers, and by lanes for each instruction set. */
typedef struct tq_pair_loops {
    tq_broadcast_fn general[2], lanes[2][TQ_ISAS];
} tq_pair_loops;

#define TQ_PAIR_DEFINE(general, fast)                                                \
    TQ_PAIR_GENERAL(general)                                                         \
    TQ_ISA_DEFINE(TQ_PAIR_8BIT, fast##_8bit, fast)                                   \
    TQ_ISA_DEFINE(TQ_PAIR_16BIT, fast##_16bit, fast)                                 \
    static const tq_pair_loops general##_loops = {{general##_8bit, general##_16bit}, \
                                                  {TQ_ISA_FUNCTIONS(fast##_8bit), TQ_ISA_FUNCTIONS(fast##_16bit)}};

/* The loop for a type (INT8, UINT8 or INT16) on this machine.  fits: tq_lane_fits holds for all multipliers. */
tq_broadcast_fn tq_pair_choose(const tq_pair_loops *loops, int32_t type, bool fits);

#endif
