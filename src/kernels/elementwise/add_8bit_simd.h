/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: tq_add_8bit of one instruction set.  The includer has included elementwise_simd.h.
 */
#include "base/names.h"
#include "kernels/elementwise/add_8bit.h"

_Static_assert(TQ_ADD_8BIT_BLOCK % BLOCK == 0, "repeated elements fill a block");

/* Sums of a block's first vectors, at least 1; false where one is undecided.  Behind the last: as the first. */
INLINE bool add_block(const tq_add_8bit *p, const uint8_t *x, const uint8_t *y, size_t vectors, const bool flips,
                      vi *sums)
{
    const vf first = splat_f32(p->first), second = splat_f32(p->second), offset = splat_f32(p->offset);
    vi v[4];
    for (size_t k = 0; k < 4; k++) {
        const size_t from = (k < vectors ? k : 0) * LANES;
        const vi a = flips ? load_u8(x + from) : load_i8((const int8_t *)x + from);
        const vi b = flips ? load_u8(y + from) : load_i8((const int8_t *)y + from);
        v[k] = fixed_of(float_of_s32(a), first, fma_f32(float_of_s32(b), second, offset));
    }
    const struct fixed_block block = fixed_narrow(v);
    *sums =
        xor_s32(clamp_s8(fixed_values(&block), splat_s8(p->low), splat_s8(p->high)), splat_s8(flips ? INT8_MIN : 0));
    return !fixed_undecided(block.least, p->undecided);
}

INLINE size_t add_8bit(const tq_add_8bit *params, const void *const in[2], const bool repeats[2], uint8_t *out,
                       size_t n, const bool flips)
{
    const tq_add_8bit p = *params;
    const uint8_t *x = in[0], *y = in[1];
    const size_t across = repeats[0] ? 0 : BLOCK, down = repeats[1] ? 0 : BLOCK;
    size_t at = 0;
    vi sums;
    for (; n - at >= BLOCK; at += BLOCK, x += across, y += down) {
        if (!add_block(&p, x, y, 4, flips, &sums))
            return at;
        put(out + at, sums, false);
    }
    const size_t vectors = (n - at) / LANES;
    if (vectors > 0 && add_block(&p, x, y, vectors, flips, &sums)) {
        uint8_t last[BLOCK];
        put(last, sums, false);
        for (size_t k = 0; k < vectors; k++, at += LANES)
            memcpy(out + at, last + k * LANES, LANES);
    }
    return at;
}

TARGET size_t TQ_GLUE(tq_add_8bit__, ISA)(const tq_add_8bit *p, const void *const in[2], const bool repeats[2],
                                          void *out, size_t n)
{
    return p->flips ? add_8bit(p, in, repeats, out, n, true) : add_8bit(p, in, repeats, out, n, false);
}
