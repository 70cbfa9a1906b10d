/* SPDX-License-Identifier: Apache-2.0
 *
 * A requantize rule's 8-bit codes as a straight line in float32, where one gives exactly these.
 *
 *     code(acc) = saturate(even(fma(f32(acc), slope, acc < 0 ? offset_negative : offset)))
 *
 * is a rule's code for every int32 acc, or it is not: both sides rise with acc, so that they are the same if they step
 * at the same 255 places.  A step of the rule lies at a real number t, and a line's within its rounding errors of t: only
 * an integer that near to t can be on different sides of the two, and few of the 255 have one.  These are tried; where
 * the line is wrong at one, its offset is moved by a little, since what it is wrong by is its last bits.  So there is a
 * proof for every int32 from looking at a handful, and kernels then need no check of any element.
 */
#ifndef TQ_KERNELS_CODE_LINE_H
#define TQ_KERNELS_CODE_LINE_H

#include "quant/rounding.h"

typedef struct tq_code_line {
    float slope, offset, offset_negative; /* the offsets are the same for all rules but "double" */
} tq_code_line;

/* Codes of -128 to 127, and a zero point among them.  false: no line was found, or the multiplier is outside
   [2^-11, 2^-3), where lines are rare or codes coarse. */
bool tq_code_line_of(const tq_multiplier *m, tq_requantize_rule rule, int32_t zero_point, tq_code_line *line);

/* The real multiplier that a rule's fixed-point parts stand for, or its own. */
double tq_multiplier_real(const tq_multiplier *m, tq_requantize_rule rule);

/* How far a rule shifts its ties, for acc >= 0 and acc < 0: see kernels/requantize_simd.h. */
void tq_multiplier_tie_shift(const tq_multiplier *m, tq_requantize_rule rule, double shift[2]);

#endif
