/* SPDX-License-Identifier: Apache-2.0
 *
 * 8-bit quantized values in 16.16 fixed point, for quantize and requantize.
 *
 * Both round a real number r to the value floor(r + z + 1/2 + d), up to the direction of ties.  z is the zero point; d
 * shifts the ties of some rules.  The exact rule that gives r is slow: a float32 division, or a 64-bit product shifted
 * twice.  Here v = even(fma(x, slope, offset)) approximates 2^16 (r + z + 1/2 + d) + E, with E = TQ_FIXED_ERROR, and
 * the value is v >> 16.
 *
 * Error of v.  Let u = 2^-24 and |r| <= 256, which holds for values that do not saturate.  In units of 2^-16, where
 * 2^16 |r| u <= 1, v is off by at most
 *
 *     2      x and slope are each rounded once to float32; or one of them is the rule's own, and the rule rounds r
 *            once to float32 (quantize, float32-even)
 *     1/2    offset, below 2^24, is rounded to float32
 *     3/4    the sum, below 2^24 for values that do not saturate, is rounded to float32 (by 1/4 below 2^23, and then
 *            to an integer by 1/2; else by 1/2)
 *
 * and second-order terms: less than E - 1/2.  So v lies in (w, w + 2E - 1/2), w the exact value.  Where no multiple of
 * 2^16 lies in [w, v], v >> 16 is the value and w is no tie.  Otherwise the low 16 bits of v are less than 2E, the lane
 * is undecided, and the exact rule computes its block.  1 lane in 8192 of uniform data is undecided, and every block of
 * data made of ties.
 *
 * Where integers x are exact in float32 for all values that do not saturate, v is off by 1 less: then 2E =
 * TQ_FIXED_EXACT_DOUBLED is enough, with v in (w, w + 2E).  That holds for |x| <= 2^24, and a larger |x| saturates
 * where the factor is at least 2^-15, or 0 (whose only value is no tie).
 *
 * A denormal slope is off by 2^-150 at most, which is as good: |x| <= 2^31 where x is an integer, and |r| < 8 where a
 * scale is that large.  Scales with an infinite slope take the scalar body.
 *
 * Values are signed: the offset of unsigned ones contains -128, and flipping the high bit of each then adds 128.
 *
 * Where |r| > 256, v lies beyond every value, since fma and conversion are monotonic in x, and the result saturates.
 * Where the conversion overflows, and for NaN, v is INT32_MIN, whose low 16 bits are 0: undecided.
 */

INLINE struct fixed_block fixed_narrow(const vi v[4])
{
    return fixed_join(fixed_halve(v[0], v[1]), fixed_halve(v[2], v[3]));
}

/* Whether a lane is undecided; limit: 2 E, at most 128. */
INLINE bool fixed_undecided(fixed_lows least, uint8_t limit)
{
    return __builtin_expect(fixed_below(least, limit), 0);
}
