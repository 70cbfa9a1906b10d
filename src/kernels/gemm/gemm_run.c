/* SPDX-License-Identifier: Apache-2.0
 *
 * tq_gemm_run: how rows and channels are cut into jobs, blocks and tiles.
 *
 * Rows are cut into blocks.  A block's rows are read in place through an indirection buffer (pointers to all runs of
 * all rows), or copied where the kernel cannot read them in place.  A few panels of weights at a time are multiplied
 * with all rows of the block, tile by tile: the panels stay in the first-level cache, the block in the second.  Threads
 * split rows, or panels where rows are few.  Tiles write floats and int32 outputs in place; other sums go through a
 * buffer to a store.
 */
#include "kernels/gemm/gemm.h"

#include <string.h>

#include "base/sizes.h"
#include "base/stop.h"
#include "base/threads.h"
#include "kernels/gemm/gemm_parts.h"

#define BLOCK_BYTES (192 << 10)  /* of a block's indirection buffer and copies */
#define BLOCK_ROWS 96
#define BLOCK_FLOATS (6 << 10)   /* of rows: most of a first-level cache */
#define SHORT_ROW 16             /* floats */
#define STORE_WORK 16           /* multiply-adds of 8 bits that take as long as an output's store, and less */
#define FLOAT_WORK 4            /* such multiply-adds take as long as one of floats */
#define WIDE_LENGTH 510         /* |row * weight| <= 2^22, so that 510 of them fit int32; even */

/* ---- scratch ---- */

/* Bytes of a row's copy in scratch.  A product of floats with weights that are not finite does not use the image. */
static size_t scratch_row_bytes(const tq_gemm *g)
{
    return g->image && g->in != TQ_f32 ? 0 : tq_gemm_copied_row_bytes(g);
}

/* A tile's panels start once a block: 250 cycles.  With tiles of 16 channels, 96 rows of 16 floats take 1540. */
static size_t most_rows(const tq_gemm *g)
{
    const size_t length = g->taps * g->depth, rows = BLOCK_FLOATS / (length > SHORT_ROW ? length : SHORT_ROW);
    const bool many = g->in == TQ_f32 && g->kernel->panels * g->kernel->lanes <= 16 && rows > BLOCK_ROWS;
    return many ? rows : BLOCK_ROWS;
}

static size_t block_rows(const tq_gemm *g)
{
    const uint64_t row = scratch_row_bytes(g) + (uint64_t)g->taps * sizeof(void *) + sizeof(int32_t);
    const size_t rows = tq_min_size((size_t)(BLOCK_BYTES / row), most_rows(g)) / g->kernel->rows * g->kernel->rows;
    return rows ? rows : g->kernel->rows;
}

/* Offsets in a job's share of scratch, behind the indirection buffer; bytes. */
struct offsets {
    uint64_t adjust, copies, bytes, end;
};

static struct offsets offsets_of(const tq_gemm *g, size_t block)
{
    const uint64_t lines = g->copies ? 1 + g->taps : g->runs;
    struct offsets at;
    at.adjust = tq_gemm_part(lines * block * sizeof(void *));
    at.copies = at.adjust + tq_gemm_part(block * sizeof(int32_t));
    const uint64_t copied = (uint64_t)block * scratch_row_bytes(g);
    at.bytes = at.copies + tq_gemm_part(copied + TQ_GEMM_SLACK);
    at.end = at.bytes + (tq_gemm_widens(g) ? tq_gemm_part(copied / 2 + TQ_GEMM_SLACK) : 0);
    return at;
}

uint64_t tq_gemm_scratch_bytes(const tq_gemm *gemm, int threads)
{
    const uint64_t share = tq_share_bytes(offsets_of(gemm, block_rows(gemm)).end, threads);
    return share * (uint64_t)threads + gemm->image_bytes;
}

