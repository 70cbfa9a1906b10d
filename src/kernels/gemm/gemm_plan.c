/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a product: its body, and the sizes of its panels and rows.
 */
#include "base/checked.h"
#include "base/sizes.h"
#include "kernels/features.h"
#include "kernels/gemm/gemm_parts.h"

/* ---- bodies ---- */

static const struct {
    const tq_gemm_kernel *kernel;
    const char *name;
    uint8_t operation, feature;
} bodies[] = {
#define PRODUCT(operation, isa) {&tq_##operation##__##isa, #operation, TQ_PRODUCT_##operation, tq_feature_##isa},
#include "kernels/gemm/gemm.def"
};

/* The last row of the operation among tq_kernels_usable; *scalar: whether it is the scalar row. */
static const tq_gemm_kernel *find_body(tq_product_operation operation, bool *scalar)
{
    const uint32_t usable = tq_kernels_usable();
    const tq_gemm_kernel *found = NULL;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (bodies[i].operation == operation && usable >> bodies[i].feature & 1) {
            found = bodies[i].kernel;
            *scalar = bodies[i].feature == tq_feature_scalar;
        }
    return found;
}

bool tq_gemm_variant(size_t i, tq_variant *row)
{
    if (i >= sizeof bodies / sizeof *bodies)
        return false;
    bool scalar;
    const tq_gemm_kernel *kernel = bodies[i].kernel;
    *row = (tq_variant){bodies[i].name, kernel->isa, tq_kernels_features() >> bodies[i].feature & 1,
                        find_body(bodies[i].operation, &scalar) == kernel};
    return true;
}

/* ---- the plan ---- */

#define LEAST_TAP 4 /* elements: fewer are copied */

/* The most elements of a row, and the most taps and depth (one of the two may be 0).  Its i8 are less than an eighth of
 * all. */
#define MOST (SIZE_MAX > UINT32_MAX ? UINT32_MAX * (uint64_t)64 : SIZE_MAX / 32)

static const tq_gemm_kernel *choose_kernel(tq_element in, bool fused)
{
    bool scalar, other_scalar;
    if (in == TQ_f32)
        return find_body(fused ? TQ_PRODUCT_gemm_f32_fused : TQ_PRODUCT_gemm_f32, &scalar);
    const tq_gemm_kernel *i16 = find_body(TQ_PRODUCT_gemm_i16, &other_scalar);
    if (in == TQ_i16)
        return i16;
    const tq_gemm_kernel *i8 = find_body(TQ_PRODUCT_gemm_i8, &scalar);
    return scalar && !other_scalar ? i16 : i8;
}

/* Whether vectors of channels would be nearly empty: one channel, whose additions depend on one another, or so few
   channels and such short rows that a tile takes longer to start than to add. */
static bool is_narrow(const tq_gemm *g)
{
    const bool few = g->channels == 1 || (g->channels && g->channels <= 4 && g->depth <= 4);
    return few && g->in == TQ_f32 && g->taps == 1;
}

#define MOST_DOTS 4
#define LEAST_DOT 256 /* elements, for each channel: sums of lanes take as long as some vectors */

static bool has_dots(const tq_gemm *g)
{
    return g->kernel->dot && g->channels && g->channels <= MOST_DOTS && g->taps == 1 && !g->wide &&
           g->depth >= LEAST_DOT * g->channels;
}

/* Half panels leave fewer lanes empty, and do not wait for loads as a whole panel alone does.  They take more
   operations to save sums, which are many where channels are. */
static bool takes_half_panels(const tq_gemm_kernel *k, size_t channels)
{
    const size_t lanes = k->lanes;
    return k->half_panels && channels && channels <= 3 * lanes &&
           (channels <= lanes || (channels - 1) % lanes < lanes / 2);
}

/* Whether one row is less work than cutting it into jobs and blocks: in place, or widened to 16 bits. */
static bool is_short_row(const tq_gemm *g)
{
    return g->taps == 1 && (!g->copies || tq_gemm_widens(g)) && !g->wide && !g->narrow && g->channels < TQ_GEMM_WORK &&
           g->length < TQ_GEMM_WORK && g->channels * g->length < TQ_GEMM_WORK;
}

static bool should_copy(const tq_gemm *g)
{
    if (tq_gemm_widens(g))
        return true;
    if (g->taps == 1)
        return false;
    if (g->wide) /* sums are cut anywhere */
        return true;
    if (g->in == TQ_f32) /* a run's start counts beside few steps, and beside short ones: those of few panels */
        return g->depth * g->kernel->panels < 64;
    return g->depth <= 16 || (g->depth % g->kernel->group && g->depth < 64);
}

/* The scalar tiles, of one panel, want groups side by side. */
static bool can_stay_in_place(const tq_gemm *g)
{
    return g->in == TQ_f32 && g->taps == 1 && !g->narrow && g->kernel->wide_panels > 1 && g->channels % g->lanes == 0;
}

