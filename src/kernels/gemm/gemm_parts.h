/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of a product share: its memories' alignment, a call of tq_gemm_run and what they do for one.
 */
#ifndef TQ_KERNELS_GEMM_PARTS_H
#define TQ_KERNELS_GEMM_PARTS_H

#include "base/sizes.h"
#include "kernels/gemm/products.h"

#define TQ_GEMM_ALIGN 64 /* of each part of a memory */
/* Bytes behind copied rows that copies of whole vectors may write, and behind padding read. */
#define TQ_GEMM_SLACK 64

/* The bytes of a part of a memory, with those up to the next.  Parts are counted in 64 bits, whatever a size_t has: a
   plan or scratch that is too large is refused by its sum. */
static inline uint64_t tq_gemm_part(uint64_t bytes)
{
    return (bytes + TQ_GEMM_ALIGN - 1) / TQ_GEMM_ALIGN * TQ_GEMM_ALIGN;
}

/* gemm_pack.c: the bytes of a planned product's weights, whose panels' bytes are known to fit. */
uint64_t tq_gemm_packed_bytes(const tq_gemm *gemm);

/* One call of tq_gemm_run, cut into jobs: row_parts of rows by panel_parts of panels. */
typedef struct tq_gemm_call {
    const tq_gemm *gemm;
    const tq_gemm_rows *rows;
    const tq_gemm_store *store;
    char *out;
    size_t out_stride, out_size;
    char *scratch;
    size_t block; /* rows of one */
    size_t row_parts, panel_parts;
    size_t line;       /* taps of a line of the filter, which may be neighbours; else 1 */
    const char *limit; /* the end of the rows' memory */
    bool plain;
} tq_gemm_call;

/* What a job has in its share of scratch, for one block of rows at a time. */
typedef struct tq_gemm_space {
    const void **table; /* [runs][block]; where rows are copied [1 + taps][block], the copies before what they are of */
    int32_t *adjust; /* [block] */
    char *copies; /* [block][copied row] */
} tq_gemm_space;

/* The pointers to all taps of the block's rows, [taps][block]. */
static inline const void **tq_gemm_taps(const tq_gemm_call *call, const tq_gemm_space *space)
{
    return space->table + (call->gemm->copies ? call->block : 0);
}

/* What rows of 8-bit elements are exclusive-ored with. */
static inline uint8_t tq_gemm_flip(const tq_gemm *g)
{
    return g->in == TQ_u8 ? g->kernel->flip_u8 : g->kernel->flip_i8;
}

/* Of a row's copy; 0 where rows are not copied. */
static inline size_t tq_gemm_copied_row_bytes(const tq_gemm *g)
{
    return g->copies ? tq_round_up(g->length, g->kernel->group) * g->kernel->row_bytes : 0;
}

/* gemm_rows.c: rows [first, first + count) as tiles read them, and what weights' zero points add to their sums. */
void tq_gemm_fill_indirection(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count);
void tq_gemm_find_adjust(const tq_gemm_call *call, const tq_gemm_space *space, size_t count);

/* gemm_loops.c: output rows [first, first + count), which are placed, without tiles: all channels where gemm.narrow;
   and channels [channel, channel_end) where gemm.non_finite and rows may have padding. */
void tq_gemm_run_narrow(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count);
void tq_gemm_skip_padding(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count,
                          size_t channel, size_t channel_end);

#endif
