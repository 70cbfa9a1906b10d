/* SPDX-License-Identifier: Apache-2.0
 *
 * Fake quantization: float32 values, quantized and dequantized; and its gradient.  As TFLite's FAKE_QUANT and
 * TensorFlow's FakeQuantWithMinMaxVars compute them.
 *
 * Quantized values run from qmin (1 if narrow, else 0) to qmax = 2^bits - 1, and in float32
 *     s = (max - min) / (qmax - qmin),  z = clamp(away(qmin - min / s), qmin, qmax),
 *     lo = (qmin - z) * s,  hi = (qmax - z) * s.
 * NaN gives NaN (the runtime's FAKE_QUANT operator gives lo); infinities give lo and hi.  The range [0, 0] gives 0 for
 * every x, also NaN, as in TensorFlow.
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

/* A range whose zero point is an integer. */
typedef struct tq_nudged {
    float low, high;      /* lo and hi */
    float scale, inverse; /* s and 1 / s; both 0 for the range [0, 0] */
    float zero;           /* floor(-low / s + 0.5): subtracted by rule tensorflow */
    float steps;          /* (qmax - qmin) / (max - min): the factor of rule tensorflow per channel */
} tq_nudged;

/* Nudges [min, max]; bits: 2 to 16.  TQ_BAD_ARGUMENT: not min < max, both finite, nor both 0; or the range is so wide
   or so narrow that s, 1 / s or steps is not finite. */
tq_status tq_fake_quant_nudge(float min, float max, int bits, bool narrow, tq_nudged *nudged, tq_error *error);

/* y = fake-quantized x; y may be x.  nudged: [view.channels].  per_channel: rule tensorflow's form for channels, also
   for one channel.  threads: at most; 0: as many as pay; the result does not depend on it. */
void tq_fake_quant(tq_fake_quant_rule rule, bool per_channel, const tq_nudged *nudged, tq_axis_view view,
                   const float *x, int threads, float *y);

/* dx = dy where low <= x <= high, else 0; the range [0, 0] gives dx = dy.  dmin and dmax, [view.channels], sum dy where
   x < low and where x > high: in float64, so that the order changes less than a float32 rounding.  dx may be dy.
   TQ_NO_MEMORY. */
tq_status tq_fake_quant_gradient(const tq_nudged *nudged, tq_axis_view view, const float *dy, const float *x,
                                 int threads, float *dx, double *dmin, double *dmax, tq_error *error);

#endif
