/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of a product share: alignment of its memories, and the parts of one call of tq_gemm_run.
 */
#ifndef TQ_KERNELS_GEMM_PARTS_H
#define TQ_KERNELS_GEMM_PARTS_H

#include "base/sizes.h"
#include "kernels/gemm/products.h"

#define TQ_GEMM_ALIGN 64 /* bytes: of each part of a memory */
#define TQ_GEMM_LINE 4096 /* bytes: the longest filter row that is copied without an indirection buffer */
#define TQ_GEMM_SLACK 128 /* bytes behind copied rows, padding and sums that whole vectors may write or read */

#define TQ_GEMM_SHORT_RUN 64 /* elements: more are summed faster by row_sum than by a panel of ones */

#define TQ_GEMM_WORK (1 << 17) /* multiply-adds; with fewer, waking a thread costs more than it saves */

/* `bytes`, rounded up to TQ_GEMM_ALIGN.  Parts are counted in 64 bits on every machine, so that a plan or scratch that
   is too large for size_t is found by its sum. */
static inline uint64_t tq_gemm_part(uint64_t bytes)
{
    return (bytes + TQ_GEMM_ALIGN - 1) / TQ_GEMM_ALIGN * TQ_GEMM_ALIGN;
}

/* gemm_pack.c: the bytes of a product's packed weights, biases, sums and padding; panel_bytes * panels fits size_t. */
uint64_t tq_gemm_packed_bytes(const tq_gemm *gemm);

/* One call of tq_gemm_run, cut into row_parts of rows by panel_parts of panels. */
typedef struct tq_gemm_call {
    const tq_gemm *gemm;
    const tq_gemm_rows *rows;
    const tq_gemm_store *store;
    char *out;
    size_t out_stride, out_size;
    char *scratch; /* shares of the threads; then the image */
    size_t share;  /* bytes */
    size_t block;                  /* rows of a block */
    size_t row_parts, panel_parts;
    size_t line;                   /* taps of a filter row, whose pixels may be contiguous; else 1 */
    const char *limit;             /* the end of the rows' memory */
    bool plain;                    /* row r begins at r * stride: no indirection */
    bool image;                    /* rows are windows of one image: gemm_image.c */
    size_t step, down;             /* of tiles: there 0, and from a filter row to the next; elsewhere block, 0 */
    size_t apart;                  /* for even tiles: bytes from a row's only run to the next row's; else 0 */
    bool fetches;                  /* tiles prefetch rows */
    bool reads_lines;              /* runs are filter rows, in the image or copied at its edges */
    size_t runs, length;           /* of a row: the gemm's, or filter rows, in whole groups of the kernel */
} tq_gemm_call;

/* Rows and panels of a tile, or of tiles whose sums are stored together. */
typedef struct tq_gemm_position {
    size_t row, rows; /* in the block */
    size_t panel, panels;
    size_t out_row, end; /* in the product; the end of the job's rows */
} tq_gemm_position;

/* A job's share of scratch, for one block of rows at a time. */
typedef struct tq_gemm_space {
    const void **table; /* the indirection buffer: [runs][block]; where rows are copied, the pointers to the copies
                           [block] and then [taps][block]; of lines, [filter rows][block] */
    int32_t *adjust;    /* [block] */
    char *copies;       /* [block][copied row] */
    char *bytes;        /* the same in 8 bits, where tq_gemm_widens */
} tq_gemm_space;

/* The part of the indirection buffer that points to input pixels: [taps][block]. */
static inline const void **tq_gemm_taps(const tq_gemm_call *call, const tq_gemm_space *space)
{
    return space->table + (call->gemm->copies ? call->block : 0);
}

/* Whether rows are summed by a panel of ones, which stands behind the others: runs so short are not worth the calls of
   row_sum.  The weights of int8 rows have a zero point too rarely. */
static inline bool tq_gemm_has_ones(const tq_gemm *g)
{
    return g->in == TQ_u8 && g->length <= TQ_GEMM_SHORT_RUN;
}

/* The rows of a tile where `left` more are to be computed: the sizes of gemm_simd.h, at most `most`. */
static inline size_t tq_gemm_tile_rows(size_t left, size_t most)
{
    const size_t rows = tq_min_size(left, most);
    return rows >= 6 ? 6 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
}

/* Bytes of a panel's weights for a group of elements. */
static inline size_t tq_gemm_group_bytes(const tq_gemm *g)
{
    return g->lanes * g->kernel->group * g->kernel->weight_bytes;
}

/* The byte that 8-bit elements of rows are exclusive-ored with. */
static inline uint8_t tq_gemm_flip(const tq_gemm *g)
{
    return g->in == TQ_u8 ? g->kernel->flip_u8 : g->kernel->flip_i8;
}

/* Whether copies turn 8-bit rows into 16 bits. */
static inline bool tq_gemm_widens(const tq_gemm *g)
{
    return g->in_bytes != g->kernel->row_bytes;
}

