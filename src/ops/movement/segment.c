/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices combined by segment.
 *
 *     SEGMENT_SUM                        ids rise from 0 by 0 or 1, one for each index of dimension 0
 *     UNSORTED_SEGMENT_SUM, PROD, MAX, MIN   any ids below num_segments, one for each index of the leading
 *                                        dimensions; negative ones drop the slice
 *
 * Empty segments hold the start of the combination: 0, 1, the least, the greatest finite value.
 * Source: LiteRT f6745779, tflite/kernels/{segment_sum,unsorted_segment}.cc.
 */
#include <float.h>
#include <string.h>

#include "ops/check.h"
#include "ops/movement/combine.h"
#include "ops/movement/movement.h"

typedef struct segments {
    tq_combine_fn combine;
    unsigned char start[4];
} segments;

static tq_status eval_segments(tq_node *node, tq_error *error)
{
    size_t work = 0;
    const segments *s = node->state;
    const tq_tensor *out = node->out[0];
    size_t span = tq_shape_span(&out->shape, 1, out->shape.rank), count = tq_tensor_count(node->in[1]);
    tq_move fill;
    tq_move_fill(&fill, TQ_MOVE_FILL, 4, tq_tensor_count(out));
    tq_strided_copy(&fill.copy, s->start, out->data, node->threads);
    for (size_t i = 0; i < count && !tq_stop_count(&work, 2 + span); i++) {
        int64_t id = tq_integer_at(node->in[1], i);
        if (id < 0)
            continue;
        if (id >= out->shape.dims[0])
            return tq_input_fail(node, 1, error, "has segment %lld at %zu; there are %d", (long long)id, i,
                                 (int)out->shape.dims[0]);
        if (span)
            s->combine((char *)out->data + (size_t)id * span * 4, (const char *)node->in[0]->data + i * span * 4, span);
    }
    return TQ_OK;
}

static tq_status prepare_segments(tq_node *node, tq_combination how, double start, tq_error *error)
{
    segments *s = NULL;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT32), error));
    TQ_TRY(tq_check_list(node, 1, -1, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    float real = (float)start;
    int32_t integer = (int32_t)(start < INT32_MIN ? INT32_MIN : start > INT32_MAX ? INT32_MAX : start);
    memcpy(s->start, node->in[0]->type == TQ_TensorType_FLOAT32 ? (void *)&real : (void *)&integer, 4);
    s->combine = tq_combine_of(how, node->in[0]->type);
    node->eval = eval_segments;
    return TQ_OK;
}

/* ---- SEGMENT_SUM ---- */

static tq_status segment_sum_shape(tq_node *node, tq_error *error)
{
    tq_shape shape = node->in[0]->shape;
    int64_t last = -1;
    const size_t count = tq_tensor_count(node->in[1]);
    TQ_EACH (i, count) {
        int64_t id = tq_integer_at(node->in[1], i);
        if (id < 0 || id < last || id > last + 1)
            return tq_input_fail(node, 1, error, "has segment %lld at %zu; it needs %lld or %lld", (long long)id, i,
                                 (long long)(last < 0 ? 0 : last), (long long)last + 1);
        last = id;
    }
    shape.dims[0] = (int32_t)(last + 1);
    return tq_output_shape(node, 0, &shape, error);
}

tq_status tq_prepare_segment_sum(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS, error));
    TQ_TRY(tq_check_rank(node, 1, 1, 1, error));
    TQ_TRY(tq_check_list(node, 1, node->in[0]->shape.dims[0], error));
    TQ_TRY(prepare_segments(node, TQ_COMBINE_ADD, 0, error));
    return tq_shape_from_values(node, 1u << 1, segment_sum_shape, error);
}

/* ---- UNSORTED_SEGMENT_x ---- */

static tq_status unsorted_shape(tq_node *node, tq_error *error)
{
    const tq_shape *data = &node->in[0]->shape, *ids = &node->in[1]->shape;
    tq_shape shape = {data->rank - ids->rank + 1, {0}};
    TQ_TRY(tq_dim_of(node, tq_integer_at(node->in[2], 0), &shape.dims[0], error));
    for (int d = ids->rank; d < data->rank; d++)
        shape.dims[d - ids->rank + 1] = data->dims[d];
    return tq_output_shape(node, 0, &shape, error);
}

tq_status tq_prepare_unsorted_segment(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_list(node, 2, 1, error));
    const tq_shape *data = &node->in[0]->shape, *ids = &node->in[1]->shape;
    TQ_TRY(tq_check_rank(node, 1, 0, data->rank, error));
    if (data->rank - ids->rank + 1 > TQ_DIMS)
        return tq_input_fail(node, 0, error, "has too many dimensions");
    for (int d = 0; d < ids->rank; d++)
        if (ids->dims[d] != data->dims[d])
            return tq_input_fail(node, 1, error, "has %d elements in dimension %d, where input 0 has %d",
                                 (int)ids->dims[d], d, (int)data->dims[d]);
    switch (node->row.code) {
    case TQ_BuiltinOperator_UNSORTED_SEGMENT_PROD: TQ_TRY(prepare_segments(node, TQ_COMBINE_MULTIPLY, 1, error)); break;
    case TQ_BuiltinOperator_UNSORTED_SEGMENT_MAX:
        TQ_TRY(prepare_segments(node, TQ_COMBINE_MAX, -(double)FLT_MAX, error));
        break;
    case TQ_BuiltinOperator_UNSORTED_SEGMENT_MIN:
        TQ_TRY(prepare_segments(node, TQ_COMBINE_MIN, (double)FLT_MAX, error));
        break;
    default: TQ_TRY(prepare_segments(node, TQ_COMBINE_ADD, 0, error)); break;
    }
    return tq_shape_from_values(node, 1u << 2, unsorted_shape, error);
}