tq_status tq_gemm_plan(tq_gemm *gemm, tq_element in, size_t channels, size_t taps, size_t depth, int flags,
                       tq_error *error)
{
    const bool wide = flags & TQ_GEMM_WIDE, fused = flags & TQ_GEMM_FUSED;
    tq_gemm g = {.in = in,
                 .channels = channels,
                 .taps = taps,
                 .depth = depth,
                 .wide = wide,
                 .fused = fused,
                 .unsummed = flags & TQ_GEMM_UNSUMMED,
                 .in_bytes = tq_element_size(in)};
    g.kernel = choose_kernel(in, fused);
    g.dots = has_dots(&g);
    if (!g.dots && takes_half_panels(g.kernel, channels))
        g.kernel = g.kernel->half_panels;
    g.halves = g.kernel->half_tile && !(tq_kernels_usable() >> tq_feature_avxvnni & 1);
    g.copies = should_copy(&g);
    g.narrow = is_narrow(&g);
    g.lanes = g.narrow ? channels : g.dots ? 1 : g.kernel->lanes;
    uint64_t row, width, weights;
    bool fits = tq_mul_u64(taps, depth, &row) && row <= MOST && taps <= MOST && depth <= MOST && channels <= UINT32_MAX;
    if (fits) {
        g.runs = g.copies ? 1 : taps;
        g.length = g.copies ? (size_t)row : depth;
        g.panels = channels / g.lanes + (channels % g.lanes != 0);
        const size_t group = (size_t)g.kernel->group * (g.dots ? g.kernel->lanes : 1);
        fits = tq_mul_u64(tq_round_up(g.length, group), g.runs, &width) &&
               tq_mul_u64(width, (uint64_t)g.lanes * g.kernel->weight_bytes, &width) &&
               tq_mul_u64(width, g.panels, &weights) && weights <= PTRDIFF_MAX / 2;
    }
    if (fits) {
        if (flags & TQ_GEMM_ONE_ROW && taps == 1 && !wide && !g.narrow && !g.dots)
            g.row_panels = tq_gemm_fair_share(g.panels, g.kernel->wide_panels);
        g.in_place = flags & TQ_GEMM_IN_PLACE && can_stay_in_place(&g);
        if (g.in_place)
            g.row_panels = g.panels;
        g.short_row = is_short_row(&g);
        g.panel_bytes = (size_t)width;
        g.packed_bytes = tq_gemm_packed_bytes(&g);
        fits = g.packed_bytes <= PTRDIFF_MAX;
    }
    if (!fits)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "weights of %zu channels by %zu taps of %zu are too large",
                       channels, taps, depth);
    *gemm = g;
    return TQ_OK;
}

/* Taps that do not lie side by side (of a group of channels, or dilated), and are whole groups of the kernel, are read
   in place: copies of them take as long as their products.  Panels stay as large. */
static void read_taps(tq_gemm *g)
{
    g->copies = false;
    g->runs = g->taps;
    g->length = g->depth;
    g->packed_bytes = tq_gemm_packed_bytes(g);
}

/* Whether filter rows are contiguous in a copy of the image.  Dilated taps of whole groups are read in place. */
static bool could_have_lines(const tq_gemm *g, const tq_scan *scan)
{
    tq_scan dense = *scan;
    if (scan->dilation_w > 1 && scan->stride_w == 1 && g->in != TQ_f32 && g->depth % g->kernel->group)
        dense.dilation_w = 1;
    return tq_gemm_has_lines(g, &dense, g->depth);
}

void tq_gemm_plan_windows(tq_gemm *gemm, const tq_scan *scan, size_t stride, size_t images)
{
    tq_gemm g = *gemm;
    const size_t group = g.kernel->group, line = (size_t)scan->filter_w * g.depth;
    const size_t whole = tq_round_up(line, group), runs = (size_t)scan->filter_h;
    uint64_t bytes = 0, all = 0;
    const bool fits = tq_mul_u64((uint64_t)whole * runs, (uint64_t)g.lanes * g.kernel->weight_bytes, &bytes) &&
                      tq_mul_u64(bytes, g.panels, &all) && all <= PTRDIFF_MAX / 2;
    g.copies = true;
    const bool can = g.depth && !g.dots && !tq_scan_is_plain(scan) && !tq_gemm_widens(&g) && !g.wide && fits;
    if (can && images == 1 && could_have_lines(&g, scan))
        tq_gemm_plan_image(&g, scan, stride);
    const bool lines = can && tq_gemm_has_lines(&g, scan, stride);
    if (gemm->copies && !lines && !g.image && g.depth >= LEAST_TAP && g.depth % group == 0 && !tq_gemm_widens(&g) &&
        !g.wide) {
        read_taps(gemm);
        return;
    }
    if (!g.image && (!lines || !gemm->copies || whole > 2 * line))
        return;
    g.runs = whole == line ? 1 : runs;
    g.length = whole == line ? line * runs : line;
    g.panel_bytes = (size_t)bytes;
    g.packed_bytes = tq_gemm_packed_bytes(&g);
    *gemm = g;
}
