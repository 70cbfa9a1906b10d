/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxes copied out of a tensor, or into one.
 *
 *     SLICE                 size elements from begin on; a size of -1: all that remain
 *     STRIDED_SLICE         NumPy's x[begin:end:stride, ..., None, i], as lists and five bit masks
 *     DYNAMIC_UPDATE_SLICE  the input with one box replaced; a box that reaches outside is moved inside
 *
 * Source: LiteRT f6745779, tflite/kernels/{slice,strided_slice,dynamic_update_slice}.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

/* ---- SLICE ---- */

static tq_status slice_extent(const tq_node *node, int d, int32_t *begin, int32_t *size, tq_error *error)
{
    int64_t dim = node->in[0]->shape.dims[d];
    int64_t from = tq_integer_at(node->in[1], (size_t)d), count = tq_integer_at(node->in[2], (size_t)d);
    if (from < 0 || from > dim)
        return tq_input_fail(node, 1, error, "has %lld for dimension %d; it needs 0 to %lld", (long long)from, d,
                             (long long)dim);
    if (count < -1 || count > dim - from)
        return tq_input_fail(node, 2, error, "has %lld for dimension %d; it needs -1 to %lld", (long long)count, d,
                             (long long)(dim - from));
    *begin = (int32_t)from;
    *size = (int32_t)(count < 0 ? dim - from : count);
    return TQ_OK;
}

static tq_status slice_shape(tq_node *node, tq_error *error)
{
    tq_moves *moves = node->state;
    tq_strided *copy = &moves->items[0].copy;
    size_t bytes = tq_move_bytes(node->in[0]);
    tq_shape shape = {node->in[0]->shape.rank, {0}};
    ptrdiff_t from[TQ_DIMS], to[TQ_DIMS], from_at = 0;
    tq_dense_strides(&node->in[0]->shape, bytes, from);
    for (int d = 0; d < shape.rank; d++) {
        int32_t begin = 0;
        TQ_TRY(slice_extent(node, d, &begin, &shape.dims[d], error));
        from_at += begin * from[d];
    }
    tq_dense_strides(&shape, bytes, to);
    tq_strided_begin(copy, bytes);
    copy->from_at = from_at;
    for (int d = 0; d < shape.rank; d++)
        tq_strided_dim(copy, (size_t)shape.dims[d], from[d], to[d]);
    tq_strided_end(copy);
    return tq_moves_shape(node, &shape, error);
}

tq_status tq_prepare_slice(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, node->in[0]->shape.rank, error));
    TQ_TRY(tq_check_list(node, 2, node->in[0]->shape.rank, error));
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    return tq_shape_from_values(node, 1u << 1 | 1u << 2, slice_shape, error);
}

/* ---- STRIDED_SLICE ---- */

/* One entry of the lists: how it cuts its dimension. */
typedef struct cut {
    int64_t begin, end, stride;
    bool begin_open, end_open; /* begin_mask, end_mask: from the first, to the last element */
    bool one;                  /* shrink_axis_mask: one element, without its dimension */
} cut;

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* The first index and the number of indices; the stride is not 0.  Begin and end are clamped to [0, dim] for a positive
   stride, to [-1, dim - 1] for a negative one. */
static void resolve(const cut *c, int64_t dim, int64_t *start, int64_t *count)
{
    int64_t low = c->stride > 0 ? 0 : -1, high = c->stride > 0 ? dim : dim - 1;
    int64_t begin = clamp(c->begin < 0 ? c->begin + dim : c->begin, low, high);
    int64_t end = clamp(c->end < 0 ? c->end + dim : c->end, low, high);
    if (c->begin_open)
        begin = c->stride > 0 ? 0 : dim - 1;
    if (c->end_open)
        end = c->stride > 0 ? dim : -1;
    int64_t length = c->stride > 0 ? end - begin : begin - end, step = c->stride > 0 ? c->stride : -c->stride;
    *start = begin;
    *count = length <= 0 ? 0 : (length + step - 1) / step;
}

