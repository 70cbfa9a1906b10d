/* SPDX-License-Identifier: Apache-2.0
 *
 * tq_depthwise_kernel's interleave, for AVX2 and AVX-VNNI.
 */
INLINE void save_four(char *to, __m128i low, __m128i high)
{
    _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi16(low, high));
    _mm_storeu_si128((__m128i *)(to + 16), _mm_unpackhi_epi16(low, high));
}

/* 16 columns of four rows: byte i of row k to byte 4 i + k. */
INLINE void sixteen_columns(const char *const row[4], const size_t step[4], size_t at, __m128i flips, char *to)
{
    __m128i x[4];
    for (int k = 0; k < 4; k++)
        x[k] = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(row[k] + at * step[k])), flips);
    save_four(to, _mm_unpacklo_epi8(x[0], x[1]), _mm_unpacklo_epi8(x[2], x[3]));
    save_four(to + 32, _mm_unpackhi_epi8(x[0], x[1]), _mm_unpackhi_epi8(x[2], x[3]));
}

static TARGET void interleave(const char *const row[4], const size_t step[4], size_t n, uint8_t flip, char *to)
{
    const __m128i flips = _mm_set1_epi8((char)flip);
    const char *const rows[4] = {row[0], row[1], row[2], row[3]}; /* `to` might alias row */
    const size_t steps[4] = {step[0], step[1], step[2], step[3]};
    size_t i = 0;
    for (; i + 16 <= n; i += 16, to += 64)
        sixteen_columns(rows, steps, i, flips, to);
    if (i == n)
        return;
    char last[4][16] = {{0}};
    for (int k = 0; k < 4; k++)
        memcpy(last[k], rows[k] + i * steps[k], n - i);
    sixteen_columns((const char *const[4]){last[0], last[1], last[2], last[3]}, steps, 0, flips, to);
}
