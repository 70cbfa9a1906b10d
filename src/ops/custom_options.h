/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and names in the options of a custom operator, a flexbuffer map.
 */
#ifndef TQ_OPS_CUSTOM_OPTIONS_H
#define TQ_OPS_CUSTOM_OPTIONS_H

#include "ops/op.h"

/* *out: the number at `key`, truncated to an integer; `absent` where the map has no such key or a null.  Integers above
   INT64_MAX and floats outside (-1e9, 1e9) give INT64_MAX.  TQ_BAD_OPERATOR: the value is no number;
   TQ_BAD_FLEXBUFFER. */
tq_status tq_option_int(const tq_node *node, const char *key, int64_t absent, int64_t *out, tq_error *error);

/* *out: the number at `key`, which must exist and be in [low, high]; else TQ_BAD_OPERATOR. */
tq_status tq_option_within(const tq_node *node, const char *key, int64_t low, int64_t high, int64_t *out,
                           tq_error *error);

/* *out: the number at `key` as float32; 0 where the map has no such key or a null.  Errors as for tq_option_int. */
tq_status tq_option_float(const tq_node *node, const char *key, float *out, tq_error *error);

/* *out: the index in `names`, which ends with NULL, of the string at `key`; `absent` where the map has no such key or a
   null.  absent < 0: the key must exist.  TQ_BAD_OPERATOR: the value is no string, or none of the names;
   TQ_BAD_FLEXBUFFER. */
tq_status tq_option_name(const tq_node *node, const char *key, const char *const *names, int absent, int *out,
                         tq_error *error);

#endif
