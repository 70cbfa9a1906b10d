/* SPDX-License-Identifier: Apache-2.0
 *
 * Mfcc, a custom operator: [channels, frames, bins] and the sample rate to mel-frequency cepstral coefficients: square
 * roots of bins, weighted by triangles evenly spaced on the mel scale 1127 * log1p(f / 700); logarithms of these sums,
 * at least 1e-12; and a cosine transform.  In float64, sums in the reference's order.
 *
 * Source: LiteRT f6745779,
 * tflite/kernels/mfcc.cc, internal/{mfcc,mfcc_mel_filterbank,mfcc_dct}.cc.
 */
#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/custom_options.h"

typedef struct mfcc {
    double upper, lower; /* Hz */
    size_t channels, coefficients, bins;
} mfcc;

/* The mel filters, in scratch. */
typedef struct filters {
    double *cosines;  /* [coefficients, channels] */
    double *energies; /* [channels] */
    double *weights;  /* [bins] */
    int32_t *bands;   /* [bins]: the channel whose falling side a bin is on; -1: below the first */
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

static tq_status eval(tq_node *node, tq_error *error)
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
    node->eval = eval;
    return tq_output_shape(node, 0, &shape, error);
}
