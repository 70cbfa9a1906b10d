/* SPDX-License-Identifier: Apache-2.0
 *
 * Two ways: where a group has one channel (depthwise convolutions), eight channels side by side; else blocks of patches
 * are gathered into panels, and tiles of the products summed over a block.
 */
#include "kernels/rounding/hessian.h"

#include "base/alloc.h"
#include "base/stop.h"
#include "base/threads.h"
#include "kernels/rounding/tiles.h"

#define MOST_BUFFER ((size_t)1 << 20) /* float64 values of a block of patches */
#define MOST_DEPTH ((size_t)256)      /* patches in a block */

/* The place of the input that tap `tap` of output place `out` meets; false: padding. */
static inline bool place_of(size_t out, size_t tap, size_t stride, size_t dilation, size_t before, size_t size,
                            bool transposed, size_t *place)
{
    const size_t reach = transposed ? out + before : out * stride + tap * dilation;
    const size_t lost = transposed ? tap : before;
    if (reach < lost)
        return false;
    const size_t found = reach - lost;
    if (transposed && found % stride)
        return false;
    *place = transposed ? found / stride : found;
    return *place < size;
}

/* The values of all channels that a tap meets at a position; NULL: padding. */
static const float *values_at(const tq_patches *p, const float *z, size_t position, size_t row, size_t column)
{
    const size_t x = position % p->out_width, y = position / p->out_width % p->out_height;
    const size_t batch = position / p->out_width / p->out_height;
    size_t at_y, at_x;
    if (!place_of(y, row, p->stride_height, p->dilation_height, p->before_height, p->height, p->transposed, &at_y) ||
        !place_of(x, column, p->stride_width, p->dilation_width, p->before_width, p->width, p->transposed, &at_x))
        return NULL;
    return z + ((batch * p->height + at_y) * p->width + at_x) * p->channels;
}

typedef struct job {
    const tq_patches *p;
    const float *z, *y; /* y: the other input of a pair, or NULL */
    double *products, *cross, *sums;
    size_t length, positions, taps;
    tq_tiles tiles;
    /* of a block of positions */
    size_t first, depth, group;
    bool apart;           /* one channel a group */
    const float **places; /* [taps][depth]: the values of all channels; NULL: padding */
    double *panels;       /* or, of one channel a group, the sums of eight channels each */
} job;

static void find_places(void *context, size_t begin, size_t end)
{
    job *w = context;
    for (size_t tap = begin; tap < end && !tq_stop_after(w->depth); tap++)
        for (size_t d = 0; d < w->depth; d++)
            w->places[tap * w->depth + d] =
                values_at(w->p, w->z, w->first + d, tap / w->p->kernel_width, tap % w->p->kernel_width);
}

/* Calls `add` for one block of at most `depth` positions after the other. */
static void each_block(job *w, size_t depth, int threads, void (*add)(job *w, int threads))
{
    for (w->first = 0; w->first < w->positions && !tq_stop_now(); w->first += depth) {
        w->depth = w->positions - w->first < depth ? w->positions - w->first : depth;
        const double terms = (double)w->depth * (double)w->length * (double)w->length * (w->y ? 2 : 0.5);
        const int some = tq_tile_threads(threads, terms * (w->apart ? (double)w->p->channels : 1));
        tq_parallel_for(w->taps, 1, some, find_places, w);
        if (!tq_stop_now())
            add(w, some);
    }
}

/* ---- blocks of patches ---- */

/* Gathers panels [begin, end) of a block; behind those of z stand those of y. */
static void gather(void *context, size_t begin, size_t end)
{
    job *w = context;
    const size_t part = w->p->channels / w->p->groups, base = w->group * part, count = tq_panel_count(w->length);
    for (size_t at = begin; at < end; at++) {
        const size_t side = at / count, panel = at % count;
        double *to = w->panels + at * TQ_PANEL * w->depth, sums[TQ_PANEL] = {0};
        const float *const *places[TQ_PANEL], *values = side ? w->y : w->z;
        size_t channels[TQ_PANEL], width = 0;
        for (size_t k = panel * TQ_PANEL; width < TQ_PANEL && k < w->length; k++, width++) {
            places[width] = w->places + k / part * w->depth;
            channels[width] = base + k % part;
        }
        for (size_t d = 0; d < w->depth; d++, to += TQ_PANEL) {
            for (size_t i = 0; i < width; i++)
                to[i] = places[i][d] ? (double)values[(size_t)(places[i][d] - w->z) + channels[i]] : 0;
            for (size_t i = width; i < TQ_PANEL; i++)
                to[i] = 0;
            for (size_t i = 0; i < TQ_PANEL; i++)
                sums[i] += to[i];
        }
        for (size_t i = 0; i < width; i++)
            w->sums[(side * w->p->groups + w->group) * w->length + panel * TQ_PANEL + i] += sums[i];
        if (tq_stop_after(w->depth * TQ_PANEL))
            return;
    }
}

/* Adds the products of panel i of z with panel `other`, the j-th of its input. */
static void add_products(const job *w, double *table, size_t i, size_t j, size_t other)
{
    double tile[TQ_PANEL * TQ_PANEL];
    const size_t k = w->length, down = k - i * TQ_PANEL, across = k - j * TQ_PANEL;
    double *to = table + (w->group * k + i * TQ_PANEL) * k + j * TQ_PANEL;
    w->tiles.panels(w->panels + i * TQ_PANEL * w->depth, w->panels + other * TQ_PANEL * w->depth, w->depth, tile);
    for (size_t a = 0; a < TQ_PANEL && a < down; a++)
        for (size_t b = 0; b < TQ_PANEL && b < across; b++)
            to[a * k + b] += tile[TQ_PANEL * a + b];
}