static tq_gemm_space space_of(const tq_gemm_call *call, size_t share)
{
    const struct offsets at = offsets_of(call->gemm, call->block);
    char *begin = call->scratch + share * call->share;
    return (tq_gemm_space){(const void **)(void *)begin, (int32_t *)(void *)(begin + at.adjust), begin + at.copies,
                           begin + at.bytes};
}

/* ---- tiles ---- */

/* Whether the sums of tiles are the output. */
static bool stores_sums(const tq_gemm_call *call)
{
    return call->gemm->in == TQ_f32 || (call->store->out == TQ_i32 && !call->gemm->row_factor);
}

/* The first rows of these, whose tiles may write to the output.  A last panel that is not full reaches into the
   next rows: these must be written later, by the same job, to the panel's first channel. */
static size_t rows_in_place(const tq_gemm_call *call, const tq_gemm_position *at)
{
    const tq_gemm *g = call->gemm;
    const size_t width = at->panels * g->kernel->lanes, after = at->end - at->out_row;
    if (!stores_sums(call))
        return 0;
    if (at->panel * g->kernel->lanes + width <= g->channels)
        return at->rows;
    const size_t reach = width / g->channels;
    if (at->panels < g->panels || call->out_stride != g->channels || after <= reach)
        return 0;
    return tq_min_size(at->rows, (after - reach) / TQ_TALL_ROWS * TQ_TALL_ROWS);
}

/* Whether one call computes several tiles of so many rows. */
static bool repeats(const tq_gemm_kernel *k, size_t rows, bool half)
{
    return k->repeats || (rows == TQ_TALL_ROWS && !half);
}

/* Tiles of `at->panels` panels one below the other, whose sums are stored together, or lie in place. */
static void run_tiles(const tq_gemm_call *call, const tq_gemm_space *space, const tq_gemm_position *at, bool in_place)
{
    const tq_gemm *g = call->gemm;
    const tq_gemm_kernel *k = g->kernel;
    const size_t first = at->panel * k->lanes, width = at->panels * k->lanes;
    const bool half = k->half_tile && first + width >= g->channels + k->lanes / 2;
    _Alignas(TQ_GEMM_ALIGN) float sums[TQ_TILE_ROWS * TQ_TILE_CHANNELS + TQ_GEMM_SLACK / sizeof(float)];
    tq_tile tile = {
        .step = call->step,
        .down = call->down,
        .runs = call->runs,
        .length = call->length,
        .bias = (const char *)g->bias + at->panel * k->lanes * 4,
        .flip = tq_gemm_flip(g),
        .sums = in_place ? call->out + (at->out_row * call->out_stride + first) * sizeof(float) : (char *)sums,
        .sums_stride = (in_place ? call->out_stride : width) * 4,
        .floor = call->store->floor,
        .ceiling = call->store->ceiling,
    };
    tq_gemm_point_panels(g, at->panel, &tile);
    /* The first tiles prefetch the panels that follow, one each: two would cost a tile more than they save. */
    const size_t after = at->row == 0 ? tq_min_size(at->panels, g->panels - at->panel - at->panels) : 0;
    const size_t tall = at->panels <= k->tall_panels ? at->rows / TQ_TALL_ROWS * TQ_TALL_ROWS : 0;
    for (size_t r = 0, n = 0, rows; r < at->rows; r += rows * tile.tiles, n++) {
        const size_t end = r < tall ? tall : at->rows;
        rows = r < tall ? TQ_TALL_ROWS : tq_gemm_tile_rows(at->rows - r, k->rows);
        tile.row = space->table + at->row + r;
        tile.tiles = repeats(k, rows, half) && n >= after ? (end - r) / rows : 1;
        tile.ahead = n < after && !g->row_panels ? (at->panels + n) * g->panel_bytes : 0;
        (half ? k->half_tile : k->tile)(rows, at->panels)(&tile);
        tile.sums = (char *)tile.sums + rows * tile.tiles * tile.sums_stride;
    }
    if (!in_place)
        tq_gemm_store_tile(call, sums, space->adjust + at->row, at);
}