/* The slice while it is built, from the outermost dimension on. */
typedef struct slicer {
    const tq_node *node;
    int dim;                 /* the input's next dimension */
    ptrdiff_t from[TQ_DIMS]; /* the input's strides in bytes */
    tq_shape shape;               /* of the output */
    ptrdiff_t steps[TQ_DIMS];     /* in the input, in bytes, one for each dimension of the output */
    ptrdiff_t at;                 /* the first element's byte in the input */
} slicer;

static tq_status put_dim(slicer *s, int64_t count, ptrdiff_t step, tq_error *error)
{
    if (s->shape.rank == TQ_DIMS)
        return tq_output_fail(s->node, 0, error, "would have more than %d dimensions", TQ_DIMS);
    s->steps[s->shape.rank] = step;
    s->shape.dims[s->shape.rank++] = (int32_t)count;
    return TQ_OK;
}

static tq_status copy_dim(slicer *s, tq_error *error)
{
    int d = s->dim++;
    return put_dim(s, s->node->in[0]->shape.dims[d], s->from[d], error);
}

static tq_status cut_dim(slicer *s, const cut *c, tq_error *error)
{
    int d = s->dim++;
    int64_t dim = s->node->in[0]->shape.dims[d], start = 0, count = 0;
    if (c->stride == 0 || c->stride < -INT32_MAX || (c->one && c->stride < 0))
        return tq_input_fail(s->node, 3, error, "has a stride of %lld for dimension %d%s", (long long)c->stride, d,
                             c->one ? ", of which one element is taken" : "");
    resolve(c, dim, &start, &count);
    if (c->one && start >= dim)
        return tq_input_fail(s->node, 1, error, "has index %lld for dimension %d, which has %lld elements",
                             (long long)c->begin, d, (long long)dim);
    if (c->one || count > 0)
        s->at += (ptrdiff_t)start * s->from[d];
    ptrdiff_t step = count > 1 ? (ptrdiff_t)c->stride * s->from[d] : 0; /* |stride| < dim: no overflow */
    return c->one ? TQ_OK : put_dim(s, count, step, error);
}

/* Entry i of the lists.  With the option `offset`, an end is relative to its begin. */
static cut cut_of(const tq_node *node, size_t i, const int64_t *masks)
{
    cut c = {tq_integer_at(node->in[1], i),
             tq_integer_at(node->in[2], i),
             tq_integer_at(node->in[3], i),
             masks[0] >> i & 1,
             masks[1] >> i & 1,
             masks[4] >> i & 1};
    if (tq_get_int(&node->options.table, TQ_StridedSliceOptions_offset))
        c.end += c.begin;
    return c;
}

/* Fills s from the lists.  masks: begin, end, ellipsis, new axis, shrink axis. */
static tq_status cut_all(slicer *s, const int64_t *masks, tq_error *error)
{
    int rank = s->node->in[0]->shape.rank, entries = (int)tq_tensor_count(s->node->in[1]), used = 0;
    bool ellipsis = false;
    for (int i = 0; i < entries; i++)
        used += !((masks[2] | masks[3]) >> i & 1);
    if (used > rank)
        return tq_input_fail(s->node, 1, error, "cuts %d dimensions of the %d that the input has", used, rank);
    for (int i = 0; i < entries; i++)
        if (masks[2] >> i & 1) {
            if (ellipsis)
                return tq_op_fail(s->node, error, TQ_BAD_OPERATOR, "ellipsis_mask has more than one bit set");
            ellipsis = true;
            for (int skip = rank - used; skip > 0; skip--)
                TQ_TRY(copy_dim(s, error));
        } else if (masks[3] >> i & 1) {
            TQ_TRY(put_dim(s, 1, 0, error));
        } else {
            cut c = cut_of(s->node, (size_t)i, masks);
            TQ_TRY(cut_dim(s, &c, error));
        }
    while (s->dim < rank)
        TQ_TRY(copy_dim(s, error));
    return TQ_OK;
}

