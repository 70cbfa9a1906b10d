/* SPDX-License-Identifier: Apache-2.0
 *
 * Float constants of a model that is being changed, as float16.
 *
 * They are made when the model is written, in the place where they are to stand, as weights.h makes codes.
 */
#ifndef TQ_CONVERT_HALVES_H
#define TQ_CONVERT_HALVES_H

#include "flatbuffer/tree.h"

/* Gives a Buffer float16 numbers: each value rounded to nearest, ties to even, and those beyond float16's greatest number
   that number.  The values outlive the tree; none is NaN. */
tq_status tq_convert_halves(tq_tree *tree, tq_tree_node *buffer, const float *values, uint64_t count, tq_error *error);

#endif
