/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of a node, called with tensors of the types that the runtime's kernel takes them for.
 */
#include "ops/kernel_types.h"
#include "runtime/begin.h"
#include "runtime/run.h"

tq_status tq_node_call(tq_node *node, tq_op_fn function, tq_error *error)
{
    const uint64_t flips = tq_step_of(node)->flips;
    tq_flip_types(node, flips);
    const tq_status status = function(node, error);
    tq_flip_types(node, flips);
    return tq_run_heard(tq_graph_of(node)->run, status, error);
}

void tq_node_pack(tq_node *node)
{
    const uint64_t flips = tq_step_of(node)->flips;
    tq_flip_types(node, flips);
    node->request.pack(node);
    tq_flip_types(node, flips);
}
