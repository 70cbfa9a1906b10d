/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract of an elementwise kernel, and its parameters.
 *
 * A kernel computes `rows` rows of n elements.  A row is contiguous, of any alignment, and begins `stride` elements
 * after the row before.  `in` and `out` are disjoint or, for elements of one size, the same.
 *
 * Parameters are columns: arrays with one entry a parameter set.  A row kernel uses entry first + r for all of row r.
 * A lanes kernel uses entry first + i for element i of every row; it may read TQ_COLUMN_PADDING entries past the last
 * entry that it uses.
 */
#ifndef TQ_KERNELS_ELEMENTWISE_H
#define TQ_KERNELS_ELEMENTWISE_H

#include <stdbool.h>

#include "base/cpu.h"
#include "kernels/elements.h"

typedef enum tq_operation {
#define OPERATION(name) TQ_KERNEL_##name,
#include "kernels/elementwise.def"
    TQ_OPERATIONS
} tq_operation;

#define TQ_COLUMN_PADDING 64 /* entries: the widest block of a kernel, four vectors of sixteen lanes */

/* 8-bit outputs are computed in 16.16 fixed point (fixed_simd.h).  slope: 2^16 times the real factor; offset:
   2^16 (zero point + 1/2) + TQ_FIXED_ERROR; both float32. */
#define TQ_FIXED_ERROR 4         /* E of fixed_simd.h, in units of 2^-16 */
#define TQ_FIXED_EXACT_DOUBLED 5 /* 2 E where the input is exact in float32 */

typedef struct tq_quantize_params {
    const float *scale, *inverse; /* scale > 0, finite; inverse: tq_inverse_scale(scale) */
    const float *slope, *offset;
    const int32_t *zero_point; /* low to high */
    int32_t low, high;         /* the quantized range, within the output type's */
    int32_t mask; /* 8-bit outputs: the bits of a value narrower than its element; -1: all bits */
    /* bytes, four times: one load fills a vector */
    int32_t low_bytes, high_bytes; /* less 128 where the output is unsigned */
    int32_t flip_bytes;            /* the high bit where the output is unsigned: flipping it adds 128 */
    int32_t mask_bytes;
    bool clamp;          /* low to high is less than the output type's range */
    bool infinite_slope; /* a slope is infinite: the scalar body computes */
    bool stream;         /* the output is larger than the caches: non-temporal stores */
} tq_quantize_params;

typedef struct tq_dequantize_params {
    const float *scale; /* any float32 */
    const int32_t *zero_point;
    bool wide;   /* q - zero point may not fit int32: the scalar body computes */
    bool stream; /* as above */
} tq_dequantize_params;

typedef struct tq_requantize_params {
    const double *real;    /* the real multiplier: finite, not negative */
    const float *real_f32; /* rounded to float32 */
    const int32_t *multiplier, *left,
        *right; /* in fixed point; left, right: its shift split by sign, both 0 or above */
    const float *slope, *offset, *offset_negative; /* offset_negative: where q - input zero point < 0 */
    const int32_t *zero_point, *input_zero_point;  /* within the types' ranges */
    int32_t low, high;                             /* the output type's range */
    int32_t flip_bytes; /* as above */
    uint8_t undecided; /* 2 E of fixed_simd.h for these sets; offsets contain half of it */
    bool wide; /* q - input zero point, or product + zero point, may not fit int32: the scalar body computes */
    bool shifts_left; /* some left > 0 */
    bool stream; /* as above */
} tq_requantize_params;

/* n, rows: 0 and more; params: the operation's record, NULL for convert. */
typedef void (*tq_kernel_fn)(const void *in, void *out, size_t n, size_t rows, size_t stride, const void *params,
                             size_t first);

/* The kernels of elementwise.def: tq_<operation>_<in>_<out>__<isa>_row and _lanes. */
#define KERNEL(operation, in, out, isa)                                                                             \
    void tq_##operation##_##in##_##out##__##isa##_row(const void *, void *, size_t, size_t, size_t, const void *,   \
                                                      size_t);                                                      \
    void tq_##operation##_##in##_##out##__##isa##_lanes(const void *, void *, size_t, size_t, size_t, const void *, \
                                                        size_t);
#include "kernels/elementwise.def"

#endif
