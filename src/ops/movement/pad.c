/* SPDX-License-Identifier: Apache-2.0
 *
 * PAD, PADV2     a border of one value: the quantized value of 0, or input 2
 * MIRROR_PAD     a border that mirrors the tensor, with or without its edge
 *
 * STABLEHLO_PAD is in dilate.c, beside DILATE.
 * Source: LiteRT f6745779, tflite/kernels/{pad,mirror_pad}.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/movement/movement.h"

#define PADDING_TYPES (TQ_T(INT8) | TQ_T(INT16) | TQ_T(INT32) | TQ_T(INT64) | TQ_T(BOOL))

/* before[d], after[d] from the [rank, 2] tensor of paddings, and the output's shape. */
static tq_status read_paddings(const tq_node *node, int64_t *before, int64_t *after, tq_shape *out, tq_error *error)
{
    tq_shape shape = node->in[0]->shape;
    for (int d = 0; d < shape.rank; d++) {
        before[d] = tq_integer_at(node->in[1], 2 * (size_t)d);
        after[d] = tq_integer_at(node->in[1], 2 * (size_t)d + 1);
        if (before[d] < 0 || after[d] < 0 || before[d] > INT32_MAX || after[d] > INT32_MAX)
            return tq_input_fail(node, 1, error, "has paddings of %lld and %lld for dimension %d", (long long)before[d],
                                 (long long)after[d], d);
        TQ_TRY(tq_dim_of(node, shape.dims[d] + before[d] + after[d], &shape.dims[d], error));
    }
    *out = shape;
    return TQ_OK;
}

static tq_status check_paddings(const tq_node *node, unsigned types, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 1, types, error));
    TQ_TRY(tq_check_rank(node, 1, 2, 2, error));
    const int32_t *dims = node->in[1]->shape.dims;
    if (dims[0] != node->in[0]->shape.rank || dims[1] != 2)
        return tq_input_fail(node, 1, error, "has shape [%d,%d]; it needs [%d,2]", (int)dims[0], (int)dims[1],
                             (int)node->in[0]->shape.rank);
    return TQ_OK;
}

/* One box of an output, and the box of the source from which it is copied. */
typedef struct box {
    int64_t at[TQ_DIMS], size[TQ_DIMS];        /* in the output, in elements */
    int64_t from_at[TQ_DIMS], from_step[TQ_DIMS]; /* in the source, in elements; step 0, 1 or -1 */
} box;

static void move_box(tq_move *move, const box *b, const tq_shape *out, const ptrdiff_t *from, size_t bytes)
{
    ptrdiff_t to[TQ_DIMS];
    tq_dense_strides(out, bytes, to);
    tq_strided_begin(&move->copy, bytes);
    for (int d = 0; d < out->rank; d++) {
        tq_strided_dim(&move->copy, (size_t)b->size[d], (ptrdiff_t)b->from_step[d] * from[d], to[d]);
        if (b->size[d] > 0) {
            move->copy.from_at += (ptrdiff_t)b->from_at[d] * from[d];
            move->copy.to_at += (ptrdiff_t)b->at[d] * to[d];
        }
    }
    tq_strided_end(&move->copy);
}

/* ---- PAD, PADV2 ---- */

/* The border as disjoint boxes, two for each dimension d: before and after the input along d, over the input's extent
   in the dimensions outside of d, and over the whole output in the dimensions inside of d. */
static void border_moves(tq_node *node, const int64_t *before, const int64_t *after, const tq_shape *out)
{
    tq_moves *moves = node->state;
    const tq_shape *in = &node->in[0]->shape;
    size_t bytes = tq_move_bytes(node->in[0]);
    static const ptrdiff_t repeat[TQ_DIMS] = {0};
    int fill = node->in_count > 2 && node->in[2] != NULL ? 2 : TQ_MOVE_FILL;
    for (int side = 0; side < 2 * in->rank; side++) {
        int d = side / 2;
        box b;
        memset(&b, 0, sizeof b);
        for (int k = 0; k < in->rank; k++) {
            b.at[k] = k < d ? before[k] : 0;
            b.size[k] = k < d ? in->dims[k] : out->dims[k];
        }
        b.at[d] = side % 2 ? before[d] + in->dims[d] : 0;
        b.size[d] = side % 2 ? after[d] : before[d];
        moves->items[side].input = fill;
        move_box(&moves->items[side], &b, out, repeat, bytes);
    }
}

