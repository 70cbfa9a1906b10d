/* SPDX-License-Identifier: Apache-2.0
 *
 * The avx512vnni rows of gemm.def: vpdpbusd on unsigned rows (128 is added to signed rows), and vpdpwssd.
 */
#include <string.h>

#include "kernels/gemm/products.h"

#if TQ_X86
#include "kernels/simd_avx512.h"
#undef TARGET
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))
#include "kernels/gemm/gemm_vectors_avx512.h"
#include "kernels/gemm/gemm_rows_simd.h"

#define GEMM_ISA avx512vnni

INLINE vi load_few(const void *p, size_t n)
{
    return _mm512_set1_epi32((int32_t)tq_few_bytes(p, n));
}

static TARGET int32_t sum_bytes(const void *run, size_t n, uint8_t flip)
{
    const uint8_t *p = run;
    const vi flips = _mm512_set1_epi8((char)flip);
    vi sums = _mm512_setzero_si512();
    size_t k = 0;
    for (; k + 64 <= n; k += 64)
        sums = _mm512_add_epi64(
            sums, _mm512_sad_epu8(_mm512_xor_si512(_mm512_loadu_si512(p + k), flips), _mm512_setzero_si512()));
    if (k < n) {
        __mmask64 some = ~(__mmask64)0 >> (64 - (n - k));
        vi last = _mm512_xor_si512(_mm512_maskz_loadu_epi8(some, p + k), flips);
        sums = _mm512_add_epi64(sums, _mm512_sad_epu8(_mm512_maskz_mov_epi8(some, last), _mm512_setzero_si512()));
    }
    return (int32_t)_mm512_reduce_add_epi64(sums);
}

/* ---- packing ---- */

/* 64 bytes of each of 16 channels, from byte k on, flipped; beyond the last channel and byte 0. */
INLINE void load_channels(const tq_panel_rows *w, size_t k, const size_t lanes, vi *rows)
{
    const __mmask64 some = ~(__mmask64)0 >> (w->length - k < 64 ? 64 - (w->length - k) : 0);
    const vi flips = _mm512_maskz_set1_epi8(some, (char)w->flip);
    for (size_t c = 0; c < lanes; c++)
        rows[c] = c < w->channels ? _mm512_xor_si512(_mm512_maskz_loadu_epi8(some, w->from + c * w->stride + k), flips)
                                  : _mm512_setzero_si512();
}

/* Of 128-bit blocks as single elements: the transpose of 4 x 4. */
INLINE void transpose_blocks(vi *x0, vi *x1, vi *x2, vi *x3)
{
    const vi a = _mm512_shuffle_i32x4(*x0, *x1, 0x44), b = _mm512_shuffle_i32x4(*x0, *x1, 0xEE);
    const vi c = _mm512_shuffle_i32x4(*x2, *x3, 0x44), d = _mm512_shuffle_i32x4(*x2, *x3, 0xEE);
    *x0 = _mm512_shuffle_i32x4(a, c, 0x88), *x1 = _mm512_shuffle_i32x4(a, c, 0xDD);
    *x2 = _mm512_shuffle_i32x4(b, d, 0x88), *x3 = _mm512_shuffle_i32x4(b, d, 0xDD);
}

/* The sums of each lane's bytes, by vpdpbusd with ones. */
INLINE vi sum_groups(const char *panel, size_t groups, size_t group)
{
    vi sums = _mm512_setzero_si512();
    for (size_t i = 0; i < groups; i++)
        sums = _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(1), _mm512_loadu_si512(panel + i * group));
    return sums;
}

