/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator is.
 *
 * An operator is a row of ops.def and one function, tq_prepare_<name>, in a file of its own or of its
 * family.  Prepare checks the operator's contract, gives its outputs their shapes, prepacks constants, asks for
 * scratch and chooses node->eval for the types at hand.  Eval then checks only what depends on data (indices,
 * divisors), and allocates nothing.
 *
 * In prepare
 *   inputs      are as many as the operator's rows of model/arity.def say, as are outputs, which was checked when
 *               the graph was opened.  They have type and shape; in[i] is NULL for an optional one that is left out.
 *               data is set only where tq_is_constant(in[i]), and of floats not for TQ_OP_LATER.
 *   outputs     have the type and quantization that the file gives.  Prepare must give each one a shape, with
 *               tq_output_shape, or let it wait for the data, with tq_shape_from_values or tq_output_later.
 *   memory      tq_node_memory: zeroed, lives until the operator is prepared again or the interpreter ends.
 *   scratch     tq_node_scratch: node->scratch in eval, shared with other operators.
 *   prepacked   tq_node_prepack: node->prepacked in eval.  The first run makes it from constants; prepare only counts
 * its bytes. The interpreters of a model share it: eval only reads it.
 *
 * Prepare may run many times (inputs are resized), each time from a clean node.
 * Where an output's shape waits for the data, its readers are prepared while the model runs, as soon as the shape is
 * known.  Their prepare functions see no difference.
 *
 * Ctrl-C is heard within a tenth of a second: loops over elements are TQ_EACH, tq_parallel_for or one of the shared
 * walks, and other loops ask tq_stop_after (base/stop.h).  A loop that ends early leaves garbage in its output, which
 * the runtime throws away.  A later loop that reads indices or sizes from such an output asks tq_stop_now() first; eval
 * then returns TQ_INTERRUPTED.
 *
 * Every failure says what was found and what is needed; the functions below put the operator's number,
 * its name and the tensor in front.
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
    TQ_NUMERICS_OPTIMIZED, /* its optimized ones, on one x86 thread */
    TQ_NUMERICS_XNNPACK    /* XNNPACK's on x86, and the optimized ones for what it refuses */
} tq_numerics;

enum {
    TQ_OP_IMPURE = 1, /* its outputs do not follow from its inputs alone: they are never computed in prepare */
    TQ_OP_PACKED = 2, /* reads constants of 4 and 2 bits as they stand in the file (tq_tensor.packed) */
    TQ_OP_SPARSE = 4, /* the same for sparse constants */
    TQ_OP_LATER = 8,  /* prepare looks at no float of its inputs: constants may be computed in the first run */
    TQ_OP_SAME = 16 /* its output is input 0's bytes, and may lie where these do: eval then has nothing to do */
};

typedef struct tq_op {
    const char *name;
    tq_op_fn prepare;
    int flags;
    void *context; /* for the functions of a registered custom operator */
} tq_op;

/* The graph around a node, as far as operators use it.  The runtime fills it. */
typedef struct tq_host {
    const tq_model *model;
    tq_tensor *tensors; /* of the subgraph */
    uint32_t tensor_count;
    tq_pool *pool;      /* all memory comes from here */
    tq_block *prepared; /* list: small pieces of memory that prepare functions got */
    bool in_prepare;    /* shapes and scratch are only recorded, for the arena's plan; false: given at once */
} tq_host;

/* Fills node->prepacked, which is zeroed, before the node's first eval, in the first interpreter of the model that
   gets there.  May use node->scratch. */
typedef void (*tq_pack_fn)(tq_node *node);

enum { TQ_FORM = 14 };

/* What prepare asks of the runtime, through the functions below. */
typedef struct tq_request {
    uint64_t work;            /* tq_node_work */
    uint64_t scratch_bytes;   /* tq_node_scratch in prepare */
    uint64_t prepacked_bytes; /* tq_node_prepack, as are the rest */
    tq_pack_fn pack;
    int64_t form[TQ_FORM];
    int form_count;
} tq_request;

struct tq_node {
    const tq_op *op;
    tq_operator row;   /* its row in the file */
    tq_options options; /* tq_get_int(&node->options.table, TQ_Conv2DOptions_stride_w) */
    uint32_t index;    /* in its subgraph */

    int in_count, out_count;
    tq_tensor **in,
        **out; /* NULL: left out in the file (-1); no more than the operator allows, unless wrong_operands */
    bool
        wrong_operands; /* too few or too many tensors, or an index without a tensor: no function may read in and out */

