/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the tiles of one row of gemm.def.  The includer defines, and this file undefines at its end:
 *
 *   NAME, GEMM_ISA              gemm_i8 ..., avx2 ...; TARGET and INLINE are attributes of functions
 *   ROWS, PANELS                the largest tile, of at most 6 rows; others have 4, 2 and 1
 *   WIDE                        the panels of the largest tile with one row: 4 or 8
 *   TALL                        the panels, 1 or 2, of the largest tile with TQ_TALL_ROWS rows: products of so few
 *                               panels need as many sums that do not wait for one another
 *   PANEL_LANES, GROUP, ROW_BYTES, WEIGHT_BYTES      of tq_gemm_kernel: lanes, group, row_bytes, weight_bytes
 *   sums_t, weights_t, row_t    vectors: sums; a panel's weights for a group; a row's group in all lanes
 *   first_sums(bias)            the start of sums; bias points to int32_t or float
 *   last_sums(sums, bias)       the result from sums
 *   save_sums(p, sums)
 *   load_weights(p), load_row(p, flip)
 *   load_row_part(p, n, flip)   n < GROUP elements, the others 0; where GROUP > 1
 *   load_across(p, flip)        elements of a row, those of a group in each lane; of integers
 *   flip_of(flip)               a row_t of the byte `flip`
 *   multiply(sums, weights, row)
 *   PRODUCT_FIELDS              further fields of the tq_gemm_kernel: flips, stores, copies
 * and may define
 *   LINKAGE static              for a kernel that another one of its file names
 * and, where GROUP is 1:
 *   LONG_RUN                    runs of so many elements and more leave time to prefetch where the sums go: outputs of
 *                               many channels are in no cache, and stores wait for one line after another
 *   HALVES 1                    there are tiles whose last panel has half its lanes
 *   multiply_half(sums, weights, row)         as multiply in the lower half of the lanes; the others are undefined
 *   reads_memory(r, rows, half) whether elements of row r of a tile of `rows` rows (half: of these tiles) are operands
 *                               in memory of their multiplications:
 *   multiply_at(sums, weights, p, half)       as multiply or multiply_half, of load_row(p, 0)
 *   EVEN                        there are even tiles; 6 or 12: the rows of those of two panels
 *   last_even(sums, bias)       as last_sums
 *   first_product(sums, weights, row)         even tiles start with a product, which differs from 0 + product for -0
 *                               alone; last_even adds the bias, which is never -0
 */
#include "base/names.h"
#define LOCAL(name) TQ_GLUE4(NAME, _, name, )
#define TILE(rows, panels) TQ_GLUE4(LOCAL(tile_), rows, x, panels)

#define PANEL_GROUP (PANEL_LANES * GROUP * WEIGHT_BYTES) /* bytes of a panel for a group */

#ifndef LINKAGE
#define LINKAGE
#endif
#ifdef save_two
#define PAIRS(panels) ((panels) / 2)
#else
#define PAIRS(panels) 0
#define save_two(p, a, b)
#endif
#ifndef EVEN
#define EVEN 0
#endif
#ifndef HALVES
#define HALVES 0
#define reads_memory(r, rows, half) false
#define multiply_at(sums, weights, p, half) sums
#define multiply_half(sums, weights, row) sums
#endif

/* Adds row r, times the weights. */
#define ADD_ROW(r, load)                                                                                  \
    do {                                                                                                  \
        if (reads_memory(r, rows, half)) {                                                                \
            EACH (p, panels)                                                                              \
                sums[r][p] = multiply_at(sums[r][p], w[p], at[r] + k, IS_HALF(p));                        \
            break;                                                                                        \
        }                                                                                                 \
        const row_t x = load;                                                                             \
        EACH (p, panels)                                                                                  \
            sums[r][p] = IS_HALF(p) ? multiply_half(sums[r][p], w[p], x) : multiply(sums[r][p], w[p], x); \
    } while (0)
#define IS_HALF(p) (half && p == panels - 1)

/* Each row's group is loaded where it is used: registers do not hold all of them. */
#define STEP(load)                                                \
    do {                                                          \
        weights_t w[WIDE];                                        \
        EACH (p, panels)                                          \
            w[p] = load_weights(panel + (size_t)p * panel_bytes); \
        if (rows == ROWS && panels == PANELS)                     \
            __builtin_prefetch(panel + ahead);                    \
        EACH (r, rows)                                            \
            ADD_ROW(r, load);                                     \
        panel += group_bytes;                                     \
    } while (0)
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < n; i++)

