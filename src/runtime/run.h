/* SPDX-License-Identifier: Apache-2.0
 *
 * A model that is being run: its tensors, operators and memory.  What the files of this room share.
 *
 * Opening makes an instance of every subgraph.  Allocating one prepares its operators in their order, computes
 * what is constant, and plans an arena for the rest by lifetimes.  Operators whose inputs' shapes wait for data
 * are prepared while the model runs, and their outputs live on the heap.  Invoking runs the operators in order.
 *
 * One interpreter is used by one thread at a time; any number of interpreters may share a model, and what is made of
 * its constants (kept.c).
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
    TQ_NODE_LATE,   /* is prepared when it runs: an input's shape waits for data */
    TQ_NODE_ONCE,   /* its outputs are constant, and computed when the first run begins */
    TQ_NODE_FOLDED, /* its outputs are constant */
    TQ_NODE_BROKEN  /* its contract does not hold, or that of an operator before it */
} tq_node_phase;

/* An operator's bookkeeping. */
typedef struct tq_step {
    tq_node node;
    tq_node_phase phase;
    tq_backend backend;     /* whose numerics the node follows, and why */
    bool writes_nothing;    /* all its outputs are without elements: it need not run */
    bool unbound;           /* an index of the file leads to no tensor: the node is a misfit */
    uint64_t scratch_offset;
    tq_shared_item *part;          /* what it keeps, or, of TQ_NODE_ONCE, its output; NULL: none */
    uint64_t borrowed;      /* bytes of `part`, where another interpreter's pool has its block */
    tq_shared_item *before;        /* that of the last time it was prepared, while it is prepared again */
    bool to_pack;           /* `part` may not be made yet */
    uint8_t depth;          /* of TQ_NODE_ONCE: one more than the depth of the steps it waits for */
    uint64_t runs, nanoseconds; /* while run->options.profile */
    tq_shape *seen;         /* a late operator: its inputs' shapes when it was last prepared, or NULL */
} tq_step;

/* A tensor's bookkeeping. */
typedef struct tq_slot {
    tq_shared_item *part;      /* of a constant that is made of others or of the file's: what its block is part of */
    tq_shared_item *before;    /* that of the last time its operator was prepared, while it is prepared again */
    uint64_t borrowed;  /* of a computed constant: bytes of `part`, where its block is of another interpreter's pool */
    uint64_t offset;    /* in the arena */
    uint32_t place;     /* in the arena: the tensor whose place it takes over, as its last reader's output; or itself */
    int32_t first, last; /* the operators between which it lives; -1: from the start */
    int32_t producer;   /* -1: none */
    bool is_input, is_output;
    bool is_orphan; /* nothing writes it */
    bool unread;    /* by any operator that XNNPACK refuses */
    bool unwritten; /* it is an output, which LiteRT's delegate would not write if it had unpacked it */
    bool file_constant; /* the file has its value */
    bool problem;       /* the file contradicts itself about it: the report says how */
    bool broken;        /* nothing is known of it: it has a problem, or an operator before it */
    bool in_arena;      /* data lies at `offset` of the arena */
    bool resized;
    tq_shape given; /* where resized */
} tq_slot;

typedef struct tq_graph_run {
    tq_host host; /* what its operators use of it */
    struct tq_run *run;
    uint32_t index; /* of the subgraph */
    tq_subgraph subgraph;
    uint32_t tensor_count, step_count;
    tq_tensor *tensors;
    tq_slot *slots;
    tq_step *steps;
    tq_tensor **operands; /* what nodes' in and out point into */
    tq_block *memory;     /* list: tensors, operators, quantization */
    tq_block *arena;
    uint64_t arena_bytes;
    bool ready;      /* allocated */
    bool has_run;    /* tensors have values of a run */
    bool busy;       /* being prepared, or running: a recursive call is refused */
    bool called_once;
    bool has_once;   /* some operators are to run once */
    uint64_t work;   /* of the operators that are prepared, while there is a limit (work.c) */
    uint32_t at;     /* the operator that is running, or that failed */
    uint32_t end;    /* of the operators that the last run ran */
    uint64_t pass;   /* in which the graph was last prepared: run->pass */
} tq_graph_run;

/* What a run asks its caller. */
typedef struct tq_run_hooks {
    void *context;
    /* A custom operator that the caller registered; NULL: none. */
    const tq_op *(*custom_op)(void *context, tq_bytes name);
    /* Bytes of an external buffer, which outlive the run. */
    tq_status (*external)(void *context, int64_t id, tq_bytes *out, tq_error *error);
    /* Whether to stop; asked between operators and in them, some fifty times a second at most (base/stop.h). */
    bool (*interrupted)(void *context);
} tq_run_hooks;

