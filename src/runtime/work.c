/* SPDX-License-Identifier: Apache-2.0
 *
 * The limit on work (max_multiply_adds).
 *
 * An operator counts as the largest of: 1; its multiply-adds (model/multiply_adds.def); the work that its prepare
 * stated (tq_node_work); the elements of its largest input or output.
 */
#include "base/checked.h"
#include "model/multiply_adds.h"
#include "ops/check.h"
#include "runtime/run.h"

static tq_given shape_of(const void *context, bool output, uint32_t index, tq_extent *out)
{
    const tq_node *node = context;
    const tq_tensor *tensor = output ? node->out[index] : node->in[index];
    if (!tensor)
        return TQ_LEFT_OUT;
    if (!tensor->has_shape && !tq_is_constant(tensor))
        return TQ_NO_SHAPE;
    out->rank = (uint32_t)tensor->shape.rank;
    for (int i = 0; i < tensor->shape.rank; i++)
        out->dims[i] = tensor->shape.dims[i];
    return TQ_GIVEN;
}

static uint64_t largest(tq_tensor *const *tensors, int count, uint64_t most)
{
    for (int i = 0; i < count; i++) {
        const tq_tensor *t = tensors[i];
        const uint64_t elements = t && (t->has_shape || tq_is_constant(t)) ? tq_tensor_count(t) : 0;
        most = elements > most ? elements : most;
    }
    return most;
}

static uint64_t work_of(const tq_step *step)
{
    const tq_node *node = &step->node;
    const tq_extents extents = {node, shape_of, (uint32_t)node->in_count, (uint32_t)node->out_count};
    uint64_t count, most = node->request.work ? node->request.work : 1;
    const tq_count_kind kind = tq_multiply_adds(&node->row, &extents, &count);
    if (kind == TQ_COUNT_HUGE)
        return UINT64_MAX;
    if (kind == TQ_COUNT_KNOWN && count > most)
        most = count;
    most = largest(node->in, node->in_count, most);
    return largest(node->out, node->out_count, most);
}

/* Adds work to a sum; TQ_WORK_LIMIT past the limit. */
static tq_status add(const tq_graph_run *graph, const tq_step *step, uint64_t work, uint64_t *sum, tq_error *error)
{
    const uint64_t limit = graph->run->options.max_multiply_adds;
    if (!tq_add_u64(*sum, work, sum))
        *sum = UINT64_MAX;
    if (*sum <= limit)
        return TQ_OK;
    return tq_op_fail(&step->node, error, TQ_WORK_LIMIT,
                      "brings the multiply-adds to %llu; the limit is %llu (max_multiply_adds)",
                      (unsigned long long)*sum, (unsigned long long)limit);
}

tq_status tq_step_count(tq_graph_run *graph, const tq_step *step, tq_error *error)
{
    if (!graph->run->options.max_multiply_adds)
        return TQ_OK;
    return add(graph, step, work_of(step), &graph->work, error);
}

tq_status tq_step_spend(tq_graph_run *graph, const tq_step *step, uint64_t *spent, tq_error *error)
{
    if (!graph->run->options.max_multiply_adds)
        return TQ_OK;
    const uint64_t work = work_of(step), before = *spent;
    if (work <= before)
        return TQ_OK;
    *spent = work;
    return add(graph, step, work - before, &graph->run->spent, error);
}
