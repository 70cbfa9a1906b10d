/* SPDX-License-Identifier: Apache-2.0
 *
 * tflite-micro's operators that cut a stream of INT16 samples into frames, and join frames to a stream.  They
 * hold samples from one invoke to the next.
 *
 *   SignalFramer       [..., n * step] to n frames of frame_size, one for each step, and whether all are complete
 *   SignalStacker      [channels] to the last left + 1 + right inputs, every stacker_step invokes, and whether there
 *                      are so many; the first input is repeated `left` times
 *   SignalDelay        each row delay_length samples later
 *   SignalOverlapAdd   [..., n, frame] to [..., n * step]: frames that overlap are added; INT16 saturates, or FLOAT32
 *
 * Output elements for which there are no samples yet are 0; tflite-micro does not write them.
 * Source: tflite-micro, signal/micro/kernels/{framer,stacker,delay,overlap_add}.cc, signal/src/circular_buffer.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/custom_options.h"

/* A queue of samples for each row. */
typedef struct queues {
    size_t rows, capacity;
    size_t *count;    /* [rows] */
    int16_t *samples; /* [rows, capacity], the oldest first */
} queues;

static tq_status make_queues(tq_node *node, size_t rows, size_t capacity, queues *out, tq_error *error)
{
    queues q = {rows, capacity, NULL, NULL};
    TQ_TRY(tq_node_memory(node, rows, sizeof *q.count, &q.count, error));
    TQ_TRY(tq_node_memory(node, (uint64_t)rows * capacity, sizeof *q.samples, &q.samples, error));
    *out = q;
    return TQ_OK;
}

/* Appends n samples, or zeros if from is NULL; count + n <= capacity. */
static void push(const queues *q, size_t row, const int16_t *from, size_t n)
{
    int16_t *to = q->samples + row * q->capacity + q->count[row];
    if (from && n > 0)
        memcpy(to, from, n * sizeof *to);
    else if (n > 0)
        memset(to, 0, n * sizeof *to);
    q->count[row] += n;
}

/* Removes the oldest n samples, n <= count. */
static void drop(const queues *q, size_t row, size_t n)
{
    int16_t *samples = q->samples + row * q->capacity;
    q->count[row] -= n;
    memmove(samples, samples + n, q->count[row] * sizeof *samples);
}

/* Empties all queues, then appends n zeros to each. */
static void restart(const queues *q, size_t n)
{
    for (size_t row = 0; row < q->rows; row++) {
        q->count[row] = 0;
        push(q, row, NULL, n);
    }
}

/* Output 1 is a BOOL: whether the frames are complete. */
static tq_status check_valid(const tq_node *node, tq_error *error)
{
    return tq_check_output(node, 1, TQ_T(BOOL), error);
}

static tq_status check_samples(const tq_node *node, int high, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(INT16), error));
    TQ_TRY(tq_check_rank(node, 0, 1, high, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    int32_t last = node->in[0]->shape.dims[node->in[0]->shape.rank - 1];
    return last > 0 ? TQ_OK : tq_input_fail(node, 0, error, "has rows of no samples");
}

/* ---- SignalFramer ---- */

typedef struct framer {
    queues queues;
    size_t frame, step, frames;
    bool prefill;
} framer;

static tq_status eval_framer(tq_node *node, tq_error *error)
{
    (void)error;
    const framer *s = node->state;
    const int16_t *in = node->in[0]->data;
    int16_t *out = node->out[0]->data;
    bool valid = true;
    for (size_t row = 0; row < s->queues.rows; row++)
        for (size_t k = 0; k < s->frames && !tq_stop_after(s->frame / 8); k++, in += s->step, out += s->frame) {
            push(&s->queues, row, in, s->step);
            if (s->queues.count[row] >= s->frame) {
                memcpy(out, s->queues.samples + row * s->queues.capacity, s->frame * sizeof *out);
                drop(&s->queues, row, s->step);
            } else {
                memset(out, 0, s->frame * sizeof *out);
                valid = false;
            }
        }
    *(uint8_t *)node->out[1]->data = valid;
    return TQ_OK;
}

static void reset_framer(tq_node *node)
{
    const framer *s = node->state;
    restart(&s->queues, s->prefill ? s->frame - s->step : 0);
}

tq_status tq_prepare_signal_framer(tq_node *node, tq_error *error)
{
    framer *s = NULL;
    int64_t frame = 0, step = 0, prefill = 0;
    tq_shape scalar = {0};
    TQ_TRY(check_samples(node, TQ_DIMS - 1, error));
    TQ_TRY(check_valid(node, error));
    tq_shape shape = node->in[0]->shape;
    int32_t *last = &shape.dims[shape.rank - 1];
    TQ_TRY(tq_option_within(node, "frame_size", 1, INT32_MAX / 2, &frame, error));
    TQ_TRY(tq_option_within(node, "frame_step", 1, *last, &step, error));
    TQ_TRY(tq_option_int(node, "prefill", 0, &prefill, error));
    if (*last % step)
        return tq_input_fail(node, 0, error, "has rows of %d samples, no multiple of frame_step %lld", (int)*last,
                             (long long)step);
    if (prefill && frame < step)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has prefill, frame_size %lld and a greater frame_step %lld",
                          (long long)frame, (long long)step);
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    *s = (framer){.frame = (size_t)frame, .step = (size_t)step, .prefill = prefill != 0};
    s->frames = (size_t)(*last / step);
    size_t capacity = (s->frame + s->step - 1) / s->step * s->step;
    TQ_TRY(make_queues(node, tq_shape_span(&shape, 0, shape.rank - 1), capacity, &s->queues, error));
    *last = (int32_t)s->frames;
    shape.dims[shape.rank++] = (int32_t)frame;
    node->eval = eval_framer;
    node->reset = reset_framer;
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    return tq_output_shape(node, 1, &scalar, error);
}