/* Vectors of 16 channels' groups of four bytes. */
static TARGET void pack_fours(const tq_panel_rows *w, char *panel, size_t group)
{
    for (size_t k = 0; k < w->length; k += 64) {
        vi x[16], y[16];
        load_channels(w, k, 16, x);
        for (size_t c = 0; c < 16; c += 4) { /* of each block of 16 bytes: groups 0 to 3 of four channels */
            const vi a = _mm512_unpacklo_epi32(x[c], x[c + 1]), b = _mm512_unpackhi_epi32(x[c], x[c + 1]);
            const vi d = _mm512_unpacklo_epi32(x[c + 2], x[c + 3]), e = _mm512_unpackhi_epi32(x[c + 2], x[c + 3]);
            y[c] = _mm512_unpacklo_epi64(a, d), y[c + 1] = _mm512_unpackhi_epi64(a, d);
            y[c + 2] = _mm512_unpacklo_epi64(b, e), y[c + 3] = _mm512_unpackhi_epi64(b, e);
        }
        for (size_t i = 0; i < 4; i++)
            transpose_blocks(&y[i], &y[4 + i], &y[8 + i], &y[12 + i]);
        for (size_t i = 0; i < 16 && k + 4 * i < w->length; i++, panel += group)
            _mm512_storeu_si512(panel, y[i]);
    }
}

static TARGET void sum_fours(const char *panel, size_t groups, size_t group, size_t channels, int32_t *to)
{
    _mm512_mask_storeu_epi32(to, (__mmask16)(0xFFFF >> (16 - channels)), sum_groups(panel, groups, group));
}

/* Vectors of 8 channels' groups of eight bytes. */
static TARGET void pack_eights(const tq_panel_rows *w, char *panel, size_t group)
{
    for (size_t k = 0; k < w->length; k += 64) {
        vi x[8], y[8];
        load_channels(w, k, 8, x);
        for (size_t c = 0; c < 8; c += 2) /* of each block of 16 bytes: groups 0 and 1 of two channels */
            y[c] = _mm512_unpacklo_epi64(x[c], x[c + 1]), y[c + 1] = _mm512_unpackhi_epi64(x[c], x[c + 1]);
        for (size_t i = 0; i < 2; i++)
            transpose_blocks(&y[i], &y[2 + i], &y[4 + i], &y[6 + i]);
        for (size_t i = 0; i < 8 && k + 8 * i < w->length; i++, panel += group)
            _mm512_storeu_si512(panel, y[i]);
    }
}

/* A channel has two lanes. */
static TARGET void sum_eights(const char *panel, size_t groups, size_t group, size_t channels, int32_t *to)
{
    const vi lanes = sum_groups(panel, groups, group), sums = _mm512_add_epi32(lanes, _mm512_srli_epi64(lanes, 32));
    _mm256_mask_storeu_epi32(to, (__mmask8)(0xFF >> (8 - channels)), _mm512_cvtepi64_epi32(sums));
}

/* Panels of 8 channels whose groups are 8 bytes of a row: a lane has four of them, so that a channel's sum stands in
   two lanes.  One panel of gemm_i8 takes a load of a row for each vpdpbusd, and processors begin as many loads of
   vectors as vpdpbusd; two half panels share the load. */

INLINE vi load_eight(const void *p)
{
    int64_t eight;
    memcpy(&eight, p, sizeof eight);
    return _mm512_set1_epi64(eight);
}

/* n bytes, 1 to 7, and zeros. */
INLINE vi load_up_to_seven(const void *p, size_t n)
{
    uint32_t four;
    if (n < 4)
        return _mm512_set1_epi64(tq_few_bytes(p, n));
    memcpy(&four, p, sizeof four);
    const uint64_t rest = n > 4 ? tq_few_bytes((const char *)p + 4, n - 4) : 0;
    return _mm512_set1_epi64((int64_t)(rest << 32 | four));
}

INLINE void save_pairs(void *p, vi sums)
{
    IN_REGISTER(sums);
    const vi both = add_s32(sums, _mm512_srli_epi64(sums, 32));
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi64_epi32(both));
}