typedef struct tq_run_options {
    tq_numerics numerics;
    int threads;         /* at least 1 */
    bool preserve_all;   /* no two tensors share memory */
    bool profile;        /* count what each operator takes; may be changed between two runs */
    uint64_t max_memory; /* 0: what the machine has */
    uint64_t max_multiply_adds; /* of one invoke, and of the operators of a graph; 0: no limit */
    tq_run_hooks hooks;
} tq_run_options;

typedef struct tq_run {
    const tq_model *model;
    tq_run_options options;
    tq_pool *pool;
    tq_block *memory; /* list: the graphs */
    tq_graph_run *graphs;
    uint32_t graph_count;
    struct tq_resources *resources; /* variables and tables of the model; see resources.h */
    char *report;                   /* lines on everything that keeps a subgraph from running; NULL: none */
    size_t report_size, report_room;
    bool allocated;     /* some graph, once: backends stay as they are chosen */
    size_t report_base; /* what opening found; the rest is of the last graph that was allocated */
    tq_stop stop;           /* what operators listen to */
    tq_listener listener;   /* of the thread, before it came here */
    unsigned depth;         /* graphs that are busy: each is called by an operator of the one before */
    unsigned preparing;     /* those of them that are being prepared */
    uint64_t pass;          /* counts the outermost ones of those */
    uint64_t prepared_again; /* operators and tensors, in this pass */
    uint64_t spent; /* multiply-adds since the caller began what the run does, while there is a limit */
} tq_run;

/* ---- open.c: an instance of each subgraph; the model must outlive it ---- */

tq_status tq_run_open(const tq_model *model, const tq_run_options *options, const tq_allocator *allocator,
                      tq_run **out, tq_error *error);
void tq_run_close(tq_run *run);

/* Chooses whose arithmetic each operator follows (delegate/backends.h), as long as nothing was allocated.  TQ_INTERRUPTED. */
tq_status tq_graph_choose_backends(tq_graph_run *graph, tq_error *error);

/* What LiteRT does in place of running an operator; NULL: it runs it, as far as is known. */
const char *tq_step_litert_failure(const tq_graph_run *graph, const tq_step *step);

/* Adds a line to the report. */
void tq_run_report(tq_run *run, const char *text);

/* Whether a failure is not the model's, so that it is no line of the report: the pass that looks for those ends. */
static inline bool tq_ends_the_pass(tq_status status)
{
    return status == TQ_NO_MEMORY || status == TQ_MEMORY_LIMIT || status == TQ_WORK_LIMIT || status == TQ_CALL_BUDGET ||
           status == TQ_INTERRUPTED;
}

/* ---- begin.c ---- */

enum {
    TQ_CALL_DEPTH = 32,         /* graphs that may be busy at once: some 2 KB of stack each, of 256 KB that a thread may have */
    TQ_PREPARED_AGAIN = 1000000 /* operators and tensors of graphs that one pass prepares more than once: seconds */
};

/* Makes a graph busy; the first that is busy begins to listen for Ctrl-C.  TQ_BAD_GRAPH: it is busy; TQ_CALL_BUDGET. */
tq_status tq_graph_begin(tq_graph_run *graph, tq_error *error);
void tq_graph_end(tq_graph_run *graph);

/* TQ_INTERRUPTED where the caller wants a stop. */
tq_status tq_run_poll(tq_run *run, tq_error *error);

/* TQ_INTERRUPTED in place of `status`, which means nothing then, where something has heard that the caller wants a stop. */
tq_status tq_run_interrupted(tq_error *error);
static inline tq_status tq_run_heard(const tq_run *run, tq_status status, tq_error *error)
{
    return atomic_load_explicit(&run->stop.stopped, memory_order_relaxed) ? tq_run_interrupted(error) : status;
}

/* Around the preparing of a graph. */
void tq_graph_begin_prepare(tq_graph_run *graph);
void tq_graph_end_prepare(tq_graph_run *graph);

/* TQ_CALL_BUDGET where graphs were prepared again more often than TQ_PREPARED_AGAIN allows: each of a chain of graphs that
   calls the next one with two shapes doubles their number. */
tq_status tq_graph_check_again(tq_graph_run *graph, tq_error *error);

/* ---- prepare.c ---- */

/* Makes a graph ready to run, unless it is.  Fails with the first thing that is wrong; run->report has them all. */
tq_status tq_graph_allocate(tq_graph_run *graph, tq_error *error);

