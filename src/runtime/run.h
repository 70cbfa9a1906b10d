/* SPDX-License-Identifier: Apache-2.0
 *
 * A model that runs: its tensors, operators and memory, and the functions that the files of this room share.
 *
 * Opening makes an instance of every subgraph.  Allocating one prepares its operators in order, computes constants, and
 * plans an arena for the other tensors by lifetimes.  Operators whose inputs' shapes depend on data are prepared while
 * the model runs, and their outputs live on the heap.  Invoking runs the operators in order.
 *
 * One thread at a time uses an interpreter; any number of interpreters may share a model, and the values made of its
 * constants (cached.c).
 */
#ifndef TQ_RUNTIME_RUN_H
#define TQ_RUNTIME_RUN_H

#include "base/stop.h"
#include "delegate/backends.h"
#include "ops/op.h"
#include "base/memory.h"

typedef enum tq_node_phase {
    TQ_NODE_FRESH,
    TQ_NODE_READY,  /* prepared */
    TQ_NODE_LATE,   /* prepared when it runs: an input's shape depends on data */
    TQ_NODE_ONCE,   /* its outputs are constant, and computed when the first run begins */
    TQ_NODE_FOLDED, /* its outputs are constant */
    TQ_NODE_BROKEN  /* its contract does not hold, or that of an operator before it */
} tq_node_phase;

/* An operator of a run. */
typedef struct tq_step {
    tq_node node; /* first: tq_step_of */

    /* read by each invoke, as the first fields of the node */
    tq_node_phase phase;
    bool writes_nothing; /* no output has elements: the operator need not run */
    bool to_pack;        /* `cached` may not be filled yet */
    bool in_table;       /* a later step's table computes it too */
    bool unbound;        /* an index in the file leads to no tensor: the node has wrong operands */
    uint8_t depth; /* of TQ_NODE_ONCE: 1 + the largest depth of the steps that its inputs come from; from 1 */
    uint64_t flips; /* operands of 8 bits whose type the kernel takes for the other (ops/kernel_types.h) */
    uint64_t shape_changes; /* of a late operator: host.shape_changes when prepared_shapes were last its inputs' */

    const tq_tensor *looked_up; /* of the last operator of a chain: the chain's input, also of 8 bits; NULL: no chain */
    uint8_t *table; /* [256], the chain's result for each byte of looked_up; NULL: none (tables.c) */

    tq_shape *prepared_shapes; /* [in_count], of a late operator: its inputs' when it was last prepared; or NULL */
    tq_backend backend; /* the kernels whose results the node gives, and why */
    uint64_t scratch_offset; /* in the arena, bytes; not of a late operator */

    /* prepacked constants, or the output of a TQ_NODE_ONCE (cached.c) */
    tq_shared_item *cached; /* holds them; NULL: nothing is cached */
    tq_shared_item *earlier; /* `cached` of the last preparation, while the operator is prepared again */
    uint64_t borrowed; /* bytes of `cached` that another interpreter's pool holds */

    uint64_t runs, nanoseconds; /* counted while run->options.profile */
} tq_step;

/* A tensor of a run. */
typedef struct tq_slot {
    /* memory */
    tq_shared_item *cached; /* of a computed constant: the shared item that holds its data; NULL: not shared */
    tq_shared_item *earlier; /* `cached` of the last preparation, while its operator is prepared again */
    uint64_t borrowed; /* bytes of `cached` that another interpreter's pool holds */
    bool in_arena; /* data lies in the arena, at `offset` bytes */
    bool overwrites; /* it changes the memory that it took over (alias_of) */
    uint64_t offset;
    uint32_t
        alias_of; /* the tensor whose arena memory this one takes over, as the output of its last reader; or itself */

    /* in the graph: indices of operators */
    int32_t first, last; /* the lifetime, both ends included; first -1: from the start */
    int32_t producer; /* the operator that writes it; -1: none */
    uint32_t readers; /* operators' inputs and the graph's outputs that it is (tables.c) */
    bool is_input, is_output; /* of the graph */
    bool is_orphan; /* no operator writes it, and it is no constant: it holds zeros */

    /* facts that XNNPACK's choice depends on (delegate/) */
    bool unread; /* no operator that XNNPACK refuses reads it */
    bool unwritten; /* a graph output that LiteRT's delegate would leave unwritten if it had unpacked it */

    bool file_constant; /* the file holds its value */
    bool problem; /* the file contradicts itself about the tensor; the report has a line */
    bool broken; /* it or an earlier operator has a problem; its shape is unknown */
    bool resized; /* the caller chose its shape */
    tq_shape given; /* that shape */
} tq_slot;