INLINE void save_two_panels(void *p, vi a, vi b)
{
    IN_REGISTER(a); /* gcc would keep copies of all sums within the loops before */
    IN_REGISTER(b);
    const vi even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const vi odd = _mm512_or_si512(even, splat_s32(1));
    save_s32(p, add_s32(_mm512_permutex2var_epi32(a, even, b), _mm512_permutex2var_epi32(a, odd, b)));
}

#define NAME gemm_i8_half
#define LINKAGE static
#define PANEL_LANES 8
#define GROUP 8
#define ROW_BYTES 1
#define WEIGHT_BYTES 1
#define ROWS 6
#define PANELS 2
#define WIDE 4
#define TALL 2
#define sums_t vi
#define weights_t vi
#define row_t vi
#define last_sums(sums, p) sums
#define first_sums(p) _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define save_sums save_pairs
#define save_two save_two_panels
#define load_weights(p) _mm512_loadu_si512(p)
#define load_row(p, flip) _mm512_xor_si512(load_eight(p), flip)
#define load_row_part(p, n, flip) _mm512_xor_si512(load_up_to_seven(p, n), flip)
#define flip_of(flip) _mm512_set1_epi8((char)(flip))
#define multiply(sums, weights, row) _mm512_dpbusd_epi32(sums, row, weights)
#define PRODUCT_FIELDS                                                                                      \
    .flip_i8 = 0x80, .flip_u8 = 0, .stores = &tq_stores__avx512, .row_sum = sum_bytes, .pack = pack_eights, \
    .sum = sum_eights
#include "kernels/gemm/gemm_simd.h"

#define NAME gemm_i8
#define PANEL_LANES 16
#define GROUP 4
#define ROW_BYTES 1
#define WEIGHT_BYTES 1
#define ROWS 6
#define PANELS 4
#define WIDE 8
#define TALL 2
#define sums_t vi
#define weights_t vi
#define row_t vi
#define last_sums(sums, p) sums
#define first_sums(p) _mm512_loadu_si512(p)
#define save_sums save_s32
#define load_weights(p) _mm512_loadu_si512(p)
#define load_row(p, flip) _mm512_xor_si512(load_four(p), flip)
#define load_row_part(p, n, flip) _mm512_xor_si512(load_few(p, n), flip)
#define load_across(p, flip) _mm512_xor_si512(_mm512_loadu_si512(p), flip)
#define flip_of(flip) _mm512_set1_epi8((char)(flip))
#define multiply(sums, weights, row) _mm512_dpbusd_epi32(sums, row, weights)
#define PRODUCT_FIELDS                                                                                     \
    .flip_i8 = 0x80, .flip_u8 = 0, .stores = &tq_stores__avx512, .row_sum = sum_bytes, .pack = pack_fours, \
    .sum = sum_fours, .half_panels = &tq_gemm_i8_half__avx512vnni
#include "kernels/gemm/gemm_simd.h"

#define NAME gemm_i16
#define PANEL_LANES 16
#define GROUP 2
#define ROW_BYTES 2
#define WEIGHT_BYTES 1
#define ROWS 6
#define PANELS 4
#define WIDE 8
#define TALL 2
#define sums_t vi
#define weights_t vi
#define row_t vi
#define last_sums(sums, p) sums
#define first_sums(p) _mm512_loadu_si512(p)
#define save_sums save_s32
#define load_weights load_weights_i16
#define load_row(p, flip) load_four(p)
#define load_row_part(p, n, flip) load_few(p, 2)
#define load_across(p, flip) _mm512_loadu_si512(p)
#define flip_of(flip) splat_s32(flip)
#define multiply(sums, weights, row) _mm512_dpwssd_epi32(sums, weights, row)
#define PRODUCT_FIELDS \
    .stores = &tq_stores__avx512, .row_sum = gemm_sum_i16, .copy_i8 = gemm_copy_i8, .copy_u8 = gemm_copy_u8
#include "kernels/gemm/gemm_simd.h"
#endif
