/* SPDX-License-Identifier: Apache-2.0
 *
 * tq_depthwise_kernel's interleave, for AVX2 and AVX-VNNI.
 */
/* Two vectors of eight columns: four neighbours in each low half, and the columns 16 behind these in the high half. */
INLINE void save_halves(char *to, vi first, vi second)
{
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute2x128_si256(first, second, 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(to + 64), _mm256_permute2x128_si256(first, second, 0x31));
}

/* 32 columns of four rows: byte i of row k to byte 4 i + k. */
INLINE void interleave_columns(const char *const row[4], const size_t step[4], size_t at, vi flips, char *to)
{
    vi x[4];
    for (int k = 0; k < 4; k++)
        x[k] = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)(row[k] + at * step[k])), flips);
    const vi a = _mm256_unpacklo_epi8(x[0], x[1]), b = _mm256_unpackhi_epi8(x[0], x[1]);
    const vi c = _mm256_unpacklo_epi8(x[2], x[3]), d = _mm256_unpackhi_epi8(x[2], x[3]);
    save_halves(to, _mm256_unpacklo_epi16(a, c), _mm256_unpackhi_epi16(a, c));
    save_halves(to + 32, _mm256_unpacklo_epi16(b, d), _mm256_unpackhi_epi16(b, d));
}

static TARGET void interleave(const char *const row[4], const size_t step[4], size_t n, uint8_t flip, char *to)
{
    const vi flips = splat_s8((int8_t)flip);
    const char *const rows[4] = {row[0], row[1], row[2], row[3]}; /* `to` might alias row */
    const size_t steps[4] = {step[0], step[1], step[2], step[3]};
    size_t i = 0;
    for (; i + 32 <= n; i += 32, to += 128)
        interleave_columns(rows, steps, i, flips, to);
    if (i == n)
        return;
    char last[4][32] = {{0}};
    for (int k = 0; k < 4; k++)
        memcpy(last[k], rows[k] + i * steps[k], n - i);
    interleave_columns((const char *const[4]){last[0], last[1], last[2], last[3]}, steps, 0, flips, to);
}
