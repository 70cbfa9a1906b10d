/* SPDX-License-Identifier: Apache-2.0
 *
 * TFLite_Detection_PostProcess: decodes boxes relative to anchors, and selects those of the greatest scores that do not
 * overlap.
 *
 * Inputs: encodings [1, n, >= 4] as y, x, h, w, scores [1, n, classes] with or without the background in front,
 * anchors [>= n, 4] as y, x, h, w; float32, UINT8 or INT8.  Outputs, FLOAT32: boxes [1, m, 4] as ymin, xmin, ymax,
 * xmax, classes and scores [1, m], and the number of boxes [1]; m = max_detections * max_classes_per_detection, and
 * unused elements are 0.
 *
 *     center = f32(encoding / scale * size of the anchor + position of the anchor), in doubles
 *     half   = f32(0.5 * exp(encoding / scale) * size of the anchor), in doubles
 *     box    = center -+ half
 *
 * A suppression visits boxes with a score of at least nms_score_threshold, in descending order of scores, equal ones in
 * the order of boxes.  It drops a box whose intersection over union with a selected one is above nms_iou_threshold.
 *     fast       one suppression by the greatest score of each box; the output repeats a selected box for each of its
 *                max_classes_per_detection best classes, in the order of the heap of GCC's C++ library
 *     regular    a suppression of each class; the best max_detections of all; of equal scores, earlier classes first
 *
 * Source: LiteRT f6745779, tflite/kernels/detection_postprocess.cc, on one thread.  LiteRT reads past the anchors
 * where these are fewer than boxes, does not write unused elements, and takes no INT8.
 */
#include <math.h>
#include <string.h>

#include "base/sort.h"
#include "ops/check.h"
#include "ops/custom_options.h"
#include "ops/detection/boxes.h"
#include "ops/reductions/float_runs.h"
#include "ops/scratch.h"

enum { ENCODINGS, SCORES, ANCHORS };
enum { BOXES, CLASSES, BEST, COUNT };

typedef struct detection {
    size_t boxes, columns, classes; /* columns: of the scores, with the background */
    size_t most, each, per_class;   /* max_detections, max_classes_per_detection, detections_per_class <= most */
    bool regular;
    float score_threshold, iou_threshold;
    float scale[4];
    uint64_t decoded_at, scores_at, best_at, order_at, active_at, classes_at, found_at, merged_at;
} detection;

/* A box that a suppression selected. */
typedef struct finding {
    uint32_t box, column;
    float score;
} finding;

/* ---- inputs as real values ---- */

static float real_at(const tq_tensor *tensor, size_t i)
{
    if (tensor->type == TQ_TensorType_FLOAT32)
        return ((const float *)tensor->data)[i];
    int q =
        tensor->type == TQ_TensorType_UINT8 ? ((const uint8_t *)tensor->data)[i] : ((const int8_t *)tensor->data)[i];
    return ((float)q - (float)tq_zero_point_of(tensor)) * tq_scale_of(tensor);
}

static void decode(const tq_node *node, const detection *d, float *boxes)
{
    const tq_tensor *encodings = node->in[ENCODINGS];
    size_t width = (size_t)encodings->shape.dims[2];
    TQ_EACH (i, d->boxes)
        for (size_t side = 0; side < 2; side++) {
            double position = real_at(node->in[ANCHORS], 4 * i + side);
            double size = real_at(node->in[ANCHORS], 4 * i + side + 2);
            double moved = (double)real_at(encodings, width * i + side) / (double)d->scale[side];
            double grown = (double)real_at(encodings, width * i + side + 2) / (double)d->scale[side + 2];
            float center = (float)(moved * size + position), half = (float)(0.5 * exp(grown) * size);
            boxes[4 * i + side] = center - half;
            boxes[4 * i + side + 2] = center + half;
        }
}

