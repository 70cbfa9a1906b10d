/* SPDX-License-Identifier: Apache-2.0
 *
 * The beginning and the end of a busy graph: Ctrl-C, the mode of denormal floats, limits on calls.
 */
#ifndef TQ_RUNTIME_BEGIN_H
#define TQ_RUNTIME_BEGIN_H

#include "runtime/run.h"

enum {
    TQ_CALL_DEPTH = 32, /* graphs that may be busy at once: some 2 KB of stack each, of 256 KB that a thread may have */
    TQ_PREPARED_AGAIN = 1000000 /* operators and tensors of graphs that one pass prepares more than once: seconds */
};

/* Makes a graph busy until tq_graph_end; the first busy graph begins to listen for Ctrl-C.  TQ_BAD_GRAPH: it is busy
   already; TQ_CALL_BUDGET: TQ_CALL_DEPTH graphs are busy. */
tq_status tq_graph_begin(tq_graph_run *graph, tq_error *error);
void tq_graph_end(tq_graph_run *graph);

/* Sets whether denormal floats are 0 on the thread of a busy graph; at the end of the run they are as before it.
   Reading and writing the processor's mode takes as long as a small operator: a mode stays until another is needed. */
void tq_run_switch_flush(tq_run *run);
static inline void tq_run_flush(tq_run *run, bool flush)
{
    if (run->stop.flushed != flush)
        tq_run_switch_flush(run);
}

/* TQ_INTERRUPTED where the caller wants a stop. */
tq_status tq_run_poll(tq_run *run, tq_error *error);

/* tq_run_heard: TQ_INTERRUPTED if the caller wanted a stop, otherwise `status`. */
tq_status tq_run_interrupted(tq_error *error);
static inline tq_status tq_run_heard(const tq_run *run, tq_status status, tq_error *error)
{
    return atomic_load_explicit(&run->stop.stopped, memory_order_relaxed) ? tq_run_interrupted(error) : status;
}

/* Called before and after the preparation of a graph. */
void tq_graph_begin_prepare(tq_graph_run *graph);
void tq_graph_end_prepare(tq_graph_run *graph);

/* TQ_CALL_BUDGET where graphs were prepared again more often than TQ_PREPARED_AGAIN allows: each of a chain of graphs
   that calls the next one with two shapes doubles their number. */
tq_status tq_graph_check_again(tq_graph_run *graph, tq_error *error);

#endif
