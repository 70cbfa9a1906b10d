/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of a node, called with tensors of the types that the runtime's kernel takes them for.
 */
#ifndef TQ_RUNTIME_NODE_CALL_H
#define TQ_RUNTIME_NODE_CALL_H

#include "runtime/begin.h"
#include "runtime/run.h"

tq_status tq_node_call_flipped(tq_node *node, tq_op_fn function, tq_error *error);

/* Calls prepare, eval or shape_later.  Inline: a run calls it for each operator, and few have types to flip. */
static inline tq_status tq_node_call(tq_node *node, tq_op_fn function, tq_error *error)
{
    const bool flips = tq_step_of(node)->flips;
    const tq_status status = flips ? tq_node_call_flipped(node, function, error) : function(node, error);
    return tq_run_heard(tq_graph_of(node)->run, status, error);
}

/* Calls request.pack. */
void tq_node_pack(tq_node *node);

#endif
