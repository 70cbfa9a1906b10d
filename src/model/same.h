/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether tensors or operators of two models are equal.
 *
 * Both functions return true only where the fields are equal bit for bit, an absent field as its default.  After false,
 * a caller who reports differences must compare the parts itself: they may still be equivalent.
 */
#ifndef TQ_MODEL_SAME_H
#define TQ_MODEL_SAME_H

#include "model/model.h"

/* Compares name, type, shapes, quantization, sparsity and constant bytes, not the index of the buffer.  False for
   external buffers and for quantization parameters in other tensors. */
bool tq_tensor_is_same(const tq_model *a, const tq_table *tensor_a, const tq_model *b, const tq_table *tensor_b);

/* Compares code, version, tensor indices and options, not opcode_index and debug metadata. */
bool tq_operator_is_same(const tq_operator *a, const tq_operator *b);

#endif
