/* SPDX-License-Identifier: Apache-2.0
 *
 * tflite-micro's audio frontend, up to the spectrum.
 *
 *   SignalWindow         clamp16(x * weight >> shift), the weights repeated over each frame
 *   SignalFftAutoScale   the frame times the greatest power of two without overflow, and the exponent
 *   SignalRfft           of frames, padded with 0 to fft_length, as interleaved complex values (real_fft.h)
 *   SignalIrfft          back; FLOAT32 is divided by fft_length
 *   SignalEnergy         re^2 + im^2 of bins [start_index, end_index); 0 for the others
 *
 * Source: tflite-micro, signal/micro/kernels and signal/src, which does not write other
 * bins.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/custom_options.h"
#include "ops/signal/real_fft.h"

/* ---- SignalWindow ---- */

typedef struct window {
    int shift;
} window;

static tq_status eval_window(tq_node *node, tq_error *error)
{
    (void)error;
    const window *s = node->state;
    const int16_t *x = node->in[0]->data, *weights = node->in[1]->data;
    int16_t *out = node->out[0]->data;
    const size_t period = tq_tensor_count(node->in[1]), count = tq_tensor_count(node->in[0]);
    TQ_EACH (i, count) {
        int32_t value = ((int32_t)x[i] * weights[i % period]) >> s->shift;
        out[i] = (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value);
    }
    return TQ_OK;
}

tq_status tq_prepare_signal_window(tq_node *node, tq_error *error)
{
    window *s = NULL;
    int64_t shift = 0;
    TQ_TRY(tq_check_input(node, 0, TQ_T(INT16), error));
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS, error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT16), error));
    TQ_TRY(tq_check_rank(node, 1, 1, 1, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_option_within(node, "shift", 0, 31, &shift, error));
    size_t count = tq_tensor_count(node->in[0]), period = tq_tensor_count(node->in[1]);
    if (period == 0 || count % period != 0)
        return tq_input_fail(node, 1, error, "has %zu weights for %zu samples; it needs a divisor of them", period,
                             count);
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->shift = (int)shift;
    node->eval = eval_window;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}

/* ---- SignalFftAutoScale ---- */

/* The greatest magnitude in 16 bits, where |-32768| wraps to -32768, the least. */
static int16_t largest(const int16_t *x, size_t count)
{
    int16_t most = 0;
    TQ_EACH (i, count)
        if (x[i] > most)
            most = x[i];
        else if (-x[i] > most)
            most = x[i] == INT16_MIN ? INT16_MIN : (int16_t)-x[i];
    return most;
}

static tq_status eval_auto_scale(tq_node *node, tq_error *error)
{
    (void)error;
    const int16_t *x = node->in[0]->data;
    int16_t *out = node->out[0]->data;
    size_t count = tq_tensor_count(node->in[0]);
    int16_t most = largest(x, count);
    int bits = 0;
    if (most > 0)
        for (bits = 14; most >> (15 - bits); bits--)
            ;
    TQ_EACH (i, count)
        out[i] = (int16_t)(uint16_t)((uint32_t)(int32_t)x[i] << bits);
    *(int32_t *)node->out[1]->data = bits;
    return TQ_OK;
}

