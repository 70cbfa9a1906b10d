/* SPDX-License-Identifier: Apache-2.0
 *
 * Requantizing int64 accumulators, those of operators with int16 activations.
 */
#ifndef TQ_KERNELS_ARRAYS_REQUANTIZE_I64_H
#define TQ_KERNELS_ARRAYS_REQUANTIZE_I64_H

#include "kernels/arrays/arrays.h"

typedef struct tq_requantize_i64_job {
    const int64_t *in;        /* layout's groups * outer * channels * inner elements */
    void *out;                /* as many, of out_type */
    tq_element out_type;      /* TQ_i8, TQ_u8, TQ_i16 or TQ_i32 */
    tq_layout layout;
    tq_column_f64 multiplier; /* finite, not negative */
    tq_column_i32 input_zero_point, zero_point;
    int32_t low, high;        /* of the output's type */
    tq_requantize_i64_rule rule;
    int threads;              /* 1 or more */
} tq_requantize_i64_job;

/* out = clamp(round((in - input_zero_point) * multiplier) + zero_point).  A difference beyond int64 saturates. */
void tq_requantize_i64_array(const tq_requantize_i64_job *job);

#endif
