/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk of broadcast.h.
 */
#include "ops/elementwise/broadcast.h"

#include <string.h>

#include "base/sizes.h"
#include "base/stop.h"
#include "ops/parallel.h"

#define GRAIN 64 /* elements: no two threads write one cache line */
#define SHORT 512          /* elements: an operand of a shorter inner dimension is repeated */
#define SHORT_ROW 192      /* bytes: operands of shorter rows are copied, many rows at a time */
#define COPIES 4096        /* bytes of such copies */
#define REPEATED 16        /* bytes of a repeated element that are written at once */

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
    plan->widest = 0;
    for (int i = 0; i < plan->inputs; i++) {
        stride[i] = plan->bytes[i] = tq_element_bytes(in[i]->type);
        plan->widest = stride[i] > plan->widest ? stride[i] : plan->widest;
    }
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
    for (size_t at = begin % plan->tile; begin < end && !tq_stop_after(plan->tile); begin += s.n, at = 0) {
        s.n = plan->tile - at < end - begin ? plan->tile - at : end - begin;
        s.in[tiled] = w->in[tiled] + at * plan->steps[tiled][0];
        s.in[other] = w->in[other] + begin * plan->steps[other][0];
        s.out = w->out + begin * plan->out_bytes;
        plan->run(&s);
    }
}

/* ---- short rows: runs of many rows, of which inputs that are not contiguous have copies ---- */

static bool is_contiguous(const tq_broadcast *plan, int i)
{
    bool is = plan->steps[i][0] != 0;
    for (int d = 1; d < plan->rank; d++)
        is &= plan->steps[i][d] == plan->steps[i][d - 1] * plan->dims[d - 1];
    return is;
}

/* Eight bytes of one repeated element of 1, 2, 4 or 8 bytes. */
static uint64_t repeat_element(const char *from, size_t bytes)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (bytes) {
    case 1: memcpy(&one, from, 1); return one * UINT64_C(0x0101010101010101);
    case 2: memcpy(&two, from, 2); return two * UINT64_C(0x0001000100010001);
    case 4: memcpy(&four, from, 4); return four * UINT64_C(0x0000000100000001);
    default: memcpy(&eight, from, 8); return eight;
    }
}

/* Writes `rows` rows of `n` elements of `bytes` bytes; writes up to REPEATED - 1 bytes more. */
static void copy_rows(char *to, const char *from, size_t n, size_t rows, const size_t *steps, size_t bytes)
{
    const size_t row = n * bytes;
    if (steps[0] != 0) {
        for (size_t r = 0; r < rows; r++)
            memcpy(to + r * row, from + r * steps[1], row);
        return;
    }
    for (size_t r = 0; r < rows; r++) {
        const uint64_t eight = repeat_element(from + r * steps[1], bytes), elements[] = {eight, eight};
        for (size_t at = 0; at < row; at += REPEATED)
            memcpy(to + r * row + at, elements, REPEATED);
    }
}

/* Input i of `rows` rows from `row` on, in `to`. */
static void copy_input(const walk *w, int i, size_t row, size_t rows, char *to)
{
    const tq_broadcast *plan = w->plan;
    const size_t bytes = plan->bytes[i], *steps = plan->steps[i];
    for (size_t done = 0, n; done < rows; done += n) {
        const size_t at = (row + done) % plan->dims[1];
        size_t outer = (row + done) / plan->dims[1], offset = at * steps[1];
        for (int d = 2; d < plan->rank; outer /= plan->dims[d], d++)
            offset += outer % plan->dims[d] * steps[d];
        n = tq_min_size(plan->dims[1] - at, rows - done);
        copy_rows(to + done * plan->dims[0] * bytes, w->in[i] + offset, plan->dims[0], n, steps, bytes);
    }
}

