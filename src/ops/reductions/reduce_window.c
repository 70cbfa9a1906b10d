/* SPDX-License-Identifier: Apache-2.0
 *
 * REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW: each output combines init with all elements of a window, in memory order.
 *
 * The input is first dilated (elements base_dilation apart) and padded or cropped.  Dilation and padding insert init,
 * which is therefore combined once more for every cell of a window that has no element. Source: LiteRT f6745779,
 * tflite/kernels/stablehlo_reduce_window.cc.
 */
#include <string.h>

#include "base/threads.h"
#include "ops/check.h"
#include "ops/movement/combine.h"
#include "ops/movement/movement.h"

typedef struct windows {
    tq_combine_fn combine;
    size_t element;
    int64_t size[TQ_DIMS], stride[TQ_DIMS], dilation[TQ_DIMS]; /* of the window */
    int64_t low[TQ_DIMS], base[TQ_DIMS];                       /* of the input: leading padding, dilation */
    ptrdiff_t from[TQ_DIMS];                                   /* the input's strides in bytes */
} windows;

typedef struct job {
    const windows *w;
    const tq_tensor *in, *init, *out;
} job;

/* The element at `cell` of the window of output `at`, or init where there is none. */
static const char *cell_of(const job *j, const int64_t *at, const int64_t *cell)
{
    const windows *w = j->w;
    const char *found = j->in->data;
    for (int d = 0; d < j->in->shape.rank; d++) {
        int64_t index = at[d] * w->stride[d] + cell[d] * w->dilation[d] - w->low[d];
        if (index < 0 || index % w->base[d] != 0 || index / w->base[d] >= j->in->shape.dims[d])
            return j->init->data;
        found += (ptrdiff_t)(index / w->base[d]) * w->from[d];
    }
    return found;
}

/* Steps to the next index; false after the last. */
static bool advance(int64_t *at, const int64_t *dims, int rank)
{
    for (int d = rank - 1; d >= 0; d--) {
        if (++at[d] < dims[d])
            return true;
        at[d] = 0;
    }
    return false;
}

static void combine_windows(void *context, size_t begin, size_t end)
{
    const job *j = context;
    int rank = j->in->shape.rank;
    for (size_t i = begin; i < end && !tq_stop_after(1); i++) {
        int64_t at[TQ_DIMS], cell[TQ_DIMS] = {0};
        size_t rest = i;
        for (int d = rank - 1; d >= 0; d--) {
            at[d] = (int64_t)(rest % (size_t)j->out->shape.dims[d]);
            rest /= (size_t)j->out->shape.dims[d];
        }
        char *to = (char *)j->out->data + i * j->w->element;
        memcpy(to, j->init->data, j->w->element);
        size_t cells = 0;
        do
            j->w->combine(to, cell_of(j, at, cell), 1);
        while (advance(cell, j->w->size, rank) && (++cells % TQ_CHUNK || !tq_stop_after(TQ_CHUNK)));
    }
}

static tq_status eval_windows(tq_node *node, tq_error *error)
{
    (void)error;
    job j = {node->state, node->in[0], node->in[1], node->out[0]};
    tq_parallel_for(tq_tensor_count(node->out[0]), 256, node->threads, combine_windows, &j);
    return TQ_OK;
}

/* One dimension of the output, from the dilated and padded input's. */
static tq_status window_dim(const tq_node *node, const windows *w, int d, int64_t high, int32_t *out, tq_error *error)
{
    const int64_t far = INT32_MAX;
    int64_t dim = node->in[0]->shape.dims[d];
    if (w->size[d] < 1 || w->stride[d] < 1 || w->dilation[d] < 1 || w->base[d] < 1 || w->size[d] > far ||
        w->stride[d] > far || w->dilation[d] > far || w->base[d] > far || w->low[d] < -far || w->low[d] > far ||
        high < -far || high > far)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "has window %lld, stride %lld, dilations %lld and %lld, padding %lld and %lld in dimension "
                          "%d",
                          (long long)w->size[d], (long long)w->stride[d], (long long)w->dilation[d],
                          (long long)w->base[d], (long long)w->low[d], (long long)high, d);
    int64_t padded = (dim > 0 ? (dim - 1) * w->base[d] + 1 : 0) + w->low[d] + high;
    int64_t window = (w->size[d] - 1) * w->dilation[d] + 1;
    return tq_dim_of(node, padded < window ? 0 : (padded - window) / w->stride[d] + 1, out, error);
}

static tq_status windows_shape(tq_node *node, const int64_t *high, tq_error *error)
{
    windows *w = node->state;
    tq_shape shape = node->in[0]->shape;
    int64_t cells = 1;
    for (int d = 0; d < shape.rank; d++) {
        TQ_TRY(window_dim(node, w, d, high[d], &shape.dims[d], error));
        cells *= w->size[d];
        if (cells > INT32_MAX) /* padding takes no memory, and could allow any number */
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has windows of more than %d cells", INT32_MAX);
    }
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    tq_node_work(node, tq_shape_size(&shape), (uint64_t)cells);
    return TQ_OK;
}

