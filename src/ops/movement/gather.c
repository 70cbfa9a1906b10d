/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices copied by indices.
 *
 *     GATHER            along one dimension; with batch_dims, each batch by its own indices
 *     GATHER_ND         at positions, each of them a row of the indices' last dimension
 *     STABLEHLO_GATHER  boxes that begin at positions; a box that reaches outside is moved inside
 *
 * An index outside of its dimension is an error, also where the reference would read a neighbour.
 * Source: LiteRT f6745779, tflite/kernels/{gather,gather_nd,stablehlo_gather}.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/movement/movement.h"

#define INDEX_TYPES (TQ_T(INT16) | TQ_T(INT32) | TQ_T(INT64))

/* GATHER and GATHER_ND copy runs of `span` elements: run r of the output begins at element source(g, r) of the input.
   Eval has checked the indices before. */
typedef struct gather gather;
struct gather {
    const tq_tensor *indices;
    size_t (*source)(const gather *g, size_t run);
    size_t runs, span;
    size_t outer, dim, coordinates; /* GATHER: [batch, outer, dim, span], [batch, coordinates] */
    size_t depth,
        stride[TQ_DIMS];  /* GATHER_ND: coordinates of a position, and the input's stride of each in elements */
    tq_shape shape;
};

static size_t string_from(const void *context, size_t i)
{
    const gather *g = context;
    return g->source(g, i / g->span) + i % g->span;
}

static tq_status copy_runs(tq_node *node, const gather *g, tq_error *error)
{
    size_t work = 0;
    const tq_tensor *in = node->in[0];
    if (in->type == TQ_TensorType_STRING)
        return tq_output_strings(node, 0, &g->shape, in, string_from, g, error);
    size_t bytes = tq_element_bytes(in->type), run = g->span * bytes;
    const unsigned char *from = in->data;
    unsigned char *to = node->out[0]->data;
    for (size_t r = 0; r < g->runs && run > 0 && !tq_stop_count(&work, 1 + run / 64); r++, to += run)
        tq_copy(to, from + g->source(g, r) * bytes, run);
    return TQ_OK;
}

static tq_status gather_shape(tq_node *node, const tq_shape *shape, tq_error *error)
{
    gather *g = node->state;
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    g->indices = node->in[1];
    g->shape = *shape;
    if (node->in[0]->type != TQ_TensorType_STRING)
        return tq_output_shape(node, 0, shape, error);
    tq_output_later(node, 0);
    return TQ_OK;
}

static tq_status check_index(const tq_node *node, size_t at, int64_t dim, tq_error *error)
{
    int64_t index = tq_integer_at(node->in[1], at);
    if (index < 0 || index >= dim)
        return tq_input_fail(node, 1, error, "has index %lld at %zu; it needs 0 to %lld", (long long)index, at,
                             (long long)dim - 1);
    return TQ_OK;
}

/* ---- GATHER ---- */

static size_t gather_source(const gather *g, size_t run)
{
    size_t coordinate = run % g->coordinates, rest = run / g->coordinates;
    size_t batch = rest / g->outer;
    size_t index = (size_t)tq_integer_at(g->indices, batch * g->coordinates + coordinate);
    return (rest * g->dim + index) * g->span;
}

/* An index that was checked. */
static inline size_t index_at(const tq_tensor *indices, size_t at)
{
    return indices->type == TQ_TensorType_INT32 ? (size_t)((const int32_t *)indices->data)[at]
                                                : (size_t)tq_integer_at(indices, at);
}