#if GROUP > 1
/* One row by one or two panels: each sum would wait for its last addition, so that every run is added in four parts. */
INLINE void LOCAL(row_body)(const tq_tile *t, int panels)
{
    enum { PARTS = 4, STEP_BYTES = GROUP * ROW_BYTES };
    sums_t sums[PARTS][2];
    const row_t flip = flip_of(t->flip);
    (void)flip;
    const char *panel = t->panel;
    const size_t panel_bytes = t->panel_bytes, group_bytes = t->group_bytes;
    EACH (p, panels)
        EACH (i, PARTS)
            sums[i][p] = i ? splat_s32(0) : first_sums((const char *)t->bias + (size_t)p * PANEL_LANES * 4);
    for (size_t run = 0; run < t->runs; run++) {
        const char *at = tq_tile_run(t, run, 0), *const end = at + t->length / GROUP * STEP_BYTES;
        for (; at + PARTS * STEP_BYTES <= end; at += PARTS * STEP_BYTES, panel += PARTS * group_bytes)
            EACH (i, PARTS) {
                const row_t x = load_row(at + i * STEP_BYTES, flip);
                EACH (p, panels)
                    sums[i][p] =
                        multiply(sums[i][p], load_weights(panel + i * group_bytes + (size_t)p * panel_bytes), x);
            }
        for (; at < end; at += STEP_BYTES, panel += group_bytes)
            EACH (p, panels)
                sums[0][p] = multiply(sums[0][p], load_weights(panel + (size_t)p * panel_bytes), load_row(at, flip));
        if (t->length % GROUP) {
            const row_t x = load_row_part(at, t->length % GROUP, flip);
            EACH (p, panels)
                sums[0][p] = multiply(sums[0][p], load_weights(panel + (size_t)p * panel_bytes), x);
            panel += group_bytes;
        }
    }
    EACH (p, panels)
        save_sums((char *)t->sums + (size_t)p * PANEL_LANES * 4,
                  add_s32(add_s32(sums[0][p], sums[1][p]), add_s32(sums[2][p], sums[3][p])));
}
#endif

INLINE void LOCAL(tile_body)(const tq_tile *tile, int rows, int panels, bool half)
{
    const tq_tile own = *tile, *t = &own; /* stores of sums cannot change it, so that its fields stay in registers */
#if GROUP > 1
    if (rows == 1 && panels <= 2) {
        LOCAL(row_body)(t, panels);
        return;
    }
#endif
    sums_t sums[TQ_TALL_ROWS][WIDE];
    const row_t flip = flip_of(t->flip);
    (void)flip; /* only 8-bit rows have one */
    const char *panel = t->panel;
    const size_t panel_bytes = t->panel_bytes, group_bytes = t->group_bytes, ahead = t->ahead;
    EACH (p, panels)
        EACH (r, rows)
            sums[r][p] = first_sums((const char *)t->bias + (size_t)p * PANEL_LANES * 4);
#ifdef LONG_RUN
    if (rows == ROWS && panels == PANELS && t->length >= LONG_RUN)
        EACH (r, rows)
            __builtin_prefetch((char *)t->sums + (size_t)r * t->sums_stride + panels * PANEL_LANES * 4 - 1, 1);
#endif
    for (size_t run = 0; run < t->runs; run++) {
        const char *at[TQ_TALL_ROWS];
        EACH (r, rows)
            at[r] = tq_tile_run(t, run, (size_t)r);
        if (EVEN && rows == TQ_TALL_ROWS && !half && t->fetches && t->tiles > 1) /* the tile below */
            EACH (r, rows)
                __builtin_prefetch(tq_tile_run(t, run, (size_t)(rows + r)));
        size_t k = 0;
        for (const size_t end = t->length / GROUP * GROUP * ROW_BYTES; k < end; k += GROUP * ROW_BYTES)
            STEP(load_row(at[r] + k, flip));
#if GROUP > 1
        if (t->length % GROUP)
            STEP(load_row_part(at[r] + k, t->length % GROUP, flip));
#endif
    }
    EACH (r, rows) {
        char *to = (char *)t->sums + (size_t)r * t->sums_stride;
        EACH (p, PAIRS(panels))
            save_two(to + (size_t)p * 2 * PANEL_LANES * 4, sums[r][2 * p], sums[r][2 * p + 1]);
        EACH (i, panels - 2 * PAIRS(panels)) {
            const size_t p = (size_t)(2 * PAIRS(panels) + i) * PANEL_LANES * 4;
            save_sums(to + p, last_sums(sums[r][2 * PAIRS(panels) + i], (const char *)t->bias + p));
        }
    }
}

