/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/products/volume_sums.h"

#include <string.h>

#include "base/sizes.h"
#include "base/stop.h"
#include "kernels/isa.h"

enum { PIXELS = 8 };

/* Unrolled: sums stay in registers. */
#define EACH(p, n) _Pragma("GCC unroll 8") for (size_t p = 0; p < (n); p++)

/* Channels that one vector holds. */
typedef float lanes_16 __attribute__((vector_size(64)));
typedef float lanes_8 __attribute__((vector_size(32)));
typedef float lanes_4 __attribute__((vector_size(16)));
typedef float lanes_1;

/* `side` channels of `pixels` pixels, both constant; products and sums are rounded by themselves.  A sum, which begins
   with 0, is never -0: adding no bias as 0 changes nothing. */
#define SUM(side)                                                                                         \
    TQ_BODY void sum_##side(const tq_volume_taps *t, const float *const *in, float *const *out, size_t o, \
                            const size_t pixels)                                                          \
    {                                                                                                     \
        lanes_##side sums[PIXELS], row = {0};                                                             \
        EACH (p, pixels)                                                                                  \
            sums[p] = row;                                                                                \
        for (size_t d = 0; d < t->count[0]; d++)                                                          \
            for (size_t y = 0; y < t->count[1] && !tq_stop_after(t->count[2] * t->channels); y++)         \
                for (size_t x = 0; x < t->count[2]; x++) {                                                \
                    const size_t at = d * t->in_step[0] + y * t->in_step[1] + x * t->in_step[2];          \
                    const float *w = t->filter + o + (ptrdiff_t)d * t->filter_step[0] +                   \
                                     (ptrdiff_t)y * t->filter_step[1] + (ptrdiff_t)x * t->filter_step[2]; \
                    for (size_t c = 0; c < t->channels; c++, w += t->out_channels) {                      \
                        memcpy(&row, w, sizeof row);                                                      \
                        EACH (p, pixels)                                                                  \
                            sums[p] += row * in[p][at + c];                                               \
                    }                                                                                     \
                }                                                                                         \
        row = (lanes_##side){0};                                                                          \
        if (t->bias)                                                                                      \
            memcpy(&row, t->bias + o, sizeof row);                                                        \
        EACH (p, pixels) {                                                                                \
            const lanes_##side sum = sums[p] + row;                                                       \
            float y[side];                                                                                \
            memcpy(y, &sum, sizeof y);                                                                    \
            TQ_EACH_LANE (i, side) {                                                                      \
                const float raised = y[i] < t->low ? t->low : y[i];                                       \
                y[i] = raised > t->high ? t->high : raised;                                               \
            }                                                                                             \
            memcpy(out[p] + o, y, sizeof y);                                                              \
        }                                                                                                 \
    }
SUM(16)
SUM(8)
SUM(4)
SUM(1)

/* The pixels from the first on, `some` of them: a constant number. */
TQ_BODY void sum_some(const tq_volume_taps *t, const tq_volume_pixels *all, size_t first, const size_t some,
                      const int longest)
{
    const float *in[PIXELS];
    float *out[PIXELS];
    size_t o = 0, y = first / all->count[1], x = first % all->count[1];
    for (size_t p = 0; p < some; p++) {
        in[p] = t->in + y * all->in_step[0] + x * all->in_step[1];
        out[p] = all->out + y * all->out_step[0] + x * all->out_step[1];
        if (++x == all->count[1])
            x = 0, y++;
    }
    for (; longest >= 16 && o + 16 <= t->out_channels; o += 16)
        sum_16(t, in, out, o, some);
    for (; longest >= 8 && o + 8 <= t->out_channels; o += 8)
        sum_8(t, in, out, o, some);
    for (; o + 4 <= t->out_channels; o += 4)
        sum_4(t, in, out, o, some);
    for (; o < t->out_channels; o++)
        sum_1(t, in, out, o, some);
}

/* The last pixels may be computed twice. */
#define BY(some, longest)                                                \
    if (n >= some) {                                                     \
        for (size_t i = 0; i < n; i += some)                             \
            sum_some(&at, all, tq_min_size(i, n - some), some, longest); \
        return;                                                          \
    }
#define SUM_PIXELS(isa, target)                                                                                \
    target static void sum_pixels_##isa(const tq_volume_taps *t, const tq_volume_pixels *all)                  \
    {                                                                                                          \
        const size_t n = all->count[0] * all->count[1];                                                        \
        tq_volume_taps at = *t;                                                                                \
        if (at.in_step[2] == at.channels && at.filter_step[2] == (ptrdiff_t)(at.channels * at.out_channels)) { \
            at.channels *= at.count[2]; /* taps side by side: one longer run of channels */                    \
            at.count[2] = 1;                                                                                   \
        }                                                                                                      \
        BY(PIXELS, TQ_FLOATS_##isa)                                                                            \
        BY(4, TQ_FLOATS_##isa)                                                                                 \
        BY(1, TQ_FLOATS_##isa)                                                                                 \
    }
TQ_EVERY_ISA(SUM_PIXELS)

void tq_volume_sum(const tq_volume_taps *taps, const tq_volume_pixels *pixels)
{
    static void (*const bodies[TQ_ISAS])(const tq_volume_taps *, const tq_volume_pixels *) =
        TQ_ISA_FUNCTIONS(sum_pixels);
    bodies[tq_isa()](taps, pixels);
}
