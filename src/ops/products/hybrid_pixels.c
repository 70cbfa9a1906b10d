/* SPDX-License-Identifier: Apache-2.0
 *
 * Hybrid operators: integer sums of an image's pixels to float32, in place.  Few channels do not fill a vector: the
 * channels' factors are then repeated for as many pixels as fill whole vectors.
 */
#include <string.h>

#include "base/sizes.h"
#include "kernels/isa.h"
#include "ops/parallel.h"
#include "ops/products/hybrid.h"

enum { LANES = 16, FACTORS = 512, FEW = FACTORS / LANES };

/* y = clamp(f32(sum - zero) * first * second + bias), for the values of a run. */
typedef struct factors {
    size_t stride, run; /* elements from a run to the next; values of a run: FACTORS at most */
    float low, high;
    uint32_t zero[FACTORS];
    float first[FACTORS], second[FACTORS], bias[FACTORS];
} factors;

typedef struct pixels {
    const tq_gemm_scaling *scaling;
    const tq_hybrid_pixels *to;
} pixels;

/* Sets entry `at` to the factors of channel c. */
static void set_factors(const pixels *p, size_t c, size_t at, factors *f)
{
    const tq_gemm_scaling *s = p->scaling;
    const float scale = s->scale[s->scale_step * c], row_scale = s->row->scale;
    f->zero[at] = (uint32_t)s->row->zero_point * (uint32_t)s->weight_sums[c];
    if (c + p->to->remainder >= p->to->channels)
        f->first[at] = row_scale, f->second[at] = scale;
    else if (s->order == TQ_SCALE_ROW_LAST)
        f->first[at] = scale, f->second[at] = row_scale;
    else
        f->first[at] = scale * row_scale, f->second[at] = 1;
    f->bias[at] = s->bias ? s->bias[c] : -0.0f; /* x + -0 is x, also for a zero */
}

/* Values at to at + n - 1 of a run, which are computed before they are stored: y may be the sums' memory, and compilers
   vectorize only what cannot overlap. */
TQ_BODY void scale_values(const factors *f, const int32_t *sums, size_t at, const size_t n, float *restrict y)
{
    const float low = f->low, high = f->high;
    for (size_t i = 0; i < n; i++) {
        const float sum = (float)(int32_t)((uint32_t)sums[i] - f->zero[at + i]);
        float x = sum * f->first[at + i] * f->second[at + i] + f->bias[at + i];
        x = x < low ? low : x;
        y[i] = x > high ? high : x;
    }
}

/* The first n values of a run: whole blocks; the last one, which may overlap the one before, is computed first. */
TQ_BODY void scale_run(const factors *f, float *values, size_t n)
{
    const int32_t *sums = (const int32_t *)(const void *)values;
    float y[LANES], last[LANES];
    if (n < LANES) {
        scale_values(f, sums, 0, n, y);
        memcpy(values, y, n * sizeof *y);
        return;
    }
    if (n % LANES)
        scale_values(f, sums + n - LANES, n - LANES, LANES, last);
    for (size_t i = 0; i + LANES <= n; i += LANES) {
        scale_values(f, sums + i, i, LANES, y);
        memcpy(values + i, y, sizeof y);
    }
    if (n % LANES)
        memcpy(values + n - LANES, last, sizeof last);
}

/* `runs` runs, and the first `rest` values of another. */
#define SCALE(isa, target)                                                                    \
    target static void scale_##isa(const factors *f, float *values, size_t runs, size_t rest) \
    {                                                                                         \
        for (; runs > 0; runs--, values += f->stride)                                         \
            scale_run(f, values, f->run);                                                     \
        if (rest)                                                                             \
            scale_run(f, values, rest);                                                       \
    }
TQ_EVERY_ISA(SCALE)

static void scale_pixels(void *context, size_t begin, size_t end)
{
    static void (*const bodies[TQ_ISAS])(const factors *, float *, size_t, size_t) = TQ_ISA_FUNCTIONS(scale);
    const pixels *p = context;
    const tq_hybrid_pixels *to = p->to;
    const size_t repeats = to->channels <= FEW ? LANES / tq_common_divisor(to->channels, LANES) : 1,
                 count = end - begin;
    factors f;
    f.stride = repeats * to->channels, f.low = to->low, f.high = to->high;
    for (size_t c = 0, n; c < to->channels; c += n) {
        n = tq_min_size(to->channels - c, FACTORS);
        f.run = n * repeats;
        for (size_t i = 0; i < f.run; i++)
            set_factors(p, c + i % n, i, &f);
        bodies[tq_isa()](&f, to->values + begin * to->channels + c, count / repeats, count % repeats * n);
    }
}

void tq_hybrid_scale_pixels(const tq_gemm_scaling *scaling, const tq_hybrid_pixels *to, int threads)
{
    enum { COST = 60 };
    pixels p = {scaling, to};
    const int paying = tq_paying_threads(to->count * to->channels, COST, threads);
    tq_parallel_for(to->count, tq_part(to->count, paying), paying, scale_pixels, &p);
}
