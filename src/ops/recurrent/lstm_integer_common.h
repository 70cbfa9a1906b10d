/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of both integer forms of an LSTM: lstm_integer.c (int16 products) and lstm_integer_8.c (int8 products).
 */
#ifndef TQ_OPS_RECURRENT_LSTM_INTEGER_COMMON_H
#define TQ_OPS_RECURRENT_LSTM_INTEGER_COMMON_H

#include "ops/products/dot.h"
#include "ops/recurrent/lstm_direction.h"

/* A ratio of scales as a fixed-point multiplier.  TQ_BAD_OPERATOR, naming `what` ("a gate's input"), unless the ratio
   is finite and >= 0. */
tq_status tq_lstm_multiplier(const tq_node *node, float scale, const char *what, tq_fixed *out, tq_error *error);

/* Scale (> 0) and zero point of intermediate tensor i, below the operator's number of intermediate tensors.
   TQ_BAD_OPERATOR where the tensor has no scale. */
tq_status tq_lstm_intermediate(tq_node *node, size_t i, float *scale, int32_t *zero_point, tq_error *error);

/* (*out)[row] = bias[row] + scalar * (sum of the matrix's row), modulo 2^32; *out is node memory, [rows of the matrix].
   matrix: int8, of 2 dimensions; bias: int32, or NULL for 0.  TQ_BAD_OPERATOR unless both are constant. */
tq_status tq_lstm_fold(tq_node *node, const tq_tensor *matrix, const tq_tensor *bias, int32_t scalar, int32_t **out,
                       tq_error *error);

/* The bound `clip` as a quantized value, min(clip / scale, most), cut off towards 0; 0: no bound.  scale > 0. */
int32_t tq_lstm_clip_quantized(float clip, float scale, float most);

/* cell = clip(R(forget * cell, 15) + R(input * modulation, 30 + cell_shift)), R(v, n) the rounding shift by n bits;
   input = 1 - forget where l->cifg.  gates: activated, [gate][batch][cell], Q15. */
void tq_lstm_update_cell(const tq_lstm *l, const int16_t *gates);

/* Sums of a gate from the products with the input and with the state, of `count` cells. */
typedef void (*tq_lstm_sum_fn)(const tq_lstm_gate *gate, const int32_t *from_x, const int32_t *from_h, size_t count,
                               int16_t *sums);

/* The sums of all gates that have tensors, as [gate][batch][cell], on the node's threads.  x: rows of the batches,
   x_stride apart. */
void tq_lstm_sum_gates(const tq_node *node, const tq_lstm *l, const int8_t *x, size_t x_stride, tq_lstm_sum_fn sum,
                       int16_t *gates);

/* sums[i] = bias[first + i] + (row first + i of the int8 matrix) . v, modulo 2^32, for i < count; n: the matrix's
   columns. */
void tq_lstm_products(const tq_tensor *matrix, const int32_t *bias, const int8_t *v, size_t n, size_t first,
                      size_t count, int32_t *sums);

enum { TQ_LSTM_CELLS = 128 }; /* of one pass, whose sums are on the stack */

/* x clamped to int16. */
static inline int16_t tq_lstm_saturate_16(int64_t x)
{
    return (int16_t)tq_clamp_i64(x, INT16_MIN, INT16_MAX);
}

/* x clamped to int8. */
static inline int8_t tq_lstm_saturate_8(int64_t x)
{
    return (int8_t)tq_clamp_i64(x, INT8_MIN, INT8_MAX);
}

/* x clamped to [-clip, clip]; clip >= 0; 0: x itself. */
static inline int32_t tq_lstm_clipped(int32_t x, int32_t clip)
{
    return clip > 0 ? (x < -clip ? -clip : x > clip ? clip : x) : x;
}

#endif
