/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/fake_quant.h"

#include <math.h>

static const struct {
    const char *name, *text;
} rows[] = {
#define FAKE_QUANT_RULE(symbol, name, text) {name, text},
#include "quant/fake_quant.def"
#undef FAKE_QUANT_RULE
};

const char *tq_fake_quant_rule_name(tq_fake_quant_rule rule)
{
    return rows[rule].name;
}

const char *tq_fake_quant_rule_text(tq_fake_quant_rule rule)
{
    return rows[rule].text;
}

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
                       "min %g to max %g is too %s: its scale %g or the reciprocal is not a finite float32", (double)min,
                       (double)max, scale > 1 ? "wide" : "narrow", (double)scale);
    float zero_point = qmin - min / scale;
    zero_point = zero_point < qmin ? qmin : zero_point > qmax ? qmax : roundf(zero_point);
    float low = (qmin - zero_point) * scale, high = (qmax - zero_point) * scale;
    *nudged = (tq_nudged){low, high, scale, inverse, floorf(-low * inverse + 0.5f)};
    return TQ_OK;
}

/* away(x) for 0 <= x < 2^31: x - whole is exact, as both are multiples of x's last place.  Compilers
   vectorize it, which they cannot do to a call of roundf. */
static inline float round_positive(float x)
{
    float whole = (float)(int32_t)x;
    return whole + (x - whole >= 0.5f ? 1.0f : 0.0f);
}

/* NaN fails both comparisons and stays, so it is set aside before the conversion to an integer. */
static inline float clamp(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static inline float tflite_one(float x, const tq_nudged *n)
{
    bool number = x == x;
    float shifted = number ? clamp(x, n->low, n->high) - n->low : 0.0f;
    float y = round_positive(shifted * n->inverse) * n->scale + n->low;
    return number ? y : x;
}

/* floor(x) for |x| < 2^31, by the same token. */
static inline float floor_small(float x)
{
    float whole = (float)(int32_t)x;
    return whole - (whole > x ? 1.0f : 0.0f);
}

static inline float tensorflow_one(float x, const tq_nudged *n)
{
    bool number = x == x;
    float shifted = number ? clamp(x, n->low, n->high) - n->low : 0.0f;
    float y = floor_small(shifted / n->scale - n->zero + 0.5f) * n->scale;
    return number ? y : x;
}

static void run_of(tq_fake_quant_rule rule, const tq_nudged *nudged, const float *x, float *y, size_t count)
{
    const tq_nudged n = *nudged; /* a copy, since y might alias it for all the compiler knows */
    if (n.scale == 0)
        for (size_t i = 0; i < count; i++)
            y[i] = 0;
    else if (rule == TQ_FAKE_QUANT_TFLITE)
        for (size_t i = 0; i < count; i++)
            y[i] = tflite_one(x[i], &n);
    else
        for (size_t i = 0; i < count; i++)
            y[i] = tensorflow_one(x[i], &n);
}

void tq_fake_quant(tq_fake_quant_rule rule, const tq_nudged *nudged, tq_axis_view l, const float *x, float *y)
{
    for (size_t run = 0; run < l.outer * l.channels; run++, x += l.inner, y += l.inner)
        run_of(rule, &nudged[run % l.channels], x, y, l.inner);
}

void tq_fake_quant_gradient(const tq_nudged *nudged, tq_axis_view l, const float *dy, const float *x, float *dx,
                            double *dmin, double *dmax)
{
    for (size_t c = 0; c < l.channels; c++)
        dmin[c] = dmax[c] = 0;
    for (size_t run = 0; run < l.outer * l.channels; run++) {
        const tq_nudged n = nudged[run % l.channels];
        bool pass = n.scale == 0;
        double below = 0, above = 0;
        for (size_t i = 0; i < l.inner; i++, x++, dy++, dx++) {
            float d = *dy;
            *dx = pass || (*x >= n.low && *x <= n.high) ? d : 0;
            below += !pass && *x < n.low ? d : 0;
            above += !pass && *x > n.high ? d : 0;
        }
        dmin[run % l.channels] += below;
        dmax[run % l.channels] += above;
    }
}