/* ---- SignalStacker ---- */

typedef struct stacker {
    queues queues;
    size_t channels, left, step;
    bool begun;
} stacker;

static tq_status eval_stacker(tq_node *node, tq_error *error)
{
    (void)error;
    stacker *s = node->state;
    const queues *q = &s->queues;
    const size_t pushes = s->begun ? 0 : s->left;
    for (size_t i = 0; i <= pushes; i++)
        push(q, 0, node->in[0]->data, s->channels);
    s->begun = true;
    bool valid = q->count[0] == q->capacity;
    if (valid) {
        memcpy(node->out[0]->data, q->samples, node->out[0]->bytes);
        drop(q, 0, s->step * s->channels);
    } else {
        memset(node->out[0]->data, 0, node->out[0]->bytes);
    }
    *(uint8_t *)node->out[1]->data = valid;
    return TQ_OK;
}

static void reset_stacker(tq_node *node)
{
    stacker *s = node->state;
    s->begun = false;
    restart(&s->queues, 0);
}

tq_status tq_prepare_signal_stacker(tq_node *node, tq_error *error)
{
    stacker *s = NULL;
    int64_t channels = 0, left = 0, right = 0, step = 0;
    tq_shape scalar = {0};
    TQ_TRY(check_samples(node, 1, error));
    TQ_TRY(check_valid(node, error));
    int32_t count = node->in[0]->shape.dims[0];
    TQ_TRY(tq_option_within(node, "num_channels", count, count, &channels, error));
    TQ_TRY(tq_option_within(node, "stacker_left_context", 0, 1 << 24, &left, error));
    TQ_TRY(tq_option_within(node, "stacker_right_context", 0, 1 << 24, &right, error));
    TQ_TRY(tq_option_within(node, "stacker_step", 1, left + right + 1, &step, error));
    if (channels * (left + right + 1) > INT32_MAX)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "stacks %lld rows of %lld samples, more than 2^31",
                          (long long)(left + right + 1), (long long)channels);
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    *s = (stacker){.channels = (size_t)channels, .left = (size_t)left, .step = (size_t)step};
    tq_shape shape = {1, {(int32_t)(channels * (left + right + 1))}};
    TQ_TRY(make_queues(node, 1, (size_t)shape.dims[0], &s->queues, error));
    node->eval = eval_stacker;
    node->reset = reset_stacker;
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    return tq_output_shape(node, 1, &scalar, error);
}

/* ---- SignalDelay ---- */

typedef struct delay {
    queues queues;
    size_t length, row;
} delay;