/* `bytes`: of a run.  Short runs of whole cache lines, as rows of embeddings are, are copied without a call. */
static void gather_runs(const gather *g, const unsigned char *from, unsigned char *to, size_t bytes)
{
    enum { LINE = 64, SHORT = 4 * LINE };
    const bool lines = bytes % LINE == 0 && bytes <= SHORT;
    size_t work = 0;
    for (size_t rest = 0; rest < g->runs / g->coordinates; rest++, from += g->dim * bytes) {
        const size_t first = rest / g->outer * g->coordinates;
        for (size_t c = 0; c < g->coordinates && !tq_stop_count(&work, 1 + bytes / LINE); c++, to += bytes) {
            const unsigned char *run = from + index_at(g->indices, first + c) * bytes;
            if (!lines)
                tq_copy(to, run, bytes);
            else
                for (size_t at = 0; at < bytes; at += LINE)
                    memcpy(to + at, run + at, LINE);
        }
    }
}

/* Whether all indices are in [0, dim); false where the loop ends early. */
static bool are_within(const tq_tensor *indices, size_t count, size_t dim)
{
    bool outside = false;
    if (indices->type != TQ_TensorType_INT32)
        return false;
    TQ_EACH (i, count)
        outside |= (uint32_t)((const int32_t *)indices->data)[i] >= dim;
    return !outside && !tq_stop_now();
}

static tq_status check_indices(const tq_node *node, const gather *g, tq_error *error)
{
    const size_t count = tq_tensor_count(node->in[1]);
    if (are_within(node->in[1], count, g->dim))
        return TQ_OK;
    TQ_EACH (i, count)
        TQ_TRY(check_index(node, i, (int64_t)g->dim, error));
    return tq_stop_now() ? TQ_INTERRUPTED : TQ_OK; /* some indices are not checked */
}

static tq_status eval_gather(tq_node *node, tq_error *error)
{
    const gather *g = node->state;
    TQ_TRY(check_indices(node, g, error));
    if (node->in[0]->type == TQ_TensorType_STRING)
        return copy_runs(node, g, error);
    const size_t bytes = g->span * tq_element_bytes(node->in[0]->type);
    if (g->runs > 0 && bytes > 0)
        gather_runs(g, node->in[0]->data, node->out[0]->data, bytes);
    return TQ_OK;
}

static tq_status gather_axes(const tq_node *node, int *axis, int *batch_dims, tq_error *error)
{
    const tq_table *options = &node->options.table;
    const tq_shape *in = &node->in[0]->shape, *positions = &node->in[1]->shape;
    TQ_TRY(tq_check_axis(node, tq_get_int(options, TQ_GatherOptions_axis), in->rank, "axis", axis, error));
    int64_t batch = tq_get_int(options, TQ_GatherOptions_batch_dims);
    batch = batch < 0 ? batch + positions->rank : batch;
    if (batch < 0 || batch > *axis || batch > positions->rank)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "batch_dims is %lld; it needs 0 to %d", (long long)batch,
                          *axis < positions->rank ? *axis : (int)positions->rank);
    for (int d = 0; d < batch; d++)
        if (in->dims[d] != positions->dims[d])
            return tq_input_fail(node, 1, error, "has %d elements in dimension %d, where input 0 has %d",
                                 (int)positions->dims[d], d, (int)in->dims[d]);
    *batch_dims = (int)batch;
    return TQ_OK;
}

static tq_status put_dims(const tq_node *node, tq_shape *out, const tq_shape *from, int begin, int end, tq_error *error)
{
    for (int d = begin; d < end; d++) {
        if (out->rank == TQ_DIMS)
            return tq_output_fail(node, 0, error, "would have more than %d dimensions", TQ_DIMS);
        out->dims[out->rank++] = from->dims[d];
    }
    return TQ_OK;
}

