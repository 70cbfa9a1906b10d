/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether parts of two models say the same.
 *
 * Both functions answer true only where the stored fields are equal bit for bit, each absent one as its default.  False
 * means that a caller who reports differences has to look at the parts: they may still mean the same.
 */
#ifndef TQ_MODEL_SAME_H
#define TQ_MODEL_SAME_H

#include "model/model.h"

/* Name, type, shapes, quantization, sparsity and constant bytes; false for external buffers and for parameters that
   stand in other tensors.  Which buffer a tensor has does not count. */
bool tq_tensor_is_same(const tq_model *a, const tq_table *tensor_a, const tq_model *b, const tq_table *tensor_b);

/* Code, version, tensor indices and options.  Which operator code it refers to does not count, nor debug metadata. */
bool tq_operator_is_same(const tq_operator *a, const tq_operator *b);

#endif
