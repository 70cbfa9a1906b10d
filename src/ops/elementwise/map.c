/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk of map.h.
 */
#include "ops/elementwise/map.h"

#include "ops/parallel.h"

#define GRAIN 64 /* elements: no two threads write one cache line */

tq_status tq_map_prepare(tq_node *node, tq_map *map, tq_error *error)
{
    map->in_bytes = tq_element_bytes(node->in[0]->type);
    map->out_bytes = tq_element_bytes(node->out[0]->type);
    node->eval = tq_map_eval;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}

typedef struct walk {
    const tq_map *map;
    const char *in;
    char *out;
} walk;

static void run_range(void *context, size_t begin, size_t end)
{
    const walk *w = context;
    w->map->run(w->in + begin * w->map->in_bytes, w->out + begin * w->map->out_bytes, end - begin, w->map->params);
}

tq_status tq_map_eval(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_map *map = node->state;
    walk w = {map, node->in[0]->data, node->out[0]->data};
    const size_t cost = map->cost > 0 ? (size_t)map->cost : TQ_USUAL_COST;
    tq_parallel_work(tq_tensor_count(node->out[0]), GRAIN, cost, node->threads, run_range, &w);
    return TQ_OK;
}
