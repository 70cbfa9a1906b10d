/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/node_call.h"

#include "ops/kernel_types.h"

tq_status tq_node_call_flipped(tq_node *node, tq_op_fn function, tq_error *error)
{
    const uint64_t flips = tq_step_of(node)->flips;
    tq_flip_types(node, flips);
    const tq_status status = function(node, error);
    tq_flip_types(node, flips);
    return status;
}

void tq_node_pack(tq_node *node)
{
    const uint64_t flips = tq_step_of(node)->flips;
    tq_flip_types(node, flips);
    node->request.pack(node);
    tq_flip_types(node, flips);
}
