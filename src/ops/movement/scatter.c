/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements written at indices.
 *
 *     SCATTER_ND         slices added up in a tensor of zeros
 *     SPARSE_TO_DENSE    values, or one value, in a tensor of another value
 *     STABLEHLO_SCATTER  windows combined with a tensor's elements; an element outside of the tensor is dropped
 *
 * Updates of one element are combined in the order of the updates.
 * Source: LiteRT f6745779, tflite/kernels/{scatter_nd,sparse_to_dense,stablehlo_scatter}.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/movement/combine.h"
#include "ops/movement/movement.h"

/* The shape whose dimensions a tensor of integers lists. */
static tq_status named_shape(const tq_node *node, int input, tq_shape *out, tq_error *error)
{
    tq_shape shape = {(int32_t)tq_tensor_count(node->in[input]), {0}};
    for (int d = 0; d < shape.rank; d++)
        TQ_TRY(tq_dim_of(node, tq_integer_at(node->in[input], (size_t)d), &shape.dims[d], error));
    *out = shape;
    return TQ_OK;
}

static tq_status check_shape_list(const tq_node *node, int input, tq_error *error)
{
    TQ_TRY(tq_check_list(node, input, -1, error));
    if (tq_tensor_count(node->in[input]) > TQ_DIMS)
        return tq_input_fail(node, input, error, "has %zu elements; at most %d", tq_tensor_count(node->in[input]),
                             TQ_DIMS);
    return TQ_OK;
}

/* *out: the output's element at the `depth` coordinates that input `input` holds from element `at` on. */
static tq_status position(const tq_node *node, int input, size_t at, int depth, size_t *out, tq_error *error)
{
    const tq_shape *shape = &node->out[0]->shape;
    size_t found = 0;
    for (int k = 0; k < depth; k++) {
        int64_t index = tq_integer_at(node->in[input], at + (size_t)k);
        if (index < 0 || index >= shape->dims[k])
            return tq_input_fail(node, input, error, "has index %lld for dimension %d; it needs 0 to %d",
                                 (long long)index, k, (int)shape->dims[k] - 1);
        found = found * (size_t)shape->dims[k] + (size_t)index;
    }
    *out = found * tq_shape_span(shape, depth, shape->rank);
    return TQ_OK;
}

/* ---- SCATTER_ND: indices, updates, shape ---- */

typedef struct scatter {
    tq_combine_fn combine;
} scatter;

static tq_status scatter_nd_shape(tq_node *node, tq_error *error)
{
    const tq_shape *indices = &node->in[0]->shape, *updates = &node->in[1]->shape;
    int outer = indices->rank - 1, depth = indices->dims[outer];
    tq_shape shape;
    TQ_TRY(named_shape(node, 2, &shape, error));
    bool fits = depth <= shape.rank && updates->rank == outer + shape.rank - depth;
    for (int d = 0; fits && d < updates->rank; d++)
        fits = updates->dims[d] == (d < outer ? indices->dims[d] : shape.dims[depth + d - outer]);
    if (!fits)
        return tq_input_fail(node, 1, error, "has a shape that is not the positions' followed by a slice's");
    return tq_output_shape(node, 0, &shape, error);
}

static tq_status eval_scatter_nd(tq_node *node, tq_error *error)
{
    size_t work = 0;
    const scatter *s = node->state;
    const tq_tensor *indices = node->in[0], *out = node->out[0];
    int depth = indices->shape.dims[indices->shape.rank - 1];
    size_t bytes = tq_element_bytes(out->type), span = tq_shape_span(&out->shape, depth, out->shape.rank);
    size_t count = tq_shape_span(&indices->shape, 0, indices->shape.rank - 1);
    if (tq_tensor_count(out))
        tq_fill(out->data, 0, tq_tensor_count(out) * bytes);
    for (size_t i = 0; i < count && tq_tensor_count(node->in[1]) > 0 && !tq_stop_count(&work, 16 + span); i++) {
        size_t at = 0;
        TQ_TRY(position(node, 0, i * (size_t)depth, depth, &at, error));
        s->combine((char *)out->data + at * bytes, (const char *)node->in[1]->data + i * span * bytes, span);
    }
    return TQ_OK;
}