/* A subgraph of a run. */
typedef struct tq_graph_run {
    tq_host host; /* first: tq_graph_of.  The part of the graph that its operators use */
    struct tq_run *run;
    uint32_t index; /* of the subgraph */
    tq_subgraph subgraph;
    uint32_t tensor_count, step_count;
    tq_tensor *tensors; /* [tensor_count] */
    tq_slot *slots; /* [tensor_count] */
    tq_step *steps; /* [step_count] */
    tq_tensor **operands; /* the pointers of all nodes' in and out */
    tq_block *memory; /* list: tensors, operators, quantization */
    tq_block *arena;
    uint64_t arena_bytes;
    bool ready; /* allocated */
    bool has_run; /* tensors have values of a run */
    bool busy; /* being prepared, or running: a recursive call is refused */
    bool called_once;
    bool has_once; /* some steps are TQ_NODE_ONCE */
    uint64_t work; /* multiply-adds of the prepared operators, while there is a limit (work.c) */
    uint32_t at; /* the operator that is running, or that failed */
    uint32_t end; /* the last run ran the operators below it */
    uint64_t pass; /* run->pass when the graph was last prepared */
} tq_graph_run;

/* Questions of a run to its caller. */
typedef struct tq_run_hooks {
    void *context; /* of all hooks */
    /* A custom operator that the caller registered, by name; NULL: none. */
    const tq_op *(*custom_op)(void *context, tq_bytes name);
    /* Bytes of the external buffer of that id; they must outlive the run. */
    tq_status (*external)(void *context, int64_t id, tq_bytes *out, tq_error *error);
    /* Whether to stop; asked between operators and in them, some fifty times a second at most (base/stop.h). */
    bool (*interrupted)(void *context);
} tq_run_hooks;

typedef struct tq_run_options {
    tq_numerics numerics;
    int threads; /* 1 to TQ_MAX_THREADS */
    bool preserve_all; /* no two tensors share memory */
    bool profile; /* measure each operator; may be changed between two runs */
    uint64_t max_memory; /* bytes; 0: no limit */
    uint64_t max_multiply_adds; /* of one invoke, and of the operators of a graph; 0: no limit */
    tq_run_hooks hooks;
} tq_run_options;

typedef struct tq_run {
    const tq_model *model;
    tq_run_options options;
    tq_pool *pool;
    tq_block *memory; /* list: the graphs */
    tq_graph_run *graphs; /* [graph_count], by subgraph */
    uint32_t graph_count;
    struct tq_resources *resources; /* variables and hash tables of the model (resources.h) */

    char *report; /* UTF-8 lines, one a reason why a subgraph cannot run; NULL: none */
    size_t report_size, report_room; /* bytes used and allocated */
    size_t report_base; /* bytes that opening wrote; the rest belongs to the graph that was allocated last */

    bool allocated; /* a graph was allocated once: backends stay as they are chosen */
    tq_stop stop; /* operators listen to it for Ctrl-C */
    tq_listener listener; /* the thread's listener before this run */
    unsigned depth; /* busy graphs, each called by an operator of the one before; at most TQ_CALL_DEPTH */
    unsigned preparing; /* busy graphs that are being prepared */
    uint64_t pass; /* outermost preparations so far */
    uint64_t prepared_again; /* operators and tensors of graphs that this pass prepared more than once */
    uint64_t spent; /* multiply-adds of the invoke or allocation that is going on, while there is a limit */
} tq_run;

/* ---- open.c: an instance of each subgraph ---- */

/* A new run, which the caller closes.  The model must outlive it; *options is copied.  Operators that cannot run are no
   failure here, but lines of run->report.  TQ_NO_MEMORY, TQ_MEMORY_LIMIT, TQ_INTERRUPTED, and failures of the file's
   buffers. */
tq_status tq_run_open(const tq_model *model, const tq_run_options *options, const tq_allocator *allocator, tq_run **out,
                      tq_error *error);

/* Releases the run and all its memory.  NULL: does nothing. */
void tq_run_close(tq_run *run);

/* ---- backends.c ---- */

/* Chooses the kernels that each operator's results follow (delegate/backends.h), until a graph is allocated.
   TQ_INTERRUPTED. */
tq_status tq_graph_choose_backends(tq_graph_run *graph, tq_error *error);

/* How LiteRT fails at the operator, in English; NULL: no failure is known. */
const char *tq_step_litert_failure(const tq_graph_run *graph, const tq_step *step);

/* ---- report.c ---- */

/* Adds a line to the report; without memory for it the line is lost. */
void tq_run_report(tq_run *run, const char *text);

/* Whether a failure is one of the machine or of a limit: the pass that collects the model's failures ends there. */
static inline bool tq_ends_the_pass(tq_status status)
{
    return status == TQ_NO_MEMORY || status == TQ_MEMORY_LIMIT || status == TQ_WORK_LIMIT || status == TQ_CALL_BUDGET ||
           status == TQ_INTERRUPTED;
}

/* ---- prepare.c ---- */

/* Makes a graph ready to run, unless it is ready.  Returns the first error; run->report has all of them. */
tq_status tq_graph_allocate(tq_graph_run *graph, tq_error *error);

/* Changes the shape of an input; the graph must be allocated again.  TQ_BAD_INDEX: the tensor is no input;
   TQ_BAD_ARGUMENT: the shape is invalid. */
tq_status tq_graph_resize(tq_graph_run *graph, uint32_t tensor, const tq_shape *shape, tq_error *error);

