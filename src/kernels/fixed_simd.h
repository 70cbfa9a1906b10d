/* SPDX-License-Identifier: Apache-2.0
 *
 * The fast way to an 8-bit code, shared by quantize and requantize.
 *
 * Both round a real number r, known by an exact but slow rule (a float32 division; a 64-bit product shifted
 * twice), to the code floor(r + z + 1/2 + d), up to how ties go; d is a shift of the ties that some rules
 * have.  Here v = even(fma(x, slope, offset)) approximates 2^16 (r + z + 1/2 + d) + E, E = TQ_FIXED_ERROR,
 * so that the code is v >> 16.  Let u = 2^-24, and |r| <= 256, which the codes that do not saturate have.  In
 * units of 2^-16, where 2^16 |r| u <= 1, v is off by at most
 *     2      x and slope are each rounded once on their way to float32, or one of them is as the rule has it
 *            but the rule itself rounds r once to float32 (quantize, float32-even)
 *     1      offset, below 2^25, is rounded to float32
 *     1      the sum, below 2^25, is rounded to float32 (1/4 if below 2^23) and to an integer (0 else, 1/2)
 * and second-order terms: less than E.  So v lies in (w, w + 2E), w the exact value, and if no multiple of
 * 2^16 is in [w, v], then v >> 16 is the code and w is not a tie.  Otherwise the lower 16 bits of v are at most
 * 2E: the block is then done again by the exact rule.  Spread-out data asks for that in 1 lane of 6000, data
 * made of ties in every block.
 *
 * Where |r| > 256, v is still on its side of every code, since fma and conversion are monotonic in x, and the
 * code saturates.  Where the conversion overflows, and for NaN, v is INT32_MIN: its lower bits are 0.
 */

/* Four vectors in fixed point to BLOCK codes; false, and nothing stored, where a lane cannot be trusted.
   Codes of less than the element's range are clamped once more. */
#define DEFINE_STORE_FIXED(out)                                                                              \
    INLINE bool store_fixed_##out(element_##out *y, const vi v[4], bool clamp, int32_t low, int32_t high,    \
                                  bool stream)                                                               \
    {                                                                                                        \
        vi least = min_words(min_words(v[0], v[1]), min_words(v[2], v[3]));                                  \
        if (__builtin_expect(any_low_up_to(least, 2 * TQ_FIXED_ERROR), 0))                                   \
            return false;                                                                                    \
        vi codes = codes_##out(join_high(v[0], v[1]), join_high(v[2], v[3]));                                \
        put(y, clamp ? clamp_##out(codes, low, high) : codes, stream);                                       \
        return true;                                                                                         \
    }
DEFINE_STORE_FIXED(i8)
DEFINE_STORE_FIXED(u8)