static tq_status pad_shape(tq_node *node, tq_error *error)
{
    tq_moves *moves = node->state;
    const tq_shape *in = &node->in[0]->shape;
    int64_t before[TQ_DIMS], after[TQ_DIMS];
    ptrdiff_t from[TQ_DIMS];
    tq_shape shape;
    box b;
    TQ_TRY(read_paddings(node, before, after, &shape, error));
    TQ_TRY(tq_moves_shape(node, &shape, error));
    border_moves(node, before, after, &shape);
    memset(&b, 0, sizeof b);
    for (int d = 0; d < in->rank; d++) {
        b.at[d] = before[d];
        b.size[d] = in->dims[d];
        b.from_step[d] = 1;
    }
    size_t bytes = tq_move_bytes(node->in[0]);
    tq_dense_strides(in, bytes, from);
    move_box(&moves->items[2 * in->rank], &b, &shape, from, bytes);
    return TQ_OK;
}

/* PAD's value: the zero point for quantized values of 8 and 16 bits, else 0. */
static tq_status pad_value(const tq_node *node, unsigned char *out, tq_error *error)
{
    int32_t type = node->in[0]->type, zero_point = tq_zero_point_at(node->out[0], 0);
    bool wide = type == TQ_TensorType_INT16;
    if (!wide && type != TQ_TensorType_INT8 && type != TQ_TensorType_UINT8)
        return TQ_OK;
    if (type != TQ_TensorType_UINT8 && node->in[0]->quantization.count == 0)
        return TQ_OK;
    int32_t low = wide ? INT16_MIN : type == TQ_TensorType_INT8 ? INT8_MIN : 0;
    int32_t high = wide ? INT16_MAX : type == TQ_TensorType_INT8 ? INT8_MAX : UINT8_MAX;
    if (zero_point < low || zero_point > high)
        return tq_output_fail(node, 0, error, "has zero point %d, which its type cannot hold", (int)zero_point);
    uint16_t bits = (uint16_t)(zero_point & 0xFFFF);
    memcpy(out, &bits, wide ? 2 : 1);
    if (!wide)
        out[0] = (unsigned char)(zero_point & 0xFF);
    return TQ_OK;
}

tq_status tq_prepare_pad(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(check_paddings(node, PADDING_TYPES, error));
    TQ_TRY(tq_moves_new(node, 2 * node->in[0]->shape.rank + 1, 0, &moves, error));
    if (node->in_count > 2 && node->in[2] != NULL) {
        TQ_TRY(tq_check_input_like(node, 2, 0, error));
        if (tq_tensor_count(node->in[2]) != 1)
            return tq_input_fail(node, 2, error, "has %zu elements; it needs 1", tq_tensor_count(node->in[2]));
        if (node->in[0]->quantization.count != 0 || node->in[0]->type == TQ_TensorType_UINT8)
            TQ_TRY(tq_check_same_scale(node, 2, 0, error));
    } else {
        TQ_TRY(pad_value(node, moves->fill, error));
    }
    return tq_shape_from_values(node, 1u << 1, pad_shape, error);
}

/* ---- MIRROR_PAD ---- */

/* A mirrored pad has three parts in each dimension: before, the input, after.  Eval walks all combinations of parts
   that are not empty; these are at most as many as the output's elements. */
typedef struct mirror {
    int64_t before[TQ_DIMS], after[TQ_DIMS];
    int64_t edge; /* 1: REFLECT, which does not repeat the edge; 0: SYMMETRIC */
} mirror;

