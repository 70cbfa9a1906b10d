/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant weights of an edited model, as quantized values.
 *
 * Values and scales are computed when the model is written; values are written in place.  So weights are read from
 * memory once, and quantized values are neither copied nor stored twice.
 */
#ifndef TQ_CONVERT_WEIGHTS_H
#define TQ_CONVERT_WEIGHTS_H

#include "flatbuffer/tree.h"
#include "quant/weights.h"

typedef struct tq_weight_source {
    tq_weight_target target; /* a symmetric rule, and a type of at most 8 bits */
    tq_weight_layout layout;
    const float *w;    /* any values; outlive the tree */
    const char *label; /* the weights' name in errors; copied */
} tq_weight_source;

/* Makes the data of a Buffer the quantized values of weights, packed where they have fewer than 8 bits.
   TQ_BAD_ARGUMENT: the rule has no such type; TQ_NO_MEMORY.  Writing the tree, or reading the values, fails as
   tq_weight_scales does. */
tq_status tq_convert_weights(tq_tree *tree, tq_tree_node *buffer, const tq_weight_source *source, tq_error *error);

/* Sets a Tensor's buffer to `index`, that of a Buffer which tq_convert_weights filled; its type to `type`
   (TQ_TensorType_x); and its quantization parameters to the buffer's scales along `axis` and zero points 0, in place of
   all others.  TQ_BAD_ARGUMENT: tq_convert_weights did not fill the buffer; TQ_NO_MEMORY. */
tq_status tq_convert_tensor(tq_tree *tree, tq_tree_node *tensor, const tq_tree_node *buffer, uint32_t index,
                            uint8_t type, int32_t axis, tq_error *error);

/* The scales of a Buffer that tq_convert_weights filled, computed now at the latest; they live as long as the tree.
   Errors: as above, and of tq_weight_scales. */
tq_status tq_convert_scales_now(const tq_tree_node *buffer, const float **scales, size_t *count, tq_error *error);

#endif
