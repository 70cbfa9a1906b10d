/* SPDX-License-Identifier: Apache-2.0
 *
 * RESIZE_BILINEAR of 8 bits in fixed point.
 *
 * The sum of four pixels by products of weights is the sum by rows of two sums by columns: exactly, in integers.  A
 * line of the latter is as wide as the output, and neighbouring rows of a larger output share it.
 */
#ifndef TQ_OPS_REDUCTIONS_RESIZE_LINES_H
#define TQ_OPS_REDUCTIONS_RESIZE_LINES_H

#include <stddef.h>
#include <stdint.h>

/* How one output index reads its dimension: two input indices, and the weight of the second. */
typedef struct tq_sample {
    size_t low, high;
    float real;    /* 0 to 1 */
    int32_t fixed; /* 0 to 2^bits of tq_fixed_mix */
} tq_sample;

/* With weights y and x of 2^bits: (sum + 2^(2 bits - 1)) >> 2 bits; a negative sum less 1 first where `away`. */
typedef struct tq_fixed_mix {
    uint8_t flip; /* INT8: 128; UINT8: 0 */
    int32_t bits; /* 10 or 11 */
    int32_t away; /* 0 or 1: ties round away from zero */
} tq_fixed_mix;

/* The sample of output index `at` of a dimension. */
typedef tq_sample (*tq_sample_fn)(const void *context, int64_t at, int64_t in, int64_t out);

typedef struct tq_resize_lines {
    tq_fixed_mix mix;
    tq_sample_fn find;
    const void *context; /* of find */
    const uint8_t *in;
    uint8_t *out;
    size_t in_height, in_width, out_height, out_width, depth; /* each >= 1 */
} tq_resize_lines;

/* Rows [begin, end) of the output, counted through all images. */
void tq_resize_lines_run(const tq_resize_lines *r, size_t begin, size_t end);

#endif
