/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/fake_quant.h"

#include <math.h>
#include <string.h>

tq_status tq_fake_quant_nudge(float min, float max, int bits, bool narrow, tq_nudged *nudged, tq_error *error)
{
    if (min == 0 && max == 0) {
        *nudged = (tq_nudged){0, 0, 0, 0, 0};
        return TQ_OK;
    }
    if (!isfinite(min) || !isfinite(max) || !(min < max))
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                       "min is %g and max is %g; both must be finite and min less than max, or both 0", (double)min,
                       (double)max);
    float qmin = narrow, qmax = (float)((1 << bits) - 1);
    float scale = (max - min) / (qmax - qmin), inverse = 1.0f / scale;
    if (!isfinite(scale) || !isfinite(inverse))
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                       "min %g to max %g is too %s: its scale %g or the reciprocal is not a finite float32",
                       (double)min, (double)max, scale > 1 ? "wide" : "narrow", (double)scale);
    float zero_point = qmin - min / scale;
    zero_point = zero_point < qmin ? qmin : zero_point > qmax ? qmax : roundf(zero_point);
    float low = (qmin - zero_point) * scale, high = (qmax - zero_point) * scale;
    *nudged = (tq_nudged){low, high, scale, inverse, floorf(-low * inverse + 0.5f)};
    return TQ_OK;
}

/* The nearest integer, ties to even, for |x| < 2^22: the sum's last place is 1, so it is rounded there,
   and the difference is exact.  NaN stays NaN.  Compilers vectorize this as they cannot a call. */
static inline float round_even(float x)
{
    const float shifter = 12582912.0f; /* 1.5 * 2^23 */
    return (x + shifter) - shifter;
}

/* away(x) for 0 <= x < 2^22: the even rule errs where it went down from a tie.  x - r is exact. */
static inline float round_away(float x)
{
    float r = round_even(x);
    return r + (x - r >= 0.5f ? 1.0f : 0.0f);
}

static inline float round_down(float x)
{
    float r = round_even(x);
    return r + (r > x ? -1.0f : 0.0f);
}

/* NaN fails both comparisons and stays. */
static inline float clamp(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

static inline float tflite_one(float x, const tq_nudged *n)
{
    float shifted = clamp(x, n->low, n->high) - n->low;
    return round_away(shifted * n->inverse) * n->scale + n->low;
}

static inline float tensorflow_one(float x, const tq_nudged *n)
{
    float shifted = clamp(x, n->low, n->high) - n->low;
    return round_down(shifted / n->scale - n->zero + 0.5f) * n->scale;
}

/* One loop a rule, so that each is vectorized. */
#define DEFINE_RUNS(name, one)                                                                           \
    static void name(const tq_nudged *nudged, tq_axis_view l, const float *x, float *y)                  \
    {                                                                                                    \
        for (size_t o = 0; o < l.outer; o++)                                                             \
            for (size_t c = 0; c < l.channels; c++, x += l.inner, y += l.inner) {                        \
                const tq_nudged n = nudged[c]; /* a copy: for all the compiler knows y writes to it */   \
                for (size_t i = 0; i < l.inner; i++)                                                     \
                    y[i] = one(x[i], &n);                                                                \
                if (n.scale == 0)                                                                        \
                    memset(y, 0, l.inner * sizeof *y);                                                   \
            }                                                                                            \
    }

DEFINE_RUNS(tflite_runs, tflite_one)
DEFINE_RUNS(tensorflow_runs, tensorflow_one)

void tq_fake_quant(tq_fake_quant_rule rule, const tq_nudged *nudged, tq_axis_view view, const float *x, float *y)
{
    (rule == TQ_FAKE_QUANT_TFLITE ? tflite_runs : tensorflow_runs)(nudged, view, x, y);
}

void tq_fake_quant_gradient(const tq_nudged *nudged, tq_axis_view l, const float *dy, const float *x, float *dx,
                            double *dmin, double *dmax)
{
    for (size_t c = 0; c < l.channels; c++)
        dmin[c] = dmax[c] = 0;
    for (size_t o = 0; o < l.outer; o++)
        for (size_t c = 0; c < l.channels; c++) {
            const tq_nudged n = nudged[c];
            bool pass = n.scale == 0;
            double below = 0, above = 0;
            for (size_t i = 0; i < l.inner; i++, x++, dy++, dx++) {
                float d = *dy;
                *dx = pass || (*x >= n.low && *x <= n.high) ? d : 0;
                below += !pass && *x < n.low ? d : 0;
                above += !pass && *x > n.high ? d : 0;
            }
            dmin[c] += below;
            dmax[c] += above;
        }
}
