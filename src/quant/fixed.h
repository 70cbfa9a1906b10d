/* SPDX-License-Identifier: Apache-2.0
 *
 * Fixed-point arithmetic over arrays of any stride, and one requantization step by step.
 *
 * A loop takes one pointer and one stride (in bytes) an operand, inputs before outputs, as the table
 * says; every element is aligned.  The rules themselves are quant/rounding.h.
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

/* int32 x, int32 multiplier, int32 shift -> int32, one loop a rule. */
tq_fixed_loop tq_fixed_multiply(tq_requantize_rule rule);

/* What happens to one accumulator on its way to a value.  Rules on floating point have no product,
   high part or remainder; `scaled` is their rounded product, which may be past any integer. */
typedef struct tq_requantize_steps {
    tq_multiplier multiplier;
    int32_t shifted;     /* acc * 2^max(shift, 0), saturated */
    int64_t product;     /* shifted * multiplier */
    int32_t high;        /* H(shifted, multiplier); rule single has none */
    int right_shift;     /* the places the last step drops */
    int64_t remainder;   /* what those places held: of high, or for rule single of product */
    double real_product; /* acc * the real multiplier, in the precision of a floating-point rule */
    double scaled;       /* before the zero point */
    int32_t quantized;
} tq_requantize_steps;

void tq_requantize_explain(int32_t acc, const tq_multiplier *multiplier, tq_requantize_rule rule, int32_t zero_point,
                           int32_t low, int32_t high, tq_requantize_steps *steps);

#endif