#if EVEN
#define POINT_EVEN()                                                               \
    do {                                                                           \
        apart = tile->apart, panel_bytes = tile->panel_bytes, panel = tile->panel; \
        k = -(ptrdiff_t)(tile->length * ROW_BYTES);                                \
        EACH (i, (rows + SHARE - 1) / SHARE)                                       \
            at[i] = row - k + (size_t)i * SHARE * apart;                           \
    } while (0)
#define LOAD_EVEN()  \
    EACH (p, panels) \
    w[p] = load_weights(panel + (size_t)p * panel_bytes)
#define STEP_EVEN() (panel += PANEL_GROUP, k += ROW_BYTES)
/* Row r, times the weights: sums[r], or added to them. */
#define MULTIPLY_EVEN(r, add)                                                         \
    do {                                                                              \
        const row_t x = load_row(at[r / SHARE] + (size_t)(r % SHARE) * apart + k, 0); \
        EACH (p, panels)                                                              \
            sums[r][p] = add(sums[r][p], w[p], x);                                    \
    } while (0)
#define BIAS_EVEN(t, p) ((const char *)(t)->bias + (size_t)(p) * PANEL_LANES * 4)

/* Tiles one below the other, whose rows are one run each and lie tile->apart bytes apart.

   Processors see some 200 operations of vectors ahead, and the last ones of a tile wait for one another: the first
   products of the tile below stand between them.  Stores take the place of fused products, which stand behind them.

   Memory is read again behind each loop, and three rows share a pointer: with more to hold, compilers keep pointers in
   vector registers, whose moves wait behind the products of the tile before.

   Rows of the tiles below, FETCHED_EVEN bytes ahead, are prefetched: processors find no stream in a tile's rows.  Full
   tiles do so once a product, where the first ones prefetch panels. */
INLINE void LOCAL(even_body)(const tq_tile *tile, int rows, int panels)
{
    enum { SHARE = 3, LINE = 64, FETCHED_EVEN = 8 << 10 };
    const bool full = rows == ROWS && panels == PANELS;
    sums_t sums[TQ_TALL_ROWS][PANELS];
    weights_t w[PANELS];
    const char *row = tile->row[0], *at[TQ_TALL_ROWS / SHARE], *panel;
    char *to = tile->sums;
    ptrdiff_t k;
    size_t apart, panel_bytes, left = tile->tiles, after = tile->after;
    uintptr_t ahead = after ? tile->ahead : (uintptr_t)row + FETCHED_EVEN - (uintptr_t)tile->panel;
    POINT_EVEN();
#ifdef first_product
    LOAD_EVEN();
    EACH (r, rows)
        MULTIPLY_EVEN(r, first_product);
    STEP_EVEN();
#endif
    do {
#ifndef first_product
        EACH (r, rows)
            EACH (p, panels)
                sums[r][p] = first_sums(BIAS_EVEN(tile, p));
#endif
        for (size_t i = 0; !full && tile->fetches && i < (size_t)rows * apart; i += LINE)
            __builtin_prefetch(row + FETCHED_EVEN + i);
        while (k) {
            LOAD_EVEN();
            if (full)
                __builtin_prefetch((const char *)((uintptr_t)panel + ahead));
            EACH (r, rows)
                MULTIPLY_EVEN(r, multiply);
            STEP_EVEN();
        }
        __asm__ volatile("" ::: "memory");
        const tq_tile own = *tile, *t = &own;
        row += left > 1 ? (size_t)rows * tile->apart : 0; /* behind the last tile: its first products, once more */
        after -= after != 0;
        ahead = after ? ahead + tile->panel_bytes : (uintptr_t)row + FETCHED_EVEN - (uintptr_t)tile->panel;
        POINT_EVEN();
#ifdef first_product
        LOAD_EVEN();
#endif
        EACH (r, rows) {
            EACH (p, panels)
                save_sums(to + (size_t)p * PANEL_LANES * 4, last_even(sums[r][p], BIAS_EVEN(t, p)));
#ifdef first_product
            MULTIPLY_EVEN(r, first_product);
#endif
            to += t->sums_stride;
        }
#ifdef first_product
        STEP_EVEN();
#endif
        __asm__ volatile("" ::: "memory");
    } while (left-- > 1);
}