tq_status tq_prepare_gather(tq_node *node, tq_error *error)
{
    gather *g = NULL;
    int axis = 0, batch = 0;
    tq_shape shape = {0, {0}};
    TQ_TRY(tq_check_input(node, 1, INDEX_TYPES, error));
    const tq_shape *in = &node->in[0]->shape, *positions = &node->in[1]->shape;
    TQ_TRY(gather_axes(node, &axis, &batch, error));
    TQ_TRY(put_dims(node, &shape, in, 0, axis, error));
    TQ_TRY(put_dims(node, &shape, positions, batch, positions->rank, error));
    TQ_TRY(put_dims(node, &shape, in, axis + 1, in->rank, error));
    if (tq_move_bytes(node->in[0]) == 0)
        return tq_input_fail(node, 0, error, "is %s, which is not gathered", tq_type_name(node->in[0]->type));
    TQ_TRY(tq_node_state(node, sizeof *g, &g, error));
    TQ_TRY(gather_shape(node, &shape, error));
    g->source = gather_source;
    g->outer = tq_shape_span(in, batch, axis);
    g->dim = (size_t)in->dims[axis];
    g->span = tq_shape_span(in, axis + 1, in->rank);
    g->coordinates = tq_shape_span(positions, batch, positions->rank);
    g->runs = tq_shape_size(&shape) == 0 ? 0 : tq_shape_size(&shape) / g->span;
    node->eval = eval_gather;
    return TQ_OK;
}

/* ---- GATHER_ND ---- */

static size_t gather_nd_source(const gather *g, size_t run)
{
    size_t at = 0;
    for (size_t k = 0; k < g->depth; k++)
        at += (size_t)tq_integer_at(g->indices, run * g->depth + k) * g->stride[k];
    return at;
}

static tq_status eval_gather_nd(tq_node *node, tq_error *error)
{
    const gather *g = node->state;
    const size_t count = tq_tensor_count(node->in[1]);
    TQ_EACH (i, count)
        TQ_TRY(check_index(node, i, node->in[0]->shape.dims[i % g->depth], error));
    if (tq_stop_now())
        return TQ_INTERRUPTED; /* some indices are not checked */
    return copy_runs(node, g, error);
}

tq_status tq_prepare_gather_nd(tq_node *node, tq_error *error)
{
    gather *g = NULL;
    tq_shape shape = {0, {0}};
    TQ_TRY(tq_check_input(node, 1, INDEX_TYPES, error));
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS, error));
    TQ_TRY(tq_check_rank(node, 1, 1, TQ_DIMS, error));
    const tq_shape *in = &node->in[0]->shape, *indices = &node->in[1]->shape;
    int32_t depth = indices->dims[indices->rank - 1];
    if (depth > in->rank)
        return tq_input_fail(node, 1, error, "has positions of %d coordinates; input 0 has %d dimensions", (int)depth,
                             (int)in->rank);
    TQ_TRY(put_dims(node, &shape, indices, 0, indices->rank - 1, error));
    TQ_TRY(put_dims(node, &shape, in, depth, in->rank, error));
    if (tq_move_bytes(node->in[0]) == 0)
        return tq_input_fail(node, 0, error, "is %s, which is not gathered", tq_type_name(node->in[0]->type));
    TQ_TRY(tq_node_state(node, sizeof *g, &g, error));
    TQ_TRY(gather_shape(node, &shape, error));
    g->source = gather_nd_source;
    g->depth = (size_t)depth;
    g->span = tq_shape_span(in, depth, in->rank);
    for (int k = 0; k < depth; k++)
        g->stride[k] = tq_shape_span(in, k + 1, in->rank);
    g->runs = tq_shape_size(&shape) == 0 ? 0 : tq_shape_size(&shape) / g->span;
    node->eval = eval_gather_nd;
    return TQ_OK;
}

/* ---- STABLEHLO_GATHER ---- */

/* One box for each vector of indices.  The output's batch dimensions are all that are not in offset_dims; they run over
   the dimensions of the indices but index_vector_dim. */
typedef struct boxes {
    tq_strided copy; /* of one box; eval sets where it begins */
    int batch_rank, index_dims;
    size_t batch[TQ_DIMS], index_step[TQ_DIMS]; /* in elements of the indices */
    ptrdiff_t to[TQ_DIMS];                      /* the batch dimensions' strides in bytes of the output */
    size_t vector_step;       /* elements of the indices from one index of a vector to the next */
    int operand_dim[TQ_DIMS]; /* the input's dimension of index k */
    int64_t most[TQ_DIMS];    /* the greatest begin in it */
    ptrdiff_t from[TQ_DIMS];  /* its stride in bytes */
} boxes;

