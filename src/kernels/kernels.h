/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise kernels: their contract, their parameters, and the table that picks one.
 *
 * A kernel does `rows` rows of n elements, contiguous and of any alignment, each row beginning `stride`
 * elements after the one before, with `in` and `out` either disjoint or, for elements of one size, the same.
 * Parameters come as columns (arrays), one entry a parameter set.  A row kernel uses entry first + r for all
 * of row r; a lanes kernel uses entry first + i for element i of every row, and may read TQ_COLUMN_PADDING
 * entries past the last that it needs.
 */
#ifndef TQ_KERNELS_KERNELS_H
#define TQ_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* Float16 and bfloat16 as bits. */
typedef uint16_t tq_half;
typedef uint16_t tq_bfloat;

typedef enum tq_element {
#define ELEMENT(name, type, low, high) TQ_##name,
#include "kernels/elements.def"
#undef ELEMENT
    TQ_ELEMENTS
} tq_element;

typedef enum tq_operation {
#define OPERATION(name) TQ_KERNEL_##name,
#include "kernels/kernels.def"
    TQ_OPERATIONS
} tq_operation;

/* Sizes in bytes, and an integer's range; 0 and 0 for floating point. */
size_t tq_element_size(tq_element element);
int32_t tq_element_low(tq_element element);
int64_t tq_element_high(tq_element element);

#define TQ_COLUMN_PADDING 64 /* the widest block of a kernel: four vectors of sixteen lanes */
/* 8-bit values have a fast way in 16.16 fixed point, derived in fixed_simd.h: slope and offset are 2^16 times
   the factor and 2^16 (zero point + 1/2) + TQ_FIXED_ERROR, as float32. */
#define TQ_FIXED_ERROR 4
#define TQ_FIXED_EXACT_DOUBLED 5 /* twice the error that is enough where the input is exact in float32 */

/* low <= every zero point <= high; scales are > 0. */
typedef struct tq_quantize_params {
    const float *scale, *inverse; /* inverse: tq_inverse_scale */
    const float *slope, *offset;
    const int32_t *zero_point;
    int32_t low, high;
    int32_t mask; /* of values of 8 bits, where low to high is less than the element's range, or all bits */
    int32_t low_bytes, high_bytes, mask_bytes; /* each as a byte, four times: to be spread by a load alone */
    bool clamp;  /* low to high is less than the element's range */
    bool infinite_slope;  /* a slope is infinite: only scalar bodies do it */
    bool stream; /* the output is too large for the caches */
} tq_quantize_params;

typedef struct tq_dequantize_params {
    const float *scale;
    const int32_t *zero_point;
    bool wide;   /* q - zero point may not fit int32: only scalar bodies do it */
    bool stream; /* as above */
} tq_dequantize_params;

typedef struct tq_requantize_params {
    const double *real;                       /* the multiplier, and its other forms */
    const float *real_f32;
    const int32_t *multiplier, *left, *right; /* left and right: its shift, split by sign */
    const float *slope, *offset, *offset_negative; /* offset_negative: where q - input zero point < 0 */
    const int32_t *zero_point, *input_zero_point;
    int32_t low, high; /* all of the element's range */
    uint8_t undecided; /* offsets have half of it added: below it, lower halves of fixed point are undecided */
    bool wide;        /* q - input zero point or product + zero point may not fit int32 */
    bool shifts_left; /* some left > 0 */
    bool stream;      /* as above */
} tq_requantize_params;

typedef void (*tq_kernel_fn)(const void *in, void *out, size_t n, size_t rows, size_t stride, const void *params,
                             size_t first);

typedef struct tq_kernel {
    const char *name; /* "quantize_away_f32_i8" */
    const char *isa;  /* "avx2" */
    uint8_t operation, in, out, feature; /* feature: an index in base/cpu.def */
    tq_kernel_fn row, lanes;
} tq_kernel;

/* Chooses for each operation and types the last row whose feature is in `features` (TQ_CPU_ bits).
   Call it once, before any other function here, and not beside them. */
void tq_kernels_choose(uint32_t features);

/* NULL where there is no such kernel. */
const tq_kernel *tq_kernel_find(tq_operation operation, tq_element in, tq_element out);

/* Makes tq_kernel_find on this thread prefer rows of that feature (scalar where there is none), so that
   a test reaches every row.  -1 ends it.  The feature must be in the chosen features. */
void tq_kernels_force(int feature);

/* The table, for tests of its functions. */
const tq_kernel *tq_kernels(size_t *count);
uint32_t tq_kernels_features(void);

/* The features that rows may use on this thread: the chosen ones, or, where one is forced, that and scalar. */
uint32_t tq_kernels_usable(void);

/* A row of a table of kernels, as lists of them show it. */
typedef struct tq_variant {
    const char *name, *isa;
    bool available, chosen; /* the machine has its instruction set; what asks for `name` gets this row */
} tq_variant;

/* Row i of this table; gemm.h and depthwise.h have the like.  false: there are not so many. */
bool tq_kernel_variant(size_t i, tq_variant *row);

/* Prototypes, from the rows. */
#define KERNEL(operation, in, out, isa)                                                                             \
    void tq_##operation##_##in##_##out##__##isa##_row(const void *, void *, size_t, size_t, size_t, const void *,   \
                                                      size_t);                                                      \
    void tq_##operation##_##in##_##out##__##isa##_lanes(const void *, void *, size_t, size_t, size_t, const void *, \
                                                        size_t);
#include "kernels/kernels.def"

#endif
