/* SPDX-License-Identifier: Apache-2.0
 *
 * The fast way to an 8-bit code, shared by quantize and requantize.
 *
 * Both round a real number r, known by an exact but slow rule (a float32 division; a 64-bit product shifted
 * twice), to the value floor(r + z + 1/2 + d), up to how ties go; d is a shift of the ties that some rules
 * have.  Here v = even(fma(x, slope, offset)) approximates 2^16 (r + z + 1/2 + d) + E, E = TQ_FIXED_ERROR,
 * so that the value is v >> 16.  Let u = 2^-24, and |r| <= 256, which the quantized values that do not saturate have.
 * In units of 2^-16, where 2^16 |r| u <= 1, v is off by at most 2      x and slope are each rounded once on their way
 * to float32, or one of them is as the rule has it but the rule itself rounds r once to float32 (quantize,
 * float32-even) 1/2    offset, below 2^24, is rounded to float32 3/4    the sum, below 2^24 for values that do not
 * saturate, is rounded to float32 (1/4 if below 2^23, and then to an integer by 1/2; else 1/2) and second-order terms:
 * less than E - 1/2.  So v lies in (w, w + 2E - 1/2), w the exact value, and if no multiple of 2^16 is in [w, v], then
 * v >> 16 is the value and w is not a tie.  Otherwise the lower 16 bits of v are less than 2E: the block is then done
 * again by the exact rule.  Spread-out data asks for that in 1 lane of 8192, data made of ties in every block.
 *
 * Where an integer x is exact in float32 for all values that do not saturate, v is off by 1 less: then 2E =
 * TQ_FIXED_EXACT_DOUBLED is enough, with v in (w, w + 2E).  It is so for |x| <= 2^24, and a larger |x| is
 * a value that saturates if the factor is at least 2^-15 (or 0, whose values are one and no tie).
 *
 * A slope below the normal numbers is off by 2^-150 at most, which is as good: |x| <= 2^31 where x is an
 * integer, and |r| < 8 where a scale is that large.  Scales with an infinite slope take the scalar body.
 *
 * Where |r| > 256, v is still on its side of every value, since fma and conversion are monotonic in x, and the
 * code saturates.  Where the conversion overflows, and for NaN, v is INT32_MIN: its lower bits are 0.
 */

INLINE struct fixed_block fixed_narrow(const vi v[4])
{
    return fixed_join(fixed_halve(v[0], v[1]), fixed_halve(v[2], v[3]));
}

/* Whether a lane is undecided; limit: 2 E. */
INLINE bool fixed_undecided(fixed_lows least, uint8_t limit)
{
    return __builtin_expect(fixed_below(least, limit), 0);
}

/* Fixed point is of signed values: unsigned ones have 128 taken off their offset. */
INLINE vi fixed_values_i8(const struct fixed_block *block)
{
    return fixed_values(block);
}
INLINE vi fixed_values_u8(const struct fixed_block *block)
{
    return xor_s32(fixed_values(block), splat_s8(-128));
}
