/* SPDX-License-Identifier: Apache-2.0
 *
 * RFFT2D, and the custom operators AudioSpectrogram and Mfcc.
 *
 *     RFFT2D            the first w / 2 + 1 columns of the transform of each h x w matrix, cut or filled with 0
 *     AudioSpectrogram  [samples, channels] to [channels, frames, bins]: power (or its root) of the frames of
 *                       window_size samples, `stride` apart, under a periodic Hann window, filled with 0 to the next
 *                       power of two
 *     Mfcc              [channels, frames, bins] and the sample rate to cepstral coefficients: bins' roots under
 *                       triangles that are even on the mel scale 1127 * log1p(f / 700), their logarithms (of at
 *                       least 1e-12), and a cosine transform
 * All in double precision, in the reference's order where it sums.
 * Source: LiteRT f6745779, tflite/kernels/{rfft2d,audio_spectrogram,mfcc}.cc, internal/{spectrogram,mfcc,
 * mfcc_mel_filterbank,mfcc_dct}.cc.
 */
#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/custom_options.h"
#include "ops/signal/fft.h"

/* ---- RFFT2D ---- */

typedef struct rfft {
    size_t height, width;
    size_t largest;    /* of the two */
    tq_complex *roots; /* of the largest; NULL: made by each run, behind the other scratch */
} rfft;

