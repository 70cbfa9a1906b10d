/* SPDX-License-Identifier: Apache-2.0
 *
 * One subgraph run by an operator of another.
 */
#ifndef TQ_RUNTIME_CALL_H
#define TQ_RUNTIME_CALL_H

#include "runtime/run.h"

/* The graph of the subgraph `index`, any value, in an operator's option.  option: its name, for errors.
   TQ_BAD_OPERATOR: no such subgraph. */
tq_status tq_callee(tq_node *node, int64_t index, const char *option, tq_graph_run **out, tq_error *error);

/* Resizes the callee's inputs to the shapes of the `count` arguments, whose types must match, and allocates the callee,
   unless it is ready. */
tq_status tq_call_prepare(tq_node *node, tq_graph_run *callee, tq_tensor *const *arguments, int count, tq_error *error);

/* Prepares the callee as tq_call_prepare does, copies the arguments to its inputs, and runs it. */
tq_status tq_call(tq_node *node, tq_graph_run *callee, tq_tensor *const *arguments, int count, tq_error *error);

/* Output i >= 0 of a callee; NULL: none. */
tq_tensor *tq_callee_output(tq_graph_run *callee, int i);

/* Copies the callee's outputs to the node's outputs, and sets the shapes of those that were unknown. */
tq_status tq_call_results(tq_node *node, tq_graph_run *callee, tq_error *error);

#endif
