/* SPDX-License-Identifier: Apache-2.0
 *
 * Float constants of a model that is being changed, as float16.
 *
 * They are made when the model is written, where they are to stand, as weights.h makes quantized values.
 */
#ifndef TQ_CONVERT_HALVES_H
#define TQ_CONVERT_HALVES_H

#include "flatbuffer/tree.h"

/* Gives a Buffer `count` float16 values: rounded to nearest, ties to even, and saturated at the largest finite float16.
   `values` outlive the tree; none is NaN. */
tq_status tq_convert_halves(tq_tree *tree, tq_tree_node *buffer, const float *values, uint64_t count, tq_error *error);

#endif
