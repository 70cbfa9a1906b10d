/* SPDX-License-Identifier: Apache-2.0
 *
 * A busy graph, while it is prepared or run: the budget of nested calls, Ctrl-C, and the mode of denormal floats.
 */
#include "ops/check.h"
#include "runtime/begin.h"
#include "runtime/run.h"

static void listen(tq_run *run)
{
    atomic_store_explicit(&run->stop.stopped, false, memory_order_relaxed); /* helpers begin after it */
    run->listener = tq_stop_enter((tq_listener){&run->stop, true});
}

tq_status tq_graph_begin(tq_graph_run *graph, tq_error *error)
{
    tq_run *run = graph->run;
    if (graph->busy)
        return tq_fail(error, TQ_BAD_GRAPH, TQ_NO_OFFSET, "subgraph %u calls itself", graph->index);
    if (run->depth == TQ_CALL_DEPTH)
        return tq_fail(error, TQ_CALL_BUDGET, TQ_NO_OFFSET,
                       "subgraph %u is number %u of a chain of subgraphs that call one another; the limit is %d",
                       graph->index, run->depth + 1, TQ_CALL_DEPTH);
    tq_run_flush(run, false);
    graph->busy = true;
    if (run->depth++ == 0)
        listen(run);
    return TQ_OK;
}

void tq_graph_end(tq_graph_run *graph)
{
    tq_run *run = graph->run;
    graph->busy = false;
    if (--run->depth > 0)
        return;
    tq_run_flush(run, false);
    tq_stop_enter(run->listener);
}

void tq_run_switch_flush(tq_run *run)
{
    tq_stop *stop = &run->stop;
    if (!stop->flushed)
        stop->denormals = tq_denormals_mode();
    tq_denormals_restore(stop->flushed ? stop->denormals : TQ_DENORMALS_ZERO);
    stop->flushed = !stop->flushed;
}

tq_status tq_run_interrupted(tq_error *error)
{
    return tq_fail(error, TQ_INTERRUPTED, TQ_NO_OFFSET, "interrupted");
}

tq_status tq_run_poll(tq_run *run, tq_error *error)
{
    return tq_stop_ask(&run->stop) ? tq_run_interrupted(error) : TQ_OK;
}

/* ---- the number of preparations ---- */

void tq_graph_begin_prepare(tq_graph_run *graph)
{
    tq_run *run = graph->run;
    if (run->preparing++ == 0) {
        run->pass++;
        run->prepared_again = 0;
    }
}

void tq_graph_end_prepare(tq_graph_run *graph)
{
    graph->run->preparing--;
}

tq_status tq_graph_check_again(tq_graph_run *graph, tq_error *error)
{
    tq_run *run = graph->run;
    if (graph->pass == run->pass)
        run->prepared_again += (uint64_t)graph->step_count + graph->tensor_count;
    graph->pass = run->pass;
    if (run->prepared_again <= TQ_PREPARED_AGAIN)
        return TQ_OK;
    return tq_fail(
        error, TQ_CALL_BUDGET, TQ_NO_OFFSET,
        "is called with other shapes again and again: %llu operators and tensors were prepared again; the limit "
        "is %d",
        (unsigned long long)run->prepared_again, TQ_PREPARED_AGAIN);
}
