/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator, a node of a graph, and the requests of operators to the runtime.
 *
 * An operator is a row of ops.def and one function, tq_prepare_<name>.  Prepare checks the operator's contract, gives
 * the outputs their shapes, requests memory, and chooses node->eval for the tensors' types.  Eval checks only data
 * (indices, divisors), and allocates nothing.
 *
 * In prepare
 *   counts      of inputs and outputs fit model/arity.def: the runtime checked them when it opened the graph.
 *   inputs      have a type and a shape; in[i] is NULL for an optional input that is left out.  data is set where
 *               tq_is_constant(in[i]), but not for floats of an operator with TQ_OP_NO_FLOATS.
 *   outputs     have the file's type and quantization.  Prepare gives each output a shape, with tq_output_shape, or
 *               lets the shape wait for the data, with tq_shape_from_values or tq_output_later.
 *   memory      tq_node_memory: zeroed, lives until the operator is prepared again or the interpreter ends.
 *   scratch     tq_node_scratch: node->scratch in eval, shared with other operators.
 *   prepacked   tq_node_prepack: node->prepacked in eval.  The first run makes it from constants; prepare requests
 *               its bytes.  The interpreters of a model share it: eval only reads it.
 *
 * Prepare may run many times (inputs are resized), each time from a clean node.  Where an input's shape waits for the
 * data, prepare runs during invoke, as soon as the shape is known.
 *
 * Ctrl-C ends an operator within a tenth of a second: loops over elements are TQ_EACH, tq_parallel_for or a shared
 * walk, and other loops ask tq_stop_after (base/stop.h).  A loop that ends early leaves garbage in its output, which
 * the runtime drops.  A later loop that reads indices or sizes from such an output asks tq_stop_now() first; eval
 * then returns TQ_INTERRUPTED.
 *
 * A message says what was found and what is needed; the functions below put the operator's index and name, and the
 * tensor, in front.
 */
#ifndef TQ_OPS_OP_H
#define TQ_OPS_OP_H

#include "base/memory.h"
#include "base/stop.h"
#include "model/model.h"
#include "ops/tensor.h"

typedef struct tq_node tq_node;
typedef tq_status (*tq_op_fn)(tq_node *node, tq_error *error);

/* Whose arithmetic an integer result follows. */
typedef enum tq_numerics {
    TQ_NUMERICS_REFERENCE, /* TFLite's reference kernels */
    TQ_NUMERICS_SINGLE, /* the same, built with TFLITE_SINGLE_ROUNDING: multipliers round once, ties up */
    TQ_NUMERICS_OPTIMIZED, /* TFLite's optimized kernels, on one x86 thread */
    TQ_NUMERICS_XNNPACK /* XNNPACK's kernels on x86, and TFLite's optimized kernels for nodes that XNNPACK refuses */
} tq_numerics;

enum {
    TQ_OP_IMPURE = 1, /* outputs depend on more than the inputs (states, random seeds): never computed in prepare */
    TQ_OP_PACKED = 2, /* reads constants of 4 and 2 bits in the file's layout (tq_tensor.packed) */
    TQ_OP_SPARSE = 4, /* reads sparse constants in the file's layout */
    TQ_OP_NO_FLOATS = 8, /* prepare reads no float of the inputs: float constants may be computed in the first run */
    TQ_OP_COPIES = 32, /* eval copies, and has no float arithmetic: the mode of denormal floats is nothing to it */
    TQ_OP_SAME = 16 /* output 0 has input 0's bytes, and may share its memory: eval then has nothing to do */
};

typedef struct tq_op {
    const char *name; /* "CONV_2D" */
    tq_op_fn prepare;
    int flags; /* TQ_OP_x */
    void *context; /* for the functions of a registered custom operator */
} tq_op;

/* The graph around a node, as far as operators use it.  The runtime fills it. */
typedef struct tq_host {
    const tq_model *model;
    tq_tensor *tensors; /* of the subgraph */
    uint32_t tensor_count;
    tq_pool *pool; /* all memory comes from here */
    tq_block *prepared; /* list: small pieces of memory of prepare functions */
    bool runs_all; /* the run has all operators in order; nobody reads or sets the tensors between them */
    bool in_prepare; /* true: shapes and scratch are recorded for the arena's plan; false: allocated at once */
    uint64_t shape_changes; /* how often operators gave a tensor another shape; 1 and more */
} tq_host;

/* Fills node->prepacked, which is zeroed, before the node's first eval.  Only one interpreter of a model calls it; the
   others share the result.  May use node->scratch. */
typedef void (*tq_pack_fn)(tq_node *node);

/* Integers of a prepack key, at most. */
enum { TQ_PREPACK_KEY = 25 };

/* The requests of prepare to the runtime, through the functions below. */
typedef struct tq_request {
    uint64_t work; /* tq_node_work: steps of an invoke */
    uint64_t scratch_bytes; /* tq_node_scratch in prepare */
    uint64_t prepacked_bytes; /* tq_node_prepack, as are the fields below */
    tq_pack_fn pack;
    int64_t key[TQ_PREPACK_KEY];
    int key_count;
} tq_request;

struct tq_node {
    /* read by each invoke, and so side by side: a small model's operators take fewer lines of the cache */
    const tq_op *op;
    tq_op_fn eval;        /* chosen by prepare */
    tq_op_fn shape_later; /* chosen by prepare; see tq_shape_from_values */
    void *state;          /* the operator's own record, from tq_node_memory */
    tq_tensor **in, **out; /* [in_count], [out_count]; NULL: an optional tensor that the file leaves out (-1) */
    int in_count, out_count;
    tq_host *host; /* of all nodes of a graph */
    void *scratch, *prepacked; /* given to eval; aligned to 64 bytes */
    tq_numerics numerics; /* the interpreter's numerics, or their fallback for this node (delegate/backends.h) */
    int threads; /* threads of tq_parallel_for, at most; >= 1 */