/* Bytes of a copied row; 0 where rows are not copied. */
static inline size_t tq_gemm_copied_row_bytes(const tq_gemm *g)
{
    return g->copies ? tq_round_up(g->runs * g->length, g->kernel->group) * g->kernel->row_bytes : 0;
}

/* Elements of real value 0 at gemm.padding: a pixel, and where rows are copied a filter row. */
static inline size_t tq_gemm_padding_elements(const tq_gemm *g)
{
    const size_t line = g->copies ? tq_min_size(g->length, TQ_GEMM_LINE / g->in_bytes) : 0;
    return line > g->depth ? line : g->depth;
}

/* Whether filter rows are contiguous in the image, and short enough to be copied without an indirection buffer, where
   rows have to be copied. */
static inline bool tq_gemm_has_lines(const tq_gemm *g, const tq_scan *s, size_t stride)
{
    return g->copies && !g->non_finite && !s->columns_first && s->dilation_w == 1 && stride == g->depth &&
           (size_t)s->filter_w * g->depth * g->in_bytes <= TQ_GEMM_LINE;
}

/* `count` in as few parts as possible, none above `most`: the size of the largest of nearly equal parts. */
static inline size_t tq_gemm_fair_share(size_t count, size_t most)
{
    if (count <= most)
        return count ? count : 1;
    const size_t parts = count / most + (count % most != 0);
    return count / parts + (count % parts != 0);
}

/* Where a panel's groups of weights stand. */
typedef struct tq_gemm_panel {
    size_t at;          /* bytes from the first panel's first group */
    size_t next, group; /* bytes to the next panel, and to the panel's next group */
    size_t left;        /* this panel and those behind it whose groups alternate with its */
} tq_gemm_panel;

static inline tq_gemm_panel tq_gemm_panel_at(const tq_gemm *g, size_t panel)
{
    const size_t bytes = tq_gemm_group_bytes(g), first = g->row_panels ? panel - panel % g->row_panels : 0;
    if (!g->row_panels)
        return (tq_gemm_panel){panel * g->panel_bytes, g->panel_bytes, bytes, g->panels - panel};
    const size_t together = tq_min_size(g->row_panels, g->panels - first);
    return (tq_gemm_panel){first * g->panel_bytes + (panel - first) * bytes, bytes, together * bytes,
                           first + together - panel};
}

/* Sets a tile's panels, from `panel` on. */
static inline void tq_gemm_point_panels(const tq_gemm *g, size_t panel, tq_tile *tile)
{
    const tq_gemm_panel p = tq_gemm_panel_at(g, panel);
    tile->panel = (const char *)g->panel + p.at;
    tile->panel_bytes = p.next;
    tile->group_bytes = p.group;
}

/* gemm_tile_store.c: stores the sums of at->rows rows by at->panels panels; adjust: [at->rows], added to the sums.
   Reads of the call: gemm, store, out, out_stride, out_size. */
void tq_gemm_store_tile(const tq_gemm_call *call, const void *sums, const int32_t *adjust, const tq_gemm_position *at);

/* gemm_scale.c: stores the sums of a tile, whose first row is row `row` of the product, by t->store->scaling. */
void tq_gemm_scale_tile(const tq_tile_store *t, size_t row);

/* gemm_row.c: tq_gemm_run for one row, where gemm.short_row; output rows [first, first + count), whose indirection is
   filled, where gemm.dots. */
void tq_gemm_run_one_row(const tq_gemm *gemm, const void *row, const tq_gemm_store *store, void *out, void *scratch);
void tq_gemm_run_dots(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count);

/* gemm_image.c, for rows that are windows of one image, whose filter rows are read where they lie: sets gemm.image and
   gemm.image_bytes; copies the image, where *rows become the copy's, with *scan; fills the indirection buffer. */
void tq_gemm_plan_image(tq_gemm *gemm, const tq_scan *scan, size_t stride);
void tq_gemm_pad_image(const tq_gemm *gemm, tq_gemm_rows *rows, tq_scan *scan, char *memory);
void tq_gemm_point_image(const tq_gemm_call *call, const void **table, size_t first, size_t count);

/* gemm_rows.c: fills the indirection buffer for rows [first, first + count), and copies rows where gemm.copies; then
   whether call->reads_lines.  count <= call->block. */
void tq_gemm_fill_indirection(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count);
bool tq_gemm_reads_lines(const tq_gemm_call *call);

/* gemm_adjust.c: space->adjust, the terms that the weights' zero point adds to the sums of `count` rows whose
   indirection is filled. */
void tq_gemm_find_adjust(const tq_gemm_call *call, const tq_gemm_space *space, size_t count);

/* gemm_loops.c: output rows [first, first + count), whose indirection is filled, without tiles: all channels, where
   gemm.narrow; channels [channel, channel_end), where gemm.non_finite and rows may have padding. */
void tq_gemm_run_narrow(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count);
void tq_gemm_skip_padding(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count,
                          size_t channel, size_t channel_end);

#endif