static tq_status eval_delay(tq_node *node, tq_error *error)
{
    (void)error;
    const delay *s = node->state;
    const int16_t *in = node->in[0]->data;
    int16_t *out = node->out[0]->data;
    for (size_t row = 0; row < s->queues.rows && !tq_stop_after(s->queues.capacity / 8); row++) {
        push(&s->queues, row, in + row * s->row, s->row);
        memcpy(out + row * s->row, s->queues.samples + row * s->queues.capacity, s->row * sizeof *out);
        drop(&s->queues, row, s->row);
    }
    return TQ_OK;
}

static void reset_delay(tq_node *node)
{
    const delay *s = node->state;
    restart(&s->queues, s->length);
}

tq_status tq_prepare_signal_delay(tq_node *node, tq_error *error)
{
    delay *s = NULL;
    int64_t length = 0;
    TQ_TRY(check_samples(node, TQ_DIMS, error));
    TQ_TRY(tq_option_within(node, "delay_length", 0, INT32_MAX / 2, &length, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    const tq_shape *shape = &node->in[0]->shape;
    s->length = (size_t)length;
    s->row = (size_t)shape->dims[shape->rank - 1];
    TQ_TRY(make_queues(node, tq_shape_span(shape, 0, shape->rank - 1), s->length + s->row, &s->queues, error));
    node->eval = eval_delay;
    node->reset = reset_delay;
    return tq_output_shape(node, 0, shape, error);
}

/* ---- SignalOverlapAdd ---- */

typedef struct overlap {
    size_t rows, frames, frame, step;
    void *sums; /* [rows, frame] */
} overlap;

static void add_i16(int16_t *to, const int16_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t sum = to[i] + from[i];
        to[i] = (int16_t)(sum < INT16_MIN ? INT16_MIN : sum > INT16_MAX ? INT16_MAX : sum);
    }
}

static void add_f32(float *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static tq_status eval_overlap_add(tq_node *node, tq_error *error)
{
    (void)error;
    const overlap *s = node->state;
    bool floats = node->in[0]->type == TQ_TensorType_FLOAT32;
    size_t bytes = tq_element_bytes(node->in[0]->type), step = s->step * bytes, frame = s->frame * bytes;
    const char *in = node->in[0]->data;
    char *out = node->out[0]->data;
    for (size_t k = 0; k < s->rows * s->frames && !tq_stop_after(s->frame); k++, in += frame, out += step) {
        char *sums = (char *)s->sums + k / s->frames * frame;
        if (floats)
            add_f32((float *)(void *)sums, (const float *)(const void *)in, s->frame);
        else
            add_i16((int16_t *)(void *)sums, (const int16_t *)(const void *)in, s->frame);
        memcpy(out, sums, step);
        memmove(sums, sums + step, frame - step);
        memset(sums + frame - step, 0, step);
    }
    return TQ_OK;
}

static void reset_overlap_add(tq_node *node)
{
    const overlap *s = node->state;
    memset(s->sums, 0, s->rows * s->frame * tq_element_bytes(node->in[0]->type));
}

tq_status tq_prepare_signal_overlap_add(tq_node *node, tq_error *error)
{
    overlap *s = NULL;
    int64_t step = 0, type = 0;
    TQ_TRY(tq_check_input(node, 0, TQ_T(INT16) | TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 2, TQ_DIMS, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    tq_shape shape = node->in[0]->shape;
    int32_t frame = shape.dims[shape.rank - 1], frames = shape.dims[shape.rank - 2];
    TQ_TRY(tq_option_within(node, "frame_step", 1, frame, &step, error));
    TQ_TRY(tq_option_int(node, "T", node->in[0]->type, &type, error));
    if (type != node->in[0]->type)
        return tq_input_fail(node, 0, error, "is %s; option T says %s", tq_type_name(node->in[0]->type),
                             tq_type_name(type));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    *s = (overlap){tq_shape_span(&shape, 0, shape.rank - 2), (size_t)frames, (size_t)frame, (size_t)step, NULL};
    TQ_TRY(tq_node_memory(node, (uint64_t)s->rows * s->frame, tq_element_bytes(node->in[0]->type), &s->sums, error));
    if (frames * step > INT32_MAX)
        return tq_input_fail(node, 0, error, "has %d frames of %lld steps, more than 2^31", (int)frames,
                             (long long)step);
    shape.dims[shape.rank - 2] = (int32_t)(frames * step);
    shape.rank--;
    node->eval = eval_overlap_add;
    node->reset = reset_overlap_add;
    return tq_output_shape(node, 0, &shape, error);
}