    uint32_t index; /* in its subgraph */
    tq_operator row; /* its row in the file */
    tq_options options; /* tq_get_int(&node->options.table, TQ_Conv2DOptions_stride_w) */
    bool wrong_operands; /* the counts do not fit the operator, or an index names no tensor: nothing reads in or out */
    bool tabulated; /* XNNPACK computes it as part of one table of several operators (delegate/chains.h) */
    bool clamp_tabulated; /* the table computes its fused activation too */

    /* chosen by prepare */
    bool foldable; /* its outputs depend on shapes alone: compute them once, in prepare */
    bool in_place; /* eval reads no element of an input after it wrote output 0's element of that index */
    /* Puts the node's memory of earlier invokes, besides variable tensors, back to its start.  The runtime calls it
       after prepare too.  NULL: there is nothing to reset. */
    void (*reset)(tq_node *node);

    tq_request request;
    tq_block *memory; /* list: memory of tq_node_memory outside host->prepared */
    tq_block *own_scratch; /* the block of `scratch`, where that is not in the arena */
};

/* ---- requests of an operator ---- */

/* *out, a pointer to any type: count items of `size` bytes, all zero, aligned to 64 bytes; any count, also 0.  The
   runtime releases them.  Prepare only.  TQ_NO_MEMORY, TQ_MEMORY_LIMIT. */
tq_status tq_node_memory(tq_node *node, uint64_t count, size_t size, void *out, tq_error *error);

/* node->state = *out = a zeroed record of `size` >= 1 bytes.  Prepare only, once.  Errors as above. */
tq_status tq_node_state(tq_node *node, size_t size, void *out, tq_error *error);

/* Declares count * each steps of work, for the limit max_multiply_adds: in prepare or in node->shape_later, where the
   work exceeds both the multiply-adds of model/multiply_adds.def and the elements of the tensors.  A product that
   overflows counts as UINT64_MAX. */
void tq_node_work(tq_node *node, uint64_t count, uint64_t each);

/* Requests `bytes` of scratch for eval, any number: once, in prepare or in node->shape_later.  In shape_later:
   TQ_NO_MEMORY, TQ_MEMORY_LIMIT. */
tq_status tq_node_scratch(tq_node *node, uint64_t bytes, tq_error *error);

/* Requests `bytes` of node->prepacked for eval: once, in prepare.  `pack` fills them.  Interpreters share the result,
   so it must depend only on the node in the file, its numerics, the values of its constant inputs, and the key.  The
   key, count <= TQ_PREPACK_KEY integers, holds all else that may differ in another interpreter (shapes, machine,
   caller). */
tq_status tq_node_prepack(tq_node *node, uint64_t bytes, tq_pack_fn pack, const int64_t *key, int count,
                          tq_error *error);

/* Gives output i its shape: in prepare, in node->shape_later, or in eval after tq_output_later (data is then set on
   return).  No output i: does nothing.  TQ_BAD_OPERATOR: a negative dimension, a size that overflows, a type that
   does not run; out of prepare also TQ_NO_MEMORY, TQ_MEMORY_LIMIT. */
tq_status tq_output_shape(tq_node *node, int i, const tq_shape *shape, tq_error *error);

/* The same for a STRING output in eval: `bytes` of data in the file's format. */
tq_status tq_output_bytes(tq_node *node, int i, const tq_shape *shape, uint64_t bytes, tq_error *error);

/* TQ_OK if `bytes` could be allocated now: asked before long work whose result takes them.  TQ_MEMORY_LIMIT. */
tq_status tq_node_has_room(tq_node *node, uint64_t bytes, tq_error *error);

/* Eval will give output i its shape, with tq_output_shape; STRING outputs always wait for eval.  No output i: does
   nothing. */
void tq_output_later(tq_node *node, int i);

/* For outputs whose shapes depend on the values of inputs (bit i of `inputs`: input i, i < 32).  Calls `shape` now if
   all these inputs are constant.  Else all outputs wait, and the runtime calls `shape` before each eval.  `shape`
   calls tq_output_shape for every output, and may use node->state. */
tq_status tq_shape_from_values(tq_node *node, unsigned inputs, tq_op_fn shape, tq_error *error);

/* The number of operators of a subgraph, and the first one's TQ_BuiltinOperator_x; -1: there is no such subgraph.  For
   operators that recognize a body of one operator (STABLEHLO_SCATTER's) without running it. */
int tq_node_body(const tq_node *node, int64_t subgraph, int64_t *code);

/* A tensor of the node's subgraph, by its index in the file (blockwise scales, intermediates); NULL: none. */
tq_tensor *tq_node_tensor(tq_node *node, int64_t index);

/* ---- failing ---- */

/* Returns `status`, with the message "operator 3 (CONV_2D): ..." in *error. */
tq_status tq_op_fail(const tq_node *node, tq_error *error, tq_status status, const char *format, ...) TQ_PRINTF(4, 5);
/* Return TQ_BAD_OPERATOR; the message names the operator and "input 1 'weights'" or "output 0 'y'". */
tq_status tq_input_fail(const tq_node *node, int i, tq_error *error, const char *format, ...) TQ_PRINTF(4, 5);
tq_status tq_output_fail(const tq_node *node, int i, tq_error *error, const char *format, ...) TQ_PRINTF(4, 5);

/* ---- the functions that the rows name ---- */

#define OP(name, prepare, flags) tq_status tq_prepare_##prepare(tq_node *node, tq_error *error);
#define CUSTOM_OP(name, prepare, flags) OP(name, prepare, flags)
#include "ops/ops.def"

#endif
