/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two integer forms of an LSTM share: lstm_integer.c and lstm_integer_8.c.
 */
#ifndef TQ_OPS_RECURRENT_LSTM_INTEGER_H
#define TQ_OPS_RECURRENT_LSTM_INTEGER_H

#include "ops/products/dot.h"
#include "ops/recurrent/lstm.h"

/* The scale as a multiplier; fails where the scales it was made of are absurd. */
tq_status tq_lstm_multiplier(const tq_node *node, float scale, const char *what, tq_fixed *out, tq_error *error);

/* Scale and zero point of the operator's intermediate tensor i, of which there are enough. */
tq_status tq_lstm_intermediate(tq_node *node, size_t i, float *scale, int32_t *zero_point, tq_error *error);

/* bias + scalar * (sum of each row), in 32 bits. */
tq_status tq_lstm_fold(tq_node *node, const tq_tensor *matrix, const tq_tensor *bias, int32_t scalar, int32_t **out,
                       tq_error *error);

/* The clip as a code, at most `most`; 0: none. */
int32_t tq_lstm_clip_code(float clip, float scale, float most);

/* cell = forget * cell + input * modulation, of finished gates [gate][batch][cell] in Q15. */
void tq_lstm_update_cell(const tq_lstm *l, const int16_t *gates);

/* What prepare adds, and a step, where there are 12 intermediate tensors. */
tq_status tq_lstm_prepare_integer_8(tq_node *node, tq_lstm *lstm, tq_error *error);
void tq_lstm_step_integer_8(const tq_node *node, const tq_lstm *lstm, const tq_sequence *x, const tq_sequence *aux,
                            const tq_sequence *out, size_t step);

static inline int32_t tq_lstm_product(const tq_tensor *matrix, const int32_t *bias, const int8_t *v, size_t n,
                                      size_t row)
{
    return tq_wrap_i32(bias[row] + tq_dot_i8((const int8_t *)matrix->data + row * n, v, n));
}

static inline int16_t tq_lstm_saturate_16(int64_t x)
{
    return (int16_t)tq_clamp_i64(x, INT16_MIN, INT16_MAX);
}

static inline int8_t tq_lstm_saturate_8(int64_t x)
{
    return (int8_t)tq_clamp_i64(x, INT8_MIN, INT8_MAX);
}

static inline int32_t tq_lstm_clipped(int32_t x, int32_t clip)
{
    return clip > 0 ? (x < -clip ? -clip : x > clip ? clip : x) : x;
}

#endif
