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

#include "base/sizes.h"
#include "ops/check.h"
#include "ops/custom_options.h"
#include "ops/detection/boxes.h"
#include "ops/parallel.h"
#include "ops/reductions/byte_runs.h"
#include "ops/reductions/float_runs.h"
#include "ops/scratch.h"

enum { ENCODINGS, SCORES, ANCHORS };
enum { BOXES, CLASSES, BEST, COUNT };

typedef struct detection {
    size_t boxes, columns, classes; /* columns: of the scores, with the background */
    size_t most, each, per_class;   /* max_detections, max_classes_per_detection, detections_per_class <= most */
    bool regular, has_float_scores;
    float score_threshold, iou_threshold;
    float scale[4];
    float values[3][256]; /* of quantized inputs, by their bits */
    uint64_t best_at, keys_at, live_at, chosen_at, row_at, classes_at, found_at, merged_at;
} detection;

/* A box that a suppression selected. */
typedef struct finding {
    uint32_t box, column;
    float score;
} finding;

/* ---- inputs as real values ---- */

static float real_at(const tq_node *node, const detection *d, int input, size_t i)
{
    const tq_tensor *tensor = node->in[input];
    return tensor->type == TQ_TensorType_FLOAT32 ? ((const float *)tensor->data)[i]
                                                 : d->values[input][((const uint8_t *)tensor->data)[i]];
}

static void fill_values(const tq_node *node, int input, float values[256])
{
    const tq_tensor *tensor = node->in[input];
    for (int bits = 0; bits < 256; bits++) {
        const int q = tensor->type == TQ_TensorType_UINT8 ? bits : (int8_t)bits;
        values[bits] = ((float)q - (float)tq_zero_point_of(tensor)) * tq_scale_of(tensor);
    }
}

static void decode(const tq_node *node, const detection *d, size_t i, float box[4])
{
    size_t width = (size_t)node->in[ENCODINGS]->shape.dims[2];
    for (size_t side = 0; side < 2; side++) {
        double position = real_at(node, d, ANCHORS, 4 * i + side);
        double size = real_at(node, d, ANCHORS, 4 * i + side + 2);
        double moved = (double)real_at(node, d, ENCODINGS, width * i + side) / (double)d->scale[side];
        double grown = (double)real_at(node, d, ENCODINGS, width * i + side + 2) / (double)d->scale[side + 2];
        float center = (float)(moved * size + position), half = (float)(0.5 * exp(grown) * size);
        box[side] = center - half;
        box[side + 2] = center + half;
    }
}

/* Boxes end before they begin only where an anchor has a negative size. */
static tq_status check_boxes(const tq_node *node, const detection *d, tq_error *error)
{
    for (size_t i = 0; i < d->boxes; i++) {
        float box[4];
        if (!(real_at(node, d, ANCHORS, 4 * i + 2) < 0 || real_at(node, d, ANCHORS, 4 * i + 3) < 0))
            continue;
        decode(node, d, i, box);
        if (box[0] > box[2] || box[1] > box[3])
            return tq_op_fail(node, error, TQ_BAD_DATA,
                              "box %zu is decoded to end before it begins: "
                              "its anchor has a negative size",
                              i);
    }
    return TQ_OK;
}

/* ---- the greatest score of each box ---- */

typedef struct rows {
    const detection *d;
    const void *scores; /* of the first class of the first box */
    int flip;           /* of quantized scores: byte_runs.h */
    bool marks_nan;     /* the best of a row with a NaN is NaN; else only of a row of nothing else */
    float *best;
} rows;
typedef void (*rows_fn)(const rows *r, size_t begin, size_t end);

TQ_BODY float greatest_float(const float *scores, size_t count, bool marks_nan)
{
    int is_nan = 0;
    for (size_t i = 0; marks_nan && i < count; i++)
        is_nan |= scores[i] != scores[i];
    if (is_nan)
        return NAN;
    for (; count > 1 && *scores != *scores; count--)
        scores++;
    return tq_greatest_float(*scores, scores, count);
}

