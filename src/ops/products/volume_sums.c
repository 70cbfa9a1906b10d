/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/products/volume_sums.h"

#include <string.h>

#include "base/stop.h"
#include "kernels/isa.h"

enum { PIXELS = 8 };

/* Unrolled: sums stay in registers. */
#define EACH(p, n) _Pragma("GCC unroll 8") for (size_t p = 0; p < (n); p++)

/* Channels that one vector holds. */
typedef float lanes_16 __attribute__((vector_size(64)));
typedef float lanes_8 __attribute__((vector_size(32)));
typedef float lanes_4 __attribute__((vector_size(16)));
typedef float lanes_1 __attribute__((vector_size(4)));

/* `side` channels of `pixels` pixels, both constant; products and sums are rounded by themselves. */
#define SUM(side)                                                                                              \
    TQ_BODY void sum_##side(const tq_volume_taps *t, size_t step, size_t o, float *out, const size_t pixels)   \
    {                                                                                                          \
        lanes_##side sums[PIXELS] = {{0}}, row;                                                                \
        for (size_t d = 0; d < t->count[0]; d++)                                                               \
            for (size_t y = 0; y < t->count[1] && !tq_stop_after(t->count[2] * t->channels); y++)              \
                for (size_t x = 0; x < t->count[2]; x++) {                                                     \
                    const float *in = t->in + d * t->in_step[0] + y * t->in_step[1] + x * t->in_step[2];       \
                    const float *w =                                                                           \
                        t->filter + d * t->filter_step[0] + y * t->filter_step[1] + x * t->filter_step[2] + o; \
                    for (size_t c = 0; c < t->channels; c++, w += t->out_channels) {                           \
                        memcpy(&row, w, sizeof row);                                                           \
                        EACH (p, pixels)                                                                       \
                            sums[p] += row * in[p * step + c];                                                 \
                    }                                                                                          \
                }                                                                                              \
        EACH (p, pixels)                                                                                       \
            memcpy(out + p * t->out_channels + o, &sums[p], sizeof sums[p]);                                   \
    }
SUM(16)
SUM(8)
SUM(4)
SUM(1)

TQ_BODY void sum_channels(const tq_volume_taps *t, size_t step, float *out, const size_t pixels, const int longest)
{
    size_t o = 0;
    for (; longest >= 16 && o + 16 <= t->out_channels; o += 16)
        sum_16(t, step, o, out, pixels);
    for (; longest >= 8 && o + 8 <= t->out_channels; o += 8)
        sum_8(t, step, o, out, pixels);
    for (; o + 4 <= t->out_channels; o += 4)
        sum_4(t, step, o, out, pixels);
    for (; o < t->out_channels; o++)
        sum_1(t, step, o, out, pixels);
}

#define SUM_PIXELS(isa, target)                                                                             \
    target static void sum_pixels_##isa(const tq_volume_taps *t, size_t pixels, size_t step, float *out)    \
    {                                                                                                       \
        tq_volume_taps at = *t;                                                                             \
        if (at.in_step[2] == at.channels) { /* taps side by side: one longer run of channels */             \
            at.channels *= at.count[2];                                                                     \
            at.count[2] = 1;                                                                                \
        }                                                                                                   \
        for (; pixels >= PIXELS; pixels -= PIXELS, at.in += PIXELS * step, out += PIXELS * at.out_channels) \
            sum_channels(&at, step, out, PIXELS, TQ_FLOATS_##isa);                                          \
        for (; pixels > 0; pixels--, at.in += step, out += at.out_channels)                                 \
            sum_channels(&at, step, out, 1, TQ_FLOATS_##isa);                                               \
    }
TQ_EVERY_ISA(SUM_PIXELS)

void tq_volume_sum(const tq_volume_taps *taps, size_t pixels, size_t step, float *out)
{
    static void (*const bodies[TQ_ISAS])(const tq_volume_taps *, size_t, size_t, float *) =
        TQ_ISA_FUNCTIONS(sum_pixels);
    bodies[tq_isa()](taps, pixels, step, out);
}
