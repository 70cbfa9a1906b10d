/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the products of one instruction set, and its body.  The includer defines, and this file undefines at its
 * end:
 *
 *   WINOGRAD_ISA                      avx2 ...; TARGET and INLINE are attributes of functions
 *   TRANSFORMS_ISA                    the instruction set whose transforms it takes
 *   ROWS                              the most tiles whose sums fit the registers: 6 or 12
 *   VECTOR_LANES                      channels of a vector; a panel has two vectors
 *   vector_t, zero_sums(), load_vector(p), save_vector(p, x)
 *   splat_pair(x)                     the 32 bits of two int16 in all lanes
 *   multiply(sums, weights, pair)     plus the products of pairs
 */
#include "base/names.h"
#undef EACH
#define VECTORS 2
#define PANEL_LANES (VECTORS * VECTOR_LANES)
#define AHEAD 3
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < n; i++)

/* `rows` tiles at one point.  Meanwhile the weights of the point AHEAD of it come to the second-level cache: a net's
   transformed weights exceed the third, and memory is too far away for one point's time. */
INLINE void multiply_rows(const int16_t *tiles, int rows, size_t depth, const int16_t *panel, int32_t *sums)
{
    const size_t stride = TQ_WINOGRAD_POINTS * depth;
    vector_t sum[ROWS][VECTORS];
    EACH (r, rows)
        EACH (v, VECTORS)
            sum[r][v] = zero_sums();
    for (size_t k = 0; k < depth; k += 2, panel += 2 * PANEL_LANES) {
        vector_t weights[VECTORS];
        EACH (v, VECTORS) {
            weights[v] = load_vector(panel + v * 2 * VECTOR_LANES);
            __builtin_prefetch(panel + AHEAD * depth * PANEL_LANES + v * 2 * VECTOR_LANES, 0, 2);
        }
        EACH (r, rows) {
            int32_t pair;
            memcpy(&pair, tiles + (size_t)r * stride + k, sizeof pair);
            const vector_t x = splat_pair(pair);
            EACH (v, VECTORS)
                sum[r][v] = multiply(sum[r][v], weights[v], x);
        }
    }
    EACH (r, rows)
        EACH (v, VECTORS)
            save_vector(sums + r * TQ_WINOGRAD_POINTS * PANEL_LANES + v * VECTOR_LANES, sum[r][v]);
}

#define DEFINE_TILE(rows)                                                                                   \
    static TARGET void tile_##rows(const int16_t *tiles, size_t depth, const int16_t *panel, int32_t *sums) \
    {                                                                                                       \
        multiply_rows(tiles, rows, depth, panel, sums);                                                     \
    }
DEFINE_TILE(1)
DEFINE_TILE(2)
DEFINE_TILE(3)
DEFINE_TILE(4)
DEFINE_TILE(5)
DEFINE_TILE(6)
#if ROWS > 6
DEFINE_TILE(7)
DEFINE_TILE(8)
DEFINE_TILE(9)
DEFINE_TILE(10)
DEFINE_TILE(11)
DEFINE_TILE(12)
#endif

static TARGET void multiply_tiles(const int16_t *tiles, size_t count, size_t depth, const int16_t *panel, int32_t *sums)
{
    static void (*const by_rows[])(const int16_t *, size_t, const int16_t *, int32_t *) = {
        NULL,   tile_1, tile_2, tile_3,  tile_4,  tile_5,  tile_6,
#if ROWS > 6
        tile_7, tile_8, tile_9, tile_10, tile_11, tile_12,
#endif
    };
    const size_t tile = TQ_WINOGRAD_POINTS * depth, out = TQ_WINOGRAD_POINTS * PANEL_LANES;
    const size_t parts = (count + ROWS - 1) / ROWS;
    for (size_t point = 0; point < TQ_WINOGRAD_POINTS; point++)
        for (size_t part = 0; part < parts; part++) {
            const size_t i = count * part / parts, rows = count * (part + 1) / parts - i;
            by_rows[rows](tiles + i * tile + point * depth, depth, panel + point * depth * PANEL_LANES,
                          sums + i * out + point * PANEL_LANES);
        }
}

const tq_winograd_body TQ_GLUE(tq_winograd__,
                               WINOGRAD_ISA) = {PANEL_LANES, TQ_GLUE(tq_winograd_transform__, TRANSFORMS_ISA),
                                                multiply_tiles, TQ_GLUE(tq_winograd_finish__, TRANSFORMS_ISA)};

#undef EACH
#undef DEFINE_TILE
#undef WINOGRAD_ISA
#undef TRANSFORMS_ISA
#undef ROWS
#undef VECTOR_LANES
#undef VECTORS
#undef vector_t
#undef zero_sums
#undef load_vector
#undef save_vector
#undef splat_pair
#undef multiply
