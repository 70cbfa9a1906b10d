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

/* What is to be represented: the quantized values, and how they lie about zero. */
typedef struct tq_params_target {
    tq_params_rule rule;
    tq_integer_type type;
    bool symmetric, narrow;
} tq_params_target;

/* min <= max, both finite; the range is widened to hold 0.  Fails where that is not so and where
   the scale would be infinite.  The scale is 0 for the range [0, 0] under rules that say so, and
   where it underflows. */
tq_status tq_params_choose(const tq_params_target *target, double min, double max, tq_params *params, tq_error *error);

/* Rule TOCO's scale before it is rounded to float32, min <= 0 <= max. */
double tq_params_scale_toco(double min, double max, tq_value_range q);

/* The middle value and the quantized values above it: symmetric ranges map to middle +- half. */
typedef struct tq_integer_centre {
    int32_t middle, half;
} tq_integer_centre;

tq_integer_centre tq_integer_centre_of(tq_integer_type type);

#endif
