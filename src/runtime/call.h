/* SPDX-License-Identifier: Apache-2.0
 *
 * One subgraph run by an operator of another.
 */
#ifndef TQ_RUNTIME_CALL_H
#define TQ_RUNTIME_CALL_H

#include "runtime/run.h"

/* The graph that an operator's option names; `what` is the option's name. */
tq_status tq_callee(tq_node *node, int64_t index, const char *what, tq_graph_run **out, tq_error *error);

/* Makes the callee ready for arguments of these tensors' types and shapes; does nothing where it is. */
tq_status tq_call_prepare(tq_node *node, tq_graph_run *callee, tq_tensor *const *arguments, int count, tq_error *error);

/* Copies the arguments, making the callee ready if their shapes changed, and runs it. */
tq_status tq_call(tq_node *node, tq_graph_run *callee, tq_tensor *const *arguments, int count, tq_error *error);

/* Output i of a callee; NULL: it has none. */
tq_tensor *tq_callee_output(tq_graph_run *callee, int i);

/* Copies the callee's outputs to the node's, giving those their shapes where they wait for them. */
tq_status tq_call_results(tq_node *node, tq_graph_run *callee, tq_error *error);

#endif
