/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk of broadcast.h.
 */
#include "ops/elementwise/broadcast.h"

#include <string.h>

#include "ops/parallel.h"

#define GRAIN 64 /* elements: no two threads write one cache line */
#define SHORT 512          /* elements: an operand of a shorter inner dimension is repeated */

const tq_empty tq_empty_params = {0};

/* Adds an outermost dimension, or widens the outermost where all inputs go on with its stride. */
static void push(tq_broadcast *plan, size_t dim, const size_t *steps)
{
    int last = plan->rank - 1;
    bool alike = plan->rank > 0;
    for (int i = 0; alike && i < plan->inputs; i++)
        alike = steps[i] == plan->steps[i][last] * plan->dims[last];
    if (alike) {
        plan->dims[last] *= dim;
        return;
    }
    plan->dims[plan->rank] = dim;
    for (int i = 0; i < plan->inputs; i++)
        plan->steps[i][plan->rank] = steps[i];
    plan->rank++;
}

static void collapse(tq_broadcast *plan, tq_tensor *const *in, const tq_shape *shape)
{
    size_t stride[TQ_OPERANDS], steps[TQ_OPERANDS];
    for (int i = 0; i < plan->inputs; i++)
        stride[i] = tq_element_bytes(in[i]->type);
    plan->rank = 0;
    for (int d = shape->rank - 1, back = 1; d >= 0; d--, back++) {
        for (int i = 0; i < plan->inputs; i++) {
            int at = in[i]->shape.rank - back;
            size_t dim = at < 0 ? 1 : (size_t)in[i]->shape.dims[at];
            steps[i] = dim == 1 ? 0 : stride[i];
            stride[i] *= dim;
        }
        if (shape->dims[d] != 1)
            push(plan, (size_t)shape->dims[d], steps);
    }
    if (plan->rank == 0) { /* one element */
        memset(steps, 0, sizeof steps);
        push(plan, 1, steps);
    }
}

/* A short last-axis operand is repeated, so that runs become long: finds it and the length of its repetition (tile). */
static tq_status plan_tile(tq_node *node, tq_broadcast *plan, tq_error *error)
{
    plan->tiled = -1;
    if (plan->inputs != 2 || plan->rank != 2 || plan->dims[0] >= SHORT)
        return TQ_OK;
    for (int i = 0; i < 2; i++) {
        const size_t *steps = plan->steps[i], *others = plan->steps[1 - i];
        if (steps[0] != 0 && steps[1] == 0 && others[0] != 0 && others[1] == others[0] * plan->dims[0])
            plan->tiled = i;
    }
    if (plan->tiled < 0)
        return TQ_OK;
    size_t repeats = (SHORT + plan->dims[0] - 1) / plan->dims[0];
    plan->tile = plan->dims[0] * (repeats < plan->dims[1] ? repeats : plan->dims[1]);
    return tq_node_scratch(node, (uint64_t)plan->tile * plan->steps[plan->tiled][0], error);
}

tq_status tq_broadcast_prepare(tq_node *node, int first, int inputs, tq_broadcast *plan, tq_error *error)
{
    tq_shape shape;
    TQ_TRY(tq_broadcast_shapes(node, (const tq_tensor *const *)node->in + first, inputs, &shape, error));
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    plan->inputs = inputs;
    plan->first = first;
    plan->count = tq_shape_size(&shape);
    plan->out_bytes = tq_element_bytes(node->out[0]->type);
    plan->params = &tq_empty_params;
    collapse(plan, node->in + first, &shape);
    return plan_tile(node, plan, error);
}

typedef struct walk {
    const tq_broadcast *plan;
    const char *in[TQ_OPERANDS]; /* the tiled input: its tile in scratch */
    char *out;
} walk;

/* Elements [begin, end) of the output, one input of which is a tile. */
static void run_tiles(void *context, size_t begin, size_t end)
{
    const walk *w = context;
    const tq_broadcast *plan = w->plan;
    const int tiled = plan->tiled, other = 1 - tiled;
    tq_broadcast_run s = {.params = plan->params};
    for (size_t at = begin % plan->tile; begin < end; begin += s.n, at = 0) {
        s.n = plan->tile - at < end - begin ? plan->tile - at : end - begin;
        s.in[tiled] = w->in[tiled] + at * plan->steps[tiled][0];
        s.in[other] = w->in[other] + begin * plan->steps[other][0];
        s.out = w->out + begin * plan->out_bytes;
        plan->run(&s);
    }
}

static void fill_tile(const tq_broadcast *plan, const void *from, char *tile)
{
    size_t bytes = plan->dims[0] * plan->steps[plan->tiled][0];
    for (size_t at = 0; at < plan->tile; at += plan->dims[0], tile += bytes)
        memcpy(tile, from, bytes);
}

/* Elements [begin, end) of the output. */
static void run_range(void *context, size_t begin, size_t end)
{
    const walk *w = context;
    const tq_broadcast *plan = w->plan;
    const size_t inner = plan->dims[0];
    size_t row = begin / inner, column = begin % inner;
    size_t at[TQ_DIMS] = {0}, offset[TQ_OPERANDS] = {0};
    for (int d = 1; d < plan->rank; d++) {
        at[d] = row % plan->dims[d];
        row /= plan->dims[d];
        for (int i = 0; i < plan->inputs; i++)
            offset[i] += at[d] * plan->steps[i][d];
    }
    tq_broadcast_run s = {.params = plan->params};
    for (int i = 0; i < plan->inputs; i++)
        s.scalar[i] = plan->steps[i][0] == 0;
    while (begin < end) {
        s.n = inner - column < end - begin ? inner - column : end - begin;
        for (int i = 0; i < plan->inputs; i++)
            s.in[i] = w->in[i] + offset[i] + column * plan->steps[i][0];
        s.out = w->out + begin * plan->out_bytes;
        plan->run(&s);
        begin += s.n;
        column = 0;
        for (int d = 1; d < plan->rank; d++) { /* the next row */
            for (int i = 0; i < plan->inputs; i++)
                offset[i] += plan->steps[i][d];
            if (++at[d] < plan->dims[d])
                break;
            for (int i = 0; i < plan->inputs; i++)
                offset[i] -= at[d] * plan->steps[i][d];
            at[d] = 0;
        }
    }
}

tq_status tq_broadcast_eval(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_broadcast *plan = node->state;
    walk w = {.plan = plan, .out = node->out[0]->data};
    for (int i = 0; i < plan->inputs; i++)
        w.in[i] = node->in[plan->first + i]->data;
    if (plan->count == 0)
        return TQ_OK;
    if (plan->tiled >= 0) {
        fill_tile(plan, w.in[plan->tiled], node->scratch);
        w.in[plan->tiled] = node->scratch;
    }
    tq_range_fn body = plan->tiled >= 0 ? run_tiles : run_range;
    const size_t cost = plan->cost > 0 ? (size_t)plan->cost : TQ_USUAL_COST;
    tq_parallel_work(plan->count, GRAIN, cost, node->threads, body, &w);
    return TQ_OK;
}
