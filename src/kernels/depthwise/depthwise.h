/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolutions: each output channel reads one input channel; and convolutions of groups of few channels.
 *
 *     sum[r][c] = bias[c] + over taps t of (pixel[r][t][c / multiplier] - row zero point) *
 *                                          (weight[t][c] - weight zero point)
 *
 * A group of `multiplier` output channels reads `depth` input channels.  With depth 1, this is the formula.  Else each
 * pixel becomes `depth` pixels, the k-th of which has for each output channel its group's k-th input, and the scan is
 * as many times as wide: filter, strides and padding.
 *
 * Orders of floats, stores, scans and alignment are those of gemm.h.
 *
 * Prepare: tq_depthwise_plan; tq_depthwise_pack; the store by tq_gemm_store_make; scratch of
 * tq_depthwise_scratch_bytes.  Eval: tq_depthwise_run.
 */
#ifndef TQ_KERNELS_DEPTHWISE_H
#define TQ_KERNELS_DEPTHWISE_H

#include "kernels/gemm/gemm.h"

typedef struct tq_depthwise_kernel tq_depthwise_kernel;

#define TQ_COLUMN_PIXELS 256 /* the most pixels of a chunk */
/* The largest filter's side in depthwise_lines.c, which alone has vectors for one channel. */
#define TQ_DEPTHWISE_SIDE 64

/* The plan of depthwise_columns.c. */
typedef struct tq_depthwise_columns {
    size_t period; /* vectors of weights; 0: not by columns */
    size_t groups; /* of four filter rows */
    size_t width;  /* columns of the filter */
    size_t apart;  /* pixels from one to the next */
    size_t rows;   /* output rows that share columns: 1 or 2 */
    size_t parts;  /* int8 whose sum is a weight: 1, or 2 for those of 9 bits */
    size_t pixels; /* of a chunk */
    size_t sums_stride;
    size_t group_bytes, weight_bytes, bias_bytes, job_bytes;
    bool run; /* the pixels of a chunk are one run of values */
    size_t line_bytes; /* of a padded copy of a line, for filters of one row; else 0 */
} tq_depthwise_columns;

/* The plan of depthwise_lines.c. */
typedef struct tq_depthwise_lines {
    size_t vectors; /* of a block; 0: not by lines */
    size_t blocks;  /* of an output line */
    size_t ring;    /* input lines that are held at once */
    size_t line_bytes, job_bytes;
} tq_depthwise_lines;

/* The plan of depthwise_bands.c. */
typedef struct tq_depthwise_bands {
    size_t line_bytes; /* of an input line; 0: not by bands */
    bool tail;         /* channels do not fill the last vector: one more, of the last channels, is packed behind it */
} tq_depthwise_bands;

/* A planned convolution.  Callers read packed_bytes; the other fields belong to the files of depthwise_parts.h. */
typedef struct tq_depthwise {
    uint64_t packed_bytes;
    const tq_depthwise_kernel *kernel;
    tq_element in;                     /* of pixels: i8, u8, i16 or f32 */
    size_t channels, multiplier, taps; /* channels: of the output; taps: of `scan` */
    size_t depth;
    bool wide, fused;                  /* the flags */
    tq_scan scan; /* depth times as wide */
    tq_depthwise_columns columns;
    tq_depthwise_lines lines;
    tq_depthwise_bands bands;
    size_t offset_bytes; /* of `offsets` */
    /* set by tq_depthwise_pack */
    bool non_finite; /* a float weight is not finite: padding must be skipped */
    const void *weights, *bias;
    const void *padding; /* a pixel of real value 0 */
    const int32_t *offsets; /* depthwise_offsets.c; NULL: the scan is computed in each run */
} tq_depthwise;

/* channels: a multiple of multiplier; multiplier: 1 and more; depth: 1, or of float32 what tq_depthwise_takes_depth
   says; scan: of all runs; flags: TQ_GEMM_x bits.  TQ_NO_MEMORY: the packed weights would exceed the address space. */
tq_status tq_depthwise_plan(tq_depthwise *depthwise, tq_element in, size_t channels, size_t multiplier, size_t depth,
                            const tq_scan *scan, int flags, tq_error *error);

/* Whether groups of `multiplier` channels with `depth` inputs each are to be run here, rather than each by itself as a
   product whose tiles they would not fill. */
bool tq_depthwise_takes_depth(const tq_scan *scan, size_t multiplier, size_t depth);

/* Packs weights into `memory`: packed_bytes bytes, which outlive the convolution.  Element (t, c) stands at t *
   k_stride + c * channel_stride; taps are in the scan's order. */
void tq_depthwise_pack(tq_depthwise *depthwise, const tq_gemm_weights *weights, void *memory);

/* A copy of a packed convolution of i8 pixels whose padding is `value` in place of the row zero point, for images with
   a zero point each; memory: tq_depthwise_padding_bytes.  Where the convolution was packed with row zero point 0, its
   sums are of the raw products of all taps, padding too. */
uint64_t tq_depthwise_padding_bytes(const tq_depthwise *depthwise);
tq_depthwise tq_depthwise_with_padding(const tq_depthwise *depthwise, int8_t value, void *memory);

/* Scratch for inputs of `pixels` pixels, of all images, on `threads` threads: 1 and more.  UINT64_MAX: too much. */
uint64_t tq_depthwise_scratch_bytes(const tq_depthwise *depthwise, size_t pixels, int threads);

/* As tq_gemm_run.  rows->scan is that of the plan; rows->stride is channels / multiplier * depth. */
void tq_depthwise_run(const tq_depthwise *depthwise, const tq_gemm_rows *rows, const tq_gemm_store *store, void *out,
                      size_t out_stride, void *scratch, int threads);

/* Row i of depthwise.def, as tq_kernel_variant; chosen: for 8-bit weights with zero point 0. */
bool tq_depthwise_variant(size_t i, tq_variant *row);

#endif
