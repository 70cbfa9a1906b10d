/* SPDX-License-Identifier: Apache-2.0
 *
 * SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: pixels that are block[d] apart become separate images, and back.
 *
 * With k the index of a position p within the block, and B the batch of the wide tensor,
 *     narrow[k * B + b, i...] = wide[b, i * block + p - before...]
 * Elements outside of the wide tensor are padding in SPACE_TO_BATCH_ND, and are dropped in BATCH_TO_SPACE_ND.
 * Source: LiteRT f6745779, tflite/kernels/{space_to_batch_nd,batch_to_space_nd}.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/movement/movement.h"

typedef struct blocks {
    int count; /* blocked dimensions: 1 to count of both shapes */
    int64_t block[TQ_DIMS], before[TQ_DIMS];
    tq_shape wide, narrow;
    unsigned char pad[2]; /* the padding element: the zero point */
} blocks;

/* The copy for position p within the block, of index k: from the wide tensor to the narrow one. */
static void block_copy(const blocks *s, const int64_t *p, size_t k, size_t bytes, tq_strided *copy)
{
    ptrdiff_t wide[TQ_DIMS], narrow[TQ_DIMS];
    tq_dense_strides(&s->wide, bytes, wide);
    tq_dense_strides(&s->narrow, bytes, narrow);
    tq_strided_begin(copy, bytes);
    copy->to_at = (ptrdiff_t)k * s->wide.dims[0] * narrow[0];
    tq_strided_dim(copy, (size_t)s->wide.dims[0], wide[0], narrow[0]);
    for (int d = 0; d < s->count; d++) {
        /* low <= i < high: 0 <= i * block + offset < dim */
        int64_t block = s->block[d], offset = p[d] - s->before[d], dim = s->wide.dims[d + 1];
        int64_t low = offset >= 0 ? 0 : (-offset + block - 1) / block;
        int64_t high = offset < dim ? (dim - 1 - offset) / block + 1 : 0;
        high = high < s->narrow.dims[d + 1] ? high : s->narrow.dims[d + 1];
        int64_t count = high > low ? high - low : 0;
        if (count > 0) {
            copy->from_at += (ptrdiff_t)(low * block + offset) * wide[d + 1];
            copy->to_at += (ptrdiff_t)low * narrow[d + 1];
        }
        tq_strided_dim(copy, (size_t)count, count > 1 ? (ptrdiff_t)block * wide[d + 1] : 0, narrow[d + 1]);
    }
    for (int d = s->count + 1; d < s->wide.rank; d++)
        tq_strided_dim(copy, (size_t)s->wide.dims[d], wide[d], narrow[d]);
}

static void swap_sides(tq_strided *copy)
{
    tq_strided other = *copy;
    for (int d = 0; d < copy->rank; d++)
        copy->dims[d] = (tq_strided_step){other.dims[d].count, other.dims[d].to, other.dims[d].from};
    copy->from_at = other.to_at;
    copy->to_at = other.from_at;
}

static tq_status move_blocks(tq_node *node, bool to_batch)
{
    const blocks *s = node->state;
    size_t bytes = tq_move_bytes(node->in[0]), k = 0;
    int64_t p[TQ_DIMS] = {0};
    if (tq_tensor_count(node->out[0]) == 0)
        return TQ_OK;
    for (int d = s->count - 1; d >= 0 && !tq_stop_after(TQ_CHUNK / 64); k++) {
        tq_strided copy;
        block_copy(s, p, k, bytes, &copy);
        if (!to_batch)
            swap_sides(&copy);
        tq_strided_end(&copy);
        tq_strided_copy(&copy, node->in[0]->data, node->out[0]->data, node->threads);
        for (d = s->count - 1; d >= 0 && ++p[d] == s->block[d]; d--)
            p[d] = 0;
    }
    return TQ_OK;
}

static tq_status eval_to_batch(tq_node *node, tq_error *error)
{
    (void)error;
    const blocks *s = node->state;
    tq_move fill;
    size_t bytes = tq_move_bytes(node->in[0]);
    static const unsigned char zeros[16] = {0};
    tq_move_fill(&fill, TQ_MOVE_FILL, bytes, tq_tensor_count(node->out[0]));
    tq_strided_copy(&fill.copy, bytes <= 2 ? s->pad : zeros, node->out[0]->data, node->threads);
    return move_blocks(node, true);
}

static tq_status eval_to_space(tq_node *node, tq_error *error)
{
    (void)error;
    return move_blocks(node, false);
}

