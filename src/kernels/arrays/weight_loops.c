/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/arrays/weight_loops.h"

#include <float.h>
#include <string.h>

#include "kernels/isa.h"
#include "quant/packing.h"

enum { BLOCK = 512 }; /* weights; where a quotient is undecided, its block is divided by hardware */

bool tq_weight_stays_in_range(float factor)
{
    return factor >= FLT_MIN && factor <= 1 / FLT_MIN;
}

TQ_BODY int32_t bits_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TQ_BODY float float_of(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- bounds ---- */

/* Without sign bits, floats are ordered as their bits, and NaN is the greatest: a maximum of bits preserves NaN. */
TQ_BODY int32_t magnitude_bits(float x)
{
    return bits_of(x) & 0x7FFFFFFF;
}

TQ_BODY float greatest(const float *w, size_t n, float bound)
{
    int32_t most = magnitude_bits(bound);
    for (size_t i = 0; i < n; i++) {
        int32_t bits = magnitude_bits(w[i]);
        most = bits > most ? bits : most;
    }
    return float_of(most);
}

TQ_BODY void bounds_body(const float *w, tq_axis_view view, size_t begin, size_t end, float *restrict bounds)
{
    if (view.inner == 1) {
        for (size_t at = begin; at < end; at += view.channels)
            for (size_t c = 0; c < view.channels; c++) {
                int32_t a = magnitude_bits(w[at + c]), b = magnitude_bits(bounds[c]);
                bounds[c] = float_of(a > b ? a : b);
            }
        return;
    }
    for (tq_axis_run r = tq_axis_run_first(view, begin, end); r.count; tq_axis_run_next(&r, view, end))
        bounds[r.channel] = greatest(w + r.at, r.count, bounds[r.channel]);
}

/* ---- values ---- */

/* The float just below 1/2, with the sign of x.  Adding it and truncating rounds ties away from zero; 1/2 itself would
   round the float just below a tie up. */
TQ_BODY float half_like(float x)
{
    return float_of((bits_of(x) & INT32_MIN) | 0x3EFFFFFF);
}

#define ROUNDER 0x1.8p23f /* x + ROUNDER rounds |x| < 2^22 to an integer, ties to even */

/* One value, without branches and doubles, so that loops are vectorized.  Clamping before rounding gives the same,
   since the limits are integers. */
TQ_BODY int8_t byte_of(float w, float factor, bool divides, float low, float high)
{
    float x = divides ? w / factor : w * factor;
    x = x == x ? x : 0;
    x = x > low ? x : low;
    x = x < high ? x : high;
    return (int8_t)(int32_t)(divides ? (x + ROUNDER) - ROUNDER : x + half_like(x));
}

/* n values, each with its own factor; same: all with factors[0]. */
TQ_BODY void any_bytes(tq_weight_quantizer k, bool divides, const float *w, size_t n, const float *factors, bool same,
                       int8_t *restrict q)
{
    const float low = (float)k.low, high = (float)k.high;
    const float factor = factors[0];
    if (same)
        for (size_t i = 0; i < n; i++)
            q[i] = byte_of(w[i], factor, divides, low, high);
    else
        for (size_t i = 0; i < n; i++)
            q[i] = byte_of(w[i], factors[i], divides, low, high);
}

/* Values of a multiplying rule under stays_in_range. */
TQ_BODY void multiplied_bytes(const float *w, size_t n, float factor, int8_t *restrict q)
{
    for (size_t i = 0; i < n; i++) {
        float x = w[i] * factor;
        q[i] = (int8_t)(int32_t)(x + half_like(x));
    }
}

/* Quotients w / factor as products with the reciprocal r = 1 / factor: four times as fast as hardware's division.

   x = w * r differs from w / factor by at most |x| * 2^-23 (two roundings by 2^-24), and the rounded quotient by
   another |x| * 2^-24.  So where x is farther than |x| * 2^-22 from a tie, both round to the same integer.  |x| < high
   + 1. false: some x is nearer to a tie. */
TQ_BODY bool reciprocal_bytes(const float *w, size_t n, float r, float high, int8_t *restrict q)
{
    int32_t farthest = 0; /* distance from the nearest integer, as magnitude_bits */
    for (size_t i = 0; i < n; i++) {
        float x = w[i] * r, moved = x + ROUNDER;
        int32_t far = magnitude_bits(x - (moved - ROUNDER)); /* an exact difference */
        farthest = far > farthest ? far : farthest;
        q[i] = (int8_t)bits_of(moved); /* the low byte of ROUNDER is 0, and its last bit is worth 1 */
    }
    return float_of(farthest) < 0.5f - (high + 1) * 0x1p-22f;
}

TQ_BODY void near_bytes(tq_weight_quantizer k, bool divides, const float *w, size_t n, float factor, int8_t *restrict q)
{
    if (!divides) {
        multiplied_bytes(w, n, factor, q);
        return;
    }
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < BLOCK ? n - at : BLOCK;
        if (!reciprocal_bytes(w + at, some, 1 / factor, (float)k.high, q + at))
            any_bytes(k, divides, w + at, some, &factor, true, q + at);
    }
}

TQ_BODY void bytes_body(tq_weight_quantizer k, bool divides, const float *w, tq_axis_view view, size_t begin,
                        size_t end, const float *factors, int8_t *q)
{
    if (view.inner == 1 && view.channels > 1) {
        for (size_t at = begin, c, n; at < end; at += n) {
            c = at % view.channels;
            n = view.channels - c < end - at ? view.channels - c : end - at;
            any_bytes(k, divides, w + at, n, factors + c, false, q + (at - begin));
        }
        return;
    }
    for (tq_axis_run r = tq_axis_run_first(view, begin, end); r.count; tq_axis_run_next(&r, view, end))
        if (k.stays_in_range)
            near_bytes(k, divides, w + r.at, r.count, factors[r.channel], q + (r.at - begin));
        else
            any_bytes(k, divides, w + r.at, r.count, factors + r.channel, true, q + (r.at - begin));
}

/* ---- for each instruction set ---- */

#define LOOPS(isa, target)                                                                                             \
    target static void bounds_##isa(const float *w, tq_axis_view view, size_t begin, size_t end, float *bounds)        \
    {                                                                                                                  \
        bounds_body(w, view, begin, end, bounds);                                                                      \
    }                                                                                                                  \
    target static void bytes_##isa(tq_weight_quantizer k, const float *w, tq_axis_view view, size_t begin, size_t end, \
                                   const float *factors, int8_t *q)                                                    \
    {                                                                                                                  \
        if (k.divides)                                                                                                 \
            bytes_body(k, true, w, view, begin, end, factors, q);                                                      \
        else                                                                                                           \
            bytes_body(k, false, w, view, begin, end, factors, q);                                                     \
    }                                                                                                                  \
    target static void pack_##isa(const uint8_t *values, size_t count, int bits, uint8_t *packed)                      \
    {                                                                                                                  \
        tq_pack_values_inline(values, count, bits, packed);                                                            \
    }
TQ_EVERY_ISA(LOOPS)

#define ROW(isa) {bounds_##isa, bytes_##isa, pack_##isa}
#if TQ_X86
static const tq_weight_loops loops[TQ_ISAS] = {ROW(scalar), ROW(avx2), ROW(avx512)};
#else
static const tq_weight_loops loops[TQ_ISAS] = {ROW(scalar)};
#endif

const tq_weight_loops *tq_weight_loops_chosen(void)
{
    return &loops[tq_isa()];
}