#define GREATEST(isa, target)                                                                                       \
    target static void floats_##isa(const rows *r, size_t begin, size_t end)                                        \
    {                                                                                                               \
        for (size_t i = begin; i < end; i++)                                                                        \
            r->best[i] = greatest_float((const float *)r->scores + i * r->d->columns, r->d->classes, r->marks_nan); \
    }                                                                                                               \
    target static void bytes_##isa(const rows *r, size_t begin, size_t end)                                         \
    {                                                                                                               \
        for (size_t i = begin; i < end; i++) {                                                                      \
            const int8_t key =                                                                                      \
                tq_greatest_byte((const uint8_t *)r->scores + i * r->d->columns, r->flip, r->d->classes);           \
            r->best[i] = r->d->values[SCORES][(uint8_t)(key ^ r->flip)];                                            \
        }                                                                                                           \
    }
TQ_EVERY_ISA(GREATEST)

static void find_greatest(void *context, size_t begin, size_t end)
{
    static const rows_fn floats[TQ_ISAS] = TQ_ISA_FUNCTIONS(floats), bytes[TQ_ISAS] = TQ_ISA_FUNCTIONS(bytes);
    enum { ROWS = 64 }; /* between which Ctrl-C is heard */
    const rows *r = context;
    const rows_fn *bodies = r->d->has_float_scores ? floats : bytes;
    for (size_t i = begin; i < end && !tq_stop_after(ROWS * r->d->classes); i += ROWS)
        bodies[tq_isa()](r, i, tq_min_size(i + ROWS, end));
}

static tq_status greatest_scores(const tq_node *node, const detection *d, float *best)
{
    enum { COST = 60 }; /* picoseconds a score */
    const size_t background = d->columns - d->classes, bytes = d->has_float_scores ? sizeof(float) : 1;
    rows r = {.d = d,
              .scores = (const char *)node->in[SCORES]->data + background * bytes,
              .flip = node->in[SCORES]->type == TQ_TensorType_UINT8 ? 128 : 0,
              .marks_nan = !d->regular && d->each > 1,
              .best = best};
    tq_parallel_work(d->boxes, 1, d->classes * COST, node->threads, find_greatest, &r);
    return tq_stop_now() ? TQ_INTERRUPTED : TQ_OK;
}

/* ---- suppression ---- */

/* A score, no NaN, and its box as one number.  The greater score has the greater one, and of equal scores the smaller
   box.  No key is 0. */
static inline uint64_t key_of(float score, size_t box)
{
    const float sum = score + 0.0f; /* both zeros are one */
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | 1u << 31;
    return (uint64_t)bits << 32 | (UINT32_MAX - (uint32_t)box);
}

static inline uint32_t box_of(uint64_t key)
{
    return UINT32_MAX - (uint32_t)key;
}

/* Keys in a heap, the greatest in front: only some of them are ever needed in order. */
typedef struct queue {
    uint64_t *keys;
    size_t count;
} queue;

/* Moves the key at a place down, below all that are greater. */
static void sink(const queue *q, size_t at)
{
    const uint64_t key = q->keys[at];
    for (size_t child; (child = 2 * at + 1) < q->count; at = child) {
        child += child + 1 < q->count && q->keys[child + 1] > q->keys[child];
        if (q->keys[child] < key)
            break;
        q->keys[at] = q->keys[child];
    }
    q->keys[at] = key;
}

static void order_queue(const queue *q)
{
    for (size_t i = q->count / 2; i-- > 0;)
        sink(q, i);
}

/* Takes the first key of a queue that is not empty. */
static uint64_t take(queue *q)
{
    const uint64_t first = q->keys[0];
    q->keys[0] = q->keys[--q->count];
    if (q->count > 0)
        sink(q, 0);
    return first;
}

/* The boxes that a suppression selected. */
typedef struct selection {
    size_t count, most;
    float *sides[4]; /* top, left, bottom, right */
    uint32_t *boxes;
} selection;

