/* SPDX-License-Identifier: Apache-2.0
 *
 * AudioSpectrogram, a custom operator: [samples, channels] to [channels, frames, bins], the power spectrum of each
 * frame, or its square root.  Frames of window_size samples begin every `stride` samples, are multiplied by a periodic
 * Hann window, and padded with 0 to the next power of two.  In float64.
 *
 * Source: LiteRT f6745779, tflite/kernels/audio_spectrogram.cc, internal/spectrogram.cc.
 */
#include <math.h>

#include "base/sizes.h"
#include "ops/check.h"
#include "ops/custom_options.h"
#include "ops/signal/fft.h"

typedef struct spectrogram {
    size_t window_size, stride, length, frames;
    bool squared;
    double *window;
    tq_complex128 *roots;
} spectrogram;

/* Frame f of channel c to a lane. */
static void read_frame(const tq_node *node, size_t c, size_t f, tq_fft_element *frame, size_t lane)
{
    const spectrogram *s = node->state;
    const size_t channels = (size_t)node->in[0]->shape.dims[1];
    const float *from = (const float *)node->in[0]->data + f * s->stride * channels + c;
    for (size_t i = 0; i < s->length; i++) {
        frame[i].real[lane] = i < s->window_size ? (double)from[i * channels] * s->window[i] : 0;
        frame[i].imaginary[lane] = 0;
    }
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    const spectrogram *s = node->state;
    size_t channels = (size_t)node->in[0]->shape.dims[1], bins = s->length / 2 + 1;
    tq_fft_element *frame = node->scratch;
    float *to = node->out[0]->data;
    for (size_t c = 0; c < channels; c++)
        for (size_t f = 0, some; f < s->frames && !tq_stop_after(4 * TQ_FFT_LANES * s->length); f += some) {
            some = tq_min_size(TQ_FFT_LANES, s->frames - f);
            for (size_t lane = 0; lane < TQ_FFT_LANES; lane++) /* those that are left repeat the last frame */
                read_frame(node, c, f + tq_min_size(lane, some - 1), frame, lane);
            tq_fft(frame, s->length, s->roots, 1);
            for (size_t lane = 0; lane < some; lane++, to += bins)
                for (size_t b = 0; b < bins; b++) {
                    const double real = frame[b].real[lane], imaginary = frame[b].imaginary[lane];
                    const float power = (float)(real * real + imaginary * imaginary);
                    to[b] = s->squared ? power : sqrtf(power);
                }
        }
    return TQ_OK;
}

static tq_status make_window(tq_node *node, spectrogram *s, tq_error *error)
{
    const double pi = 3.14159265358979323846;
    TQ_TRY(tq_node_memory(node, s->window_size, sizeof *s->window, &s->window, error));
    TQ_TRY(tq_node_memory(node, s->length / 2, sizeof *s->roots, &s->roots, error));
    TQ_EACH (i, s->window_size)
        s->window[i] = 0.5 - 0.5 * cos((2.0 * pi * (double)i) / (double)s->window_size);
    tq_fft_roots(s->roots, s->length);
    return tq_node_scratch(node, s->length * sizeof(tq_fft_element), error);
}

tq_status tq_prepare_audio_spectrogram(tq_node *node, tq_error *error)
{
    spectrogram *s = NULL;
    int64_t size = 0, stride = 0, squared = 0;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_rank(node, 0, 2, 2, error));
    TQ_TRY(tq_option_int(node, "window_size", 0, &size, error));
    TQ_TRY(tq_option_int(node, "stride", 0, &stride, error));
    TQ_TRY(tq_option_int(node, "magnitude_squared", 0, &squared, error));
    if (size < 2 || stride < 1 || size > 1 << 24 || stride > INT32_MAX)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "has window_size %lld and stride %lld; it needs 2 to 2^24, and at least 1", (long long)size,
                          (long long)stride);
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->window_size = (size_t)size;
    s->stride = (size_t)stride;
    s->squared = squared != 0;
    for (s->length = 2; s->length < s->window_size;)
        s->length *= 2;
    int64_t spare = node->in[0]->shape.dims[0] - size;
    s->frames = spare < 0 ? 0 : (size_t)(1 + spare / stride);
    tq_shape shape = {3, {node->in[0]->shape.dims[1], (int32_t)s->frames, (int32_t)(s->length / 2 + 1)}};
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    TQ_TRY(make_window(node, s, error));
    node->eval = eval;
    return TQ_OK;
}
