/* SPDX-License-Identifier: Apache-2.0
 *
 * NON_MAX_SUPPRESSION_V4 and V5 select the boxes of the greatest scores above score_threshold, without boxes whose
 * intersection over union with a selected one is iou_threshold or more.  V5 with sigma > 0 multiplies the score of a
 * candidate by exp(-0.5 / sigma * iou * iou) for each box selected since, and sorts it in again.
 *
 * Inputs: boxes [n, 4] (two corners y, x, y, x in any order), scores [n], max_output_size, iou_threshold,
 * score_threshold, sigma.  Outputs: indices and, of V5, scores, padded with 0 to
 * max_output_size; the number of selected boxes.
 * Candidates of equal score come in the order of the binary heap of GCC's C++ library.
 * Source: LiteRT f6745779, tflite/kernels/non_max_suppression.cc, internal/reference/non_max_suppression.h.
 */
#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/detection/boxes.h"

typedef struct candidate {
    int32_t index;
    float score;
    int32_t checked; /* the number of selected boxes that it was compared with */
} candidate;

/* ---- std::push_heap and std::pop_heap of libstdc++, which determine the order of equal scores ---- */

static void rise(candidate *heap, size_t hole, size_t top, candidate value)
{
    while (hole > top && heap[(hole - 1) / 2].score < value.score) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = value;
}

static void push(candidate *heap, size_t *count, candidate value)
{
    rise(heap, (*count)++, 0, value);
}

/* Moves the hole down to a leaf, then inserts the last candidate there and moves it up. */
static candidate pop(candidate *heap, size_t *count)
{
    candidate first = heap[0], last = heap[--*count];
    size_t n = *count, hole = 0, child = 0;
    if (n == 0)
        return first;
    while (child < (n - 1) / 2) {
        child = 2 * (child + 1);
        if (heap[child].score < heap[child - 1].score)
            child--;
        heap[hole] = heap[child];
        hole = child;
    }
    if (n % 2 == 0 && child == (n - 2) / 2) {
        child = 2 * (child + 1);
        heap[hole] = heap[child - 1];
        hole = child - 1;
    }
    rise(heap, hole, 0, last);
    return first;
}

/* ---- overlap ---- */

/* A box of two opposite corners as top, left, bottom, right. */
static void order_corners(const float *corners, float box[4])
{
    for (int side = 0; side < 2; side++) {
        box[side] = tq_box_min(corners[side], corners[side + 2]);
        box[side + 2] = tq_box_max(corners[side], corners[side + 2]);
    }
}

static float overlap(const float *a, const float *b)
{
    float box_a[4], box_b[4];
    order_corners(a, box_a);
    order_corners(b, box_b);
    return tq_box_overlap(box_a, box_b);
}

/* ---- suppression ---- */

typedef struct limits {
    float iou, score, sigma, scale;
} limits;

/* Compares a candidate with the boxes selected since its last comparison; true: it is dropped. */
static bool suppressed(candidate *c, const float *boxes, const int32_t *chosen, int32_t count, const limits *at)
{
    for (int32_t j = count - 1; j >= c->checked; j--) {
        float iou = overlap(boxes + 4 * (size_t)c->index, boxes + 4 * (size_t)chosen[j]);
        if (iou >= at->iou)
            return true;
        if (at->sigma > 0)
            c->score = c->score * expf(at->scale * iou * iou);
        if (c->score <= at->score)
            return false;
    }
    return false;
}

static float float_at(const tq_node *node, int i)
{
    return *(const float *)node->in[i]->data;
}