static ptrdiff_t box_begin(const boxes *s, const tq_tensor *indices, size_t at)
{
    ptrdiff_t from = 0;
    for (int k = 0; k < s->index_dims; k++) {
        int64_t start = tq_integer_at(indices, at + (size_t)k * s->vector_step);
        start = start < 0 ? 0 : start > s->most[k] ? s->most[k] : start;
        from += (ptrdiff_t)start * s->from[k];
    }
    return from;
}

static tq_status eval_stablehlo_gather(tq_node *node, tq_error *error)
{
    (void)error;
    boxes *s = node->state;
    size_t at[TQ_DIMS] = {0}, index = 0;
    ptrdiff_t to = 0;
    if (tq_tensor_count(node->out[0]) == 0)
        return TQ_OK;
    for (int d = 0; d >= 0 && !tq_stop_after(32);) {
        s->copy.from_at = box_begin(s, node->in[1], index);
        s->copy.to_at = to;
        tq_strided_copy(&s->copy, node->in[0]->data, node->out[0]->data, 1);
        for (d = s->batch_rank - 1; d >= 0; d--) {
            index += s->index_step[d];
            to += s->to[d];
            if (++at[d] < s->batch[d])
                break;
            index -= s->batch[d] * s->index_step[d];
            to -= (ptrdiff_t)s->batch[d] * s->to[d];
            at[d] = 0;
        }
    }
    return TQ_OK;
}

/* The output's shape: the box's dimensions at offset_dims, in order, and the batch dimensions between them. */
static tq_status boxes_shape(const tq_node *node, const int64_t *sizes, int64_t vector_dim, tq_shape *out,
                             tq_error *error)
{
    const tq_table *options = &node->options.table;
    tq_vector offset = tq_get_vector(options, TQ_StablehloGatherOptions_offset_dims);
    tq_vector collapsed = tq_get_vector(options, TQ_StablehloGatherOptions_collapsed_slice_dims);
    const tq_shape *indices = &node->in[1]->shape;
    int batch_rank = indices->rank - (vector_dim < indices->rank ? 1 : 0), next = 0, box = 0;
    int64_t rank = (int64_t)offset.count + batch_rank;
    if (rank > TQ_DIMS)
        return tq_output_fail(node, 0, error, "would have %lld dimensions", (long long)rank);
    tq_shape shape = {(int32_t)rank, {0}};
    for (int d = 0; d < rank; d++)
        if (tq_vector_has_i64(&offset, d)) {
            while (box < node->in[0]->shape.rank && tq_vector_has_i64(&collapsed, box))
                box++;
            if (box == node->in[0]->shape.rank)
                return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has more offset_dims than dimensions of a slice");
            shape.dims[d] = (int32_t)sizes[box++];
        } else {
            next += next == vector_dim;
            if (next >= indices->rank)
                return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has offset_dims that name no dimension");
            shape.dims[d] = indices->dims[next++];
        }
    *out = shape;
    return TQ_OK;
}

static tq_status read_slice_sizes(const tq_node *node, int64_t *sizes, tq_error *error)
{
    const tq_table *options = &node->options.table;
    tq_vector list = tq_get_vector(options, TQ_StablehloGatherOptions_slice_sizes);
    tq_vector collapsed = tq_get_vector(options, TQ_StablehloGatherOptions_collapsed_slice_dims);
    const tq_shape *in = &node->in[0]->shape;
    if (list.count != (uint32_t)in->rank)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %u slice_sizes; the input has %d dimensions",
                          (unsigned)list.count, (int)in->rank);
    for (int d = 0; d < in->rank; d++) {
        sizes[d] = tq_vector_i64(&list, (size_t)d);
        if (sizes[d] < 0 || sizes[d] > in->dims[d] || (tq_vector_has_i64(&collapsed, d) && sizes[d] != 1))
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has slice size %lld for dimension %d of %d elements",
                              (long long)sizes[d], d, (int)in->dims[d]);
    }
    return TQ_OK;
}