static const float *scores_of(const tq_node *node, const detection *d)
{
    const tq_tensor *scores = node->in[SCORES];
    if (scores->type == TQ_TensorType_FLOAT32)
        return scores->data;
    const float zero = (float)tq_zero_point_of(scores), scale = tq_scale_of(scores);
    const uint8_t *q = scores->data;
    const int8_t *signed_q = scores->data;
    float *values = tq_scratch_at(node, d->scores_at);
    if (scores->type == TQ_TensorType_UINT8) {
        TQ_EACH (i, d->boxes * d->columns)
            values[i] = ((float)q[i] - zero) * scale;
    } else {
        TQ_EACH (i, d->boxes * d->columns)
            values[i] = ((float)signed_q[i] - zero) * scale;
    }
    return values;
}

/* ---- suppression ---- */

/* Whether box a comes before box b: it has a greater score, or an equal score and a smaller index. */
static bool comes_first(const void *context, uint32_t a, uint32_t b)
{
    const float *scores = context;
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
}

/* Moves the selected boxes, at most `most`, to the front of `order`; *out: their number. */
static tq_status suppress(const tq_node *node, const detection *d, const float *scores, size_t most, uint32_t *order,
                          size_t *out)
{
    size_t work = 0;
    const float *boxes = tq_scratch_at(node, d->decoded_at);
    uint8_t *active = tq_scratch_at(node, d->active_at);
    size_t candidates = 0, taken = 0;
    for (size_t i = 0; i < d->boxes; i++)
        if (scores[i] >= d->score_threshold)
            order[candidates++] = (uint32_t)i;
    tq_sort_indices(order, candidates, comes_first, scores);
    if (tq_stop_now())
        return TQ_INTERRUPTED; /* `order` is not sorted */
    memset(active, 1, d->boxes);
    for (size_t i = 0; i < candidates && taken < most; i++) {
        if (!active[i])
            continue;
        if (tq_stop_count(&work, 4 * (candidates - i)))
            return TQ_INTERRUPTED;
        uint32_t box = order[i];
        order[taken++] = box; /* taken <= i: no candidate is lost */
        for (size_t j = i + 1; j < candidates; j++)
            if (active[j] && tq_box_overlap(boxes + 4 * (size_t)box, boxes + 4 * (size_t)order[j]) > d->iou_threshold)
                active[j] = 0;
    }
    *out = taken;
    return TQ_OK;
}

/* ---- the best classes of a box: std::partial_sort of libstdc++, which determines the order of equal scores ---- */

static void rise(uint32_t *heap, size_t hole, size_t top, uint32_t value, const float *scores)
{
    for (; hole > top && scores[heap[(hole - 1) / 2]] > scores[value]; hole = (hole - 1) / 2)
        heap[hole] = heap[(hole - 1) / 2];
    heap[hole] = value;
}

/* Moves a hole down to a leaf, then inserts `value` there and moves it up; the top has the least score. */
static void settle(uint32_t *heap, size_t hole, size_t count, uint32_t value, const float *scores)
{
    size_t top = hole, child = hole;
    while (child < (count - 1) / 2) {
        child = 2 * (child + 1);
        if (scores[heap[child]] > scores[heap[child - 1]])
            child--;
        heap[hole] = heap[child];
        hole = child;
    }
    if (count % 2 == 0 && child == (count - 2) / 2) {
        child = 2 * (child + 1);
        heap[hole] = heap[child - 1];
        hole = child - 1;
    }
    rise(heap, hole, top, value, scores);
}

/* The greatest score; NaN only where all are. */
static float greatest_of(const float *scores, size_t count)
{
    for (; count > 1 && *scores != *scores; count--)
        scores++;
    return tq_greatest_float(*scores, scores, count);
}

/* The first of the greatest scores. */
static uint32_t argmax(const float *scores, size_t count)
{
    const float greatest = greatest_of(scores, count);
    for (uint32_t i = 0; i < count; i++)
        if (scores[i] == greatest)
            return i;
    return 0;
}