/* Sets dimension d of the box to a part; false where the part is empty. */
static bool mirror_part(const mirror *m, const tq_shape *in, int d, int part, box *b)
{
    int64_t n = in->dims[d];
    switch (part) {
    case 0: /* output i < before comes from before - i - 1 + edge */
        b->at[d] = 0;
        b->size[d] = m->before[d];
        b->from_at[d] = m->before[d] - 1 + m->edge;
        b->from_step[d] = -1;
        break;
    case 1:
        b->at[d] = m->before[d];
        b->size[d] = n;
        b->from_at[d] = 0;
        b->from_step[d] = 1;
        break;
    default: /* the i-th after the input comes from n - 1 - edge - i */
        b->at[d] = m->before[d] + n;
        b->size[d] = m->after[d];
        b->from_at[d] = n - 1 - m->edge;
        b->from_step[d] = -1;
        break;
    }
    return b->size[d] > 0;
}

/* The next combination of parts that are not empty; false after the last. */
static bool next_parts(const mirror *m, const tq_shape *in, int *parts, box *b)
{
    for (int d = in->rank - 1; d >= 0; d--) {
        while (++parts[d] < 3)
            if (mirror_part(m, in, d, parts[d], b))
                return true;
        for (parts[d] = 0; !mirror_part(m, in, d, parts[d], b); parts[d]++)
            ;
    }
    return false;
}

static tq_status eval_mirror_pad(tq_node *node, tq_error *error)
{
    (void)error;
    const mirror *m = node->state;
    const tq_tensor *in = node->in[0], *out = node->out[0];
    size_t bytes = tq_move_bytes(in);
    int parts[TQ_DIMS];
    ptrdiff_t from[TQ_DIMS];
    box b;
    if (tq_tensor_count(out) == 0)
        return TQ_OK;
    memset(&b, 0, sizeof b);
    tq_dense_strides(&in->shape, bytes, from);
    for (int d = 0; d < in->shape.rank; d++)
        for (parts[d] = 0; !mirror_part(m, &in->shape, d, parts[d], &b); parts[d]++)
            ;
    do {
        tq_move move;
        move_box(&move, &b, &out->shape, from, bytes);
        tq_strided_copy(&move.copy, in->data, out->data, node->threads);
    } while (next_parts(m, &in->shape, parts, &b) && !tq_stop_after(64));
    return TQ_OK;
}

static tq_status mirror_pad_shape(tq_node *node, tq_error *error)
{
    mirror *m = node->state;
    const tq_shape *in = &node->in[0]->shape;
    tq_shape shape;
    TQ_TRY(read_paddings(node, m->before, m->after, &shape, error));
    for (int d = 0; d < in->rank; d++) {
        int64_t most = in->dims[d] - m->edge;
        if (m->before[d] > most || m->after[d] > most)
            return tq_input_fail(node, 1, error,
                                 "has paddings of %lld and %lld for dimension %d; at most %lld "
                                 "elements can be mirrored",
                                 (long long)m->before[d], (long long)m->after[d], d, (long long)most);
    }
    return tq_output_shape(node, 0, &shape, error);
}

tq_status tq_prepare_mirror_pad(tq_node *node, tq_error *error)
{
    mirror *m = NULL;
    TQ_TRY(check_paddings(node, TQ_T(INT32) | TQ_T(INT64), error));
    if (tq_element_bytes(node->in[0]->type) == 0)
        return tq_input_fail(node, 0, error, "is %s, which is not padded", tq_type_name(node->in[0]->type));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_same_scale(node, 0, 0, error));
    TQ_TRY(tq_node_state(node, sizeof *m, &m, error));
    m->edge = tq_get_int(&node->options.table, TQ_MirrorPadOptions_mode) == TQ_MirrorPadMode_REFLECT;
    node->eval = eval_mirror_pad;
    return tq_shape_from_values(node, 1u << 1, mirror_pad_shape, error);
}
