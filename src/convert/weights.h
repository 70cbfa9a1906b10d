/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant weights of a model that is being changed, as codes.
 *
 * Codes and scales are made when the model is written, codes in the place where they are to stand.  So weights are read
 * from memory once, and codes are neither copied nor stored twice.
 */
#ifndef TQ_CONVERT_WEIGHTS_H
#define TQ_CONVERT_WEIGHTS_H

#include "flatbuffer/tree.h"
#include "quant/weights.h"

typedef struct tq_weight_source {
    tq_weight_target target; /* by a symmetric rule, of codes of 8 bits and fewer */
    tq_weight_layout layout;
    const float *w;    /* outlive the tree */
    const char *label; /* what errors name them by; copied */
} tq_weight_source;

/* Gives a Buffer the codes of weights, packed where they have fewer than 8 bits.  Fails with TQ_BAD_ARGUMENT where the
   rule has no such codes, and TQ_NO_MEMORY.  Whoever writes the tree, or looks at the codes, fails as tq_weight_scales
   does. */
tq_status tq_convert_weights(tq_tree *tree, tq_tree_node *buffer, const tq_weight_source *source, tq_error *error);

/* Makes a Tensor one of the codes that tq_convert_weights gave a Buffer, the model's index-th: sets its buffer, its type,
   and quantization parameters of those scales along an axis, with zero points of 0.  Other parameters are removed.
   TQ_BAD_ARGUMENT: the buffer has no such codes. */
tq_status tq_convert_tensor(tq_tree *tree, tq_tree_node *tensor, const tq_tree_node *buffer, uint32_t index, uint8_t type, int32_t axis,
                            tq_error *error);

/* The scales of such a Buffer, which are made now if they are not yet; they live as long as the tree. */
tq_status tq_convert_scales_now(const tq_tree_node *buffer, const float **scales, size_t *count, tq_error *error);

#endif
