/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of rows with weights: convolutions and fully connected layers.
 *
 *     sum[r][c] = bias[c] + over taps t and k < depth of (row[r][t][k] - row zero point) *
 *                                                        (weight[c][t][k] - weight zero point)
 *     out[r][c] = the sum, or the sum requantized and clamped
 *
 * Integers: exact, modulo 2^32 (2^64 under TQ_GEMM_WIDE).  Float32 has two orders, so that results depend on neither
 * machine nor threads:
 *     plain      sum = 0; sum = f32(sum + f32(row * weight)) in the order of t and k; then f32(sum + bias).  TFLite's
 *                reference kernels, which skip padding.
 *     fused      (TQ_GEMM_FUSED) sum = bias; sum = fma(row, weight, sum).  XNNPACK on x86 with FMA; padding counts as
 * 0.
 *
 * Prepare: tq_gemm_plan; tq_gemm_pack into memory of plan.packed_bytes; for integers tq_gemm_store_make into memory of
 * tq_gemm_store_bytes; scratch of tq_gemm_scratch_bytes.  Eval: tq_gemm_run.  Weights that are not constant are packed
 * in eval, into scratch, or under TQ_GEMM_IN_PLACE read where they lie.  All memory is aligned to 64 bytes.
 */
#ifndef TQ_KERNELS_GEMM_H
#define TQ_KERNELS_GEMM_H

#include "base/status.h"
#include "kernels/gemm/scan.h"
#include "kernels/kernels.h"
#include "quant/rounding.h"

typedef struct tq_gemm_kernel tq_gemm_kernel;

/* A planned product.  Callers read packed_bytes; the other fields belong to the files of gemm_parts.h. */
typedef struct tq_gemm {
    uint64_t packed_bytes;
    const tq_gemm_kernel *kernel;
    tq_element in;                /* of rows: i8, u8, i16 or f32 */
    size_t channels, taps, depth; /* as planned */
    size_t runs, length;          /* a row as the kernel reads it: `runs` contiguous runs of `length` elements */
    size_t panels, panel_bytes;
    size_t row_panels; /* whose groups of weights alternate, so that one row reads one stream; 0: none */
    bool in_place;     /* floats: all panels' groups alternate as they lie in the caller's weights */
    size_t in_bytes;   /* of an element of rows: 1, 2 or 4 */
    bool wide, fused, unsummed; /* the flags */
    bool copies;       /* rows are copied into the kernel's form */
    bool narrow;       /* floats: too few channels for vectors: gemm_loops.c */
    bool dots;         /* integers: so few channels and such long rows that vectors go along the row: gemm_row.c */
    bool halves;       /* tiles whose last panel is at most half full take less time */
    bool short_row;    /* one row is so little work that gemm_row.c takes it */
    size_t lanes;      /* channels of a panel */
    bool image;        /* rows are windows of one image, in which every filter row is contiguous */
    size_t image_bytes; /* of a copy of that image with its padding; 0: it has none */
    /* set by tq_gemm_pack */
    const void *panel;      /* [panels][panel_bytes] */
    const void *bias;       /* [panels][lanes] of int32, int64 where wide, or float */
    const int32_t *sums;    /* [channels] sums of the packed weights */
    const void *padding;    /* `depth` elements of real value 0 */
    bool non_finite;        /* a float weight is not finite: padding must be skipped */
    int32_t row_zero_point; /* of elements as the kernel reads them */
    int32_t copied_zero_point; /* of elements as the caller stores them */
    int32_t row_factor; /* the sum of a row, times this factor, is added to its sums: the weights' zero point */
} tq_gemm;

/* Weights [channels][taps][depth]: channel c begins at c * channel_stride elements, and element t * depth + k stands
   (t * depth + k) * k_stride elements after its start. */
typedef struct tq_gemm_weights {
    const void *data;
    tq_element type; /* i8 or u8 for integer rows, f32 for float rows, or
                       with `scaling` */
    size_t channel_stride, k_stride;
    size_t tap_rows; /* depthwise floats: rows of a filter whose taps are packed column by column; 0: in order */
    int32_t zero_point, row_zero_point; /* within the range of their types */
    uint8_t flip;                       /* bits of each i8 weight that are inverted; for most 0 */
    const void *bias;                   /* [channels] of bias_type, or NULL */
    tq_element bias_type;               /* i32, f32 or TQ_GEMM_BIAS_I64 */
} tq_gemm_weights;

#define TQ_GEMM_BIAS_I64 TQ_ELEMENTS

enum {
    TQ_GEMM_WIDE = 1, /* int16 rows with 64-bit sums */
    TQ_GEMM_FUSED = 2, /* float rows: the fused order */
    TQ_GEMM_ONE_ROW = 4, /* weights are packed for runs of one row */
    TQ_GEMM_IN_PLACE = 8, /* weights [depth][channels] are read where they lie, if they are floats of whole panels: for
                             few rows, whose products take less time than packing */
    TQ_GEMM_UNSUMMED = 16 /* tq_gemm_weight_sums are not asked for */
};

/* Plans a product of `in` rows (i8, u8, i16 or f32).  channels, taps, depth: 0 and more; flags: TQ_GEMM_x bits.
   TQ_NO_MEMORY: the packed weights would exceed the address space. */
tq_status tq_gemm_plan(tq_gemm *gemm, tq_element in, size_t channels, size_t taps, size_t depth, int flags,
                       tq_error *error);