static void add_tile(void *context, size_t i, size_t j)
{
    const job *w = context;
    add_products(w, w->products, i, j, j);
}

static void add_cross(void *context, size_t begin, size_t end)
{
    const job *w = context;
    const size_t count = tq_panel_count(w->length);
    for (size_t i = begin; i < end && !tq_stop_after(count * TQ_PANEL * w->depth); i++)
        for (size_t j = 0; j < count; j++)
            add_products(w, w->cross, i, j, count + j);
}

static void add_tiles(void *context, size_t begin, size_t end)
{
    const job *w = context;
    tq_each_pair(tq_panel_count(w->length), w->depth, begin, end, add_tile, context);
}

static void add_panels(job *w, int threads)
{
    const size_t count = tq_panel_count(w->length);
    for (w->group = 0; w->group < w->p->groups && !tq_stop_after(w->length); w->group++) {
        tq_parallel_for(w->y ? 2 * count : count, 4, threads, gather, w);
        if (w->products)
            tq_parallel_for(tq_square_count(count), 1, threads, add_tiles, w);
        if (w->y)
            tq_parallel_for(count, 1, threads, add_cross, w);
    }
}

/* ---- one channel a group ---- */

/* work: (K + 1) * K sums of eight channels, and as many values of one position. */
static void add_eight(const job *w, size_t channel, double *work)
{
    const size_t k = w->length, width = w->p->channels - channel;
    double *sums = work + k * k * TQ_PANEL, *values = sums + k * TQ_PANEL;
    for (size_t d = 0; d < w->depth && !tq_stop_after(k * k * TQ_PANEL / 2); d++) {
        for (size_t a = 0; a < k; a++) {
            const float *from = w->places[a * w->depth + d];
            for (size_t i = 0; i < TQ_PANEL; i++) {
                values[TQ_PANEL * a + i] = from && i < width ? (double)from[channel + i] : 0;
                sums[TQ_PANEL * a + i] += values[TQ_PANEL * a + i];
            }
        }
        for (size_t a = 0; a < k && w->products; a++)
            for (size_t b = a; b < k; b++)
                for (size_t i = 0; i < TQ_PANEL; i++)
                    work[TQ_PANEL * (a * k + b) + i] += values[TQ_PANEL * a + i] * values[TQ_PANEL * b + i];
    }
}

static void add_channels(void *context, size_t begin, size_t end)
{
    job *w = context;
    for (size_t at = begin; at < end; at++)
        add_eight(w, at * TQ_PANEL, w->panels + at * (w->length + 2) * w->length * TQ_PANEL);
}

static void add_eights(job *w, int threads)
{
    tq_parallel_for(tq_panel_count(w->p->channels), 1, threads, add_channels, w);
}

/* Adds what add_eight summed. */
static void spread(job *w)
{
    const size_t k = w->length;
    for (size_t channel = 0; channel < w->p->channels && !tq_stop_after(k * k); channel++) {
        const double *work = w->panels + channel / TQ_PANEL * (k + 2) * k * TQ_PANEL + channel % TQ_PANEL;
        for (size_t at = 0; at < k * k && w->products; at++)
            w->products[channel * k * k + at] += work[TQ_PANEL * at];
        for (size_t at = 0; at < k; at++)
            w->sums[channel * k + at] += work[TQ_PANEL * (k * k + at)];
    }
}

static tq_status add_all(job *w, int threads, tq_error *error)
{
    const tq_patches *p = w->p;
    w->length = tq_patch_length(p);
    w->positions = p->batches * p->out_height * p->out_width;
    w->taps = p->kernel_height * p->kernel_width;
    w->tiles = tq_tiles_here();
    if (!w->length || !w->positions)
        return TQ_OK;
    const bool apart = w->apart = !w->y && p->groups == p->channels && p->groups > 1;
    const size_t sides = w->y ? 2 : 1, panels = tq_panel_count(apart ? p->channels : w->length) * sides;
    size_t depth = apart ? MOST_DEPTH : MOST_BUFFER / (panels * TQ_PANEL);
    depth = depth < 16 ? 16 : depth > MOST_DEPTH ? MOST_DEPTH : depth;
    const size_t panel = apart ? (w->length + 2) * w->length : depth;
    tq_status status = tq_allocate(&tq_default_allocator, w->taps * depth, sizeof *w->places, &w->places, error);
    if (status)
        return status;
    status = tq_allocate(&tq_default_allocator, panels * panel, TQ_PANEL * sizeof *w->panels, &w->panels, error);
    if (!status) {
        each_block(w, depth, threads, apart ? add_eights : add_panels);
        if (apart)
            spread(w);
        tq_release(&tq_default_allocator, w->panels);
    }
    tq_release(&tq_default_allocator, w->places);
    return status;
}

tq_status tq_hessian_add(const tq_patches *patches, const float *z, double *products, double *sums, int threads,
                         tq_error *error)
{
    job w = {.p = patches, .z = z, .products = products, .sums = sums};
    return add_all(&w, threads, error);
}

tq_status tq_hessian_add_pair(const tq_patches *patches, const float *x, const float *y, double *own, double *cross,
                              double *sums, int threads, tq_error *error)
{
    job w = {.p = patches, .z = x, .y = y, .products = own, .cross = cross, .sums = sums};
    return add_all(&w, threads, error);
}
