/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant weights of a model that is being changed, as quantized values.
 *
 * Quantized values and scales are made when the model is written, the values where they are to stand.  So weights are
 * read from memory once, and quantized values are neither copied nor stored twice.
 */
#ifndef TQ_CONVERT_WEIGHTS_H
#define TQ_CONVERT_WEIGHTS_H

#include "flatbuffer/tree.h"
#include "quant/weights.h"

typedef struct tq_weight_source {
    tq_weight_target target; /* a symmetric rule, and quantized values of at most 8 bits */
    tq_weight_layout layout;
    const float *w;    /* finite or not; they outlive the tree */
    const char *label; /* the name of the weights in errors; copied */
} tq_weight_source;

/* Gives a Buffer the quantized values of weights, packed where they have fewer than 8 bits.  Fails with TQ_BAD_ARGUMENT
   where the rule has no such type, and TQ_NO_MEMORY.  Writing the tree, or reading the values, fails as
   tq_weight_scales does. */
tq_status tq_convert_weights(tq_tree *tree, tq_tree_node *buffer, const tq_weight_source *source, tq_error *error);

/* Makes a Tensor one of the quantized values that tq_convert_weights gave a Buffer, number `index` of the model: sets
   its buffer, its type (TQ_TensorType_x), and quantization parameters with those scales along `axis` and zero points of
   0.  Other parameters are removed.  TQ_BAD_ARGUMENT: tq_convert_weights gave the buffer nothing. */
tq_status tq_convert_tensor(tq_tree *tree, tq_tree_node *tensor, const tq_tree_node *buffer, uint32_t index,
                            uint8_t type, int32_t axis, tq_error *error);

/* The scales of such a Buffer, which are made now if they are not yet; they live as long as the tree. */
tq_status tq_convert_scales_now(const tq_tree_node *buffer, const float **scales, size_t *count, tq_error *error);

#endif