tq_status tq_prepare_scatter_nd(tq_node *node, tq_error *error)
{
    scatter *s = NULL;
    TQ_TRY(tq_check_list(node, 0, -1, error));
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS, error));
    TQ_TRY(check_shape_list(node, 2, error));
    TQ_TRY(tq_check_output_like(node, 0, 1, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->combine = tq_combine_of(TQ_COMBINE_ADD, node->in[1]->type);
    if (s->combine == NULL)
        return tq_input_fail(node, 1, error, "is %s, which is not added up", tq_type_name(node->in[1]->type));
    node->eval = eval_scatter_nd;
    return tq_shape_from_values(node, 1u << 2, scatter_nd_shape, error);
}

/* ---- SPARSE_TO_DENSE: indices, shape, values, default ---- */

static tq_status sparse_to_dense_shape(tq_node *node, tq_error *error)
{
    tq_shape shape;
    TQ_TRY(named_shape(node, 1, &shape, error));
    return tq_output_shape(node, 0, &shape, error);
}

static tq_status eval_sparse_to_dense(tq_node *node, tq_error *error)
{
    const tq_tensor *values = node->in[2], *out = node->out[0];
    size_t bytes = tq_element_bytes(out->type), depth = (size_t)out->shape.rank;
    size_t count = depth ? tq_tensor_count(node->in[0]) / depth : 0;
    bool one = tq_tensor_count(values) == 1 && values->shape.rank == 0;
    tq_move fill;
    tq_move_fill(&fill, 3, bytes, tq_tensor_count(out));
    tq_strided_copy(&fill.copy, node->in[3]->data, out->data, node->threads);
    TQ_EACH (i, count) {
        size_t at = 0;
        TQ_TRY(position(node, 0, i * depth, (int)depth, &at, error));
        memcpy((char *)out->data + at * bytes, (const char *)values->data + (one ? 0 : i * bytes), bytes);
    }
    return TQ_OK;
}

tq_status tq_prepare_sparse_to_dense(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_list(node, 0, -1, error));
    TQ_TRY(tq_check_rank(node, 0, 0, 2, error));
    TQ_TRY(check_shape_list(node, 1, error));
    TQ_TRY(tq_check_rank(node, 2, 0, 1, error));
    TQ_TRY(tq_check_input_like(node, 3, 2, error));
    TQ_TRY(tq_check_output_like(node, 0, 2, error));
    const tq_shape *indices = &node->in[0]->shape;
    size_t depth = tq_tensor_count(node->in[1]), count = tq_tensor_count(node->in[0]);
    size_t coordinates = indices->rank == 2 ? (size_t)indices->dims[1] : 1;
    if (coordinates != depth)
        return tq_input_fail(node, 0, error, "has positions of %zu coordinates; the shape has %zu", coordinates, depth);
    if (node->in[2]->shape.rank == 1 && tq_tensor_count(node->in[2]) * coordinates != count)
        return tq_input_fail(node, 2, error, "has %zu elements for %zu positions", tq_tensor_count(node->in[2]),
                             coordinates ? count / coordinates : 0);
    if (tq_tensor_count(node->in[3]) != 1 || tq_element_bytes(node->in[2]->type) == 0)
        return tq_input_fail(node, 3, error, "is no single %s value", tq_type_name(node->in[2]->type));
    node->eval = eval_sparse_to_dense;
    return tq_shape_from_values(node, 1u << 1, sparse_to_dense_shape, error);
}

/* ---- STABLEHLO_SCATTER: input, indices, updates ---- */

/* Each dimension of the updates runs over the positions, and steps through the indices, or over the window, and steps
   through one dimension of the input. */
typedef struct windows {
    tq_combine_fn combine;
    size_t index_step[TQ_DIMS]; /* of each dimension of the updates, in elements; 0: a window's dimension */
    int window_dim[TQ_DIMS];    /* the input's dimension; -1: a dimension of the positions */
    int coordinates;
    size_t vector_step;
    int operand_dim[TQ_DIMS]; /* the input's dimension of coordinate k */
} windows;

/* *out: the input's element for the update at `at`, whose position begins at element `index` of the indices; false
   where it lies outside of the input. */
static bool find_element(const tq_node *node, const windows *w, const size_t *at, size_t index, size_t *out)
{
    const tq_shape *in = &node->in[0]->shape;
    int64_t coords[TQ_DIMS] = {0};
    for (int d = 0; d < node->in[2]->shape.rank; d++)
        if (w->window_dim[d] >= 0)
            coords[w->window_dim[d]] = (int64_t)at[d];
    for (int k = 0; k < w->coordinates; k++) {
        int64_t start = tq_integer_at(node->in[1], index + (size_t)k * w->vector_step);
        if (start < -(int64_t)INT32_MAX || start > INT32_MAX)
            return false;
        coords[w->operand_dim[k]] += start;
    }
    size_t found = 0;
    for (int d = 0; d < in->rank; d++) {
        if (coords[d] < 0 || coords[d] >= in->dims[d])
            return false;
        found = found * (size_t)in->dims[d] + (size_t)coords[d];
    }
    *out = found;
    return true;
}

static tq_status eval_stablehlo_scatter(tq_node *node, tq_error *error)
{
    (void)error;
    const windows *w = node->state;
    const tq_tensor *updates = node->in[2], *out = node->out[0];
    size_t bytes = tq_element_bytes(out->type), at[TQ_DIMS] = {0}, index = 0;
    if (out->data != node->in[0]->data && tq_tensor_count(out))
        tq_copy(out->data, node->in[0]->data, tq_tensor_count(out) * bytes);
    const size_t count = tq_tensor_count(updates);
    TQ_EACH (i, count) {
        size_t found = 0;
        if (find_element(node, w, at, index, &found))
            w->combine((char *)out->data + found * bytes, (const char *)updates->data + i * bytes, 1);
        for (int d = updates->shape.rank - 1; d >= 0; d--) {
            index += w->index_step[d];
            if (++at[d] < (size_t)updates->shape.dims[d])
                break;
            index -= at[d] * w->index_step[d];
            at[d] = 0;
        }
    }
    return TQ_OK;
}