/* Rows [begin, end) of the output. */
static void run_short_rows(void *context, size_t begin, size_t end)
{
    const walk *w = context;
    const tq_broadcast *plan = w->plan;
    char copies[TQ_OPERANDS][COPIES + REPEATED];
    const size_t inner = plan->dims[0], most = COPIES / (inner * plan->widest);
    tq_broadcast_run s = {.params = plan->params};
    for (size_t rows; begin < end && !tq_stop_after(most * inner); begin += rows) {
        rows = tq_min_size(most, end - begin);
        for (int i = 0; i < plan->inputs; i++) {
            const bool in_place = is_contiguous(plan, i);
            s.in[i] = in_place ? w->in[i] + begin * inner * plan->bytes[i] : copies[i];
            if (!in_place)
                copy_input(w, i, begin, rows, copies[i]);
        }
        s.out = w->out + begin * inner * plan->out_bytes;
        s.n = rows * inner;
        plan->run(&s);
    }
}

static void fill_tile(const tq_broadcast *plan, const void *from, char *tile)
{
    size_t bytes = plan->dims[0] * plan->steps[plan->tiled][0];
    for (size_t at = 0; at < plan->tile; at += plan->dims[0], tile += bytes)
        memcpy(tile, from, bytes);
}

/* Rows side by side in dimension 1; s: the first.  Only their places change from one to the next. */
static void run_rows(const tq_broadcast *plan, tq_broadcast_run *s, size_t rows)
{
    const tq_broadcast_fn run = plan->run;
    const size_t step = s->n * plan->out_bytes, first = plan->steps[0][1], second = plan->steps[1][1];
    for (; rows > 1; rows--) {
        run(s);
        s->out = (char *)s->out + step;
        s->in[0] = (const char *)s->in[0] + first;
        s->in[1] = (const char *)s->in[1] + second;
        if (plan->inputs > 2)
            s->in[2] = (const char *)s->in[2] + plan->steps[2][1];
    }
    run(s);
}

/* Elements [begin, end) of the output. */
static void run_range(void *context, size_t begin, size_t end)
{
    const walk *w = context;
    const tq_broadcast *plan = w->plan;
    enum { TOGETHER = 1 << 16 }; /* elements, between which Ctrl-C is not heard */
    const size_t inner = plan->dims[0];
    size_t row = begin ? begin / inner : 0, column = begin ? begin % inner : 0; /* a division takes as long as a row */
    size_t at[TQ_DIMS], offset[TQ_OPERANDS] = {0};
    for (int d = 1; d < plan->rank; d++) {
        at[d] = row % plan->dims[d];
        row /= plan->dims[d];
        for (int i = 0; i < plan->inputs; i++)
            offset[i] += at[d] * plan->steps[i][d];
    }
    tq_broadcast_run s = {.params = plan->params};
    for (int i = 0; i < plan->inputs; i++)
        s.scalar[i] = plan->steps[i][0] == 0;
    for (size_t rows; begin < end; begin += s.n * rows, column = 0) {
        s.n = tq_min_size(inner - column, end - begin);
        rows = 1;
        if (s.n == inner && plan->rank > 1)
            rows = tq_min_size(tq_min_size(plan->dims[1] - at[1], (end - begin) / inner), 1 + TOGETHER / inner);
        for (int i = 0; i < plan->inputs; i++)
            s.in[i] = w->in[i] + offset[i] + column * plan->steps[i][0];
        s.out = w->out + begin * plan->out_bytes;
        if (tq_stop_after(s.n * rows))
            return;
        run_rows(plan, &s, rows);
        size_t steps = rows;
        for (int d = 1; d < plan->rank; d++, steps = 1) { /* to the next row */
            for (int i = 0; i < plan->inputs; i++)
                offset[i] += steps * plan->steps[i][d];
            at[d] += steps;
            if (at[d] < plan->dims[d])
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
    const size_t inner = plan->dims[0];
    if (plan->tiled < 0 && plan->rank > 1 && plan->widest <= sizeof(uint64_t) && inner * plan->widest < SHORT_ROW) {
        tq_parallel_work(plan->count / inner, GRAIN, cost * inner, node->threads, run_short_rows, &w);
        return TQ_OK;
    }
    tq_parallel_work(plan->count, GRAIN, cost, node->threads, body, &w);
    return TQ_OK;
}