#define EVEN_TILE(rows, panels) TQ_GLUE4(LOCAL(even_), rows, x, panels)
#define DEFINE_EVEN_TILE(rows, panels)                              \
    static TARGET void EVEN_TILE(rows, panels)(const tq_tile *tile) \
    {                                                               \
        LOCAL(even_body)(tile, rows, panels);                       \
    }
DEFINE_EVEN_TILE(6, 4)
DEFINE_EVEN_TILE(6, 3)
DEFINE_EVEN_TILE(12, 1)
DEFINE_EVEN_TILE(EVEN, 2)

static tq_tile_fn LOCAL(find_even_tile)(size_t rows, size_t panels)
{
    static const struct {
        uint8_t rows;
        tq_tile_fn tile;
    } tiles[] = {{12, EVEN_TILE(12, 1)}, {EVEN, EVEN_TILE(EVEN, 2)}, {6, EVEN_TILE(6, 3)}, {6, EVEN_TILE(6, 4)}};
    return panels <= PANELS && rows == tiles[panels - 1].rows ? tiles[panels - 1].tile : NULL;
}
#undef EVEN_TILE
#undef DEFINE_EVEN_TILE
#endif

#ifdef load_across
/* The dot product of a row and a channel: each lane sums its part of the row. */
static TARGET int32_t LOCAL(dot)(const void *row, const char *weights, size_t n, uint8_t flip_byte)
{
    enum { PARTS = 4, ACROSS = PANEL_LANES * GROUP * ROW_BYTES };
    static const int32_t zeros[PANEL_LANES];
    const row_t flip = flip_of(flip_byte);
    (void)flip;
    char last[ACROSS] = {0};
    int32_t lanes[PARTS * PANEL_LANES];
    uint32_t sum = 0;
    sums_t sums[PARTS];
    EACH (i, PARTS)
        sums[i] = first_sums(zeros);
    const char *at = row;
    size_t left = n * ROW_BYTES;
    for (; left >= PARTS * ACROSS; left -= PARTS * ACROSS, at += PARTS * ACROSS, weights += PARTS * PANEL_GROUP)
        EACH (i, PARTS)
            sums[i] = multiply(sums[i], load_weights(weights + i * PANEL_GROUP), load_across(at + i * ACROSS, flip));
    for (; left >= ACROSS; left -= ACROSS, at += ACROSS, weights += PANEL_GROUP)
        sums[0] = multiply(sums[0], load_weights(weights), load_across(at, flip));
    if (left) {
        memcpy(last, at, left);
        sums[0] = multiply(sums[0], load_weights(weights), load_across(last, flip));
    }
    EACH (i, PARTS)
        save_sums(lanes + i * PANEL_LANES, sums[i]);
    for (size_t i = 0; i < PARTS * PANEL_LANES; i++)
        sum += (uint32_t)lanes[i];
    return (int32_t)sum;
}
#define DOT_FIELD .dot = LOCAL(dot),
#else
#define DOT_FIELD
#endif

/* Short rows take as long as the call of a tile.  In tiles of more than two panels the loop would take registers from
   sums. */
#define REPEATS (PANELS <= 2)
#define DEFINE_TILE(rows, panels)                                         \
    static TARGET void TILE(rows, panels)(const tq_tile *tile)            \
    {                                                                     \
        tq_tile own = *tile;                                              \
        do {                                                              \
            LOCAL(tile_body)(&own, rows, panels, false);                  \
            own.row += rows;                                              \
            own.sums = (char *)own.sums + (size_t)rows * own.sums_stride; \
        } while ((REPEATS || rows == TQ_TALL_ROWS) && own.tiles-- > 1);   \
    }
#define DEFINE_TILES(panels) \
    DEFINE_TILE(1, panels)   \
    DEFINE_TILE(2, panels) DEFINE_TILE(4, panels) DEFINE_TILE(6, panels)
#define NAME_TILES(panels) TILE(1, panels), TILE(2, panels), TILE(4, panels), TILE(6, panels)

DEFINE_TILES(1)
DEFINE_TILES(2)
#if PANELS > 2
DEFINE_TILES(3)
DEFINE_TILES(4)
#else
DEFINE_TILE(1, 3)
DEFINE_TILE(1, 4)
#endif
#if WIDE > 4
DEFINE_TILE(1, 5)
DEFINE_TILE(1, 6)
DEFINE_TILE(1, 7)
DEFINE_TILE(1, 8)
#endif
DEFINE_TILE(12, 1)
#if TALL > 1
DEFINE_TILE(12, 2)
#endif