/* Sets what each dimension of the updates runs over: update_window_dims over the input's dimensions but the inserted
   ones, the others over the indices' dimensions but index_vector_dim, both in order. */
static tq_status map_updates(const tq_node *node, windows *w, int64_t vector_dim, tq_error *error)
{
    const tq_table *options = &node->options.table;
    tq_vector window = tq_get_vector(options, TQ_StablehloScatterOptions_update_window_dims);
    tq_vector inserted = tq_get_vector(options, TQ_StablehloScatterOptions_inserted_window_dims);
    const tq_shape *in = &node->in[0]->shape, *indices = &node->in[1]->shape, *updates = &node->in[2]->shape;
    ptrdiff_t steps[TQ_DIMS];
    int next = 0, operand = 0;
    tq_dense_strides(indices, 1, steps);
    for (int d = 0; d < updates->rank; d++) {
        w->window_dim[d] = -1;
        if (tq_vector_has_i64(&window, d)) {
            while (operand < in->rank && tq_vector_has_i64(&inserted, operand))
                operand++;
            if (operand == in->rank)
                return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has more window dimensions than its input");
            w->window_dim[d] = operand++;
            continue;
        }
        next += next == vector_dim;
        if (next >= indices->rank || updates->dims[d] != indices->dims[next])
            return tq_input_fail(node, 2, error, "has %d elements in dimension %d, which the indices do not have",
                                 (int)updates->dims[d], d);
        w->index_step[d] = (size_t)steps[next++];
    }
    next += next == vector_dim;
    while (operand < in->rank && tq_vector_has_i64(&inserted, operand))
        operand++;
    if (next < indices->rank || operand < in->rank)
        return tq_input_fail(node, 2, error, "has %d dimensions, too few for its indices and windows",
                             (int)updates->rank);
    w->vector_step = vector_dim < indices->rank ? (size_t)steps[vector_dim] : 0;
    return TQ_OK;
}

static tq_status map_coordinates(const tq_node *node, windows *w, int64_t vector_dim, tq_error *error)
{
    tq_vector map = tq_get_vector(&node->options.table, TQ_StablehloScatterOptions_scatter_dims_to_operand_dims);
    const tq_shape *in = &node->in[0]->shape, *indices = &node->in[1]->shape;
    int64_t length = vector_dim < indices->rank ? indices->dims[vector_dim] : 1;
    if (map.count != (uint64_t)length || map.count > (uint32_t)in->rank)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "maps %u coordinates; the indices have %lld",
                          (unsigned)map.count, (long long)length);
    w->coordinates = (int)length;
    for (int k = 0; k < w->coordinates; k++) {
        int64_t d = tq_vector_i64(&map, (size_t)k);
        if (d < 0 || d >= in->rank)
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %lld in scatter_dims_to_operand_dims", (long long)d);
        w->operand_dim[k] = (int)d;
    }
    return TQ_OK;
}

/* Reads the combination from the operator's body; an empty body replaces. */
static tq_status find_body(tq_node *node, windows *w, tq_error *error)
{
    int64_t subgraph = tq_get_int(&node->options.table, TQ_StablehloScatterOptions_update_computation_subgraph_index);
    int64_t code = 0;
    int count = tq_node_body(node, subgraph, &code);
    tq_combination how = count == 0   ? TQ_COMBINE_REPLACE
                         : count == 1 ? tq_combination_of_operator(code)
                                      : TQ_COMBINE_NONE;
    w->combine = tq_combine_of(how, node->in[0]->type);
    if (w->combine == NULL)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "has subgraph %lld as its body, which has %d operators; on %s it needs none or one of "
                          "addition, multiplication, maximum, minimum",
                          (long long)subgraph, count, tq_type_name(node->in[0]->type));
    return TQ_OK;
}

tq_status tq_prepare_stablehlo_scatter(tq_node *node, tq_error *error)
{
    windows *w = NULL;
    TQ_TRY(tq_check_list(node, 1, -1, error));
    TQ_TRY(tq_check_input_like(node, 2, 0, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_node_state(node, sizeof *w, &w, error));
    int64_t vector_dim = tq_get_int(&node->options.table, TQ_StablehloScatterOptions_index_vector_dim);
    if (vector_dim < 0 || vector_dim > node->in[1]->shape.rank)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has index_vector_dim %lld", (long long)vector_dim);
    TQ_TRY(map_updates(node, w, vector_dim, error));
    TQ_TRY(map_coordinates(node, w, vector_dim, error));
    TQ_TRY(find_body(node, w, error));
    node->eval = eval_stablehlo_scatter;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}
