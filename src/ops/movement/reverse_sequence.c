/* SPDX-License-Identifier: Apache-2.0
 *
 * REVERSE_SEQUENCE: for each index b of dimension batch_dim, the first lengths[b] elements of dimension seq_dim are
 * reversed, and the others are copied.
 *
 * Source: LiteRT f6745779, tflite/kernels/reverse_sequence.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

typedef struct reversal {
    int seq, batch;
} reversal;

/* Copies elements [begin, end) of the sequence at index b of the batch. */
static void copy_part(const tq_node *node, const reversal *r, int64_t b, int64_t begin, int64_t end, bool backwards)
{
    const tq_shape *shape = &node->in[0]->shape;
    size_t bytes = tq_element_bytes(node->in[0]->type);
    ptrdiff_t strides[TQ_DIMS];
    tq_strided copy;
    if (begin >= end)
        return;
    tq_dense_strides(shape, bytes, strides);
    tq_strided_begin(&copy, bytes);
    copy.to_at = (ptrdiff_t)b * strides[r->batch] + (ptrdiff_t)begin * strides[r->seq];
    copy.from_at = (ptrdiff_t)b * strides[r->batch] + (ptrdiff_t)(backwards ? end - 1 : begin) * strides[r->seq];
    for (int d = 0; d < shape->rank; d++) {
        size_t count = d == r->batch ? 1 : d == r->seq ? (size_t)(end - begin) : (size_t)shape->dims[d];
        tq_strided_dim(&copy, count, d == r->seq && backwards ? -strides[d] : strides[d], strides[d]);
    }
    tq_strided_end(&copy);
    tq_strided_copy(&copy, node->in[0]->data, node->out[0]->data, node->threads);
}

static tq_status eval_reverse_sequence(tq_node *node, tq_error *error)
{
    const reversal *r = node->state;
    int64_t length = node->in[0]->shape.dims[r->seq], batch = node->in[0]->shape.dims[r->batch];
    if (tq_tensor_count(node->in[0]) == 0)
        return TQ_OK;
    for (int64_t b = 0; b < batch && !tq_stop_after(64); b++) {
        int64_t reversed = tq_integer_at(node->in[1], (size_t)b);
        if (reversed < 0 || reversed > length)
            return tq_input_fail(node, 1, error, "has %lld at %lld; it needs 0 to %lld", (long long)reversed,
                                 (long long)b, (long long)length);
        copy_part(node, r, b, 0, reversed, true);
        copy_part(node, r, b, reversed, length, false);
    }
    return TQ_OK;
}

tq_status tq_prepare_reverse_sequence(tq_node *node, tq_error *error)
{
    reversal *r = NULL;
    const tq_table *options = &node->options.table;
    const tq_shape *shape = &node->in[0]->shape;
    int64_t seq = tq_get_int(options, TQ_ReverseSequenceOptions_seq_dim);
    int64_t batch = tq_get_int(options, TQ_ReverseSequenceOptions_batch_dim);
    if (seq < 0 || batch < 0 || seq == batch || seq >= shape->rank || batch >= shape->rank)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "has seq_dim %lld and batch_dim %lld; it needs two dimensions of %d", (long long)seq,
                          (long long)batch, (int)shape->rank);
    TQ_TRY(tq_check_list(node, 1, shape->dims[batch], error));
    if (tq_element_bytes(node->in[0]->type) == 0)
        return tq_input_fail(node, 0, error, "is %s, which is not moved", tq_type_name(node->in[0]->type));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_node_state(node, sizeof *r, &r, error));
    r->seq = (int)seq;
    r->batch = (int)batch;
    node->eval = eval_reverse_sequence;
    return tq_output_shape(node, 0, shape, error);
}
