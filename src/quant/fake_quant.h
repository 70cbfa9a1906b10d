/* SPDX-License-Identifier: Apache-2.0
 *
 * Fake quantization: float32 values moved to where quantizing and dequantizing would put them, and
 * its gradient, as TFLite's FAKE_QUANT and TensorFlow's FakeQuantWithMinMaxVars compute them.
 *
 * Quantized values run from qmin (1 if narrow, else 0) to qmax = 2^bits - 1, and in float32
 *     s = (max - min) / (qmax - qmin),  z = away(qmin - min / s) clamped to them,
 *     lo = (qmin - z) * s,  hi = (qmax - z) * s.
 * NaN gives NaN (the runtime's FAKE_QUANT operator gives lo), infinities the ends of the range.
 * The range [0, 0] gives 0 for every x, NaN too, as TensorFlow does.
 */
#ifndef TQ_QUANT_FAKE_QUANT_H
#define TQ_QUANT_FAKE_QUANT_H

#include <stdbool.h>

#include "base/status.h"
#include "quant/axis_view.h"

typedef enum tq_fake_quant_rule {
#define FAKE_QUANT_RULE(symbol, name, text) TQ_FAKE_QUANT_##symbol,
#include "quant/fake_quant.def"
#undef FAKE_QUANT_RULE
    TQ_FAKE_QUANT_RULES
} tq_fake_quant_rule;

typedef struct tq_nudged {
    float low, high;      /* the nudged range */
    float scale, inverse; /* s and 1 / s; both 0 for the range [0, 0] */
    float zero;           /* floor(-low / s + 0.5), which rule tensorflow subtracts */
    float steps;          /* (qmax - qmin) / (max - min): what it multiplies by, per channel */
} tq_nudged;

/* bits is 2 to 16.  Fails unless min < max, both finite, or both are 0; and where the range is too
   wide or too narrow for s, 1 / s and steps to be finite float32. */
tq_status tq_fake_quant_nudge(float min, float max, int bits, bool narrow, tq_nudged *nudged, tq_error *error);

/* y may be x.  One nudged range a channel.  per_channel: by rule tensorflow's form for channels, even if there is one.
   threads: at most; 0: as many as pay.  They change no result. */
void tq_fake_quant(tq_fake_quant_rule rule, bool per_channel, const tq_nudged *nudged, tq_axis_view view,
                   const float *x, int threads, float *y);

/* dx = dy where low <= x <= high, else 0; dmin and dmax (one a channel) sum dy where x is below and
   above, in double and so to float32 rounding whatever the order.  [0, 0] passes dy on.  dx may be
   dy.  Fails for want of memory alone. */
tq_status tq_fake_quant_gradient(const tq_nudged *nudged, tq_axis_view view, const float *dy, const float *x,
                                 int threads, float *dx, double *dmin, double *dmax, tq_error *error);

#endif
