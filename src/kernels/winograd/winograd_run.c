/* SPDX-License-Identifier: Apache-2.0
 *
 * Eval: tiles are transformed, a chunk of them at a time, multiplied with panels of weights, and their outputs stored.
 * A chunk stays in the second-level cache.  With few weights each thread has its own tiles.  With many, threads share a
 * chunk: each multiplies some panels with all of its tiles; where panels do not divide among threads, a part's first
 * and last panel take some of the tiles.
 */
#include <string.h>

#include "base/sizes.h"
#include "base/stop.h"
#include "base/threads.h"
#include "kernels/gemm/gemm_parts.h"
#include "kernels/winograd/winograd_parts.h"

#define CHUNK_BYTES (512 << 10) /* of transformed tiles */
#define OWN_WEIGHTS (2 << 20)   /* bytes of weights that each thread may read, beside tiles of its own */
#define PARTS 4                 /* of a thread: another one takes some of them from it where it is slow */
#define GROUP 24                /* tiles whose sums are computed together */
#define PIECE 8                 /* tiles of a line whose outputs are stored together */

typedef struct call {
    const tq_winograd *winograd;
    const tq_gemm_rows *rows;
    const tq_gemm_store *store;
    char *out;
    size_t out_stride, out_size;
    int threads;
    size_t across, down;   /* tiles of an image */
    size_t all;            /* tiles */
    size_t first, count;   /* tiles of the chunk */
    int16_t *tiles;        /* [count][36][depth]; threads with their own tiles: chunk_bytes each */
    char *scratch;         /* of a thread: int32_t sums[GROUP][36][lanes] */
    size_t share;          /* bytes */
    size_t parts;
} call;

static size_t tile_elements(const tq_winograd *w)
{
    return TQ_WINOGRAD_POINTS * w->depth;
}

/* Whether each thread transforms and multiplies its own tiles.  It reads all weights then; else it reads all tiles,
   most of them from the caches of other cores. */
static bool owns_tiles(const tq_winograd *w)
{
    return w->panels * w->lanes * tile_elements(w) * sizeof(int16_t) <= OWN_WEIGHTS;
}

static size_t chunk_tiles(const tq_winograd *w)
{
    const size_t tiles = CHUNK_BYTES / (tile_elements(w) * sizeof(int16_t));
    return tiles < GROUP ? GROUP : tiles;
}

static uint64_t chunk_bytes(const tq_winograd *w)
{
    return tq_gemm_part((uint64_t)chunk_tiles(w) * tile_elements(w) * sizeof(int16_t));
}

/* Of a group and a panel. */
static size_t group_sums(const tq_winograd *w)
{
    return GROUP * TQ_WINOGRAD_POINTS * w->lanes;
}

/* Of a thread: the sums of a group. */
static size_t share_bytes(const tq_winograd *w, int threads)
{
    return (size_t)tq_share_bytes(group_sums(w) * sizeof(int32_t), threads);
}

uint64_t tq_winograd_scratch_bytes(const tq_winograd *winograd, int threads)
{
    const uint64_t chunks = owns_tiles(winograd) ? (uint64_t)threads : 1;
    return (uint64_t)threads * share_bytes(winograd, threads) + chunks * chunk_bytes(winograd);
}

/* ---- tiles ---- */

/* The tile's 36 pixels, those outside the image padding. */
static void find_pixels(const call *c, size_t tile, const void *pixels[TQ_WINOGRAD_POINTS])
{
    const tq_scan *s = c->rows->scan;
    const size_t image = tile / (c->across * c->down);
    const int64_t y = (int64_t)(tile / c->across % c->down) * TQ_WINOGRAD_OUT - s->pad_h;
    const int64_t x = (int64_t)(tile % c->across) * TQ_WINOGRAD_OUT - s->pad_w;
    const char *data = (const char *)c->rows->data + image * (size_t)s->in_h * (size_t)s->in_w * c->rows->stride;
    for (int64_t i = 0; i < TQ_WINOGRAD_IN; i++)
        for (int64_t j = 0; j < TQ_WINOGRAD_IN; j++, pixels++) {
            const bool inside = y + i >= 0 && y + i < s->in_h && x + j >= 0 && x + j < s->in_w;
            const size_t at = inside ? (size_t)((y + i) * s->in_w + x + j) : 0;
            *pixels = inside ? data + at * c->rows->stride : c->winograd->padding;
        }
}

static void transform_tiles(void *context, size_t begin, size_t end)
{
    const call *c = context;
    const tq_winograd *w = c->winograd;
    for (size_t i = begin; i < end && !tq_stop_after(tile_elements(w)); i++) {
        const void *pixels[TQ_WINOGRAD_POINTS];
        find_pixels(c, c->first + i, pixels);
        w->body->transform(pixels, w->depth, w->flip, w->zero_point, c->tiles + i * tile_elements(w));
    }
}

/* ---- outputs ---- */

