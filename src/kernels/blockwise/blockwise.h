/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of quantized rows with 4-bit weights that have a scale for each block of columns.  For each unit:
 *
 *     plain   sum = 0; for each block b in order: sum = f32(sum + f32(f32(acc_b) * scale_b));
 *             out = f32(f32(f32(sum - f32(z * weight_sum)) * row scale) + bias)
 *     fused   four parts, each of two columns of every eight, and part 0 begins at f32(z * weight_sum);
 *             for each block b in order: part_i = fma(f32(acc_b_i), scale_b, part_i);
 *             out = fma(f32(f32(part_0 + part_1) + f32(part_2 + part_3)), row scale, bias)
 *
 * acc: the exact integer sum of products.  XNNPACK's AVX2 kernels have the fused order.
 *
 * Prepare: tq_blockwise_plan; tq_blockwise_pack into packed_bytes.  Eval: tq_blockwise_row_make for each row, then
 * tq_blockwise_run for ranges of panels.  All memory is aligned to 64 bytes.
 */
#ifndef TQ_KERNELS_BLOCKWISE_H
#define TQ_KERNELS_BLOCKWISE_H

#include "kernels/kernels.h"

enum {
    TQ_BLOCKWISE_PARTS = 4,
    TQ_BLOCKWISE_LANES = 16,   /* of the widest panel */
    TQ_BLOCKWISE_ROWS = 4,     /* that share the weights of a panel */
    TQ_BLOCKWISE_MOST = 1 << 20 /* columns of a block: |acc| <= 2^20 * 128 * 8 = 2^30 */
};

typedef struct tq_blockwise_kernel tq_blockwise_kernel;

/* A planned product.  A step is 4 columns of all units of a panel.  In the plain order a block's steps follow its
   columns; in the fused order, step 4 g + i has columns 2i, 2i + 1, 8 + 2i and 9 + 2i of the block's 16 columns from
   16 g on.  Two steps share a vector: the first has the low four bits of each byte. */
typedef struct tq_blockwise {
    const tq_blockwise_kernel *kernel;
    size_t units, columns, block; /* block: columns of a block; divides `columns` */
    size_t blocks, steps;         /* steps of a block: even; columns after the last one count as 0 */
    size_t panels;                /* of kernel->lanes units */
    bool fused;
    bool clamps; /* results to [low, high], NaN to low; tq_blockwise_plan sets false */
    float low, high;
    uint64_t packed_bytes;
    uint64_t row_bytes; /* of a tq_blockwise_row's memory */
} tq_blockwise;

/* Packed weights, with a column of floats for each unit: panels * lanes of them, those after the last unit 0. */
typedef struct tq_blockwise_weights {
    const uint8_t *values;   /* [panels][blocks][steps / 2][lanes][4]: weight + 8, two in a byte */
    const float *scales;     /* [panels][blocks][lanes] */
    const float *sums;       /* [panels][lanes]: weight_sum above */
} tq_blockwise_weights;

/* A row of quantized values in the order of the weights' steps. */
typedef struct tq_blockwise_row {
    const int8_t *values;    /* [blocks][steps][4] */
    const int32_t *offsets; /* [blocks][TQ_BLOCKWISE_PARTS]: -8 times the sum of a part's values; plain: part 0 alone */
    float scale, zero_point;
} tq_blockwise_row;

/* Whether the chosen body is one of vectors. */
bool tq_blockwise_has_vectors(void);

/* Plans a product: units >= 0; columns >= block >= 1, a multiple of it; block <= TQ_BLOCKWISE_MOST; fused: a multiple
   of 16.  TQ_NO_MEMORY: the packed weights would exceed the address space. */
tq_status tq_blockwise_plan(tq_blockwise *plan, size_t units, size_t columns, size_t block, bool fused,
                            tq_error *error);

/* Packs weights [units][columns], each in [-8, 7], into `memory`: packed_bytes bytes.  scales: [units][blocks], finite
   or not; sums: [units]. */
void tq_blockwise_pack(const tq_blockwise *plan, const int8_t *weights, const float *scales, const float *sums,
                       void *memory);

/* The weights that tq_blockwise_pack wrote to `memory`. */
tq_blockwise_weights tq_blockwise_packed(const tq_blockwise *plan, const void *memory);

/* Orders a row's quantized values [columns] in `memory`: row_bytes bytes.  *row refers to both. */
void tq_blockwise_row_make(const tq_blockwise *plan, const int8_t *values, float scale, int32_t zero_point,
                           void *memory, tq_blockwise_row *row);

/* out[r * units + u] for `count` rows and the units of panels [begin, end), end <= plan->panels.  bias: [units], or
   NULL. */
void tq_blockwise_run(const tq_blockwise *plan, const tq_blockwise_weights *weights, const tq_blockwise_row *row,
                      size_t count, const float *bias, size_t begin, size_t end, float *out);

/* Row i of blockwise.def, as tq_kernel_variant. */
bool tq_blockwise_variant(size_t i, tq_variant *row);

/* ---- the contract of a body ---- */

/* out: [lanes] of one panel, or of two that follow each other, for each row; a row begins out_stride floats after the
   one before.  values, scales, sums: of the first panel; bias: as out, or NULL. */
typedef void (*tq_blockwise_fn)(const tq_blockwise *plan, const tq_blockwise_weights *panel,
                                const tq_blockwise_row *row, const float *bias, float *out, size_t out_stride);

/* Writes a row's values to to[blocks][steps][4] in the order of steps, and `offsets` as in tq_blockwise_row.  Plain:
   offsets alone, as the values of whole pieces lie in order. */
typedef void (*tq_blockwise_order_fn)(const tq_blockwise *plan, const int8_t *from, int8_t *to, int32_t *offsets);

enum { TQ_BLOCKWISE_PIECE = 32 }; /* columns */

struct tq_blockwise_kernel {
    const char *isa;
    size_t lanes; /* at most TQ_BLOCKWISE_LANES */
    /* of one row, and of TQ_BLOCKWISE_ROWS; of one panel, and of two; NULL: one at a time */
    tq_blockwise_fn plain[2][2], fused[2][2];
    /* of rows whose blocks are whole pieces; NULL: as other rows */
    tq_blockwise_order_fn order_plain, order_fused;
};

#if TQ_X86
void tq_blockwise_order_plain(const tq_blockwise *plan, const int8_t *from, int8_t *to, int32_t *offsets);
void tq_blockwise_order_fused(const tq_blockwise *plan, const int8_t *from, int8_t *to, int32_t *offsets);
#endif

#define BLOCKWISE(isa) extern const tq_blockwise_kernel tq_blockwise__##isa;
#include "kernels/blockwise/blockwise.def"

#endif
