/* SPDX-License-Identifier: Apache-2.0
 *
 * Scale and zero point from a real range, by the rules of quant/params.def; and a bias's.
 */
#ifndef TQ_QUANT_PARAMS_H
#define TQ_QUANT_PARAMS_H

#include "base/status.h"
#include "quant/integers.h"

typedef enum tq_params_rule {
#define PARAMS_RULE(symbol, name, int16_is_symmetric, text) TQ_PARAMS_##symbol,
#include "quant/params.def"
#undef PARAMS_RULE
    TQ_PARAMS_RULES
} tq_params_rule;

typedef struct tq_params {
    float scale;
    int32_t zero_point;
} tq_params;

/* The quantized values to choose parameters for.  symmetric: zero_point is the middle value; narrow: without the
 * lowest. */
typedef struct tq_params_target {
    tq_params_rule rule;
    tq_integer_type type;
    bool symmetric, narrow;
} tq_params_target;

/* Parameters for [min, max], min <= max, both finite; the range is widened to include 0.  scale >= 0; 0 where it
   underflows, and for [0, 0] under rules that say so.  TQ_BAD_ARGUMENT: min or max, or the scale would be infinite. */
tq_status tq_params_choose(const tq_params_target *target, double min, double max, tq_params *params, tq_error *error);

/* Rule TOCO's scale, not yet rounded to float32; min <= 0 <= max. */
double tq_params_scale_toco(double min, double max, tq_value_range q);

/* The middle value of a type, and how many values lie above it: symmetric ranges map to middle +- half. */
typedef struct tq_integer_centre {
    int32_t middle, half;
} tq_integer_centre;

tq_integer_centre tq_integer_centre_of(tq_integer_type type);

#endif
