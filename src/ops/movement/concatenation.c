/* SPDX-License-Identifier: Apache-2.0
 *
 * CONCATENATION joins tensors along a dimension that all have.
 *
 * UINT8 inputs may have other scales than the output.  Their quantized values q become
 *     clamp(int(away(f32(q * k) + b)) + z_o),   k = f32(s_i * f32(1 / s_o)), b = f32(-z_i * k)
 * Source: LiteRT f6745779, tflite/kernels/concatenation.cc and internal/reference/concatenation.h.
 */
#include "base/sizes.h"
#include "kernels/arrays/lookup.h"
#include "ops/check.h"
#include "ops/movement/axis_part.h"
#include "ops/parallel.h"
#include "quant/rounding.h"

/* Stored behind the moves, one for each input: the table for a UINT8 input whose scale or zero point is not the
 * output's. */
typedef struct rescaled {
    tq_axis_part part;
    bool used;
    uint8_t values[256]; /* the output for each quantized input */
} rescaled;

/* The moves come first: tq_eval_moves takes the node's state as a tq_moves. */
static rescaled *rescaled_of(tq_moves *moves)
{
    return (rescaled *)(void *)&moves->items[moves->count];
}

static void fill_rescaled(const tq_tensor *in, const tq_tensor *out, uint8_t *values)
{
    float inverse = 1.0f / tq_scale_of(out);
    float scale = tq_scale_of(in) * inverse;
    float bias = (float)-(int64_t)tq_zero_point_of(in) * scale;
    for (int q = 0; q < 256; q++)
        values[q] = (uint8_t)tq_value_of_rounded(tq_round_f32((float)q * scale + bias), tq_zero_point_of(out), 0, 255);
}

typedef struct rescaling {
    const rescaled *by;
    const uint8_t *from;
    uint8_t *to;
} rescaling;

/* Elements of the input; those of a row lie together in the output. */
static void rescale(void *context, size_t begin, size_t end)
{
    const rescaling *x = context;
    const tq_axis_part *part = &x->by->part;
    size_t n = 0;
    for (size_t i = begin; i < end && !tq_stop_after(n); i += n) {
        const size_t row = i / part->span, at = i % part->span;
        n = tq_min_size(part->span - at, end - i);
        tq_lookup_bytes(x->by->values, x->from + i, x->to + row * part->whole + part->at + at, n);
    }
}

static tq_status eval_rescaled(tq_node *node, tq_error *error)
{
    enum { GRAIN = 4096, COST = 40 };
    (void)error;
    tq_moves *moves = node->state;
    const rescaled *all = rescaled_of(moves);
    for (int i = 0; i < moves->count; i++) {
        rescaling x = {&all[i], node->in[i]->data, node->out[0]->data};
        if (all[i].used)
            tq_parallel_work(all[i].part.outer * all[i].part.span, GRAIN, COST, node->threads, rescale, &x);
        else
            tq_strided_copy(&moves->items[i].copy, x.from, x.to, node->threads);
    }
    return TQ_OK;
}

/* Checks the type, scale and zero point of one input against the output's; *other: the input is rescaled. */
static tq_status check_joined(const tq_node *node, int i, bool *other, tq_error *error)
{
    const tq_tensor *in = node->in[i], *out = node->out[0];
    TQ_TRY(tq_check_input_like(node, i, 0, error));
    *other = false;
    if (in->type == TQ_TensorType_INT8)
        return tq_check_same_scale(node, i, 0, error);
    if (in->type == TQ_TensorType_INT16 && (tq_zero_point_of(in) != 0 || tq_zero_point_of(out) != 0))
        return tq_input_fail(node, i, error, "or the output has a zero point, which INT16 may not have here");
    if (in->type == TQ_TensorType_UINT8 &&
        (tq_scale_of(in) != tq_scale_of(out) || tq_zero_point_of(in) != tq_zero_point_of(out))) {
        TQ_TRY(tq_check_input_scale(node, i, error));
        TQ_TRY(tq_check_output_scale(node, 0, error));
        TQ_TRY(tq_check_output_divisor(node, error));
        *other = true;
    }
    return TQ_OK;
}

/* The output's shape: that of input 0, but with the sum of all inputs' dimension `axis`. */
static tq_status joined_shape(const tq_node *node, int axis, tq_shape *out, tq_error *error)
{
    const tq_tensor *first = node->in[0];
    int64_t sum = 0;
    tq_shape shape = first->shape;
    for (int i = 0; i < node->in_count; i++) {
        TQ_TRY(tq_check_rank(node, i, shape.rank, shape.rank, error));
        for (int d = 0; d < shape.rank; d++)
            if (d != axis && node->in[i]->shape.dims[d] != shape.dims[d])
                return tq_input_fail(node, i, error, "has %d elements in dimension %d, where input 0 has %d",
                                     (int)node->in[i]->shape.dims[d], d, (int)shape.dims[d]);
        sum += shape.rank == 0 ? 1 : node->in[i]->shape.dims[axis];
    }
    shape.rank = shape.rank == 0 ? 1 : shape.rank; /* scalars join to a vector */
    TQ_TRY(tq_dim_of(node, sum, &shape.dims[axis], error));
    *out = shape;
    return TQ_OK;
}

tq_status tq_prepare_concatenation(tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    int axis = 0, rank = node->in[0]->shape.rank;
    TQ_TRY(
        tq_check_axis(node, tq_get_int(options, TQ_ConcatenationOptions_axis), rank ? rank : 1, "axis", &axis, error));
    if (tq_get_int(options, TQ_ConcatenationOptions_fused_activation_function) != 0)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has a fused activation, which it does not take");
    tq_shape shape;
    TQ_TRY(joined_shape(node, axis, &shape, error));
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    size_t each = sizeof(tq_move) + sizeof(rescaled), bytes = tq_element_bytes(node->in[0]->type);
    tq_moves *moves = NULL;
    if (bytes == 0)
        return tq_input_fail(node, 0, error, "is %s, which is not joined", tq_type_name(node->in[0]->type));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_node_state(node, sizeof(tq_moves) + (size_t)node->in_count * each, &moves, error));
    moves->count = node->in_count;
    node->eval = tq_eval_moves;
    int64_t at = 0;
    for (int i = 0; i < node->in_count; i++) {
        rescaled *own = &rescaled_of(moves)[i];
        TQ_TRY(check_joined(node, i, &own->used, error));
        int64_t count = rank == 0 ? 1 : node->in[i]->shape.dims[axis];
        own->part = tq_axis_part_of(&shape, axis, bytes, at, count);
        tq_move_into_part(&moves->items[i], own->part, bytes);
        moves->items[i].input = i;
        at += count;
        if (own->used) {
            fill_rescaled(node->in[i], node->out[0], own->values);
            node->eval = eval_rescaled;
        }
    }
    return TQ_OK;
}