/* Tiles [tile, tile + count) lie side by side; count <= PIECE. */
static void store_piece(const call *c, const int32_t *sums, size_t tile, size_t count, size_t panel)
{
    enum { STRIDE = PIECE * TQ_WINOGRAD_OUT };
    static const int32_t zeros[STRIDE];
    const tq_winograd *w = c->winograd;
    const tq_scan *s = c->rows->scan;
    const size_t first = panel * w->lanes;
    const size_t out_h = (size_t)s->out_h, out_w = (size_t)s->out_w;
    const size_t y = tile / c->across % c->down * TQ_WINOGRAD_OUT, x = tile % c->across * TQ_WINOGRAD_OUT;
    _Alignas(TQ_GEMM_ALIGN) int32_t values[TQ_WINOGRAD_OUT * STRIDE * TQ_WINOGRAD_LANES];
    for (size_t i = 0; i < count; i++)
        w->body->finish(sums + i * TQ_WINOGRAD_POINTS * w->lanes, w->bias + first,
                        values + i * TQ_WINOGRAD_OUT * w->lanes, STRIDE);
    for (size_t r = 0; r < TQ_WINOGRAD_OUT && y + r < out_h; r++) {
        const size_t pixel = (tile / (c->across * c->down) * out_h + y + r) * out_w + x;
        tq_tile_store store = {
            .store = c->store,
            .sums = values + r * STRIDE * w->lanes,
            .sums_stride = w->lanes,
            .adjust = zeros,
            .rows = tq_min_size(count * TQ_WINOGRAD_OUT, out_w - x),
            .channels = tq_min_size(w->lanes, w->channels - first),
            .first = first,
            .out = c->out + (pixel * c->out_stride + first) * c->out_size,
            .out_stride = c->out_stride,
        };
        tq_store_fn_of(w->stores, c->store->out, false)(&store);
    }
}

/* Tiles [begin, begin + count) of the chunk; count <= GROUP. */
static void run_group(const call *c, size_t begin, size_t count, size_t panel, int32_t *sums)
{
    const tq_winograd *w = c->winograd;
    w->body->multiply(c->tiles + begin * tile_elements(w), count, w->depth,
                      w->weights + panel * tile_elements(w) * w->lanes, sums);
    for (size_t i = 0, n; i < count; i += n) {
        const size_t tile = c->first + begin + i;
        n = tq_min_size(tq_min_size(PIECE, count - i), c->across - tile % c->across);
        store_piece(c, sums + i * TQ_WINOGRAD_POINTS * w->lanes, tile, n, panel);
    }
}

/* Tiles [begin, end) of the chunk, in nearly equal groups. */
static void run_panel(const call *c, size_t panel, size_t begin, size_t end, int32_t *sums)
{
    const size_t count = end - begin, groups = tq_divide_up(count, GROUP);
    for (size_t g = 0; g < groups; g++) {
        const size_t first = count * g / groups, n = count * (g + 1) / groups - first;
        if (tq_stop_after(n * tile_elements(c->winograd) / 2))
            return;
        run_group(c, begin + first, n, panel, sums);
    }
}

/* Parts [begin, end): nearly equal parts of all tiles of all panels, one panel after the other. */
static void run_panels(void *context, size_t share, size_t begin, size_t end)
{
    const call *c = context;
    const size_t all = c->winograd->panels * c->count, last = all * end / c->parts;
    for (size_t at = all * begin / c->parts, n; at < last; at += n) {
        const size_t tile = at % c->count;
        n = tq_min_size(c->count - tile, last - at);
        run_panel(c, at / c->count, tile, tile + n, (int32_t *)(void *)(c->scratch + share * c->share));
    }
}

static size_t parts_of(size_t groups, size_t threads)
{
    const size_t each = tq_min_size(PARTS, groups / threads);
    return threads == 1 || each < 2 ? threads : threads * each;
}

/* Tiles [begin, end) of the operator. */
static void run_chunks(call *c, size_t begin, size_t end, int threads)
{
    const size_t tiles = end - begin, most = chunk_tiles(c->winograd), chunks = tq_divide_up(tiles, most);
    for (size_t i = 0; i < chunks && !tq_stop_now(); i++) {
        c->first = begin + tiles * i / chunks;
        c->count = begin + tiles * (i + 1) / chunks - c->first;
        const size_t groups = c->winograd->panels * tq_divide_up(c->count, GROUP);
        const size_t some = tq_min_size((size_t)threads, groups);
        c->parts = parts_of(groups, some);
        tq_parallel_for(c->count, 1, threads, transform_tiles, c);
        tq_parallel_shares(c->parts, (int)some, run_panels, c);
    }
}

/* Parts [begin, end): nearly equal parts of all tiles. */
static void run_parts(void *context, size_t share, size_t begin, size_t end)
{
    const call *whole = context;
    call c = *whole;
    c.scratch += share * c.share;
    c.tiles += share * (chunk_bytes(c.winograd) / sizeof *c.tiles);
    run_chunks(&c, c.all * begin / whole->parts, c.all * end / whole->parts, 1);
}

void tq_winograd_run(const tq_winograd *winograd, const tq_gemm_rows *rows, const tq_gemm_store *store, void *out,
                     size_t out_stride, void *scratch, int threads)
{
    const tq_scan *s = rows->scan;
    call c = {
        .winograd = winograd,
        .rows = rows,
        .store = store,
        .out = out,
        .out_stride = out_stride,
        .out_size = tq_element_size(store->out),
        .threads = threads,
        .across = tq_winograd_tiles(s->out_w),
        .down = tq_winograd_tiles(s->out_h),
        .scratch = scratch,
        .share = share_bytes(winograd, threads),
        .tiles = (int16_t *)(void *)((char *)scratch + (size_t)threads * share_bytes(winograd, threads)),
    };
    c.all = rows->count / ((size_t)s->out_h * (size_t)s->out_w) * c.across * c.down;
    if (owns_tiles(winograd) && c.all >= (size_t)threads * (GROUP / 2)) {
        c.parts = parts_of(c.all / GROUP, (size_t)threads);
        tq_parallel_shares(c.parts, threads, run_parts, &c);
    } else
        run_chunks(&c, 0, c.all, threads);
}