    /* chosen by prepare */
    tq_op_fn eval;
    tq_op_fn shape_later; /* see tq_shape_from_values */
    void *state; /* the operator's own record, from tq_node_memory */
    bool foldable; /* its outputs depend on shapes alone: compute them once, in prepare */
    void (*reset)(tq_node *node); /* what it remembers, besides variable tensors, back to its start; called after
                                     prepare too.  NULL: it remembers nothing, or what no reset undoes */

    /* given to eval */
    void *scratch, *prepacked; /* aligned to 64 bytes */

    tq_numerics numerics; /* of this node: what was asked for, or what takes its place (backends.h) */
    bool tabulated; /* XNNPACK computes it as part of one table of several operators (delegate/chains.h) */
    bool clamp_tabulated; /* the same of its fused activation */
    int threads; /* at most so many; at least 1 */

    tq_host *host; /* of all nodes of a graph */
    tq_request request;
    tq_block *memory; /* list: tq_node_memory, but for host->prepared */
    tq_block *own_scratch; /* what `scratch` points into, where it is not in the arena */
};

/* ---- what an operator may ask for ---- */

/* `count` items of `size` bytes, all zero, aligned to 64; the runtime releases them.  Prepare only. */
tq_status tq_node_memory(tq_node *node, uint64_t count, size_t size, void *out, tq_error *error);

/* node->state = a zeroed record of `size` bytes, also written to *out. */
tq_status tq_node_state(tq_node *node, size_t size, void *out, tq_error *error);

/* An operator whose work is more than its multiply-adds (model/multiply_adds.def) and than the elements of its tensors
   says so in prepare or in node->shape_later: `count` times `each` steps, for the limit max_multiply_adds. */
void tq_node_work(tq_node *node, uint64_t count, uint64_t each);

/* `bytes` of scratch for eval: once, in prepare or in node->shape_later. */
tq_status tq_node_scratch(tq_node *node, uint64_t bytes, tq_error *error);

/* `bytes` of node->prepacked for eval: once, in prepare.  Interpreters share what `pack` makes.  It must follow alone
   from the node in the file, its numerics, the values of its constant inputs, and `form`: `count` integers, 0 to
   TQ_FORM, which hold all else that could differ in another interpreter (shapes, machine, caller). */
tq_status tq_node_prepack(tq_node *node, uint64_t bytes, tq_pack_fn pack, const int64_t *form, int count,
                          tq_error *error);

/* Gives output i its shape: in prepare, in node->shape_later, and in eval for outputs that wait for it
   (then data is set on return).  Fails for shapes whose size overflows.  No such output: does nothing. */
tq_status tq_output_shape(tq_node *node, int i, const tq_shape *shape, tq_error *error);

/* The same for a STRING output in eval, of which only the number of bytes counts. */
tq_status tq_output_bytes(tq_node *node, int i, const tq_shape *shape, uint64_t bytes, tq_error *error);

/* Whether so many bytes could be allocated now, before work is done for them.  TQ_MEMORY_LIMIT. */
tq_status tq_node_has_room(tq_node *node, uint64_t bytes, tq_error *error);

/* Output i gets its shape in eval, which calls tq_output_shape.  STRING outputs always do. */
void tq_output_later(tq_node *node, int i);

/* For outputs whose shapes follow from the values of some inputs (bit i of `inputs`: input i): calls
   `shape` now if these are all constant, else lets all outputs wait and has `shape` called before each eval.
   `shape` calls tq_output_shape for every output, and may use node->state. */
tq_status tq_shape_from_values(tq_node *node, unsigned inputs, tq_op_fn shape, tq_error *error);

/* How many operators another subgraph has, and the code of the first; -1: there is no such subgraph.  For
   operators that know what a body of one operator means without running it. */
int tq_node_body(const tq_node *node, int64_t subgraph, int64_t *code);

/* The subgraph's tensor (blockwise scales); NULL: no such tensor. */
tq_tensor *tq_node_tensor(tq_node *node, int64_t index);

/* ---- failing ---- */

tq_status tq_op_fail(const tq_node *node, tq_error *error, tq_status status, const char *format, ...) TQ_PRINTF(4, 5);
/* TQ_BAD_OPERATOR, with "input 1 'weights'" or "output 0 'y'" in front. */
tq_status tq_input_fail(const tq_node *node, int i, tq_error *error, const char *format, ...) TQ_PRINTF(4, 5);
tq_status tq_output_fail(const tq_node *node, int i, tq_error *error, const char *format, ...) TQ_PRINTF(4, 5);

/* ---- the functions that the rows name ---- */

#define OP(name, prepare, flags) tq_status tq_prepare_##prepare(tq_node *node, tq_error *error);
#define CUSTOM_OP(name, prepare, flags) OP(name, prepare, flags)
#include "ops/ops.def"

#endif
