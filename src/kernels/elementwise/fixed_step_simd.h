/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the functions step and pair of walk_simd.h for 8-bit outputs, in fixed point (fixed_simd.h).  One kernel
 * serves int8 and uint8, whose values differ by a flipped bit.  The includer defines KERNEL, IN, OUT (u8), PARAMS and
 * lane_t for walk_simd.h, which it includes next, and the functions
 *
 *   lane_t load_KERNEL(p, at)      the parameters of entries from `at` on, one a lane
 *   vi fixed_KERNEL(x, &lane)      a vector of elements in fixed point
 *   uint8_t limit_KERNEL(p)        the limit of fixed_undecided
 *   vi values_KERNEL(values, p)    the bytes of a block's signed values
 *   void exact_KERNEL(x, y, p, at, lanes, rule)
 *       computes a block by the exact rule; arguments as in step_KERNEL
 */
INLINE lane_t NAMED(lane)(const PARAMS *p, const lane_t *row, size_t at, const bool lanes)
{
    return lanes ? NAMED(load)(p, at) : *row;
}

INLINE void NAMED(store)(out_t *y, const struct fixed_block *block, const PARAMS *p, bool stream)
{
    put(y, NAMED(values)(fixed_values(block), p), stream);
}

INLINE void NAMED(end)(const struct fixed_block *block, const in_t *x, out_t *y, const PARAMS *p, size_t at, bool lanes,
                       bool stream, int rule)
{
    if (fixed_undecided(block->least, NAMED(limit)(p)))
        NAMED(exact)(x, y, p, at, lanes, rule);
    else
        NAMED(store)(y, block, p, stream);
}

INLINE void NAMED(step)(const in_t *x, out_t *y, const PARAMS *p, const lane_t *row, size_t at, const bool lanes,
                        const bool stream, int rule)
{
    vi v[4];
    for (size_t k = 0; k < 4; k++) {
        const lane_t c = NAMED(lane)(p, row, at + k * LANES, lanes);
        v[k] = NAMED(fixed)(x + k * LANES, &c);
    }
    const struct fixed_block block = fixed_narrow(v);
    NAMED(end)(&block, x, y, p, at, lanes, stream, rule);
}

#define PAIRED
INLINE void NAMED(pair)(const in_t *x, out_t *y, const in_t *x2, out_t *y2, const PARAMS *p, const lane_t *row,
                        size_t at, const bool lanes, int rule)
{
    vi v[4], w[4];
    for (size_t k = 0; k < 4; k++) {
        const lane_t c = NAMED(lane)(p, row, at + k * LANES, lanes);
        v[k] = NAMED(fixed)(x + k * LANES, &c);
        w[k] = NAMED(fixed)(x2 + k * LANES, &c);
    }
    const struct fixed_block one = fixed_narrow(v), two = fixed_narrow(w);
    if (fixed_undecided(fixed_least(one.least, two.least), NAMED(limit)(p))) {
        NAMED(end)(&one, x, y, p, at, lanes, false, rule);
        NAMED(end)(&two, x2, y2, p, at, lanes, false, rule);
    } else {
        NAMED(store)(y, &one, p, false);
        NAMED(store)(y2, &two, p, false);
    }
}
