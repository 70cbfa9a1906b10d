/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers in the flexbuffer map that a custom operator's options are.
 */
#ifndef TQ_OPS_CUSTOM_OPTIONS_H
#define TQ_OPS_CUSTOM_OPTIONS_H

#include "ops/op.h"

/* The number at `key`, cut to an integer; `absent` where there is none or a null.  What 64 bits cannot hold, and floats
   from 1e9, is INT64_MAX.  TQ_BAD_OPERATOR: the value is no number; TQ_BAD_FLEXBUFFER. */
tq_status tq_option_int(const tq_node *node, const char *key, int64_t absent, int64_t *out, tq_error *error);

/* An integer in [low, high], which must be there: TQ_BAD_OPERATOR else. */
tq_status tq_option_within(const tq_node *node, const char *key, int64_t low, int64_t high, int64_t *out,
                           tq_error *error);

/* As float32; 0 where there is none. */
tq_status tq_option_float(const tq_node *node, const char *key, float *out, tq_error *error);

#endif
