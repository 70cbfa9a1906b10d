/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of rows with weights: convolutions and fully connected layers.
 *
 *     sum[r][c] = bias[c] + over taps t, then k < depth of (row[r][t][k] - row zero point) *
 *                                                          (weight[c][t][k] - weight zero point)
 *
 * and then out[r][c] = requantized and clamped sum, or the sum itself.
 *
 * Integers: exact, modulo 2^32 (2^64 where TQ_GEMM_WIDE).  Float32: sum = 0; sum = f32(sum + f32(row * weight)) in the
 * order of t and k; then f32(sum + bias): TFLite's reference kernels, which skip padding.  TQ_GEMM_FUSED: sum = bias;
 * sum = fma(row, weight, sum): XNNPACK on x86 with FMA, where padding counts as 0.  So results depend on neither
 * machine nor threads.
 *
 * In prepare: tq_gemm_plan, then memory of plan.packed_bytes (aligned to 64) and tq_gemm_pack; for integers
 * memory of tq_gemm_store_bytes and tq_gemm_store_make; scratch of tq_gemm_scratch_bytes.
 * In eval: tq_gemm_run.  Weights that are not constant are packed in eval, into scratch.
 */
#ifndef TQ_KERNELS_GEMM_H
#define TQ_KERNELS_GEMM_H

#include "base/status.h"
#include "kernels/kernels.h"
#include "kernels/gemm/scan.h"
#include "quant/rounding.h"

typedef struct tq_gemm_kernel tq_gemm_kernel;

/* A product, planned.  Read packed_bytes; the rest is for the files of gemm_parts.h. */
typedef struct tq_gemm {
    uint64_t packed_bytes;
    const tq_gemm_kernel *kernel;
    tq_element in;                /* of rows */
    size_t channels, taps, depth; /* as asked for */
    size_t runs, length;          /* as the kernel sees a row: `runs` runs of `length` elements */
    size_t panels, panel_bytes;
    size_t in_bytes;              /* of an element of rows */
    bool wide, fused;             /* the flags */
    bool copies;                  /* rows are copied to the kernel's form */
    bool narrow;                  /* too few channels for vectors: loops of their own */
    size_t lanes;                 /* channels of a panel */
    /* from tq_gemm_pack */
    const void *panel;
    const void *bias;       /* of a panel's width, int32, int64 where wide, or float */
    const int32_t *sums;    /* [channels] of the weights as they are packed */
    const void *padding;    /* `depth` elements that count as 0 */
    bool non_finite;           /* a float weight is not finite, so that padding must be skipped */
    int32_t row_zero_point; /* of the elements as the kernel sees them */
    int32_t copied_zero_point; /* and as they are given */
    int32_t row_factor;     /* what the sum of a row is multiplied with and added to its sums */
} tq_gemm;

/* Weights [channels][taps][depth], where channel c begins at c * channel_stride elements and element
   t * depth + k stands k_stride elements from the one before. */
typedef struct tq_gemm_weights {
    const void *data;
    tq_element type; /* i8 or u8 for integer rows, f32 for float ones */
    size_t channel_stride, k_stride;
    size_t tap_rows; /* depthwise floats: rows of a filter whose taps are packed column by column; 0: as they stand */
    int32_t zero_point, row_zero_point; /* in the range of their types */
    const void *bias;                   /* [channels] of bias_type, or NULL */
    tq_element bias_type;               /* i32, f32 or TQ_GEMM_BIAS_I64 */
} tq_gemm_weights;

#define TQ_GEMM_BIAS_I64 TQ_ELEMENTS

enum {
    TQ_GEMM_WIDE = 1, /* int16 rows whose sums need 64 bits */
    TQ_GEMM_FUSED = 2 /* float rows */
};

/* Rows of i8, u8, i16 or f32 elements by as many weights. */
tq_status tq_gemm_plan(tq_gemm *gemm, tq_element in, size_t channels, size_t taps, size_t depth, int flags,
                       tq_error *error);
void tq_gemm_pack(tq_gemm *gemm, const tq_gemm_weights *weights, void *memory);

/* For each channel the sum of its raw weight values (less 128 where they are u8) over taps and depth: for rows with
   zero points of their own. */
static inline const int32_t *tq_gemm_weight_sums(const tq_gemm *gemm)
{
    return gemm->sums;
}

/* A copy, in `memory` of so many bytes, of a packed product of i8 rows in which padding holds `value` and not the row
   zero point: for rows with zero points of their own.  If it was packed with the row zero point 0, its sums are of the
   values of all cells. */
uint64_t tq_gemm_padding_bytes(const tq_gemm *gemm);
tq_gemm tq_gemm_with_padding(const tq_gemm *gemm, int8_t value, void *memory);

/* What becomes of a sum. */
typedef struct tq_gemm_store {
    tq_element out; /* i8, u8, i16; i32: the sum, 32 bits; f32 for float rows */
    tq_requantize_rule rule;
    size_t
        remainder; /* of so many of the last channels the rule is TQ_REQUANTIZE_DOUBLE, else it is UP (8-bit values) */
    int32_t zero_point, low, high;
    float floor, ceiling; /* of f32; -INFINITY and INFINITY for none */
    /* from tq_gemm_store_make: a multiplier a channel, and 8-bit values' fast way (fixed_simd.h) */
    const tq_multiplier *multiplier;
    const float *slope, *offset,
        *offset_negative; /* by the rule float32-even, slope is the multiplier, and the others are not read */
    const int32_t *fixed, *left, *right; /* the multiplier's parts, its shift split by sign */
    const int32_t *reduced, *total; /* and those of the 64-bit form: tq_multiply_i64 */
    bool exact; /* the fast way is undecided */
} tq_gemm_store;

/* What a channel's sum is multiplied by; finite. */
typedef double (*tq_real_fn)(const void *context, size_t channel);

/* For out i8, u8 and i16, with rule, zero_point, low and high set: the multipliers as columns in memory of
   tq_gemm_store_bytes, aligned to 64.  Of wide sums: rule DOUBLE is the runtime's 64-bit form, FLOAT64_AWAY that of its
   reference FULLY_CONNECTED. */
uint64_t tq_gemm_store_bytes(size_t channels);
void tq_gemm_store_make(tq_gemm_store *store, size_t channels, tq_real_fn real, const void *context, void *memory);

/* The store of channels from `channel` on, for one group of them. */
static inline tq_gemm_store tq_gemm_store_from(const tq_gemm_store *store, size_t channel)
{
    tq_gemm_store part = *store;
    if (part.multiplier) {
        part.multiplier += channel;
        part.slope += channel, part.offset += channel, part.offset_negative += channel;
        part.fixed += channel, part.left += channel, part.right += channel;
        part.reduced += channel, part.total += channel;
    }
    return part;
}

/* Rows, in place. */
typedef struct tq_gemm_rows {
    const void *data;
    size_t count; /* with a scan: output pixels, of all images */
    size_t stride; /* elements from a row, or an input pixel, to the next */
    const tq_scan *scan; /* NULL where taps is 1: rows are as they lie */
} tq_gemm_rows;

uint64_t tq_gemm_scratch_bytes(const tq_gemm *gemm, size_t rows, int threads);

/* out[r * out_stride + c]; scratch aligned to 64. */
void tq_gemm_run(const tq_gemm *gemm, const tq_gemm_rows *rows, const tq_gemm_store *store, void *out,
                 size_t out_stride, void *scratch, int threads);

/* Row i of gemm.def, as tq_kernel_variant. */
bool tq_gemm_variant(size_t i, tq_variant *row);

#endif
