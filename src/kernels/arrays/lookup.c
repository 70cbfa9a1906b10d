/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of 256 bytes, applied to an array: one body an instruction set.
 *
 * An AVX2 shuffle looks up 16 entries and gives 0 where an index's top bit is set.  Part k of the table is stored as
 * its difference (exclusive or) from part k - 1, and indices fall by 16 a part.  Once an index is below 0, later
 * differences add nothing, and the sum of differences is its entry.  The upper 128 entries are a second such chain.
 */
#include "kernels/arrays/lookup.h"

#include "kernels/kernels.h"

#if TQ_X86
#include <immintrin.h>
#elif TQ_ARM64
#include <arm_neon.h>
#endif

#define SHORT 64 /* elements; below, loading the table into registers costs more than it saves */

static void lookup_scalar(const uint8_t *table, const uint8_t *in, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = table[in[i]];
}

#if TQ_X86

__attribute__((target("avx2"))) static void lookup_avx2(const uint8_t *table, const uint8_t *in, uint8_t *out, size_t n)
{
    __m256i part[16];
    const __m256i step = _mm256_set1_epi8(16), top = _mm256_set1_epi8((char)0x80);
    __m128i before = _mm_setzero_si128();
    for (int k = 0; k < 16; k++) {
        __m128i entries = _mm_loadu_si128((const __m128i *)(table + 16 * k));
        part[k] = _mm256_broadcastsi128_si256(k == 8 ? entries : _mm_xor_si128(entries, before));
        before = entries;
    }
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(in + i)), high = _mm256_xor_si256(low, top);
        __m256i a = _mm256_shuffle_epi8(part[0], low), b = _mm256_shuffle_epi8(part[8], high);
        for (int k = 1; k < 8; k++) {
            low = _mm256_subs_epi8(low, step);
            high = _mm256_subs_epi8(high, step);
            a = _mm256_xor_si256(a, _mm256_shuffle_epi8(part[k], low));
            b = _mm256_xor_si256(b, _mm256_shuffle_epi8(part[k + 8], high));
        }
        _mm256_storeu_si256((__m256i *)(out + i), _mm256_xor_si256(a, b));
    }
    lookup_scalar(table, in + i, out + i, n - i);
}

__attribute__((target("avx512f,avx512bw,avx512vbmi"))) static void lookup_vbmi(const uint8_t *table, const uint8_t *in,
                                                                               uint8_t *out, size_t n)
{
    const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);
    const __m512i t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __m512i at = _mm512_loadu_si512(in + i);
        __m512i low = _mm512_permutex2var_epi8(t0, at, t1), high = _mm512_permutex2var_epi8(t2, at, t3);
        _mm512_storeu_si512(out + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
    }
    lookup_scalar(table, in + i, out + i, n - i);
}

void tq_lookup_bytes(const uint8_t table[256], const uint8_t *in, uint8_t *out, size_t n)
{
    uint32_t features = tq_kernels_features();
    if (n >= SHORT && features & TQ_CPU_AVX512VBMI)
        lookup_vbmi(table, in, out, n);
    else if (n >= SHORT && features & TQ_CPU_AVX2)
        lookup_avx2(table, in, out, n);
    else
        lookup_scalar(table, in, out, n);
}

#elif TQ_ARM64

static void lookup_neon(const uint8_t *table, const uint8_t *in, uint8_t *out, size_t n)
{
    uint8x16x4_t part[4];
    const uint8x16_t step = vdupq_n_u8(64);
    for (int k = 0; k < 4; k++)
        part[k] = vld1q_u8_x4(table + 64 * k);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint8x16_t at = vld1q_u8(in + i);
        uint8x16_t y = vqtbl4q_u8(part[0], at);
        for (int k = 1; k < 4; k++) { /* an index out of range leaves the lane as it is */
            at = vsubq_u8(at, step);
            y = vqtbx4q_u8(y, part[k], at);
        }
        vst1q_u8(out + i, y);
    }
    lookup_scalar(table, in + i, out + i, n - i);
}

void tq_lookup_bytes(const uint8_t table[256], const uint8_t *in, uint8_t *out, size_t n)
{
    if (n >= SHORT && tq_kernels_features() & TQ_CPU_NEON)
        lookup_neon(table, in, out, n);
    else
        lookup_scalar(table, in, out, n);
}

#else

void tq_lookup_bytes(const uint8_t table[256], const uint8_t *in, uint8_t *out, size_t n)
{
    lookup_scalar(table, in, out, n);
}

#endif
