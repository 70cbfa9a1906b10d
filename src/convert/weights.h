/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant weights of a model that is being changed, as codes.
 *
 * Scales are chosen at once, and all that can be wrong is found then.  The codes are made when the model is written, where
 * they are to stand: they are never copied, and a model's codes never stand in memory twice.
 */
#ifndef TQ_CONVERT_WEIGHTS_H
#define TQ_CONVERT_WEIGHTS_H

#include "flatbuffer/tree.h"
#include "quant/weights.h"

/* Gives a Buffer the codes of `w`, packed where they have fewer than 8 bits, by a symmetric rule.  `w` outlives the tree.
   scales: tq_weight_scale_count of them, written.  Fails as tq_weight_scales does, with TQ_BAD_ARGUMENT for codes of
   more than 8 bits, and with TQ_NO_MEMORY. */
tq_status tq_convert_weights(tq_tree *tree, tq_node *buffer, const tq_weight_target *target,
                             const tq_weight_layout *layout, const float *w, float *scales, tq_error *error);

#endif