/* heap[0 .. most): indices of the `most` greatest of `count` >= most scores, in descending order. */
static void best_classes(const float *scores, size_t count, size_t most, uint32_t *heap)
{
    if (most == 1) {
        heap[0] = argmax(scores, count);
        return;
    }
    for (uint32_t i = 0; i < most; i++)
        heap[i] = i;
    for (size_t i = most / 2; i-- > 0;)
        settle(heap, i, most, heap[i], scores);
    for (uint32_t i = (uint32_t)most; i < count && (i % TQ_CHUNK || !tq_stop_after(TQ_CHUNK)); i++)
        if (scores[i] > scores[heap[0]])
            settle(heap, 0, most, i, scores);
    for (size_t left = most; left-- > 1 && !tq_stop_after(16);) {
        uint32_t last = heap[left];
        heap[left] = heap[0];
        settle(heap, 0, left, last, scores);
    }
}

/* ---- outputs ---- */

static void put(const tq_node *node, const detection *d, size_t at, size_t box, size_t class_index, float score)
{
    float *boxes = node->out[BOXES]->data, *classes = node->out[CLASSES]->data, *best = node->out[BEST]->data;
    const float *decoded = tq_scratch_at(node, d->decoded_at);
    memcpy(boxes + 4 * at, decoded + 4 * box, 4 * sizeof *boxes);
    classes[at] = (float)class_index;
    best[at] = score;
}

static tq_status detect_fast(const tq_node *node, const detection *d, const float *scores, size_t *found)
{
    size_t work = 0;
    float *best = tq_scratch_at(node, d->best_at);
    uint32_t *order = tq_scratch_at(node, d->order_at), *classes = tq_scratch_at(node, d->classes_at);
    size_t background = d->columns - d->classes, each = d->each < d->classes ? d->each : d->classes;
    for (size_t i = 0; i < d->boxes; i++) {
        if (tq_stop_count(&work, d->classes))
            return TQ_INTERRUPTED;
        const float *row = scores + i * d->columns + background;
        if (each > 1) /* the heap's, which NaN moves */
            best_classes(row, d->classes, each, classes);
        best[i] = each > 1 ? row[classes[0]] : greatest_of(row, d->classes);
    }
    size_t count;
    TQ_TRY(suppress(node, d, best, d->most, order, &count));
    for (size_t i = 0; i < count && !tq_stop_count(&work, d->classes); i++) {
        const float *row = scores + order[i] * d->columns + background;
        best_classes(row, d->classes, each, classes);
        for (size_t k = 0; k < each; k++)
            put(node, d, i * d->each + k, order[i], classes[k], row[classes[k]]);
    }
    *found = count;
    return TQ_OK;
}

/* Merges two sorted lists into the first, and cuts it to `most` findings.  Of equal scores, the first list's come
   first. Returns the new count. */
static size_t merge(finding *found, size_t count, const finding *more, size_t more_count, size_t most, finding *scratch)
{
    size_t a = 0, b = 0, all = 0;
    while (all < most && (a < count || b < more_count))
        scratch[all++] = b == more_count || (a < count && !(more[b].score > found[a].score)) ? found[a++] : more[b++];
    memcpy(found, scratch, all * sizeof *found);
    return all;
}

static tq_status detect_regular(const tq_node *node, const detection *d, const float *scores, size_t *all)
{
    float *of_class = tq_scratch_at(node, d->best_at);
    uint32_t *order = tq_scratch_at(node, d->order_at);
    finding *found = tq_scratch_at(node, d->found_at), *scratch = tq_scratch_at(node, d->merged_at);
    finding *more = found + d->most;
    size_t background = d->columns - d->classes, count = 0, taken;
    for (size_t c = 0; c < d->classes; c++) {
        TQ_EACH (i, d->boxes)
            of_class[i] = scores[i * d->columns + c + background];
        TQ_TRY(suppress(node, d, of_class, d->per_class, order, &taken));
        for (size_t i = 0; i < taken; i++)
            more[i] = (finding){order[i], (uint32_t)c, of_class[order[i]]};
        count = merge(found, count, more, taken, d->most, scratch);
    }
    for (size_t i = 0; i < count; i++)
        put(node, d, i, found[i].box, found[i].column, found[i].score);
    *all = count;
    return TQ_OK;
}

