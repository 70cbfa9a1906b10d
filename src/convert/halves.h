/* SPDX-License-Identifier: Apache-2.0
 *
 * Float constants of an edited model, as float16.  Values are computed when the model is written, in place, as in
 * weights.h.
 */
#ifndef TQ_CONVERT_HALVES_H
#define TQ_CONVERT_HALVES_H

#include "flatbuffer/tree.h"

/* Makes the data of a Buffer `count` float16 values: rounded to nearest, ties to even, and clamped to +-65504. `values`
   are not NaN, and outlive the tree.  TQ_NO_MEMORY. */
tq_status tq_convert_halves(tq_tree *tree, tq_tree_node *buffer, const float *values, uint64_t count, tq_error *error);

#endif
