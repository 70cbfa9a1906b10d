/* SPDX-License-Identifier: Apache-2.0
 *
 * A prediction: the kernel set of TFLite that would compute a node.
 *
 * TFLite asks its XNNPACK delegate about each node separately.  The optimized kernels, never the reference ones,
 * compute the nodes that the delegate refuses.  The conditions are rows of backends.def; they read a node through
 * node_view.h alone.  No condition reads a node whose operands are wrong (tq_node.wrong_operands).
 * Source: LiteRT f6745779, tflite/delegates/xnnpack/xnnpack_delegate.cc (VisitNode, PrepareOpsToDelegate).
 */
#ifndef TQ_DELEGATE_BACKENDS_H
#define TQ_DELEGATE_BACKENDS_H

#include "ops/op.h"

typedef struct tq_backend {
    tq_numerics numerics; /* whose arithmetic the node follows */
    const char *rule;     /* the reason: a row's text */
} tq_backend;

/* The kernel set of a node, before anything is prepared.  asked: the numerics that the interpreter's user named. */
tq_backend tq_backend_choose(const tq_node *node, tq_numerics asked);

/* How LiteRT fails at the node with these numerics, those of tq_backend_choose, where `asked` were asked for; NULL: no
   failure is known. */
const char *tq_backend_litert_failure(const tq_node *node, tq_numerics numerics, tq_numerics asked);

/* Whether the node is a DEQUANTIZE or DENSIFY of a constant, whose output the delegate computes once.  Later nodes read
   the output as a constant (tq_tensor.unpacked). */
bool tq_backend_unpacks(const tq_node *node);

/* How LiteRT fails where such a node's output is an output of the graph, and no node that XNNPACK refuses reads it. */
extern const char tq_backend_unwritten[];

/* XNNPACK's kinds of nodes: not elementwise; elementwise on one tensor (a second one is a constant of one element);
   elementwise on two tensors. */
typedef enum tq_backend_kind { TQ_BACKEND_OTHER, TQ_BACKEND_UNARY, TQ_BACKEND_BINARY } tq_backend_kind;

/* *input: the one tensor of TQ_BACKEND_UNARY; unset for TQ_BACKEND_OTHER. */
tq_backend_kind tq_backend_elementwise(const tq_node *node, const tq_tensor **input);

/* Whether XNNPACK computes the node's fused activation as an operator of its own. */
bool tq_backend_clamps(const tq_node *node);

#endif
