/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/observe.h"

#include <float.h>
#include <math.h>

enum { LANES = 16, BLOCK = 1024 };

/* One run of one type, a block at a time.  A minimum over floats may not be reordered by the compiler,
   so a block is cut into lanes by hand, and these it does vectorize.  v - v is 0 for finite v and NaN
   for others, so a sum of them says whether the block is clean; one that is not is done again, value by
   value.  A NaN fails every comparison, and a block holding an infinity discards its bounds. */
#define DEFINE_RUN(name, type, absolute, greatest)                                                       \
    static void name##_one(type v, tq_observed *o)                                                       \
    {                                                                                                    \
        if (absolute(v) <= greatest) {                                                                   \
            o->min = v < o->min ? v : o->min;                                                            \
            o->max = v > o->max ? v : o->max;                                                            \
            o->finite++;                                                                                 \
        } else if (v != v)                                                                               \
            o->nan++;                                                                                    \
        else                                                                                             \
            o->infinite++;                                                                               \
    }                                                                                                    \
                                                                                                         \
    static bool name##_clean(const type *x, size_t n, tq_observed *o)                                    \
    {                                                                                                    \
        type low[LANES], high[LANES], zero[LANES];                                                       \
        for (int k = 0; k < LANES; k++) {                                                                \
            low[k] = high[k] = x[k];                                                                     \
            zero[k] = 0;                                                                                 \
        }                                                                                                \
        for (size_t i = 0; i < n; i += LANES)                                                            \
            for (int k = 0; k < LANES; k++) {                                                            \
                type v = x[i + k];                                                                       \
                low[k] = v < low[k] ? v : low[k];                                                        \
                high[k] = v > high[k] ? v : high[k];                                                     \
                zero[k] += v - v;                                                                        \
            }                                                                                            \
        for (int k = 1; k < LANES; k++) {                                                                \
            low[0] = low[k] < low[0] ? low[k] : low[0];                                                  \
            high[0] = high[k] > high[0] ? high[k] : high[0];                                             \
            zero[0] += zero[k];                                                                          \
        }                                                                                                \
        if (zero[0] != 0) /* NaN */                                                                      \
            return false;                                                                                \
        o->min = low[0] < o->min ? low[0] : o->min;                                                      \
        o->max = high[0] > o->max ? high[0] : o->max;                                                    \
        o->finite += n;                                                                                  \
        return true;                                                                                     \
    }                                                                                                    \
                                                                                                         \
    static void name(const type *x, size_t n, tq_observed *o)                                            \
    {                                                                                                    \
        while (n) {                                                                                      \
            size_t block = n >= BLOCK ? BLOCK : n >= LANES ? n - n % LANES : n;                          \
            if (block < LANES || !name##_clean(x, block, o))                                             \
                for (size_t i = 0; i < block; i++)                                                       \
                    name##_one(x[i], o);                                                                 \
            x += block;                                                                                  \
            n -= block;                                                                                  \
        }                                                                                                \
    }

DEFINE_RUN(run_float, float, fabsf, FLT_MAX)
DEFINE_RUN(run_double, double, fabs, DBL_MAX)

void tq_observe(const tq_reals *x, tq_observed *observed)
{
    tq_axis_view l = x->view;
    for (size_t c = 0; c < l.channels; c++)
        observed[c] = (tq_observed){INFINITY, -INFINITY, 0, 0, 0};
    size_t at = 0;
    for (size_t o = 0; o < l.outer; o++)
        for (size_t c = 0; c < l.channels; c++, at += l.inner)
            if (x->is_double)
                run_double((const double *)x->data + at, l.inner, &observed[c]);
            else
                run_float((const float *)x->data + at, l.inner, &observed[c]);
    for (size_t c = 0; c < l.channels; c++) {
        observed[c].min += 0.0; /* -0 + 0 is +0 */
        observed[c].max += 0.0;
    }
}
