/* SPDX-License-Identifier: Apache-2.0
 *
 * The types that the runtime's kernels take tensors for, where the file says others: kernel_types.def.
 */
#ifndef TQ_OPS_KERNEL_TYPES_H
#define TQ_OPS_KERNEL_TYPES_H

#include "ops/op.h"

/* Gives the outputs their types, if the node's operator gives them one.  Before prepare. */
void tq_give_output_types(const tq_node *node);

/* The operands of INT8 that the node's kernel takes for UINT8, or the other way round: a bit for each.  0: none. */
uint64_t tq_other_types(const tq_node *node);

/* Gives such operands the other type, and at the next call their own: around each function of the node, while no other
   node runs. */
void tq_flip_types(const tq_node *node, uint64_t flips);

#endif