static tq_tile_fn LOCAL(find_tile)(size_t rows, size_t panels)
{
    static const tq_tile_fn tiles[][4] = {
        {NAME_TILES(1)}, {NAME_TILES(2)},
#if PANELS > 2
        {NAME_TILES(3)}, {NAME_TILES(4)},
#else
        {TILE(1, 3)},    {TILE(1, 4)},
#endif
#if WIDE > 4
        {TILE(1, 5)},    {TILE(1, 6)},    {TILE(1, 7)}, {TILE(1, 8)},
#endif
    };
    if (rows == TQ_TALL_ROWS)
#if TALL > 1
        return panels > 1 ? TILE(12, 2) : TILE(12, 1);
#else
        return TILE(12, 1);
#endif
    return tiles[panels - 1][rows / 2];
}

#if HALVES
#define HALF_TILE(rows, panels) TQ_GLUE4(LOCAL(half_), rows, x, panels)
#define DEFINE_HALF_TILE(rows, panels)                              \
    static TARGET void HALF_TILE(rows, panels)(const tq_tile *tile) \
    {                                                               \
        LOCAL(tile_body)(tile, rows, panels, true);                 \
    }
DEFINE_HALF_TILE(6, 1)
DEFINE_HALF_TILE(6, 2)
DEFINE_HALF_TILE(6, 3)
DEFINE_HALF_TILE(6, 4)
DEFINE_HALF_TILE(12, 1)
DEFINE_HALF_TILE(12, 2)

static tq_tile_fn LOCAL(find_half_tile)(size_t rows, size_t panels)
{
    static const tq_tile_fn tiles[] = {HALF_TILE(6, 1), HALF_TILE(6, 2), HALF_TILE(6, 3), HALF_TILE(6, 4)};
    if (rows == TQ_TALL_ROWS)
        return panels > 1 ? HALF_TILE(12, 2) : HALF_TILE(12, 1);
    return rows == ROWS ? tiles[panels - 1] : LOCAL(find_tile)(rows, panels);
}
#undef HALF_TILE
#undef DEFINE_HALF_TILE
#endif

LINKAGE const tq_gemm_kernel TQ_GLUE4(tq_, NAME, __, GEMM_ISA) = {.isa = TQ_TEXT(GEMM_ISA),
                                                                  .lanes = PANEL_LANES,
                                                                  .group = GROUP,
                                                                  .row_bytes = ROW_BYTES,
                                                                  .weight_bytes = WEIGHT_BYTES,
                                                                  .rows = ROWS,
                                                                  .panels = PANELS,
                                                                  .wide_panels = WIDE,
                                                                  .tall_panels = TALL,
                                                                  .repeats = REPEATS,
                                                                  .tile = LOCAL(find_tile),
#if EVEN
                                                                  .even_tile = LOCAL(find_even_tile),
#endif
#if HALVES
                                                                  .half_tile = LOCAL(find_half_tile),
#endif
                                                                  DOT_FIELD PRODUCT_FIELDS};

#undef LOCAL
#undef TILE
#undef STEP
#undef ADD_ROW
#undef IS_HALF
#undef EACH
#undef REPEATS
#undef DEFINE_TILE
#undef DEFINE_TILES
#undef NAME_TILES
#undef PANEL_GROUP
#undef NAME
#undef PANEL_LANES
#undef GROUP
#undef ROW_BYTES
#undef WEIGHT_BYTES
#undef ROWS
#undef PANELS
#undef WIDE
#undef TALL
#undef sums_t
#undef weights_t
#undef row_t
#undef first_sums
#undef last_sums
#undef save_sums
#undef load_weights
#undef load_row
#undef load_row_part
#undef load_across
#undef DOT_FIELD
#undef flip_of
#undef multiply
#undef HALVES
#undef EVEN
#undef POINT_EVEN
#undef LOAD_EVEN
#undef STEP_EVEN
#undef MULTIPLY_EVEN
#undef BIAS_EVEN
#undef first_product
#undef last_even
#undef LONG_RUN
#undef LINKAGE
#undef PAIRS
#undef save_two
#undef multiply_half
#undef multiply_at
#undef reads_memory
#undef PRODUCT_FIELDS