static tq_status eval_detection(tq_node *node, tq_error *error)
{
    const detection *d = node->state;
    float *boxes = tq_scratch_at(node, d->decoded_at);
    decode(node, d, boxes);
    for (size_t i = 0; i < d->boxes; i++)
        if (boxes[4 * i] > boxes[4 * i + 2] || boxes[4 * i + 1] > boxes[4 * i + 3])
            return tq_op_fail(node, error, TQ_BAD_DATA,
                              "box %zu is decoded to end before it begins: "
                              "its anchor has a negative size",
                              i);
    for (int i = 0; i < COUNT; i++)
        memset(node->out[i]->data, 0, node->out[i]->bytes);
    const float *scores = scores_of(node, d);
    size_t found;
    TQ_TRY((d->regular ? detect_regular : detect_fast)(node, d, scores, &found));
    *(float *)node->out[COUNT]->data = (float)found;
    return TQ_OK;
}

/* ---- prepare ---- */

static tq_status check_tensors(const tq_node *node, tq_error *error)
{
    const unsigned types = TQ_T(FLOAT32) | TQ_T(UINT8) | TQ_T(INT8);
    for (int i = 0; i < 3; i++) {
        TQ_TRY(tq_check_input(node, i, types, error));
        TQ_TRY(tq_check_rank(node, i, i == ANCHORS ? 2 : 3, i == ANCHORS ? 2 : 3, error));
        if (node->in[i]->type != TQ_TensorType_FLOAT32)
            TQ_TRY(tq_check_input_scale(node, i, error));
        if (i != ANCHORS && node->in[i]->shape.dims[0] != 1)
            return tq_input_fail(node, i, error, "has a batch of %d; it needs 1", (int)node->in[i]->shape.dims[0]);
    }
    bool floats = node->in[ENCODINGS]->type == TQ_TensorType_FLOAT32;
    TQ_TRY(tq_check_input(node, ANCHORS, floats ? TQ_T(FLOAT32) : types & ~TQ_T(FLOAT32), error));
    for (int i = 0; i < 4; i++)
        TQ_TRY(tq_check_output(node, i, TQ_T(FLOAT32), error));
    return TQ_OK;
}

static tq_status check_sizes(const tq_node *node, tq_error *error)
{
    const int32_t *encodings = node->in[ENCODINGS]->shape.dims, *scores = node->in[SCORES]->shape.dims;
    const int32_t *anchors = node->in[ANCHORS]->shape.dims;
    if (encodings[2] < 4)
        return tq_input_fail(node, ENCODINGS, error, "has %d values for a box; it needs 4", (int)encodings[2]);
    if (scores[1] != encodings[1])
        return tq_input_fail(node, SCORES, error, "has scores of %d boxes; there are %d", (int)scores[1],
                             (int)encodings[1]);
    if (anchors[0] < encodings[1] || anchors[1] != 4)
        return tq_input_fail(node, ANCHORS, error, "has %d anchors of %d values; it needs %d of 4", (int)anchors[0],
                             (int)anchors[1], (int)encodings[1]);
    return TQ_OK;
}

