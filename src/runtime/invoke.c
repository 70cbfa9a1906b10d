/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a graph: its operators in order.
 */
#include "base/clock.h"
#include "base/stop.h"
#include "ops/check.h"
#include "runtime/begin.h"
#include "runtime/run.h"

/* Operations that a step counts for in tq_stop_after, besides its own. */
enum { STEP_WORK = 1 << 12 };

static tq_status spend(tq_graph_run *graph, const tq_step *step, uint64_t *spent, tq_error *error)
{
    return graph->run->options.max_multiply_adds ? tq_step_spend(graph, step, spent, error) : TQ_OK;
}

/* Evaluates the step, or looks its output up; a step of a later one's table waits for that. */
static tq_status eval(const tq_graph_run *graph, tq_step *step, tq_error *error)
{
    if (graph->host.runs_all && step->table)
        tq_step_look_up(step);
    else if (!graph->host.runs_all || !step->in_table)
        return tq_node_eval(&step->node, error);
    return TQ_OK;
}

static tq_status run_step(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    tq_node *node = &step->node;
    if (step->phase == TQ_NODE_LATE && step->shape_changes != graph->host.shape_changes)
        TQ_TRY(tq_step_prepare_late(graph, step, error));
    if (node->shape_later)
        TQ_TRY(tq_node_shape_later(node, error));
    uint64_t spent = 0;
    TQ_TRY(spend(graph, step, &spent, error));
    TQ_TRY(eval(graph, step, error));
    return spend(graph, step, &spent, error);
}

static tq_status run_timed(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    uint64_t begin = tq_nanoseconds();
    tq_status status = run_step(graph, step, error);
    step->nanoseconds += tq_nanoseconds() - begin;
    step->runs++;
    return status;
}

tq_status tq_graph_invoke_range(tq_graph_run *graph, uint32_t begin, uint32_t end, tq_error *error)
{
    tq_run *run = graph->run;
    tq_status status = TQ_OK;
    if (!graph->ready)
        return tq_fail(error, TQ_NOT_READY, TQ_NO_OFFSET,
                       "Invoke called on model that is not ready: allocate tensors first");
    TQ_TRY(tq_graph_begin(graph, error));
    graph->end = begin;
    graph->host.runs_all = begin == 0 && end == graph->step_count && !run->options.preserve_all;
    status = tq_graph_compute_once(graph, error);
    for (uint32_t k = begin; k < end && status == TQ_OK; k++) {
        tq_step *step = &graph->steps[k];
        graph->at = k;
        if (tq_stop_after(STEP_WORK)) {
            status = tq_run_interrupted(error);
            break;
        }
        if (step->phase != TQ_NODE_FOLDED)
            status = run->options.profile ? run_timed(graph, step, error) : run_step(graph, step, error);
        graph->end = status == TQ_INTERRUPTED ? k : k + 1;
    }
    tq_graph_end(graph);
    graph->has_run = true;
    return status;
}
