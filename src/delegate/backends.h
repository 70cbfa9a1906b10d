/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of TFLite's kernels would compute a node.
 *
 * TFLite asks its XNNPACK delegate about every node by itself; what that refuses, the optimized kernels compute, never
 * the reference ones.  The conditions are rows of backends.def, and look at nothing but what seen.h shows; of a misfit,
 * whose tensors are not those that the operator takes, they look at nothing.
 * Source: LiteRT f6745779, tflite/delegates/xnnpack/xnnpack_delegate.cc (VisitNode, PrepareOpsToDelegate).
 */
#ifndef TQ_DELEGATE_BACKENDS_H
#define TQ_DELEGATE_BACKENDS_H

#include "ops/op.h"

typedef struct tq_backend {
    tq_numerics numerics; /* whose arithmetic the node follows */
    const char *rule;     /* why, in words: a row's text */
} tq_backend;

/* Of a node whose tensors have what the file says of them, or are `resized`.  `asked`: what the interpreter's user named. */
tq_backend tq_backend_choose(const tq_node *node, tq_numerics asked);

/* What LiteRT does in place of running the node with these numerics; NULL: it runs it, as far as is known. */
const char *tq_backend_fault(const tq_node *node, tq_numerics numerics);

/* Whether the delegate computes the node's output once, before it looks at later nodes, which then see a constant
   (tq_tensor.unpacked): so it does with a DEQUANTIZE or DENSIFY of a constant. */
bool tq_backend_unpacks(const tq_node *node);

/* What LiteRT does with such a node's output where it is one of the graph's, and no node that XNNPACK refuses reads it. */
extern const char tq_backend_unwritten[];

/* What XNNPACK makes of a node that it takes, where that works element by element: no such thing, a function of one
   tensor (of two, one is a constant of one element), or one of two tensors. */
typedef enum tq_backend_shape { TQ_BACKEND_OTHER, TQ_BACKEND_UNARY, TQ_BACKEND_BINARY } tq_backend_shape;
tq_backend_shape tq_backend_element(const tq_node *node, const tq_tensor **input);

/* Whether XNNPACK clamps the node's results in a step of its own, for a fused activation. */
bool tq_backend_clamps(const tq_node *node);

#endif