static tq_status read_counts(const tq_node *node, detection *d, tq_error *error)
{
    int64_t most = 0, each = 0, per_class = 0, regular = 0, classes = 0, columns = node->in[SCORES]->shape.dims[2];
    TQ_TRY(tq_option_within(node, "max_detections", 0, INT32_MAX, &most, error));
    TQ_TRY(tq_option_within(node, "max_classes_per_detection", 1, INT32_MAX, &each, error));
    TQ_TRY(tq_option_within(node, "num_classes", 1, INT32_MAX, &classes, error));
    TQ_TRY(tq_option_int(node, "detections_per_class", 100, &per_class, error));
    TQ_TRY(tq_option_int(node, "use_regular_nms", 0, &regular, error));
    if (most * each > INT32_MAX)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "asks for %lld detections of %lld classes each, more than 2^31",
                          (long long)most, (long long)each);
    if (classes != columns && classes != columns - 1)
        return tq_input_fail(node, SCORES, error, "has scores of %lld classes; num_classes is %lld", (long long)columns,
                             (long long)classes);
    if (regular && (most < 1 || per_class < 1))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "asks for %lld detections, %lld of a class; it needs 1 at least", (long long)most,
                          (long long)per_class);
    d->boxes = (size_t)node->in[ENCODINGS]->shape.dims[1];
    d->columns = (size_t)columns;
    d->classes = (size_t)classes;
    d->most = (size_t)most;
    d->each = (size_t)each;
    d->per_class = (size_t)(per_class < most ? per_class : most);
    d->regular = regular != 0;
    return TQ_OK;
}

static tq_status read_options(const tq_node *node, detection *d, tq_error *error)
{
    static const char *const names[] = {"y_scale", "x_scale", "h_scale", "w_scale"};
    TQ_TRY(tq_option_float(node, "nms_score_threshold", &d->score_threshold, error));
    TQ_TRY(tq_option_float(node, "nms_iou_threshold", &d->iou_threshold, error));
    for (int i = 0; i < 4; i++)
        TQ_TRY(tq_option_float(node, names[i], &d->scale[i], error));
    if (!(d->iou_threshold > 0 && d->iou_threshold <= 1))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has nms_iou_threshold %g; it needs one above 0 and at most 1",
                          (double)d->iou_threshold);
    return TQ_OK;
}

/* All classes give at most max_detections results, one class at most detections_per_class. */
static tq_status request_scratch(tq_node *node, detection *d, tq_error *error)
{
    uint64_t total = 0, quantized = node->in[SCORES]->type != TQ_TensorType_FLOAT32;
    uint64_t findings = d->regular ? d->most + d->per_class : 0;
    d->decoded_at = tq_scratch_part(&total, d->boxes, 4 * sizeof(float));
    d->scores_at = tq_scratch_part(&total, quantized * d->boxes * d->columns, sizeof(float));
    d->best_at = tq_scratch_part(&total, d->boxes, sizeof(float));
    d->order_at = tq_scratch_part(&total, d->boxes, sizeof(uint32_t));
    d->active_at = tq_scratch_part(&total, d->boxes, 1);
    d->classes_at = tq_scratch_part(&total, d->classes, sizeof(uint32_t));
    d->found_at = tq_scratch_part(&total, findings, sizeof(finding));
    d->merged_at = tq_scratch_part(&total, findings, sizeof(finding));
    return tq_node_scratch(node, total, error);
}

tq_status tq_prepare_detection_postprocess(tq_node *node, tq_error *error)
{
    detection *d = NULL;
    TQ_TRY(check_tensors(node, error));
    TQ_TRY(check_sizes(node, error));
    TQ_TRY(tq_node_state(node, sizeof *d, &d, error));
    TQ_TRY(read_counts(node, d, error));
    TQ_TRY(read_options(node, d, error));
    TQ_TRY(request_scratch(node, d, error));
    int32_t m = (int32_t)(d->most * d->each);
    tq_shape boxes = {3, {1, m, 4}}, each = {2, {1, m}}, count = {1, {1}};
    TQ_TRY(tq_output_shape(node, BOXES, &boxes, error));
    TQ_TRY(tq_output_shape(node, CLASSES, &each, error));
    TQ_TRY(tq_output_shape(node, BEST, &each, error));
    node->eval = eval_detection;
    /* comparisons of each selected box with each other box, for each class */
    tq_node_work(node, (uint64_t)d->boxes * (d->regular ? d->classes : 1), d->regular ? d->per_class : d->most);
    return tq_output_shape(node, COUNT, &count, error);
}
