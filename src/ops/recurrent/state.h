/* SPDX-License-Identifier: Apache-2.0
 *
 * States of recurrent operators: input tensors that the operator writes, and reads in the next invoke.
 */
#ifndef TQ_OPS_RECURRENT_STATE_H
#define TQ_OPS_RECURRENT_STATE_H

#include "ops/check.h"

/* Input i is a variable tensor of a type of the set, with `count` elements; else TQ_BAD_OPERATOR. */
static inline tq_status tq_check_state(const tq_node *node, int i, unsigned types, size_t count, tq_error *error)
{
    TQ_TRY(tq_check_input(node, i, types, error));
    if (node->in[i]->storage != TQ_STORAGE_VARIABLE)
        return tq_input_fail(node, i, error, "is a state; it must be a variable tensor");
    if (tq_tensor_count(node->in[i]) != count)
        return tq_input_fail(node, i, error, "is a state of %zu elements; %zu are needed", tq_tensor_count(node->in[i]),
                             count);
    return TQ_OK;
}

#endif