static selection selection_of(const tq_node *node, const detection *d, size_t most)
{
    selection s = {.most = tq_min_size(most, d->boxes)};
    float *sides = tq_scratch_at(node, d->chosen_at);
    for (size_t k = 0; k < 4; k++)
        s.sides[k] = sides + k * s.most;
    s.boxes = (uint32_t *)(void *)(sides + 4 * s.most);
    return s;
}

/* Whether a box overlaps one of the selection too much. */
TQ_BODY bool overlaps(const selection *s, const float box[4], float threshold)
{
    enum { SOME = 64 };
    const float *top = s->sides[0], *left = s->sides[1], *bottom = s->sides[2], *right = s->sides[3];
    int found = 0;
    for (size_t begin = 0; begin < s->count && !found; begin += SOME)
        for (size_t i = begin; i < tq_min_size(begin + SOME, s->count); i++) {
            const float other[4] = {top[i], left[i], bottom[i], right[i]};
            found |= tq_box_overlap(other, box) > threshold;
        }
    return found;
}
#define OVERLAPS(isa, target)                                                                  \
    target static bool overlaps_##isa(const selection *s, const float box[4], float threshold) \
    {                                                                                          \
        return overlaps(s, box, threshold);                                                    \
    }
TQ_EVERY_ISA(OVERLAPS)