/* Reads the block and the two paddings or crops of each blocked dimension. */
static tq_status read_blocks(tq_node *node, int64_t *after, tq_error *error)
{
    blocks *s = node->state;
    s->count = (int)tq_tensor_count(node->in[1]);
    for (int d = 0; d < s->count; d++) {
        s->block[d] = tq_integer_at(node->in[1], (size_t)d);
        if (s->block[d] < 1 || s->block[d] > INT32_MAX)
            return tq_input_fail(node, 1, error, "has %lld; it needs at least 1", (long long)s->block[d]);
        s->before[d] = tq_integer_at(node->in[2], 2 * (size_t)d);
        after[d] = tq_integer_at(node->in[2], 2 * (size_t)d + 1);
        if (s->before[d] < 0 || after[d] < 0 || s->before[d] > INT32_MAX || after[d] > INT32_MAX)
            return tq_input_fail(node, 2, error, "has %lld and %lld for block %d; it needs at least 0",
                                 (long long)s->before[d], (long long)after[d], d);
    }
    return TQ_OK;
}

static tq_status to_batch_shape(tq_node *node, tq_error *error)
{
    blocks *s = node->state;
    int64_t after[TQ_DIMS];
    TQ_TRY(read_blocks(node, after, error));
    s->wide = s->narrow = node->in[0]->shape;
    for (int d = 0; d < s->count; d++) {
        int64_t padded = s->wide.dims[d + 1] + s->before[d] + after[d];
        if (padded % s->block[d] != 0)
            return tq_input_fail(node, 0, error, "is %lld with its paddings in dimension %d, not a multiple of %lld",
                                 (long long)padded, d + 1, (long long)s->block[d]);
        TQ_TRY(tq_dim_of(node, padded / s->block[d], &s->narrow.dims[d + 1], error));
        TQ_TRY(tq_dim_of(node, s->narrow.dims[0] * s->block[d], &s->narrow.dims[0], error));
    }
    return tq_output_shape(node, 0, &s->narrow, error);
}

static tq_status to_space_shape(tq_node *node, tq_error *error)
{
    blocks *s = node->state;
    int64_t after[TQ_DIMS];
    TQ_TRY(read_blocks(node, after, error));
    s->wide = s->narrow = node->in[0]->shape;
    for (int d = 0; d < s->count; d++) {
        if (s->wide.dims[0] % s->block[d] != 0)
            return tq_input_fail(node, 0, error, "has a batch of %d, not a multiple of all blocks",
                                 (int)s->narrow.dims[0]);
        s->wide.dims[0] = (int32_t)(s->wide.dims[0] / s->block[d]);
        TQ_TRY(tq_dim_of(node, s->narrow.dims[d + 1] * s->block[d] - s->before[d] - after[d], &s->wide.dims[d + 1],
                         error));
    }
    return tq_output_shape(node, 0, &s->wide, error);
}

static tq_status prepare_blocks(tq_node *node, tq_op_fn eval, tq_op_fn shape, tq_error *error)
{
    blocks *s = NULL;
    TQ_TRY(tq_check_rank(node, 0, 2, TQ_DIMS, error));
    TQ_TRY(tq_check_list(node, 1, -1, error));
    size_t count = tq_tensor_count(node->in[1]);
    if (count < 1 || count > (size_t)node->in[0]->shape.rank - 1)
        return tq_input_fail(node, 1, error, "has %zu elements; it needs 1 to %d", count,
                             (int)node->in[0]->shape.rank - 1);
    TQ_TRY(tq_check_list(node, 2, 2 * (int64_t)count, error));
    if (tq_element_bytes(node->in[0]->type) == 0)
        return tq_input_fail(node, 0, error, "is %s, which is not moved", tq_type_name(node->in[0]->type));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_same_scale(node, 0, 0, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    int16_t zero_point = (int16_t)tq_zero_point_of(node->out[0]); /* of quantized values of 8 and 16 bits */
    memcpy(s->pad, &zero_point, 2);
    if (tq_element_bytes(node->in[0]->type) == 1)
        s->pad[0] = (unsigned char)(zero_point & 0xFF);
    node->eval = eval;
    return tq_shape_from_values(node, 1u << 1 | 1u << 2, shape, error);
}

tq_status tq_prepare_space_to_batch_nd(tq_node *node, tq_error *error)
{
    return prepare_blocks(node, eval_to_batch, to_batch_shape, error);
}

tq_status tq_prepare_batch_to_space_nd(tq_node *node, tq_error *error)
{
    return prepare_blocks(node, eval_to_space, to_space_shape, error);
}