/* run_tiles where 32 bits hold the sums: in place, and then as many rows at a time as the buffer holds.  Changes `at`:
   a copy of a record that was just written would wait for it. */
static void run_narrow_tiles(const tq_gemm_call *call, const tq_gemm_space *space, tq_gemm_position *at)
{
    const size_t most = TQ_TILE_ROWS * TQ_TILE_CHANNELS / (at->panels * call->gemm->kernel->lanes);
    const size_t rows = rows_in_place(call, at);
    size_t left = at->rows - rows;
    at->rows = rows;
    if (rows)
        run_tiles(call, space, at, true);
    for (; left; left -= at->rows) {
        at->row += at->rows, at->out_row += at->rows;
        at->rows = tq_min_size(left, most / TQ_TALL_ROWS * TQ_TALL_ROWS);
        run_tiles(call, space, at, false);
    }
}

/* run_tiles for one tile of 64-bit sums: rows are cut into pieces whose sums fit 32 bits. */
static void run_wide_tile(const tq_gemm_call *call, const tq_gemm_space *space, tq_gemm_position *at)
{
    static const int32_t zeros[TQ_TILE_CHANNELS];
    const tq_gemm *g = call->gemm;
    const size_t lanes = g->kernel->lanes, width = at->panels * lanes;
    _Alignas(TQ_GEMM_ALIGN) int32_t part[TQ_TILE_ROWS * TQ_TILE_CHANNELS];
    uint64_t sums[TQ_TILE_ROWS * TQ_TILE_CHANNELS];
    const void *row[TQ_TILE_ROWS];
    for (size_t r = 0; r < at->rows; r++)
        memcpy(sums + r * width, (const uint64_t *)g->bias + at->panel * lanes, width * sizeof *sums);
    for (size_t k = 0; k < g->length; k += WIDE_LENGTH) {
        for (size_t r = 0; r < at->rows; r++)
            row[r] = (const int16_t *)space->table[at->row + r] + k;
        tq_tile tile = {
            .row = row,
            .step = TQ_TILE_ROWS,
            .runs = 1,
            .length = tq_min_size(WIDE_LENGTH, g->length - k),
            .panel = (const char *)g->panel + at->panel * g->panel_bytes + k * lanes * g->kernel->weight_bytes,
            .panel_bytes = g->panel_bytes,
            .group_bytes = tq_gemm_group_bytes(g),
            .bias = zeros,
            .sums = part,
            .sums_stride = width * 4,
        };
        g->kernel->tile(at->rows, at->panels)(&tile);
        for (size_t i = 0; i < at->rows * width; i++)
            sums[i] += (uint64_t)(int64_t)part[i];
    }
    tq_gemm_store_tile(call, sums, space->adjust + at->row, at);
}

/* In the unit of tq_stop_count, element operations: about 32 multiply-adds take as long as one. */
static size_t tile_work(const tq_gemm *g, size_t rows, size_t panels)
{
    return rows * panels * g->kernel->lanes * g->taps * g->depth / 32;
}

/* The panels of tiles from `panel` on.  Full tiles first: tall tiles take the rest as fast, and stores of full
   tiles are the fastest. */
static size_t tile_panels(const tq_gemm *g, size_t rows, size_t panel, size_t end)
{
    const tq_gemm_kernel *k = g->kernel;
    const size_t left = tq_min_size(tq_gemm_panel_at(g, panel).left, end - panel);
    return rows == 1 || rows < k->rows ? tq_gemm_fair_share(left, rows == 1 ? k->wide_panels : k->panels)
                                       : tq_min_size(k->panels, left);
}