/* Selects boxes of the queue, and empties it in part. */
static tq_status suppress(const tq_node *node, const detection *d, queue *q, selection *s)
{
    static bool (*const bodies[TQ_ISAS])(const selection *, const float[4], float) = TQ_ISA_FUNCTIONS(overlaps);
    size_t work = 0;
    order_queue(q);
    while (q->count > 0 && s->count < s->most) {
        if (tq_stop_count(&work, 32 + s->count))
            return TQ_INTERRUPTED;
        const uint32_t i = box_of(take(q));
        float box[4];
        decode(node, d, i, box);
        if (bodies[tq_isa()](s, box, d->iou_threshold))
            continue;
        for (size_t k = 0; k < 4; k++)
            s->sides[k][s->count] = box[k];
        s->boxes[s->count++] = i;
    }
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

/* The first of the greatest scores. */
static uint32_t argmax(const float *scores, size_t count)
{
    const float greatest = greatest_float(scores, count, false);
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
    decode(node, d, box, boxes + 4 * at);
    classes[at] = (float)class_index;
    best[at] = score;
}

/* The scores of a box's classes. */
static const float *row_of(const tq_node *node, const detection *d, size_t box)
{
    const size_t at = box * d->columns + d->columns - d->classes;
    float *row = tq_scratch_at(node, d->row_at);
    if (d->has_float_scores)
        return (const float *)node->in[SCORES]->data + at;
    TQ_EACH (i, d->classes)
        row[i] = real_at(node, d, SCORES, at + i);
    return row;
}

static tq_status detect_fast(const tq_node *node, const detection *d, size_t *found)
{
    size_t work = 0;
    float *best = tq_scratch_at(node, d->best_at);
    uint32_t *classes = tq_scratch_at(node, d->classes_at);
    queue q = {.keys = tq_scratch_at(node, d->keys_at)};
    selection s = selection_of(node, d, d->most);
    const size_t each = tq_min_size(d->each, d->classes);
    TQ_TRY(greatest_scores(node, d, best));
    for (size_t i = 0; i < d->boxes; i++) {
        if (each > 1 && best[i] != best[i]) { /* the first of the heap, which NaN moves */
            const float *row = row_of(node, d, i);
            best_classes(row, d->classes, each, classes);
            best[i] = row[classes[0]];
            if (tq_stop_count(&work, d->classes))
                return TQ_INTERRUPTED;
        }
        q.keys[q.count] = key_of(best[i], i);
        q.count += best[i] >= d->score_threshold;
    }
    TQ_TRY(suppress(node, d, &q, &s));
    for (size_t i = 0; i < s.count && !tq_stop_count(&work, d->classes); i++) {
        const float *row = row_of(node, d, s.boxes[i]);
        best_classes(row, d->classes, each, classes);
        for (size_t k = 0; k < each; k++)
            put(node, d, i * d->each + k, s.boxes[i], classes[k], row[classes[k]]);
    }
    *found = s.count;
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

/* The boxes whose scores of class c count and are greater than `above`, a key.  Those of which no class can be go from
   the list of the live. */
static queue candidates(const tq_node *node, const detection *d, size_t c, uint64_t above, size_t *live_count)
{
    const float *best = tq_scratch_at(node, d->best_at);
    uint32_t *live = tq_scratch_at(node, d->live_at);
    queue q = {.keys = tq_scratch_at(node, d->keys_at)};
    const size_t first = d->columns - d->classes + c, count = *live_count;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t box = live[i];
        const float score = real_at(node, d, SCORES, box * d->columns + first);
        live[kept] = box;
        kept += best[box] >= d->score_threshold && key_of(best[box], box) > above;
        q.keys[q.count] = key_of(score, box);
        q.count += score >= d->score_threshold && q.keys[q.count] > above;
    }
    *live_count = kept;
    return q;
}

/* Where max_detections are found, a class adds only scores above the least of them. */
static tq_status detect_regular(const tq_node *node, const detection *d, size_t *all)
{
    uint32_t *live = tq_scratch_at(node, d->live_at);
    finding *found = tq_scratch_at(node, d->found_at), *scratch = tq_scratch_at(node, d->merged_at);
    finding *more = found + d->most;
    size_t count = 0, live_count = d->boxes, work = 0;
    TQ_TRY(greatest_scores(node, d, tq_scratch_at(node, d->best_at)));
    for (uint32_t i = 0; i < d->boxes; i++)
        live[i] = i;
    for (size_t c = 0; c < d->classes; c++) {
        if (tq_stop_count(&work, live_count))
            return TQ_INTERRUPTED;
        queue q = candidates(node, d, c, count == d->most ? key_of(found[count - 1].score, 0) : 0, &live_count);
        selection s = selection_of(node, d, d->per_class);
        TQ_TRY(suppress(node, d, &q, &s));
        for (size_t i = 0; i < s.count; i++) {
            const size_t at = s.boxes[i] * d->columns + d->columns - d->classes + c;
            more[i] = (finding){s.boxes[i], (uint32_t)c, real_at(node, d, SCORES, at)};
        }
        count = merge(found, count, more, s.count, d->most, scratch);
    }
    for (size_t i = 0; i < count; i++)
        put(node, d, i, found[i].box, found[i].column, found[i].score);
    *all = count;
    return TQ_OK;
}

static tq_status eval_detection(tq_node *node, tq_error *error)
{
    const detection *d = node->state;
    size_t found;
    TQ_TRY(check_boxes(node, d, error));
    for (int i = 0; i < COUNT; i++)
        memset(node->out[i]->data, 0, node->out[i]->bytes);
    TQ_TRY((d->regular ? detect_regular : detect_fast)(node, d, &found));
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
    d->has_float_scores = node->in[SCORES]->type == TQ_TensorType_FLOAT32;
    for (int i = 0; i < 3; i++)
        fill_values(node, i, d->values[i]);
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
    uint64_t total = 0, findings = d->regular ? d->most + d->per_class : 0;
    const size_t selected = tq_min_size(d->regular ? d->per_class : d->most, d->boxes);
    d->best_at = tq_scratch_part(&total, d->boxes, sizeof(float));
    d->keys_at = tq_scratch_part(&total, d->boxes, sizeof(uint64_t));
    d->live_at = tq_scratch_part(&total, d->regular * d->boxes, sizeof(uint32_t));
    d->chosen_at = tq_scratch_part(&total, selected, 4 * sizeof(float) + sizeof(uint32_t));
    d->row_at = tq_scratch_part(&total, d->classes, sizeof(float));
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
