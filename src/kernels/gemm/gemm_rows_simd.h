/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of gemm_i16: sums, and copies of 8-bit rows as 16-bit rows less their zero point.  Plain loops, which compilers
 * vectorize for TARGET.
 */
static TARGET int32_t gemm_sum_i16(const void *run, size_t n, uint8_t flip)
{
    (void)flip;
    uint32_t sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (uint32_t)((const int16_t *)run)[k];
    return (int32_t)sum;
}

static TARGET void gemm_copy_i8(const int8_t *from, int16_t *to, size_t n, int32_t zero_point)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (int16_t)(from[i] - zero_point);
}

static TARGET void gemm_copy_u8(const uint8_t *from, int16_t *to, size_t n, int32_t zero_point)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (int16_t)(from[i] - zero_point);
}