/* Rows [first, first + count) of a job that ends at `end`. */
static void run_block(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count, size_t end,
                      size_t panel, size_t panel_end, size_t *work)
{
    const tq_gemm *g = call->gemm;
    const tq_gemm_kernel *k = g->kernel;
    tq_gemm_position at = {.end = end};
    for (at.panel = panel; at.panel < panel_end; at.panel += at.panels) {
        at.panels = tile_panels(g, count, at.panel, panel_end);
        if (tq_stop_count(work, tile_work(g, count, at.panels)))
            return;
        for (size_t row = 0, some; row < count; row += some) {
            some = g->wide ? tq_gemm_tile_rows(count - row, k->rows) : count;
            at.row = row, at.rows = some, at.out_row = first + row;
            (g->wide ? run_wide_tile : run_narrow_tiles)(call, space, &at);
        }
    }
}

/* ---- jobs ---- */

/* The first row of a part: whole tiles before it, one at least. */
static size_t first_row(const tq_gemm_call *call, size_t part)
{
    const size_t rows = call->rows->count, tile = call->gemm->kernel->rows;
    return tq_min_size(rows, tq_divide_up(rows, tile) * part / call->row_parts * tile);
}

/* The first panel of a part; panels whose groups alternate are of one part. */
static size_t first_panel(const tq_gemm_call *call, size_t part)
{
    const tq_gemm *g = call->gemm;
    const size_t tile = g->row_panels ? g->row_panels : 1;
    return tq_min_size(g->panels, tq_divide_up(g->panels, tile) * part / call->panel_parts * tile);
}

/* Rows [first, end) and panels [panel, panel_end), in nearly equal blocks. */
static void run_rows(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t end, size_t panel,
                     size_t panel_end)
{
    const tq_gemm *g = call->gemm;
    const size_t even = tq_divide_up(end - first, tq_divide_up(end - first, call->block));
    const size_t block = tq_min_size(call->block, tq_round_up(even, TQ_TALL_ROWS));
    size_t work = 0;
    for (size_t count; first < end; first += count) {
        count = tq_min_size(block, end - first);
        if (tq_stop_count(&work, count))
            return;
        tq_gemm_fill_indirection(call, space, first, count);
        if (g->non_finite && !call->plain) {
            tq_gemm_skip_padding(call, space, first, count, panel * g->lanes,
                                 tq_min_size(panel_end * g->lanes, g->channels));
            continue;
        }
        if (g->narrow) {
            tq_gemm_run_narrow(call, space, first, count);
            continue;
        }
        if (g->in != TQ_f32)
            tq_gemm_find_adjust(call, space, count);
        if (g->dots) {
            tq_gemm_run_dots(call, space, first, count);
            continue;
        }
        run_block(call, space, first, count, end, panel, panel_end, &work);
    }
}

/* Parts [begin, end); side by side they are one product. */
static void run_parts(void *context, size_t share, size_t begin, size_t end)
{
    const tq_gemm_call *call = context;
    const tq_gemm_space space = space_of(call, share);
    const bool by_rows = call->panel_parts == 1;
    for (size_t part = begin, count; part < end; part += count) {
        const size_t row = part / call->panel_parts, panel = part % call->panel_parts;
        count = by_rows ? end - part : tq_min_size(end - part, call->panel_parts - panel);
        const size_t first = first_row(call, row), last = first_row(call, row + (by_rows ? count : 1));
        const size_t panel_first = first_panel(call, panel),
                     panel_last = first_panel(call, panel + (by_rows ? 1 : count));
        if (first < last && panel_first < panel_last)
            run_rows(call, &space, first, last, panel_first, panel_last);
    }
}

/* Whether jobs take panels in place of rows: where weights are so much more than rows that each job should read but its
   own, and rows are not copied.  Else jobs keep the rows that the last operator left in their caches. */
static bool should_split_panels(const tq_gemm_call *call, size_t jobs)
{
    const tq_gemm *g = call->gemm;
    return !g->copies && !g->dots && g->panels / g->kernel->panels >= jobs && g->channels / 2 > call->rows->count;
}