/* Reads start_index_map: the input's dimension of each index. */
static tq_status map_indices(const tq_node *node, boxes *s, const int64_t *sizes, int64_t vector_dim,
                             const ptrdiff_t *from, tq_error *error)
{
    tq_vector map = tq_get_vector(&node->options.table, TQ_StablehloGatherOptions_start_index_map);
    const tq_shape *in = &node->in[0]->shape, *indices = &node->in[1]->shape;
    int64_t length = vector_dim < indices->rank ? indices->dims[vector_dim] : 1;
    if (map.count != (uint64_t)length || map.count > (uint32_t)in->rank)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %u entries in start_index_map for %lld indices",
                          (unsigned)map.count, (long long)length);
    s->index_dims = (int)length;
    for (int k = 0; k < s->index_dims; k++) {
        int64_t d = tq_vector_i64(&map, (size_t)k);
        if (d < 0 || d >= in->rank)
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %lld in start_index_map", (long long)d);
        for (int j = 0; j < k; j++)
            if (s->operand_dim[j] == d)
                return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %lld twice in start_index_map", (long long)d);
        s->operand_dim[k] = (int)d;
        s->most[k] = in->dims[d] - sizes[d];
        s->from[k] = from[d];
    }
    return TQ_OK;
}

tq_status tq_prepare_stablehlo_gather(tq_node *node, tq_error *error)
{
    boxes *s = NULL;
    int64_t sizes[TQ_DIMS];
    tq_shape shape;
    TQ_TRY(tq_check_list(node, 1, -1, error));
    const tq_table *options = &node->options.table;
    const tq_shape *in = &node->in[0]->shape, *indices = &node->in[1]->shape;
    tq_vector offset = tq_get_vector(options, TQ_StablehloGatherOptions_offset_dims);
    tq_vector collapsed = tq_get_vector(options, TQ_StablehloGatherOptions_collapsed_slice_dims);
    int64_t vector_dim = tq_get_int(options, TQ_StablehloGatherOptions_index_vector_dim);
    size_t bytes = tq_element_bytes(node->in[0]->type);
    if (bytes == 0 || vector_dim < 0 || vector_dim > indices->rank)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has index_vector_dim %lld, type %s", (long long)vector_dim,
                          tq_type_name(node->in[0]->type));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(read_slice_sizes(node, sizes, error));
    TQ_TRY(boxes_shape(node, sizes, vector_dim, &shape, error));
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    ptrdiff_t from[TQ_DIMS], to[TQ_DIMS], index[TQ_DIMS];
    tq_dense_strides(in, bytes, from);
    tq_dense_strides(&shape, bytes, to);
    tq_dense_strides(indices, 1, index);
    TQ_TRY(map_indices(node, s, sizes, vector_dim, from, error));
    s->vector_step = vector_dim < indices->rank ? (size_t)index[vector_dim] : 0;
    tq_strided_begin(&s->copy, bytes);
    for (int d = 0, box = 0, next = 0; d < shape.rank; d++)
        if (tq_vector_has_i64(&offset, d)) {
            while (tq_vector_has_i64(&collapsed, box))
                box++;
            tq_strided_dim(&s->copy, (size_t)shape.dims[d], from[box], to[d]);
            box++;
        } else {
            next += next == vector_dim;
            s->batch[s->batch_rank] = (size_t)shape.dims[d];
            s->index_step[s->batch_rank] = (size_t)index[next++];
            s->to[s->batch_rank++] = to[d];
        }
    tq_strided_end(&s->copy);
    node->eval = eval_stablehlo_gather;
    return TQ_OK;
}