static tq_status eval_suppression(tq_node *node, tq_error *error)
{
    size_t work = 0;
    bool soft = node->in_count == 6;
    const float *boxes = node->in[0]->data, *scores = node->in[1]->data;
    limits at = {float_at(node, 3), float_at(node, 4), soft ? float_at(node, 5) : 0, 0};
    candidate *heap = node->scratch;
    tq_tensor *indices = node->out[0], *number = node->out[soft ? 2 : 1];
    int32_t *chosen = indices->data, count = 0;
    float *chosen_scores = soft ? node->out[1]->data : NULL;
    size_t waiting = 0, most = tq_tensor_count(indices);
    if (at.sigma < 0)
        return tq_input_fail(node, 5, error, "is %g; it needs at least 0", (double)at.sigma);
    at.scale = at.sigma > 0 ? (float)(-0.5 / (double)at.sigma) : 0;
    for (int32_t i = 0; i < node->in[1]->shape.dims[0]; i++)
        if (scores[i] > at.score)
            push(heap, &waiting, (candidate){i, scores[i], 0});
    most = waiting < most ? waiting : most;
    while ((size_t)count < most && waiting > 0) {
        if (tq_stop_count(&work, 16 + 4 * (size_t)count))
            return TQ_INTERRUPTED;
        candidate next = pop(heap, &waiting);
        float before = next.score;
        bool dropped = suppressed(&next, boxes, chosen, count, &at);
        next.checked = count;
        if (!dropped && next.score == before) {
            if (chosen_scores)
                chosen_scores[count] = next.score;
            chosen[count++] = next.index;
        } else if (!dropped && next.score > at.score) {
            push(heap, &waiting, next);
        }
    }
    size_t unused = tq_tensor_count(indices) - (size_t)count;
    memset(chosen + count, 0, unused * sizeof *chosen);
    if (chosen_scores)
        memset(chosen_scores + count, 0, unused * sizeof *chosen_scores);
    if (number != NULL)
        *(int32_t *)number->data = count;
    return TQ_OK;
}

static tq_status suppression_shape(tq_node *node, tq_error *error)
{
    tq_shape shape = {1, {0}}, scalar = {0, {0}};
    bool soft = node->in_count == 6;
    TQ_TRY(tq_dim_of(node, tq_integer_at(node->in[2], 0), &shape.dims[0], error));
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    /* comparisons of each selected box with each box */
    tq_node_work(node, (uint64_t)shape.dims[0], (uint64_t)node->in[0]->shape.dims[0]);
    if (soft)
        TQ_TRY(tq_output_shape(node, 1, &shape, error));
    return tq_output_shape(node, soft ? 2 : 1, &scalar, error);
}

static tq_status check_scalars(const tq_node *node, tq_error *error)
{
    for (int i = 2; i < node->in_count; i++) {
        TQ_TRY(tq_check_input(node, i, i == 2 ? TQ_T(INT32) : TQ_T(FLOAT32), error));
        if (tq_tensor_count(node->in[i]) != 1)
            return tq_input_fail(node, i, error, "has %zu elements; it needs 1", tq_tensor_count(node->in[i]));
    }
    return TQ_OK;
}

tq_status tq_prepare_non_max_suppression(tq_node *node, tq_error *error)
{
    bool soft = node->row.code == TQ_BuiltinOperator_NON_MAX_SUPPRESSION_V5;
    const int outputs = soft ? 3 : 2;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 2, 2, error));
    TQ_TRY(tq_check_rank(node, 1, 1, 1, error));
    const tq_shape *boxes = &node->in[0]->shape;
    if (boxes->dims[1] != 4 || boxes->dims[0] != node->in[1]->shape.dims[0])
        return tq_input_fail(node, 0, error, "has shape [%d,%d]; it needs [%d,4], a box for each score",
                             (int)boxes->dims[0], (int)boxes->dims[1], (int)node->in[1]->shape.dims[0]);
    TQ_TRY(check_scalars(node, error));
    for (int i = 0; i < outputs; i++)
        TQ_TRY(tq_check_output(node, i, soft && i == 1 ? TQ_T(FLOAT32) : TQ_T(INT32), error));
    TQ_TRY(tq_node_scratch(node, (uint64_t)boxes->dims[0] * sizeof(candidate), error));
    node->eval = eval_suppression;
    return tq_shape_from_values(node, 1u << 2, suppression_shape, error);
}
