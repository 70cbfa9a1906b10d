/* SPDX-License-Identifier: Apache-2.0
 *
 * Fixed-point arithmetic over arrays of any stride, and one requantization step by step.  The rules are those of
 * quant/rounding.h, defined for every argument.
 *
 * A loop takes n elements an operand: one pointer and one stride in bytes each, inputs before outputs in the order of
 * the comment.  Elements are aligned.
 */
#ifndef TQ_QUANT_FIXED_H
#define TQ_QUANT_FIXED_H

#include <stddef.h>

#include "quant/rounding.h"

typedef void (*tq_fixed_loop)(char *const *data, const ptrdiff_t *strides, size_t n);

/* int32 a, int32 b -> int32 */
void tq_fixed_high_mul(char *const *data, const ptrdiff_t *strides, size_t n);

/* int32 x, int32 exponent -> int32 */
void tq_fixed_divide_by_pot(char *const *data, const ptrdiff_t *strides, size_t n);

/* int64 x, int32 multiplier, int32 shift -> int32 */
void tq_fixed_multiply_i64(char *const *data, const ptrdiff_t *strides, size_t n);

/* The loop of a rule: int32 x, int32 multiplier, int32 shift -> int32. */
tq_fixed_loop tq_fixed_multiply(tq_requantize_rule rule);

/* The steps of one requantization.  Floating-point rules have no product, high part or remainder; their `scaled` is the
   rounded product, which may exceed every integer type. */
typedef struct tq_requantize_steps {
    tq_multiplier multiplier;
    int32_t shifted;     /* acc * 2^max(shift, 0), saturated */
    int64_t product;     /* shifted * multiplier */
    int32_t high;        /* H(shifted, multiplier); rule single has none */
    int right_shift;     /* bits that the last step drops */
    int64_t remainder;   /* these bits: of high, or under rule single of product */
    double real_product; /* acc * the real multiplier, in the precision of a floating-point rule */
    double scaled;       /* before the zero point */
    int32_t quantized;   /* the result */
} tq_requantize_steps;

/* Fills *steps for an accumulator acc; low <= zero_point <= high; other arguments: any. */
void tq_requantize_explain(int32_t acc, const tq_multiplier *multiplier, tq_requantize_rule rule, int32_t zero_point,
                           int32_t low, int32_t high, tq_requantize_steps *steps);

#endif