/* Cuts the part of each thread into parts of two tiles at least. */
static void cut_parts(tq_gemm_call *call, size_t threads, double work)
{
    const tq_gemm *g = call->gemm;
    if (call->panel_parts == 1)
        call->row_parts *= tq_parts_of_thread(work, threads, call->rows->count / g->kernel->rows / 2);
    else if (call->row_parts == 1)
        call->panel_parts *= tq_parts_of_thread(work, threads, g->panels / g->kernel->panels / 2);
}

/* Sets row_parts and panel_parts.  Returns the threads that compute them. */
static size_t find_parts(tq_gemm_call *call, int threads)
{
    const tq_gemm *g = call->gemm;
    const size_t rows = call->rows->count;
    const size_t lanes = g->dots ? 1 : g->kernel->lanes;
    const size_t channels = tq_round_up(g->channels, lanes); /* a panel that is not full takes as long */
    const double work = (double)rows * (double)channels * (double)(g->taps * g->depth + STORE_WORK) *
                        (g->in == TQ_f32 ? FLOAT_WORK : 1) / TQ_GEMM_WORK;
    size_t jobs = tq_working_threads(work, threads);
    call->row_parts = tq_min_size(jobs, rows / g->kernel->rows + (rows % g->kernel->rows != 0));
    if (should_split_panels(call, jobs))
        call->row_parts = 1;
    call->panel_parts = g->dots ? 1 : tq_min_size(jobs / call->row_parts, g->panels);
    jobs = call->row_parts * call->panel_parts;
    cut_parts(call, jobs, work);
    return jobs;
}

/* The end of the rows' memory: behind the last pixel of the input. */
static const char *end_of_rows(const tq_gemm *g, const tq_gemm_rows *rows, bool plain)
{
    const tq_scan *w = rows->scan;
    size_t pixels = rows->count;
    if (!plain)
        pixels = pixels / ((size_t)w->out_h * (size_t)w->out_w) * (size_t)w->in_h * (size_t)w->in_w;
    return (const char *)rows->data + ((pixels - 1) * rows->stride + g->depth) * g->in_bytes;
}

void tq_gemm_run(const tq_gemm *gemm, const tq_gemm_rows *rows, const tq_gemm_store *store, void *out,
                 size_t out_stride, void *scratch, int threads)
{
    if (!rows->count || !gemm->channels)
        return;
    if (rows->count == 1 && gemm->short_row && (!rows->scan || tq_scan_is_plain(rows->scan))) {
        tq_gemm_run_one_row(gemm, rows->data, store, out, scratch);
        return;
    }
    tq_gemm_rows in_image = *rows;
    tq_scan scan;
    tq_gemm_call call = {
        .gemm = gemm,
        .rows = rows,
        .store = store,
        .out = out,
        .out_stride = out_stride,
        .out_size = tq_element_size(store->out),
        .scratch = scratch,
        .image = gemm->image && !gemm->non_finite,
        .block = block_rows(gemm),
        .line = rows->scan && !rows->scan->columns_first ? (size_t)rows->scan->filter_w : 1,
        .plain = !rows->scan || tq_scan_is_plain(rows->scan),
    };
    call.limit = end_of_rows(gemm, rows, call.plain);
    call.reads_lines = call.image || tq_gemm_reads_lines(&call);
    call.runs = call.reads_lines ? (size_t)rows->scan->filter_h : gemm->runs;
    call.length = call.reads_lines ? tq_round_up(call.line * gemm->depth, gemm->kernel->group) : gemm->length;
    call.step = call.block;
    const size_t jobs = find_parts(&call, threads);
    call.share = (size_t)tq_share_bytes(offsets_of(gemm, call.block).end, (int)jobs);
    if (call.image) {
        if (gemm->image_bytes)
            tq_gemm_pad_image(gemm, &in_image, &scan, call.scratch + call.share * jobs);
        call.rows = &in_image;
        call.step = 0;
        call.down = (size_t)in_image.scan->dilation_h * (size_t)in_image.scan->in_w * gemm->depth * gemm->in_bytes;
    }
    tq_parallel_shares(call.row_parts * call.panel_parts, (int)jobs, run_parts, &call);
}
