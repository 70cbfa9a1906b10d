/* SPDX-License-Identifier: Apache-2.0
 *
 * ONE_HOT: `on` at [..., indices[...], ...], `off` elsewhere.
 * Source: LiteRT f6745779, tflite/kernels/one_hot.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/movement/movement.h"

typedef struct one_hot {
    int axis;
} one_hot;

static tq_status one_hot_shape(tq_node *node, tq_error *error)
{
    const one_hot *hot = node->state;
    const tq_shape *in = &node->in[0]->shape;
    tq_shape shape = {in->rank + 1, {0}};
    for (int d = 0; d < shape.rank; d++)
        if (d != hot->axis)
            shape.dims[d] = in->dims[d < hot->axis ? d : d - 1];
    TQ_TRY(tq_dim_of(node, tq_integer_at(node->in[1], 0), &shape.dims[hot->axis], error));
    return tq_output_shape(node, 0, &shape, error);
}

static tq_status eval_one_hot(tq_node *node, tq_error *error)
{
    (void)error;
    const one_hot *hot = node->state;
    const tq_shape *shape = &node->out[0]->shape;
    size_t bytes = tq_element_bytes(node->out[0]->type), inner = tq_shape_span(shape, hot->axis + 1, shape->rank);
    int64_t depth = shape->dims[hot->axis];
    unsigned char *to = node->out[0]->data;
    tq_move fill;
    tq_move_fill(&fill, 3, bytes, tq_shape_size(shape));
    tq_strided_copy(&fill.copy, node->in[3]->data, to, node->threads);
    const size_t count = tq_tensor_count(node->in[0]);
    TQ_EACH (i, count) {
        int64_t index = tq_integer_at(node->in[0], i);
        if (index >= 0 && index < depth)
            memcpy(to + ((i / inner * (size_t)depth + (size_t)index) * inner + i % inner) * bytes, node->in[2]->data,
                   bytes);
    }
    return TQ_OK;
}

tq_status tq_prepare_one_hot(tq_node *node, tq_error *error)
{
    one_hot *hot = NULL;
    TQ_TRY(tq_check_list(node, 0, -1, error));
    TQ_TRY(tq_check_list(node, 1, 1, error));
    TQ_TRY(tq_check_rank(node, 0, 0, TQ_DIMS - 1, error));
    TQ_TRY(tq_check_single(node, 2, error));
    TQ_TRY(tq_check_single(node, 3, error));
    TQ_TRY(tq_check_input_like(node, 3, 2, error));
    TQ_TRY(tq_check_output_like(node, 0, 2, error));
    if (tq_element_bytes(node->in[2]->type) == 0)
        return tq_input_fail(node, 2, error, "is %s, which is not filled in", tq_type_name(node->in[2]->type));
    TQ_TRY(tq_node_state(node, sizeof *hot, &hot, error));
    TQ_TRY(tq_check_axis(node, tq_get_int(&node->options.table, TQ_OneHotOptions_axis), node->in[0]->shape.rank + 1,
                         "axis", &hot->axis, error));
    node->eval = eval_one_hot;
    return tq_shape_from_values(node, 1u << 1, one_hot_shape, error);
}