/* Prepares a TQ_NODE_LATE operator, with memory for its outputs, unless it was prepared for these shapes. */
tq_status tq_step_prepare_late(tq_graph_run *graph, tq_step *step, tq_error *error);

/* ---- fold.c: operators of constants ---- */

/* Computes a prepared operator whose inputs are all constant, or marks it TQ_NODE_ONCE.  Any other operator, and one
   whose data fail, stays as it is. */
tq_status tq_step_fold(tq_graph_run *graph, tq_step *step, tq_error *error);

/* Computes the TQ_NODE_ONCE operators that the inputs of this operator come from. */
tq_status tq_step_compute_inputs(tq_graph_run *graph, tq_step *step, tq_error *error);

/* Computes all TQ_NODE_ONCE operators. */
tq_status tq_graph_compute_once(tq_graph_run *graph, tq_error *error);

/* ---- cached.c: values made of constants, once for all interpreters of the model ---- */

/* Gives operators memory for prepacked constants, and TQ_NODE_ONCE operators memory for their outputs: shared items
   that another interpreter has already, or new ones, all in one block. */
tq_status tq_graph_find_cached(tq_graph_run *graph, tq_error *error);

/* The same for an operator that is prepared late. */
tq_status tq_step_find_cached(tq_graph_run *graph, tq_step *step, tq_error *error);

/* Prepacks the step's constants, which are to be prepacked (step->to_pack). */
tq_status tq_step_prepack(tq_step *step, tq_error *error);

/* Releases the step's cached item.  hold: the step is prepared again and may want the same item, so that it moves to
   step->earlier until tq_step_drop_earlier. */
void tq_step_drop_cached(tq_graph_run *graph, tq_step *step, bool hold);
void tq_step_drop_earlier(tq_graph_run *graph, tq_step *step);

/* Shares constants that an operator computed in prepare with other interpreters, where they depend on the file alone.
   While the operator is prepared again the graph holds the shared item, so that its address stays valid in the keys of
   constants made of it. */
void tq_step_share_folded(tq_graph_run *graph, tq_step *step);
void tq_slot_hold_earlier(tq_graph_run *graph, tq_slot *slot);
void tq_slot_drop_earlier(tq_graph_run *graph, tq_slot *slot);

/* Finds or makes a shared item of `bytes` bytes for a constant that is made of `stored`, the file's bytes.  *make true:
   the caller fills it and calls tq_shared_end(slot->cached); false: it is filled. */
tq_status tq_slot_find_cached(tq_graph_run *graph, uint32_t tensor, const void *stored, uint64_t bytes, bool *make,
                              tq_error *error);

/* ---- work.c: the limit on multiply-adds; both do nothing without one ---- */

/* Adds a prepared operator's work to the graph's.  TQ_WORK_LIMIT: the graph's work passes the limit. */
tq_status tq_step_count(tq_graph_run *graph, const tq_step *step, tq_error *error);

/* Adds the work of one run of an operator, less *spent, its work counted so far, and sets *spent to all of it: outputs
   whose shapes eval sets count after eval.  TQ_WORK_LIMIT: run->spent passes the limit. */
tq_status tq_step_spend(tq_graph_run *graph, const tq_step *step, uint64_t *spent, tq_error *error);

/* ---- tables.c: chains of operators of 8-bit values, as tables ---- */

/* Sets in_table and looked_up of all steps, which are prepared: before the arena is planned. */
void tq_graph_find_tables(tq_graph_run *graph);

/* Fills the tables, in the arena's memory, which no operator has used yet. */
tq_status tq_graph_fill_tables(tq_graph_run *graph, tq_error *error);

/* Writes the step's output, from its table. */
void tq_step_look_up(const tq_step *step);

/* ---- plan.c ---- */

/* Finds lifetimes of tensors and scratch, and their offsets in the arena. */
tq_status tq_graph_plan(tq_graph_run *graph, tq_error *error);

/* Whether a tensor (< tensor_count) still has the value of the last run: its operator ran, and no operator after its
   last reader has reused its memory. */
bool tq_graph_holds(const tq_graph_run *graph, uint32_t tensor);

/* ---- invoke.c ---- */

/* Runs the operators [begin, end) of an allocated graph; begin <= end <= step_count. */
tq_status tq_graph_invoke_range(tq_graph_run *graph, uint32_t begin, uint32_t end, tq_error *error);

/* ---- eval.c ---- */

/* Calls node->eval, with constants prepacked and the mode of denormal floats for the node's numerics (tq_run_flush), in
   which the thread stays. */
tq_status tq_node_eval(tq_node *node, tq_error *error);

/* Calls node->shape_later, if it is set. */
tq_status tq_node_shape_later(tq_node *node, tq_error *error);

/* Resets variables and the state of operators: INT8 variables to their zero point, others to zero. */
void tq_graph_reset_variables(tq_graph_run *graph);

static inline tq_graph_run *tq_graph_of(const tq_node *node)
{
    return (tq_graph_run *)node->host; /* its first member */
}

static inline tq_step *tq_step_of(tq_node *node)
{
    return (tq_step *)node; /* its first member */
}

#endif