tq_status tq_prepare_signal_fft_auto_scale(tq_node *node, tq_error *error)
{
    tq_shape scalar = {0};
    TQ_TRY(tq_check_input(node, 0, TQ_T(INT16), error));
    TQ_TRY(tq_check_rank(node, 0, 1, 1, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_output(node, 1, TQ_T(INT32), error));
    node->eval = eval_auto_scale;
    TQ_TRY(tq_output_shape(node, 0, &node->in[0]->shape, error));
    return tq_output_shape(node, 1, &scalar, error);
}

/* ---- SignalRfft, SignalIrfft ---- */

typedef struct transform {
    tq_real_fft fft;
    size_t frames, in, out; /* values of a frame */
} transform;

static void transform_frame(const transform *s, int32_t type, const void *in, void *out, void *scratch)
{
    if (type == TQ_TensorType_INT16) {
        tq_real_fft_i16(&s->fft, in, out, scratch);
    } else if (type == TQ_TensorType_INT32) {
        tq_real_fft_i32(&s->fft, in, out, scratch);
    } else {
        float *values = out;
        tq_real_fft_f32(&s->fft, in, out, scratch);
        for (size_t i = 0; s->fft.inverse && i < s->out; i++)
            values[i] /= (float)s->out;
    }
}

static tq_status eval_transform(tq_node *node, tq_error *error)
{
    (void)error;
    const transform *s = node->state;
    int32_t type = node->in[0]->type;
    size_t bytes = tq_element_bytes(type), length = 2 * (size_t)s->fft.half;
    char *frame = node->scratch, *scratch = frame + length * bytes;
    for (size_t i = 0; i < s->frames && !tq_stop_after(length); i++) {
        const char *in = (const char *)node->in[0]->data + i * s->in * bytes;
        char *out = (char *)node->out[0]->data + i * s->out * bytes;
        if (!s->fft.inverse && s->in < length) {
            memset(frame, 0, length * bytes);
            memcpy(frame, in, s->in * bytes);
            in = frame;
        }
        transform_frame(s, type, in, out, scratch);
    }
    return TQ_OK;
}

static tq_status prepare_transform(tq_node *node, bool inverse, tq_error *error)
{
    transform *s = NULL;
    int64_t length = 0, type = 0;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT16) | TQ_T(INT32), error));
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_option_within(node, "fft_length", 0, INT32_MAX, &length, error));
    TQ_TRY(tq_option_int(node, "T", node->in[0]->type, &type, error));
    if (type != node->in[0]->type)
        return tq_input_fail(node, 0, error, "is %s; option T says %s", tq_type_name(node->in[0]->type),
                             tq_type_name(type));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(tq_real_fft_make(node, node->in[0]->type, length, inverse, &s->fft, error));
    tq_shape shape = node->in[0]->shape;
    int32_t *last = &shape.dims[shape.rank - 1];
    if (inverse ? *last != length + 2 : *last > length)
        return tq_input_fail(node, 0, error, "has frames of %d values; fft_length %lld needs %s %lld", (int)*last,
                             (long long)length, inverse ? "" : "at most", (long long)length + (inverse ? 2 : 0));
    s->in = (size_t)*last;
    s->frames = tq_shape_span(&shape, 0, shape.rank - 1);
    *last = (int32_t)(inverse ? length : length + 2);
    s->out = (size_t)*last;
    TQ_TRY(tq_node_scratch(node, (uint64_t)length * 2 * tq_element_bytes(node->in[0]->type), error));
    node->eval = eval_transform;
    return tq_output_shape(node, 0, &shape, error);
}

tq_status tq_prepare_signal_rfft(tq_node *node, tq_error *error)
{
    return prepare_transform(node, false, error);
}

tq_status tq_prepare_signal_irfft(tq_node *node, tq_error *error)
{
    return prepare_transform(node, true, error);
}

/* ---- SignalEnergy ---- */

typedef struct energy {
    size_t start, end;
} energy;

static tq_status eval_energy(tq_node *node, tq_error *error)
{
    (void)error;
    const energy *s = node->state;
    const int16_t *x = node->in[0]->data;
    uint32_t *out = node->out[0]->data;
    memset(out, 0, node->out[0]->bytes);
    for (size_t i = s->start; i < s->end; i++)
        out[i] = (uint32_t)(x[2 * i] * x[2 * i]) + (uint32_t)(x[2 * i + 1] * x[2 * i + 1]);
    return TQ_OK;
}

tq_status tq_prepare_signal_energy(tq_node *node, tq_error *error)
{
    energy *s = NULL;
    int64_t start = 0, end = 0;
    TQ_TRY(tq_check_input(node, 0, TQ_T(INT16), error));
    TQ_TRY(tq_check_rank(node, 0, 1, 1, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(UINT32), error));
    int32_t values = node->in[0]->shape.dims[0];
    if (values % 2)
        return tq_input_fail(node, 0, error, "has %d values; it needs an even number, of complex values", (int)values);
    TQ_TRY(tq_option_within(node, "start_index", 0, values / 2, &start, error));
    TQ_TRY(tq_option_within(node, "end_index", 0, values / 2, &end, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->start = (size_t)start;
    s->end = (size_t)end;
    tq_shape shape = {1, {values / 2}};
    node->eval = eval_energy;
    return tq_output_shape(node, 0, &shape, error);
}
