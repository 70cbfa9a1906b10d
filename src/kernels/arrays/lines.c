/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of lines.h: whole bytes of 32 at once; the search of slopes and offsets near the real ones, whose result is
 * compared with all 256 entries.
 */
#include "kernels/arrays/lines.h"

#include <math.h>
#include <string.h>

#include "kernels/arrays/lookup.h"
#include "kernels/isa.h"

#if TQ_X86
#include <immintrin.h>

enum { FINEST = 15 }; /* the slope's binary places, at most: the sum then has 8 */

/* A line at s, in the lanes' arithmetic. */
static int32_t line_at(int32_t s, int32_t slope, int32_t offset, int32_t right)
{
    const int32_t sum = ((s * 256 * slope + (1 << 14)) >> 15) + offset;
    const int32_t y = (sum < INT16_MIN ? INT16_MIN : sum > INT16_MAX ? INT16_MAX : sum) >> right;
    return y < INT8_MIN ? INT8_MIN : y > INT8_MAX ? INT8_MAX : y;
}

/* Whether a line is `values` from `first` to `last`. */
static bool is_line(const int8_t *values, int32_t first, int32_t last, int32_t slope, int32_t offset, int32_t right)
{
    for (int32_t s = first; s <= last; s++)
        if (line_at(s, slope, offset, right) != values[s + 128])
            return false;
    return true;
}

/* Steps of 0, 1, -1, 2, -2 ... */
static int32_t step_of(int32_t k)
{
    return k % 2 ? (k + 1) / 2 : -k / 2;
}

/* A line of about this slope through the pivot's value.  The rules round otherwise: the nearest lines are tried. */
static bool find_line(tq_lines *lines, int k, const int8_t *values, double slope, int32_t pivot, int32_t at_pivot)
{
    enum { SLOPES = 5, OFFSETS = 11 };
    const int32_t first = k ? pivot : INT8_MIN, last = k ? INT8_MAX : pivot - 1;
    const double near_slope = ldexp(slope, lines->right + 7);
    const double near_offset = ldexp(at_pivot - slope * pivot + 0.5, lines->right);
    if (!(fabs(near_slope) < INT16_MAX - SLOPES) || !(fabs(near_offset) < INT16_MAX - OFFSETS))
        return false;
    for (int32_t i = 0; i < SLOPES; i++)
        for (int32_t j = 0; j < OFFSETS; j++) {
            const int32_t m = (int32_t)lrint(near_slope) + step_of(i), c = (int32_t)lrint(near_offset) + step_of(j);
            if (is_line(values, first, last, m, c, lines->right)) {
                lines->slope[k] = (int16_t)m;
                lines->offset[k] = (int16_t)c;
                return true;
            }
        }
    return false;
}

TQ_TARGET_AVX2 TQ_BODY __m256i sums_of(__m256i x, const tq_lines *l)
{
    const __m256i below = _mm256_mulhrs_epi16(x, _mm256_set1_epi16(l->slope[0]));
    const __m256i above = _mm256_mulhrs_epi16(x, _mm256_set1_epi16(l->slope[1]));
    const __m256i most = _mm256_max_epi16(_mm256_adds_epi16(below, _mm256_set1_epi16(l->offset[0])),
                                          _mm256_adds_epi16(above, _mm256_set1_epi16(l->offset[1])));
    return _mm256_sra_epi16(most, _mm_cvtsi32_si128(l->right));
}

TQ_TARGET_AVX2 static size_t run_avx2(const tq_lines *lines, const uint8_t *in, uint8_t *out, size_t n)
{
    const tq_lines l = *lines; /* stores cannot change it */
    const __m256i flip_in = _mm256_set1_epi8((char)l.flip_in), flip_out = _mm256_set1_epi8((char)l.flip_out);
    const __m256i zero = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i x = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(in + i)), flip_in);
        const __m256i low = sums_of(_mm256_unpacklo_epi8(zero, x), &l);
        const __m256i high = sums_of(_mm256_unpackhi_epi8(zero, x), &l);
        _mm256_storeu_si256((__m256i *)(out + i), _mm256_xor_si256(_mm256_packs_epi16(low, high), flip_out));
    }
    return i;
}

bool tq_lines_find(tq_lines *lines, const uint8_t table[256], const double slopes[2], int32_t pivot, bool flips_in,
                   bool flips_out)
{
    const double steepest = fmax(fabs(slopes[0]), fabs(slopes[1]));
    tq_lines found = {.flip_in = flips_in ? 128 : 0, .flip_out = flips_out ? 128 : 0};
    uint8_t all[256], made[256];
    int8_t values[256];
    int exponent;
    if (!(tq_kernels_features() & TQ_CPU_AVX2) || tq_kernels_features() & TQ_CPU_AVX512VBMI || !(steepest < 256) ||
        pivot < INT8_MIN || pivot > INT8_MAX)
        return false;
    for (int s = 0; s < 256; s++) {
        all[s] = (uint8_t)s;
        values[s] = (int8_t)(table[(uint8_t)(s - 128) ^ found.flip_in] ^ found.flip_out);
    }
    frexp(steepest, &exponent); /* steepest < 2^exponent */
    found.right = FINEST - 7 - (exponent > 0 ? exponent : 0);
    const int32_t at_pivot = values[pivot + 128];
    if (!find_line(&found, 0, values, slopes[0], pivot, at_pivot) ||
        !find_line(&found, 1, values, slopes[1], pivot, at_pivot))
        return false;
    run_avx2(&found, all, made, sizeof made);
    *lines = found;
    return memcmp(made, table, sizeof made) == 0;
}

void tq_lines_run(const tq_lines *lines, const uint8_t table[256], const uint8_t *in, uint8_t *out, size_t n)
{
    const size_t whole = run_avx2(lines, in, out, n);
    tq_lookup_bytes(table, in + whole, out + whole, n - whole);
}

#else

bool tq_lines_find(tq_lines *lines, const uint8_t table[256], const double slopes[2], int32_t pivot, bool flips_in,
                   bool flips_out)
{
    (void)lines, (void)table, (void)slopes, (void)pivot, (void)flips_in, (void)flips_out;
    return false;
}

void tq_lines_run(const tq_lines *lines, const uint8_t table[256], const uint8_t *in, uint8_t *out, size_t n)
{
    (void)lines;
    tq_lookup_bytes(table, in, out, n);
}

#endif