static bool is_power_of_two(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* Scratch: height * width for the matrix, height for a column. */
static void transform_matrix(const rfft *s, const tq_complex *roots, tq_complex *matrix)
{
    tq_complex *column = matrix + s->height * s->width;
    for (size_t y = 0; y < s->height && !tq_stop_after(s->width); y++)
        tq_fft(matrix + y * s->width, s->width, roots, s->largest / s->width);
    for (size_t x = 0; x <= s->width / 2 && x < s->width && !tq_stop_after(4 * s->height); x++) {
        for (size_t y = 0; y < s->height; y++)
            column[y] = matrix[y * s->width + x];
        tq_fft(column, s->height, roots, s->largest / s->height);
        for (size_t y = 0; y < s->height; y++)
            matrix[y * s->width + x] = column[y];
    }
}

static tq_status eval_rfft2d(tq_node *node, tq_error *error)
{
    (void)error;
    const rfft *s = node->state;
    const tq_shape *in = &node->in[0]->shape;
    size_t rows = (size_t)in->dims[in->rank - 2], columns = (size_t)in->dims[in->rank - 1];
    size_t matrices = tq_shape_span(in, 0, in->rank - 2), bins = s->width / 2 + 1;
    tq_complex *matrix = node->scratch, *roots = s->roots;
    float *to = node->out[0]->data;
    if (roots == NULL) {
        roots = matrix + s->height * s->width + s->height;
        tq_fft_roots(roots, s->largest);
    }
    for (size_t m = 0; m < matrices; m++) {
        const float *from = (const float *)node->in[0]->data + m * rows * columns;
        for (size_t y = 0; y < s->height && !tq_stop_after(s->width); y++)
            for (size_t x = 0; x < s->width; x++)
                matrix[y * s->width + x] =
                    (tq_complex){y < rows && x < columns ? (double)from[y * columns + x] : 0, 0};
        transform_matrix(s, roots, matrix);
        for (size_t y = 0; y < s->height && !tq_stop_after(s->width); y++)
            for (size_t x = 0; x < bins; x++, to += 2) {
                to[0] = (float)matrix[y * s->width + x].re;
                to[1] = (float)matrix[y * s->width + x].im;
            }
    }
    return TQ_OK;
}

static tq_status rfft2d_shape(tq_node *node, tq_error *error)
{
    rfft *s = node->state;
    int64_t height = tq_integer_at(node->in[1], 0), width = tq_integer_at(node->in[1], 1);
    if (!is_power_of_two(height) || !is_power_of_two(width) || height > INT32_MAX || width > INT32_MAX)
        return tq_input_fail(node, 1, error, "has %lld and %lld; it needs powers of two",
                             (long long)height, (long long)width);
    tq_shape shape = node->in[0]->shape;
    shape.dims[shape.rank - 2] = (int32_t)height;
    shape.dims[shape.rank - 1] = (int32_t)(width / 2 + 1);
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    s->height = (size_t)height;
    s->width = (size_t)width;
    s->largest = s->height > s->width ? s->height : s->width;
    size_t roots = tq_is_constant(node->in[1]) ? 0 : s->largest / 2;
    return tq_node_scratch(node, (s->height * s->width + s->height + roots) * sizeof(tq_complex), error);
}

tq_status tq_prepare_rfft2d(tq_node *node, tq_error *error)
{
    rfft *s = NULL;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 2, TQ_DIMS, error));
    TQ_TRY(tq_check_list(node, 1, 2, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(COMPLEX64), error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    node->eval = eval_rfft2d;
    TQ_TRY(tq_shape_from_values(node, 1u << 1, rfft2d_shape, error));
    if (!tq_is_constant(node->in[1]))
        return TQ_OK;
    TQ_TRY(tq_node_memory(node, s->largest / 2, sizeof *s->roots, &s->roots, error));
    tq_fft_roots(s->roots, s->largest);
    return TQ_OK;
}

/* ---- AudioSpectrogram ---- */

typedef struct spectrogram {
    size_t window_size, stride, length, frames;
    bool squared;
    double *window;
    tq_complex *roots;
} spectrogram;

static tq_status eval_spectrogram(tq_node *node, tq_error *error)
{
    (void)error;
    const spectrogram *s = node->state;
    size_t channels = (size_t)node->in[0]->shape.dims[1], bins = s->length / 2 + 1;
    tq_complex *frame = node->scratch;
    float *to = node->out[0]->data;
    for (size_t c = 0; c < channels; c++)
        for (size_t f = 0; f < s->frames && !tq_stop_after(4 * s->length); f++, to += bins) {
            const float *from = (const float *)node->in[0]->data + f * s->stride * channels + c;
            memset(frame, 0, s->length * sizeof *frame);
            for (size_t i = 0; i < s->window_size; i++)
                frame[i].re = (double)from[i * channels] * s->window[i];
            tq_fft(frame, s->length, s->roots, 1);
            for (size_t b = 0; b < bins; b++) {
                float power = (float)(frame[b].re * frame[b].re + frame[b].im * frame[b].im);
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
    TQ_EACH(i, s->window_size)
        s->window[i] = 0.5 - 0.5 * cos((2.0 * pi * (double)i) / (double)s->window_size);
    tq_fft_roots(s->roots, s->length);
    return tq_node_scratch(node, s->length * sizeof(tq_complex), error);
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
    node->eval = eval_spectrogram;
    return TQ_OK;
}

/* ---- Mfcc ---- */

typedef struct mfcc {
    double upper, lower; /* Hz */
    size_t channels, coefficients, bins;
} mfcc;

/* What a run works with, in its scratch. */
typedef struct filters {
    double *cosines;  /* [coefficients, channels] */
    double *energies; /* [channels] */
    double *weights;  /* [bins] */
    int32_t *bands;   /* [bins]: the channel on whose falling side a bin is; -1: below the first */
    double *centers;  /* [channels + 1] */
    int64_t first, last;
} filters;

static double mel_of(double frequency)
{
    return 1127.0 * log1p(frequency / 700.0);
}

static filters filters_in(const mfcc *s, void *scratch)
{
    filters f = {scratch, NULL, NULL, NULL, NULL, 0, 0};
    f.energies = f.cosines + s->coefficients * s->channels;
    f.weights = f.energies + s->channels;
    f.centers = f.weights + s->bins;
    f.bands = (int32_t *)(void *)(f.centers + s->channels + 1);
    return f;
}

static int64_t bin_of(double x)
{
    return x < 1e9 ? (int64_t)x : 1000000000;
}

static void make_filters(const mfcc *s, double rate, filters *f)
{
    double mel_low = mel_of(s->lower), spacing = (mel_of(s->upper) - mel_low) / (double)(s->channels + 1);
    double hz = 0.5 * rate / (double)(s->bins - 1);
    size_t channel = 0;
    for (size_t i = 0; i <= s->channels; i++)
        f->centers[i] = mel_low + spacing * (double)(i + 1);
    f->first = bin_of(1.5 + s->lower / hz);
    f->last = bin_of(s->upper / hz);
    for (size_t i = 0; i < s->bins; i++) {
        f->weights[i] = 0;
        f->bands[i] = -1;
        if ((int64_t)i < f->first || (int64_t)i > f->last)
            continue;
        double mel = mel_of((double)i * hz);
        while (channel < s->channels && f->centers[channel] < mel)
            channel++;
        f->bands[i] = (int32_t)channel - 1;
        double end = f->centers[channel], begin = channel ? f->centers[channel - 1] : mel_low;
        f->weights[i] = (end - mel) / (end - begin);
    }
    double norm = sqrt(2.0 / (double)s->channels), step = 3.14159265358979323846 / (double)s->channels;
    for (size_t i = 0; i < s->coefficients && !tq_stop_after(16 * s->channels); i++)
        for (size_t j = 0; j < s->channels; j++)
            f->cosines[i * s->channels + j] = norm * cos((double)i * step * ((double)j + 0.5));
}

static void find_coefficients(const mfcc *s, const filters *f, const float *bins, float *out)
{
    size_t work = 0;
    memset(f->energies, 0, s->channels * sizeof *f->energies);
    for (int64_t i = f->first; i <= f->last; i++) {
        double root = sqrt((double)bins[i]), weighted = root * f->weights[i];
        int32_t channel = f->bands[i];
        if (channel >= 0)
            f->energies[channel] += weighted;
        if (channel + 1 < (int32_t)s->channels)
            f->energies[channel + 1] += root - weighted;
    }
    for (size_t j = 0; j < s->channels; j++)
        f->energies[j] = log(f->energies[j] < 1e-12 ? 1e-12 : f->energies[j]);
    for (size_t i = 0; i < s->coefficients && !tq_stop_count(&work, s->channels); i++) {
        double sum = 0;
        for (size_t j = 0; j < s->channels; j++)
            sum += f->cosines[i * s->channels + j] * f->energies[j];
        out[i] = (float)sum;
    }
}

static tq_status eval_mfcc(tq_node *node, tq_error *error)
{
    const mfcc *s = node->state;
    int32_t rate = *(const int32_t *)node->in[1]->data;
    float *out = node->out[0]->data;
    size_t frames = tq_tensor_count(node->out[0]) / s->coefficients;
    filters f = filters_in(s, node->scratch);
    if (rate <= 0)
        return tq_input_fail(node, 1, error, "is %d; it needs a sample rate above 0", (int)rate);
    make_filters(s, rate, &f);
    for (size_t i = 0; i < frames && !tq_stop_after(s->bins); i++)
        if (f.last < (int64_t)s->bins)
            find_coefficients(s, &f, (const float *)node->in[0]->data + i * s->bins, out + i * s->coefficients);
        else
            memset(out + i * s->coefficients, 0, s->coefficients * sizeof *out);
    return TQ_OK;
}

static tq_status check_mfcc(const tq_node *node, int64_t upper, int64_t lower, int64_t channels, int64_t coefficients,
                            tq_error *error)
{
    if (lower < 0 || upper <= lower || upper > INT32_MAX)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has frequency limits %lld and %lld", (long long)lower,
                          (long long)upper);
    if (coefficients < 1 || channels < coefficients || channels > 1 << 16)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %lld coefficients of %lld channels",
                          (long long)coefficients, (long long)channels);
    if (node->in[0]->shape.dims[2] < 2)
        return tq_input_fail(node, 0, error, "has %d bins; it needs at least 2", (int)node->in[0]->shape.dims[2]);
    return TQ_OK;
}

tq_status tq_prepare_mfcc(tq_node *node, tq_error *error)
{
    mfcc *s = NULL;
    int64_t upper = 0, lower = 0, channels = 0, coefficients = 0;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 3, 3, error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT32), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    if (tq_tensor_count(node->in[1]) != 1)
        return tq_input_fail(node, 1, error, "has %zu elements; it needs 1", tq_tensor_count(node->in[1]));
    TQ_TRY(tq_option_int(node, "upper_frequency_limit", 0, &upper, error));
    TQ_TRY(tq_option_int(node, "lower_frequency_limit", 0, &lower, error));
    TQ_TRY(tq_option_int(node, "filterbank_channel_count", 0, &channels, error));
    TQ_TRY(tq_option_int(node, "dct_coefficient_count", 0, &coefficients, error));
    TQ_TRY(check_mfcc(node, upper, lower, channels, coefficients, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    *s = (mfcc){(double)(float)upper, (double)(float)lower, (size_t)channels, (size_t)coefficients,
                (size_t)node->in[0]->shape.dims[2]};
    uint64_t doubles = s->coefficients * s->channels + 2 * s->channels + 1 + s->bins;
    TQ_TRY(tq_node_scratch(node, doubles * sizeof(double) + s->bins * sizeof(int32_t), error));
    tq_shape shape = node->in[0]->shape;
    shape.dims[2] = (int32_t)coefficients;
    node->eval = eval_mfcc;
    return tq_output_shape(node, 0, &shape, error);
}
