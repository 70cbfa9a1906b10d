/* SPDX-License-Identifier: Apache-2.0
 *
 * Transpositions of planes whose runs are elements of 1, 2 or 4 bytes.
 *
 * Two to four rows or columns, the channels of pictures, are loops that compilers vectorize.  Larger planes are cut
 * into blocks, which are transposed in registers.  The last block of a row or column may overlap the one before, and
 * copies the same once more.
 */
#include "ops/movement/plane.h"

#include <string.h>

#include "base/sizes.h"
#include "kernels/isa.h"

#if TQ_X86
#include <immintrin.h>
#endif

typedef tq_plane plane;

/* ---- two to four rows or columns, of contiguous pixels on the other side ---- */

typedef uint8_t __attribute__((may_alias)) element_1;
typedef uint16_t __attribute__((may_alias, aligned(1))) element_2;
typedef uint32_t __attribute__((may_alias, aligned(1))) element_4;

#define FEW(isa, target, bytes, few)                                                                               \
    target static void split_##few##_##bytes##_##isa(const plane *p, const char *restrict from, char *restrict to) \
    {                                                                                                              \
        const element_##bytes *x = (const void *)from;                                                             \
        const ptrdiff_t step = p->row_to;                                                                          \
        const size_t n = p->columns;                                                                               \
        for (size_t i = 0; i < n; i++)                                                                             \
            for (size_t k = 0; k < few; k++)                                                                       \
                ((element_##bytes *)(void *)(to + (ptrdiff_t)k * step))[i] = x[few * i + k];                       \
    }                                                                                                              \
    target static void join_##few##_##bytes##_##isa(const plane *p, const char *restrict from, char *restrict to)  \
    {                                                                                                              \
        element_##bytes *y = (void *)to;                                                                           \
        const ptrdiff_t step = p->column_from;                                                                     \
        const size_t n = p->rows;                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                             \
            for (size_t k = 0; k < few; k++)                                                                       \
                y[few * i + k] = ((const element_##bytes *)(const void *)(from + (ptrdiff_t)k * step))[i];         \
    }
#define FEWS(isa, target, bytes) FEW(isa, target, bytes, 2) FEW(isa, target, bytes, 3) FEW(isa, target, bytes, 4)
#define EVERY_FEW(isa, target) FEWS(isa, target, 1) FEWS(isa, target, 2) FEWS(isa, target, 4)
TQ_EVERY_ISA_TO_AVX2(EVERY_FEW)

typedef void (*few_fn)(const plane *p, const char *restrict from, char *restrict to);

typedef struct few {
    size_t run, count;
    few_fn split[TQ_ISAS], join[TQ_ISAS];
} few;

#define FEW_ROW(bytes, count) \
    {bytes, count, TQ_ISA_FUNCTIONS_TO_AVX2(split_##count##_##bytes), TQ_ISA_FUNCTIONS_TO_AVX2(join_##count##_##bytes)}
static const few fews[] = {
    FEW_ROW(1, 2), FEW_ROW(1, 3), FEW_ROW(1, 4), FEW_ROW(2, 2), FEW_ROW(2, 3),
    FEW_ROW(2, 4), FEW_ROW(4, 2), FEW_ROW(4, 3), FEW_ROW(4, 4),
};

static few_fn find_few(const plane *p)
{
    for (size_t i = 0; i < sizeof fews / sizeof *fews; i++) {
        const few *f = &fews[i];
        const ptrdiff_t pixel = (ptrdiff_t)(f->run * f->count);
        if (f->run != p->run)
            continue;
        if (p->rows == f->count && p->column_from == pixel)
            return f->split[tq_isa()];
        if (p->columns == f->count && p->row_to == pixel)
            return f->join[tq_isa()];
    }
    return NULL;
}

/* ---- blocks ---- */

/* `high` rows of `wide` columns are a block. */
typedef struct blocks {
    size_t run, high, wide;
    int isa; /* the least of TQ_ISA_FUNCTIONS that has them */
    /* Copies the blocks of rows [r, r + rows) and columns [c, c + columns). */
    void (*copy)(const plane *p, const char *from, char *to, size_t r, size_t c, size_t rows, size_t columns);
} blocks;

/* Defines blocks.copy. */
#define BLOCKS(name, target, bytes, high, wide)                                                                  \
    target static void name(const plane *p, const char *from, char *to, size_t r, size_t c, size_t rows,         \
                            size_t columns)                                                                      \
    {                                                                                                            \
        const plane own = *p; /* stores cannot change it */                                                      \
        for (size_t y = r; y < r + rows; y += high)                                                              \
            for (size_t x = c; x < c + columns; x += wide) {                                                     \
                const size_t row = tq_min_size(y, own.rows - high), column = tq_min_size(x, own.columns - wide); \
                block_##name(from + row * bytes + (ptrdiff_t)column * own.column_from, own.column_from,          \
                             to + (ptrdiff_t)row * own.row_to + column * bytes, own.row_to);                     \
            }                                                                                                    \
    }

#if TQ_X86
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)

/* Interleaves vectors i and i + n / 2 of n. */
#define ROUND(w, n, vector, mm, suffix)                                   \
    do {                                                                  \
        vector next[n];                                                   \
        EACH (i, n / 2) {                                                 \
            next[2 * i] = mm##_unpacklo_##suffix(w[i], w[i + n / 2]);     \
            next[2 * i + 1] = mm##_unpackhi_##suffix(w[i], w[i + n / 2]); \
        }                                                                 \
        EACH (i, n)                                                       \
            w[i] = next[i];                                               \
    } while (0)

TQ_BODY __m128i load_scalar(const char *from, ptrdiff_t step)
{
    (void)step;
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

TQ_TARGET_AVX2 TQ_BODY __m256i load_avx2(const char *from, ptrdiff_t step)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_scalar(from, 0)), load_scalar(from + step, 0), 1);
}

/* 16 bytes of each line, of which a vector has one, or two that are HIGH apart.  After log2(HIGH) rounds vector k holds
   element k of all lines. */
#define SHORT_BLOCKS(isa, target, vector, mm, store, lines, bytes, rounds, suffix)                                \
    target TQ_BODY void block_##isa##_##bytes(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step) \
    {                                                                                                             \
        enum { HIGH = 16 / bytes };                                                                               \
        vector w[HIGH];                                                                                           \
        EACH (i, HIGH)                                                                                            \
            w[i] = load_##isa(from + i * from_step, HIGH * from_step);                                            \
        EACH (k, rounds)                                                                                          \
            ROUND(w, HIGH, vector, mm, suffix);                                                                   \
        EACH (i, HIGH)                                                                                            \
            mm##_##store((void *)(to + i * to_step), w[i]);                                                       \
    }                                                                                                             \
    BLOCKS(isa##_##bytes, target, bytes, 16 / bytes, 16 / bytes * lines)
SHORT_BLOCKS(scalar, , __m128i, _mm, storeu_si128, 1, 1, 4, epi8)
SHORT_BLOCKS(scalar, , __m128i, _mm, storeu_si128, 1, 2, 3, epi16)
SHORT_BLOCKS(scalar, , __m128i, _mm, storeu_si128, 1, 4, 2, epi32)
SHORT_BLOCKS(avx2, TQ_TARGET_AVX2, __m256i, _mm256, storeu_si256, 2, 1, 4, epi8)
SHORT_BLOCKS(avx2, TQ_TARGET_AVX2, __m256i, _mm256, storeu_si256, 2, 2, 3, epi16)

/* Eight words of eight lines: each half of a vector is transposed for itself. */
TQ_TARGET_AVX2 TQ_BODY void block_avx2_4(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step)
{
    __m256i w[8];
    EACH (i, 8)
        w[i] = _mm256_loadu_si256((const __m256i *)(const void *)(from + i * from_step));
    EACH (k, 3)
        ROUND(w, 8, __m256i, _mm256, epi32);
    EACH (i, 4) {
        __m256i *const low = (void *)(to + i * to_step), *const high = (void *)(to + (i + 4) * to_step);
        _mm256_storeu_si256(low, _mm256_permute2x128_si256(w[2 * i], w[2 * i + 1], 0x20));
        _mm256_storeu_si256(high, _mm256_permute2x128_si256(w[2 * i], w[2 * i + 1], 0x31));
    }
}
BLOCKS(avx2_4, TQ_TARGET_AVX2, 4, 8, 8)

/* Eight bytes of eight lines, two lines a vector. */
TQ_BODY void block_eights(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step)
{
    __m128i w[4];
    EACH (i, 4) {
        const __m128i first = _mm_loadl_epi64((const void *)(from + 2 * i * from_step));
        w[i] = _mm_unpacklo_epi64(first, _mm_loadl_epi64((const void *)(from + (2 * i + 1) * from_step)));
    }
    EACH (k, 3)
        ROUND(w, 4, __m128i, _mm, epi8);
    EACH (i, 4) {
        _mm_storel_epi64((void *)(to + 2 * i * to_step), w[i]);
        _mm_storel_epi64((void *)(to + (2 * i + 1) * to_step), _mm_unpackhi_epi64(w[i], w[i]));
    }
}
#else
/* 8 rows of 8 bytes, each row a little-endian uint64: swaps halves, then quarters, then bytes. */
static void swap_parts(uint64_t *a, uint64_t *b, int shift, uint64_t mask)
{
    uint64_t moved = (*a >> shift ^ *b) & mask;
    *b ^= moved;
    *a ^= moved << shift;
}

static void transpose_8x8(uint64_t w[8])
{
    for (int i = 0; i < 4; i++)
        swap_parts(&w[i], &w[i + 4], 32, UINT64_C(0x00000000FFFFFFFF));
    for (int i = 0; i < 8; i += i % 4 == 1 ? 3 : 1)
        swap_parts(&w[i], &w[i + 2], 16, UINT64_C(0x0000FFFF0000FFFF));
    for (int i = 0; i < 8; i += 2)
        swap_parts(&w[i], &w[i + 1], 8, UINT64_C(0x00FF00FF00FF00FF));
}

TQ_BODY void block_eights(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step)
{
    uint64_t w[8];
    for (int i = 0; i < 8; i++)
        memcpy(&w[i], from + i * from_step, 8);
    transpose_8x8(w);
    for (int i = 0; i < 8; i++)
        memcpy(to + i * to_step, &w[i], 8);
}
#endif
BLOCKS(eights, , 1, 8, 8)

/* The first that fits is taken. */
static const blocks all_blocks[] = {
#if TQ_X86
    {1, 16, 32, 1, avx2_1}, {1, 16, 16, 0, scalar_1}, {2, 8, 16, 1, avx2_2},
    {2, 8, 8, 0, scalar_2}, {4, 8, 8, 1, avx2_4},     {4, 4, 4, 0, scalar_4},
#endif
    {1, 8, 8, 0, eights},
};

static const blocks *find_blocks(const plane *p)
{
    for (size_t i = 0; i < sizeof all_blocks / sizeof *all_blocks; i++) {
        const blocks *b = &all_blocks[i];
        if (b->run == p->run && b->isa <= tq_isa() && b->high <= p->rows && b->wide <= p->columns)
            return b;
    }
    return NULL;
}

/* The greatest power of two that divides a step: lines so far apart share the sets of a cache that hold each such
   distance. */
static size_t spread(ptrdiff_t step)
{
    return (size_t)step & (0 - (size_t)step);
}

/* Lines whose distance is a multiple of a large power of two drive each other out of the cache.  In a square tile those
   of the side where it is larger are read, or written, to their ends at once: as many columns as a line is long, or, of
   the farthest, a block has.  Where it is large on both sides, tiles are as wide and high as a line is long. */
static void copy_tiles(const plane *p, const blocks *b, const char *from, char *to)
{
    enum { LINE = 64, LINES = 8, FAR = 512 }; /* 64 lines of this distance fill a cache of 8 ways */
    const size_t spread_from = spread(p->column_from), spread_to = spread(p->row_to), side = LINE / p->run;
    const bool far = spread_from >= FAR && spread_to >= FAR;
    const size_t tile = far ? side : LINES * side, narrow = far || spread_from < 2 * FAR ? side : b->wide;
    for (size_t r = 0; r < p->rows; r += tile)
        for (size_t c = 0; c < p->columns; c += tile) {
            const size_t rows = tq_min_size(p->rows - r, tile), columns = tq_min_size(p->columns - c, tile);
            const size_t wide = spread_from < spread_to ? columns : narrow;
            for (size_t i = 0; i < columns; i += wide)
                b->copy(p, from, to, r, c + i, rows, tq_min_size(columns - i, wide));
        }
}

bool tq_plane_transpose(const tq_plane *p, const void *from, void *to)
{
    const few_fn copy_few = find_few(p);
    const blocks *b = copy_few ? NULL : find_blocks(p);
    if (copy_few)
        copy_few(p, from, to);
    else if (b)
        copy_tiles(p, b, from, to);
    return copy_few || b;
}
