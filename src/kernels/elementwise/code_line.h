/* SPDX-License-Identifier: Apache-2.0
 *
 * A requantize rule's 8-bit codes as a straight line in float32, where one gives exactly these.
 *
 *     code(acc) = saturate(even(fma(f32(acc), slope, acc < 0 ? offset_negative : offset)))
 *
 * is a rule's code for every int32 acc, or it is not: both sides rise with acc, so that they are the same if they step
 * at the same 255 places.  Each step asks something of the offset, through the integer next to it: that the line be
 * on the rule's side there.  So there is a line if the highest of what it must be above is below the lowest of what it
 * must be below, which is proof for every int32, and kernels then need no check of any element.  If few integers
 * stand in the way, the line is right at all others: kernels then look for these.
 */
#ifndef TQ_KERNELS_CODE_LINE_H
#define TQ_KERNELS_CODE_LINE_H

#include "base/cpu.h"
#include "quant/rounding.h"

typedef struct tq_code_line {
    float slope, offset, offset_negative; /* the offsets are the same for all rules but "double" */
    int32_t exception[2];                 /* no acc but at these distances from 0 is wrong; TQ_NO_EXCEPTION: none */
} tq_code_line;

#define TQ_NO_EXCEPTION (-1)

/* n <= TQ_LINES_AT_ONCE lines, for codes of -128 to 127, and zero points among them.  A slope is NaN where none was
   found: the multiplier is outside [2^-11, 2^-3), where lines are rare or codes coarse, or no kernel here would follow
   it. */
#define TQ_LINES_AT_ONCE 32
void tq_code_lines_of(const tq_multiplier *m, const int32_t *zero_point, size_t n, tq_requantize_rule rule,
                      tq_code_line *lines);

/* Steps to `count` codes that follow each other, for line_simd.h.  The step to a code is at
       t = (code - 1/2 + border' - offset) / real       border': of a rule that rounds its product, or else 0
   and acc, the integer next to it, is on the side of the line's step that it should be on if
       code - 1/2 + border' + (acc - t) real + (slope - real) acc + moved >= code - 1/2 + border    where acc >= t
   and < where acc < t, for an offset that is moved by so much from the rule's.  With the fraction t - acc that is
       moved / real >= fraction + (border - border' - (slope - real) acc) / real                   or < it.
   Fractions are counted in units of 2^-32, in 32 bits that wrap: nothing is rounded by more than a few units. */
#define TQ_LINE_UNIT 0x1p-32
#define TQ_LINE_UNSURE 1024 /* units: more than 256 sums of a step, less than 1 off each, and doubles before them are */
#define TQ_LINE_WIDEST (1 << 30) /* units; an offset that is moved by more may meet the next integer but one */
typedef struct tq_line_steps {
    uint32_t fraction, stride;         /* of t less border' / real; and from one step to the next */
    uint32_t leaning, leaning_stride;  /* the same less (slope - real) acc / real */
    float units;                       /* in 1 / real */
    const float *border, *rule_border; /* 16 entries more than steps; rule_border: NULL for 0 */
    int32_t count;                     /* 0 of a side where the zero point is the last code */
} tq_line_steps;

/* What an offset must be moved by, in units times the multiplier: above the one and below the other, which is not by
   more than TQ_LINE_WIDEST.  A step that is unsure, being too near to an acc to know its side, is in both. */
typedef struct tq_line_limits {
    int32_t above, below;
} tq_line_limits;

#define LINE_LIMITS(isa) void tq_line_limits__##isa(const tq_line_steps *steps, tq_line_limits *limits);
LINE_LIMITS(avx2) LINE_LIMITS(avx512) LINE_LIMITS(neon)
#undef LINE_LIMITS

/* The real multiplier that a rule's fixed-point parts stand for, or its own. */
double tq_multiplier_real(const tq_multiplier *m, tq_requantize_rule rule);

/* How far a rule shifts its ties, for acc >= 0 and acc < 0: see kernels/elementwise/requantize_simd.h. */
void tq_multiplier_tie_shift(const tq_multiplier *m, tq_requantize_rule rule, double shift[2]);

#endif