/* Prepares what both operators share; how: their combination. */
static tq_status prepare_windows(tq_node *node, tq_combination how, tq_error *error)
{
    windows *w = NULL;
    how = how == TQ_COMBINE_MAX ? TQ_COMBINE_WINDOW_MAX : how == TQ_COMBINE_MIN ? TQ_COMBINE_WINDOW_MIN : how;
    TQ_TRY(tq_check_input_like(node, 1, 0, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS, error));
    if (tq_tensor_count(node->in[1]) != 1)
        return tq_input_fail(node, 1, error, "has %zu elements; it needs 1", tq_tensor_count(node->in[1]));
    TQ_TRY(tq_node_state(node, sizeof *w, &w, error));
    w->combine = how == TQ_COMBINE_NONE ? NULL : tq_combine_of(how, node->in[0]->type);
    if (w->combine == NULL)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "reduces %s with a body that is no single addition, multiplication, maximum, minimum, and "
                          "or or",
                          tq_type_name(node->in[0]->type));
    w->element = tq_element_bytes(node->in[0]->type);
    tq_dense_strides(&node->in[0]->shape, w->element, w->from);
    node->eval = eval_windows;
    return TQ_OK;
}

/* ---- REDUCE_WINDOW: input, init, window, strides, dilations ---- */

static tq_status reduce_window_shape(tq_node *node, tq_error *error)
{
    windows *w = node->state;
    static const int64_t high[TQ_DIMS] = {0};
    for (int d = 0; d < node->in[0]->shape.rank; d++) {
        w->size[d] = tq_integer_at(node->in[2], (size_t)d);
        w->stride[d] = tq_integer_at(node->in[3], (size_t)d);
        w->dilation[d] = tq_integer_at(node->in[4], (size_t)d);
        w->base[d] = 1;
    }
    return windows_shape(node, high, error);
}

tq_status tq_prepare_reduce_window(tq_node *node, tq_error *error)
{
    tq_combination how = TQ_COMBINE_NONE;
    switch (tq_get_int(&node->options.table, TQ_ReduceWindowOptions_reduce_function)) {
    case TQ_ReduceWindowFunction_ADD: how = TQ_COMBINE_ADD; break;
    case TQ_ReduceWindowFunction_MUL: how = TQ_COMBINE_MULTIPLY; break;
    case TQ_ReduceWindowFunction_MINIMUM: how = TQ_COMBINE_MIN; break;
    case TQ_ReduceWindowFunction_MAXIMUM: how = TQ_COMBINE_MAX; break;
    case TQ_ReduceWindowFunction_ALL: how = TQ_COMBINE_ALL; break;
    case TQ_ReduceWindowFunction_ANY: how = TQ_COMBINE_ANY; break;
    }
    for (int i = 2; i < 5; i++)
        TQ_TRY(tq_check_list(node, i, node->in[0]->shape.rank, error));
    TQ_TRY(prepare_windows(node, how, error));
    return tq_shape_from_values(node, 1u << 2 | 1u << 3 | 1u << 4, reduce_window_shape, error);
}

/* ---- STABLEHLO_REDUCE_WINDOW: input, init ---- */

/* A list of the options, one number for each dimension; `missing` for each where the list is absent. */
static tq_status read_list(const tq_node *node, tq_field_id field, int64_t missing, int64_t *out, tq_error *error)
{
    tq_vector list = tq_get_vector(&node->options.table, field);
    uint32_t rank = (uint32_t)node->in[0]->shape.rank;
    if (list.count != 0 && list.count != rank)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has an option of %u elements for %u dimensions",
                          (unsigned)list.count, (unsigned)rank);
    for (uint32_t d = 0; d < rank; d++)
        out[d] = list.count ? tq_vector_i64(&list, d) : missing;
    return TQ_OK;
}

static tq_status read_padding(const tq_node *node, int64_t *low, int64_t *high, tq_error *error)
{
    tq_vector list = tq_get_vector(&node->options.table, TQ_StablehloReduceWindowOptions_padding);
    uint32_t rank = (uint32_t)node->in[0]->shape.rank;
    if (list.count != 0 && list.count != 2 * rank)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has padding of %u elements for %u dimensions",
                          (unsigned)list.count, (unsigned)rank);
    for (uint32_t d = 0; d < rank; d++) {
        low[d] = list.count ? tq_vector_i64(&list, 2 * d) : 0;
        high[d] = list.count ? tq_vector_i64(&list, 2 * d + 1) : 0;
    }
    return TQ_OK;
}

tq_status tq_prepare_stablehlo_reduce_window(tq_node *node, tq_error *error)
{
    int64_t high[TQ_DIMS], code = 0;
    int64_t body = tq_get_int(&node->options.table, TQ_StablehloReduceWindowOptions_body_subgraph_index);
    int count = tq_node_body(node, body, &code);
    TQ_TRY(prepare_windows(node, count == 1 ? tq_combination_of_operator(code) : TQ_COMBINE_NONE, error));
    windows *w = node->state;
    TQ_TRY(read_list(node, TQ_StablehloReduceWindowOptions_window_dimensions, 1, w->size, error));
    TQ_TRY(read_list(node, TQ_StablehloReduceWindowOptions_window_strides, 1, w->stride, error));
    TQ_TRY(read_list(node, TQ_StablehloReduceWindowOptions_window_dilations, 1, w->dilation, error));
    TQ_TRY(read_list(node, TQ_StablehloReduceWindowOptions_base_dilations, 1, w->base, error));
    TQ_TRY(read_padding(node, w->low, high, error));
    return windows_shape(node, high, error);
}