/* Gives an input another shape; the graph must be allocated again.  TQ_BAD_INDEX, TQ_BAD_ARGUMENT. */
tq_status tq_graph_resize(tq_graph_run *graph, uint32_t tensor, const tq_shape *shape, tq_error *error);

/* Prepares one operator that waited, with memory for its outputs. */
tq_status tq_step_prepare_late(tq_graph_run *graph, tq_step *step, tq_error *error);

/* ---- fold.c: operators of constants ---- */

/* Computes a prepared operator whose inputs are all constant, or puts it off until the first run; any other operator, and
   one that fails by its data, is left to run. */
tq_status tq_step_fold(tq_graph_run *graph, tq_step *step, tq_error *error);

/* Computes the operators that were put off and that the inputs of this one come from. */
tq_status tq_step_compute_inputs(tq_graph_run *graph, tq_step *step, tq_error *error);

/* Computes all operators that were put off. */
tq_status tq_graph_compute_once(tq_graph_run *graph, tq_error *error);

/* ---- kept.c: what is made of constants once for all interpreters of the model ---- */

/* Gives operators memory for what they keep, and those that run once memory for their outputs: parts that another
   interpreter has already, or new ones, all in one block. */
tq_status tq_graph_give_kept(tq_graph_run *graph, tq_error *error);

/* The same for an operator that is prepared late. */
tq_status tq_step_give_kept(tq_graph_run *graph, tq_step *step, tq_error *error);

/* Packs, unless it is done. */
tq_status tq_step_pack(tq_step *step, tq_error *error);

/* Lets go of what an operator keeps.  hold: it is to be prepared again, and may want the same. */
void tq_step_drop_kept(tq_graph_run *graph, tq_step *step, bool hold);
void tq_step_drop_held(tq_graph_run *graph, tq_step *step);

/* Shares what an operator computed in prepare with other interpreters, where it follows from the file alone.  Before the
   operator is prepared again, the graph holds the shared part, so that constants made of it still find it in its place. */
void tq_step_share_folded(tq_graph_run *graph, tq_step *step);
void tq_slot_hold_folded(tq_graph_run *graph, tq_slot *slot);
void tq_slot_drop_held(tq_graph_run *graph, tq_slot *slot);

/* Room of `bytes` bytes for a constant that is made of `stored`, the file's bytes.  *make: the caller is to fill it, and to
   call tq_shared_end for the slot's part; else it is filled. */
tq_status tq_slot_give_kept(tq_graph_run *graph, uint32_t tensor, const void *stored, uint64_t bytes, bool *make,
                            tq_error *error);

/* ---- work.c: the limit on multiply-adds; both do nothing without one ---- */

/* Counts a prepared operator as one of its graph.  TQ_WORK_LIMIT: the graph's pass the limit. */
tq_status tq_step_count(tq_graph_run *graph, const tq_step *step, tq_error *error);

/* Counts one run of an operator, less what *spent has of it already, which grows to all: outputs whose shapes wait for
   eval count after it.  TQ_WORK_LIMIT: all since run->spent was 0 pass the limit. */
tq_status tq_step_spend(tq_graph_run *graph, const tq_step *step, uint64_t *spent, tq_error *error);

/* ---- plan.c ---- */

/* Lifetimes and offsets of what the arena holds. */
tq_status tq_graph_plan(tq_graph_run *graph, tq_error *error);

/* Whether a tensor still has the value of the last run: its operator ran, and no operator behind its last reader has
   taken its memory. */
bool tq_graph_keeps(const tq_graph_run *graph, uint32_t tensor);

/* ---- invoke.c ---- */

/* Runs operators [begin, end) of an allocated graph. */
tq_status tq_graph_invoke_range(tq_graph_run *graph, uint32_t begin, uint32_t end, tq_error *error);
static inline tq_status tq_graph_invoke(tq_graph_run *graph, tq_error *error)
{
    return tq_graph_invoke_range(graph, 0, graph->step_count, error);
}

/* Sets variables, and what operators remember, to their start: variables to zero, INT8 ones to their zero point. */
void tq_graph_reset_variables(tq_graph_run *graph);

/* node->eval, in the mode of denormals that its numerics has. */
tq_status tq_node_eval(tq_node *node, tq_error *error);

/* node->shape_later, where there is one. */
tq_status tq_node_shape_later(tq_node *node, tq_error *error);

static inline tq_graph_run *tq_graph_of(const tq_node *node)
{
    return (tq_graph_run *)node->host; /* its first member */
}

static inline tq_step *tq_step_of(tq_node *node)
{
    return (tq_step *)node; /* its first member */
}

#endif