/* Tells a planned product, before it is packed, that its rows are windows of `scan` over pixels `stride` elements
   apart, of so many images.  Where filter rows lie contiguous in the image, their weights are packed as whole groups of
   the kernel, so that they are multiplied where they lie.  A product with gemm.image then serves no other scan. */
void tq_gemm_plan_windows(tq_gemm *gemm, const tq_scan *scan, size_t stride, size_t images);

/* Packs weights into `memory`: packed_bytes bytes, which outlive the product; so do the weights of one in place. */
void tq_gemm_pack(tq_gemm *gemm, const tq_gemm_weights *weights, void *memory);

/* [channels]: sums of the raw weight values (u8 less 128) over taps and depth, for rows with a zero point each. */
static inline const int32_t *tq_gemm_weight_sums(const tq_gemm *gemm)
{
    return gemm->sums;
}

/* A copy of a packed product of i8 rows whose padding is `value` in place of the row zero point, for rows with a zero
   point each; memory: tq_gemm_padding_bytes.  Where the product was packed with row zero point 0, its sums are of the
   raw products of all taps, padding too. */
uint64_t tq_gemm_padding_bytes(const tq_gemm *gemm);
tq_gemm tq_gemm_with_padding(const tq_gemm *gemm, int8_t value, void *memory);

/* Quantization of a row: real = scale * (q - zero_point). */
typedef struct tq_quantized_row {
    float scale;
    int32_t zero_point;
} tq_quantized_row;

/* How a scaling multiplies, with sum' = f32(sum - zero point of the row * weight sum). */
typedef enum tq_scale_order {
    TQ_SCALE_PLAIN, /* bias + sum' * (scale * row scale) */
    TQ_SCALE_ROW_LAST, /* bias + sum' * scale * row scale */
    TQ_SCALE_FUSED /* XNNPACK's: fma(sum' * row scale, scale, bias) */
} tq_scale_order;

/* Floats from integer sums of rows that have a scale and a zero point each.  Rows and weights are packed with the zero
   point 0. */
typedef struct tq_gemm_scaling {
    tq_scale_order order;
    bool drops_nan; /* NaN becomes the store's floor, and with a floor of 0 so does -0; not for ROW_LAST */
    size_t row_step, scale_step; /* 1; 0: row[0], scale[0] serve all */
    const tq_quantized_row *row;
    const float *scale; /* [channels] */
    const int32_t *weight_sums; /* [channels]: tq_gemm_weight_sums */
    const float *bias; /* [channels] or NULL */
} tq_gemm_scaling;

/* From sums to outputs. */
typedef struct tq_gemm_store {
    tq_element out; /* i8, u8, i16: requantized; i32: the low 32 bits of a sum; f32 for float rows */
    tq_requantize_rule rule;
    size_t remainder; /* the last `remainder` channels are requantized by TQ_REQUANTIZE_DOUBLE; then `rule` is UP */
    int32_t zero_point, low, high; /* low <= zero_point <= high, within the range of `out` */
    float floor, ceiling; /* of f32; -INFINITY and INFINITY: unbounded */
    const tq_gemm_scaling *scaling; /* of integer rows, where out is f32; else NULL */
    /* set by tq_gemm_store_make: columns, an entry a channel */
    const tq_multiplier *multiplier;
    const float *slope, *offset, *offset_negative; /* of fixed_simd.h; under FLOAT32_EVEN slope is the multiplier */
    const int32_t *fixed, *left, *right; /* the multiplier's fixed-point form, its shift split by sign */
    const int32_t *reduced, *total; /* its 64-bit form: tq_reduce_multiplier */
    uint8_t undecided; /* 2 E of fixed_simd.h; offsets contain half of it */
    bool exact; /* fixed_simd.h cannot represent a multiplier: stores follow the scalar rule */
    bool one_offset; /* `offset` serves negative sums, too: it equals offset_negative, or such sums are clamped */
} tq_gemm_store;

/* The real multiplier of a channel's sums: finite. */
typedef double (*tq_real_fn)(const void *context, size_t channel);

/* Fills the columns of a store whose out (i8, u8 or i16), rule, remainder, zero_point, low and high are set, in memory
   of tq_gemm_store_bytes.  Of 64-bit sums, rule DOUBLE is the runtime's 64-bit form, FLOAT64_AWAY its reference
   FULLY_CONNECTED. */
uint64_t tq_gemm_store_bytes(size_t channels);
void tq_gemm_store_make(tq_gemm_store *store, size_t channels, tq_real_fn real, const void *context, void *memory);

/* The same store for the channels from `channel` on: a group of a grouped convolution. */
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

/* Scratch of tq_gemm_run on at most `threads` threads, 1 and more; the same for any number of rows. */
uint64_t tq_gemm_scratch_bytes(const tq_gemm *gemm, int threads);

/* out[r * out_stride + c] for all rows and channels; out_stride: at least channels.  out overlaps neither rows nor
   scratch.  threads: at most; the result does not depend on it. */
void tq_gemm_run(const tq_gemm *gemm, const tq_gemm_rows *rows, const tq_gemm_store *store, void *out,
                 size_t out_stride, void *scratch, int threads);

/* Row i of gemm.def, as tq_kernel_variant. */
bool tq_gemm_variant(size_t i, tq_variant *row);

#endif