static tq_status strided_slice_shape(tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    const int64_t masks[] = {tq_get_int(options, TQ_StridedSliceOptions_begin_mask),
                             tq_get_int(options, TQ_StridedSliceOptions_end_mask),
                             tq_get_int(options, TQ_StridedSliceOptions_ellipsis_mask),
                             tq_get_int(options, TQ_StridedSliceOptions_new_axis_mask),
                             tq_get_int(options, TQ_StridedSliceOptions_shrink_axis_mask)};
    tq_moves *moves = node->state;
    tq_strided *copy = &moves->items[0].copy;
    size_t bytes = tq_move_bytes(node->in[0]);
    slicer s = {.node = node};
    ptrdiff_t to[TQ_DIMS];
    tq_dense_strides(&node->in[0]->shape, bytes, s.from);
    TQ_TRY(cut_all(&s, masks, error));
    tq_dense_strides(&s.shape, bytes, to);
    tq_strided_begin(copy, bytes);
    copy->from_at = s.at;
    for (int d = 0; d < s.shape.rank; d++)
        tq_strided_dim(copy, (size_t)s.shape.dims[d], s.steps[d], to[d]);
    tq_strided_end(copy);
    return tq_moves_shape(node, &s.shape, error);
}

tq_status tq_prepare_strided_slice(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, -1, error));
    size_t entries = tq_tensor_count(node->in[1]);
    if (entries > 31)
        return tq_input_fail(node, 1, error, "has %zu elements; at most 31 have bits in the masks", entries);
    TQ_TRY(tq_check_list(node, 2, (int64_t)entries, error));
    TQ_TRY(tq_check_list(node, 3, (int64_t)entries, error));
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    return tq_shape_from_values(node, 1u << 1 | 1u << 2 | 1u << 3, strided_slice_shape, error);
}

/* ---- DYNAMIC_UPDATE_SLICE ---- */

static tq_status eval_update(tq_node *node, tq_error *error)
{
    tq_moves *moves = node->state;
    tq_strided *copy = &moves->items[1].copy;
    const tq_shape *shape = &node->in[0]->shape, *update = &node->in[1]->shape;
    ptrdiff_t to[TQ_DIMS];
    tq_dense_strides(shape, tq_move_bytes(node->in[0]), to);
    copy->to_at = 0;
    for (int d = 0; d < shape->rank; d++) {
        int64_t start = tq_integer_at(node->in[2], (size_t)d);
        copy->to_at += (ptrdiff_t)clamp(start, 0, shape->dims[d] - update->dims[d]) * to[d];
    }
    return tq_eval_moves(node, error);
}

tq_status tq_prepare_dynamic_update_slice(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_input_like(node, 1, 0, error));
    const tq_shape *shape = &node->in[0]->shape, *update = &node->in[1]->shape;
    TQ_TRY(tq_check_rank(node, 1, shape->rank, shape->rank, error));
    TQ_TRY(tq_check_list(node, 2, shape->rank, error));
    TQ_TRY(tq_moves_new(node, 2, 0, &moves, error));
    size_t bytes = tq_move_bytes(node->in[0]);
    ptrdiff_t from[TQ_DIMS], to[TQ_DIMS];
    tq_dense_strides(update, bytes, from);
    tq_dense_strides(shape, bytes, to);
    tq_move_all(&moves->items[0], 0, bytes, tq_tensor_count(node->in[0]));
    moves->items[1].input = 1;
    tq_strided_begin(&moves->items[1].copy, bytes);
    for (int d = 0; d < shape->rank; d++) {
        if (update->dims[d] > shape->dims[d])
            return tq_input_fail(node, 1, error, "has %d elements in dimension %d, where input 0 has %d",
                                 (int)update->dims[d], d, (int)shape->dims[d]);
        tq_strided_dim(&moves->items[1].copy, (size_t)update->dims[d], from[d], to[d]);
    }
    tq_strided_end(&moves->items[1].copy);
    node->eval = eval_update;
    return tq_output_shape(node, 0, shape, error);
}
