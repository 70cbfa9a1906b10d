/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/observe.h"

#include <float.h>
#include <math.h>

enum { LANES = 16 };

/* One run of one type.  A minimum over floats may not be reordered by the compiler, so the run is
   cut into lanes by hand, and these it does vectorize.  A value that is not finite takes part as the
   lane's own bound, which changes nothing. */
#define DEFINE_RUN(name, type, absolute, greatest)                                                       \
    static void name(const type *x, size_t n, tq_observed *o)                                            \
    {                                                                                                    \
        type low[LANES], high[LANES];                                                                    \
        uint64_t finite = 0, nan = 0;                                                                    \
        for (int k = 0; k < LANES; k++) {                                                                \
            low[k] = (type)INFINITY;                                                                     \
            high[k] = -(type)INFINITY;                                                                   \
        }                                                                                                \
        size_t i = 0;                                                                                    \
        for (; i + LANES <= n; i += LANES) {                                                             \
            uint32_t block = 0;                                                                          \
            for (int k = 0; k < LANES; k++) {                                                            \
                type v = x[i + k];                                                                       \
                bool in = absolute(v) <= greatest;                                                       \
                type at_low = in ? v : low[k], at_high = in ? v : high[k];                               \
                low[k] = at_low < low[k] ? at_low : low[k];                                              \
                high[k] = at_high > high[k] ? at_high : high[k];                                         \
                block += in;                                                                             \
            }                                                                                            \
            finite += block;                                                                             \
            if (block != LANES)                                                                          \
                for (int k = 0; k < LANES; k++)                                                          \
                    nan += x[i + k] != x[i + k];                                                         \
        }                                                                                                \
        for (; i < n; i++) {                                                                             \
            bool in = absolute(x[i]) <= greatest;                                                        \
            low[0] = in && x[i] < low[0] ? x[i] : low[0];                                                \
            high[0] = in && x[i] > high[0] ? x[i] : high[0];                                             \
            finite += in;                                                                                \
            nan += x[i] != x[i];                                                                         \
        }                                                                                                \
        for (int k = 0; k < LANES; k++) {                                                                \
            o->min = low[k] < o->min ? low[k] : o->min;                                                  \
            o->max = high[k] > o->max ? high[k] : o->max;                                                \
        }                                                                                                \
        o->finite += finite;                                                                             \
        o->nan += nan;                                                                                   \
        o->infinite += n - finite - nan;                                                                 \
    }

DEFINE_RUN(run_float, float, fabsf, FLT_MAX)
DEFINE_RUN(run_double, double, fabs, DBL_MAX)

void tq_observe(const tq_reals *x, tq_observed *observed)
{
    tq_axis_view l = x->view;
    for (size_t c = 0; c < l.channels; c++)
        observed[c] = (tq_observed){INFINITY, -INFINITY, 0, 0, 0};
    for (size_t run = 0; run < l.outer * l.channels; run++) {
        tq_observed *o = &observed[run % l.channels];
        if (x->is_double)
            run_double((const double *)x->data + run * l.inner, l.inner, o);
        else
            run_float((const float *)x->data + run * l.inner, l.inner, o);
    }
    for (size_t c = 0; c < l.channels; c++) {
        observed[c].min += 0.0; /* -0 + 0 is +0 */
        observed[c].max += 0.0;
    }
}
