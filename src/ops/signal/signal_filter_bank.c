/* SPDX-License-Identifier: Apache-2.0
 *
 * tflite-micro's audio frontend, from the energies of a spectrum to the logarithms of a filter bank.  All arithmetic is
 * in integers; sums and products wrap in their type.
 *
 *   SignalFilterBank                      channel k: the sum of weights * energies over its band and of unweights *
 *                                         energies over the band before it, in 64 bits
 *   SignalFilterBankSquareRoot            round(sqrt(x)) >> scale bits
 *   SignalFilterBankSpectralSubtraction   x less an estimate of the noise, a moving average of x; at least a fraction
 *                                         of x
 *   SignalPCAN                            automatic gain control: x times a gain, from a table of parabolas by noise
 *   SignalFilterBankLog                   min(32767, round(output_scale * ln(x << input_correction_bits)))
 *
 * Source: tflite-micro, signal/micro/kernels and signal/src.
 */
#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/custom_options.h"

/* Checks that inputs first to last are vectors of one type. */
static tq_status check_vectors(const tq_node *node, int first, int last, unsigned type, tq_error *error)
{
    for (int i = first; i <= last; i++) {
        TQ_TRY(tq_check_input(node, i, type, error));
        TQ_TRY(tq_check_rank(node, i, 1, 1, error));
    }
    return TQ_OK;
}

/* The index of the highest set bit of x > 0, from 1. */
static int top_bit(uint32_t x)
{
    int bits = 0;
    for (; x; x >>= 1)
        bits++;
    return bits;
}

/* ---- SignalFilterBank ---- */

enum { ENERGIES, WEIGHTS, UNWEIGHTS, BAND_STARTS, WEIGHT_STARTS, WIDTHS };

static tq_status check_band(const tq_node *node, size_t k, int bin, int weight, int width, tq_error *error)
{
    size_t bins = tq_tensor_count(node->in[ENERGIES]), weights = tq_tensor_count(node->in[WEIGHTS]);
    if (width > 0 && (bin < 0 || weight < 0 || (size_t)(bin + width) > bins || (size_t)(weight + width) > weights))
        return tq_op_fail(node, error, TQ_BAD_DATA,
                          "band %zu is %d bins from %d with weights from %d; there are %zu bins and "
                          "%zu weights",
                          k, width, bin, weight, bins, weights);
    return TQ_OK;
}

static tq_status eval_filter_bank(tq_node *node, tq_error *error)
{
    const uint32_t *energies = node->in[ENERGIES]->data;
    const int16_t *weights = node->in[WEIGHTS]->data, *unweights = node->in[UNWEIGHTS]->data;
    const int16_t *bins = node->in[BAND_STARTS]->data, *starts = node->in[WEIGHT_STARTS]->data;
    const int16_t *widths = node->in[WIDTHS]->data;
    uint64_t *out = node->out[0]->data, sum = 0, next = 0;
    const size_t bands = tq_tensor_count(node->out[0]);
    for (size_t k = 0; k <= bands && !tq_stop_after((size_t)UINT16_MAX / 8); k++) {
        TQ_TRY(check_band(node, k, bins[k], starts[k], widths[k], error));
        for (int j = 0; j < widths[k]; j++) {
            uint64_t energy = energies[bins[k] + j];
            sum += (uint64_t)(int64_t)weights[starts[k] + j] * energy;
            next += (uint64_t)(int64_t)unweights[starts[k] + j] * energy;
        }
        if (k > 0) /* the first band has no channel of its own; only its unweighted half counts */
            out[k - 1] = sum;
        sum = next;
        next = 0;
    }
    return TQ_OK;
}

tq_status tq_prepare_signal_filter_bank(tq_node *node, tq_error *error)
{
    int64_t channels = 0;
    TQ_TRY(check_vectors(node, ENERGIES, ENERGIES, TQ_T(UINT32), error));
    TQ_TRY(check_vectors(node, WEIGHTS, WIDTHS, TQ_T(INT16), error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(UINT64), error));
    TQ_TRY(tq_option_within(node, "num_channels", 0, INT32_MAX - 1, &channels, error));
    if (tq_tensor_count(node->in[UNWEIGHTS]) < tq_tensor_count(node->in[WEIGHTS]))
        return tq_input_fail(node, UNWEIGHTS, error, "has %zu elements for %zu weights",
                             tq_tensor_count(node->in[UNWEIGHTS]), tq_tensor_count(node->in[WEIGHTS]));
    for (int i = BAND_STARTS; i <= WIDTHS; i++)
        if (tq_tensor_count(node->in[i]) <= (size_t)channels)
            return tq_input_fail(node, i, error, "has %zu elements; num_channels %lld needs %lld",
                                 tq_tensor_count(node->in[i]), (long long)channels, (long long)channels + 1);
    tq_shape shape = {1, {(int32_t)channels}};
    node->eval = eval_filter_bank;
    return tq_output_shape(node, 0, &shape, error);
}

/* ---- SignalFilterBankSquareRoot ---- */

/* The root to the nearest integer, digit by digit; below 2^32 it is at most 2^16 - 1, else 2^32 - 1. */
static uint32_t root_of(uint64_t x)
{
    uint64_t root = 0, most = x >> 32 ? UINT32_MAX : UINT16_MAX;
    for (uint64_t bit = UINT64_C(1) << 62; bit; bit >>= 2) {
        bool fits = x >= root + bit;
        x -= fits ? root + bit : 0;
        root = (root >> 1) + (fits ? bit : 0);
    }
    return (uint32_t)(root + (x > root && root != most));
}

static tq_status eval_square_root(tq_node *node, tq_error *error)
{
    const uint64_t *x = node->in[0]->data;
    uint32_t *out = node->out[0]->data;
    int32_t bits = *(const int32_t *)node->in[1]->data;
    if (bits < 0 || bits > 31)
        return tq_op_fail(node, error, TQ_BAD_DATA, "is asked to shift by %d bits; it needs 0 to 31", (int)bits);
    const size_t count = tq_tensor_count(node->in[0]);
    TQ_EACH (i, count)
        out[i] = root_of(x[i]) >> bits;
    return TQ_OK;
}

tq_status tq_prepare_signal_filter_bank_square_root(tq_node *node, tq_error *error)
{
    TQ_TRY(check_vectors(node, 0, 0, TQ_T(UINT64), error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT32), error));
    TQ_TRY(tq_check_rank(node, 1, 0, 0, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(UINT32), error));
    node->eval = eval_square_root;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}

/* ---- SignalFilterBankSpectralSubtraction ---- */

typedef struct subtraction {
    uint32_t follow[2], retain[2]; /* of even and odd channels: factors of the new value and of the estimate */
    uint32_t remaining;
    int smoothing_bits, bits;
    bool clamping;
    uint32_t *noise;
} subtraction;

static tq_status eval_subtraction(tq_node *node, tq_error *error)
{
    (void)error;
    const subtraction *s = node->state;
    const uint32_t *x = node->in[0]->data;
    uint32_t *out = node->out[0]->data;
    const size_t count = tq_tensor_count(node->in[0]);
    TQ_EACH (i, count) {
        uint32_t scaled = x[i] << s->smoothing_bits;
        uint64_t mixed = (uint64_t)scaled * s->follow[i & 1] + (uint64_t)s->noise[i] * s->retain[i & 1];
        uint32_t noise = (uint32_t)(mixed >> s->bits), taken = noise > scaled ? scaled : noise;
        uint32_t least = (uint32_t)((uint64_t)x[i] * s->remaining >> s->bits);
        uint32_t signal = (scaled - taken) >> s->smoothing_bits;
        s->noise[i] = s->clamping ? taken : noise;
        out[i] = signal > least ? signal : least;
    }
    if (node->out[1]->bytes > 0)
        memcpy(node->out[1]->data, s->noise, node->out[1]->bytes);
    return TQ_OK;
}

static void reset_noise(tq_node *node)
{
    const subtraction *s = node->state;
    memset(s->noise, 0, tq_tensor_count(node->in[0]) * sizeof *s->noise);
}

static tq_status read_subtraction(const tq_node *node, subtraction *s, tq_error *error)
{
    static const char *const names[] = {"smoothing", "alternate_smoothing", "one_minus_smoothing",
                                        "alternate_one_minus_smoothing", "min_signal_remaining"};
    uint32_t *const targets[] = {&s->follow[0], &s->follow[1], &s->retain[0], &s->retain[1], &s->remaining};
    int64_t value = 0, count = node->in[0]->shape.dims[0];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        TQ_TRY(tq_option_within(node, names[i], INT32_MIN, INT32_MAX, &value, error));
        *targets[i] = (uint32_t)value;
    }
    TQ_TRY(tq_option_within(node, "smoothing_bits", 0, 31, &value, error));
    s->smoothing_bits = (int)value;
    TQ_TRY(tq_option_within(node, "spectral_subtraction_bits", 0, 63, &value, error));
    s->bits = (int)value;
    TQ_TRY(tq_option_int(node, "clamping", 0, &value, error));
    s->clamping = value != 0;
    return tq_option_within(node, "num_channels", count, count, &value, error);
}

tq_status tq_prepare_signal_filter_bank_spectral_subtraction(tq_node *node, tq_error *error)
{
    subtraction *s = NULL;
    TQ_TRY(check_vectors(node, 0, 0, TQ_T(UINT32), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_output_like(node, 1, 0, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(read_subtraction(node, s, error));
    TQ_TRY(tq_node_memory(node, tq_tensor_count(node->in[0]), sizeof *s->noise, &s->noise, error));
    node->eval = eval_subtraction;
    node->reset = reset_noise;
    TQ_TRY(tq_output_shape(node, 0, &node->in[0]->shape, error));
    return tq_output_shape(node, 1, &node->in[0]->shape, error);
}

/* ---- SignalPCAN ---- */

/* Entries of the table: the first three values, then three coefficients and an unused entry for each power of two. */
enum { PARABOLAS = 125 };

typedef struct gain_control {
    int shift;
} gain_control;

/* A parabola between two powers of two, at f / 1024.  No step overflows 32 bits: |a f / 32 + 32 b| < 2^21. */
static int16_t gain_of(uint32_t x, const int16_t *table)
{
    if (x <= 2)
        return table[x];
    int bits = top_bit(x);
    const int16_t *part = table + 4 * bits - 6;
    int32_t f = (int32_t)((bits < 11 ? x << (11 - bits) : x >> (bits - 11)) & 0x3FF);
    int32_t slope = ((part[2] * f) >> 5) + part[1] * 32;
    return (int16_t)(uint16_t)(uint32_t)(((slope * f + (1 << 14)) >> 15) + part[0]);
}

/* From 12 fractional bits to 6: x^2 / 4 below 2, else x - 1. */
static uint32_t shrink(uint32_t x)
{
    return x < 2u << 12 ? (x * x) >> 20 : (x >> 6) - (1u << 6);
}

static tq_status eval_gain(tq_node *node, tq_error *error)
{
    (void)error;
    const gain_control *s = node->state;
    const uint32_t *x = node->in[0]->data, *noise = node->in[1]->data;
    uint32_t *out = node->out[0]->data;
    const size_t count = tq_tensor_count(node->in[0]);
    TQ_EACH (i, count) {
        uint32_t gain = (uint32_t)(int32_t)gain_of(noise[i], node->in[2]->data);
        out[i] = shrink((uint32_t)((uint64_t)x[i] * gain >> s->shift));
    }
    return TQ_OK;
}

tq_status tq_prepare_signal_pcan(tq_node *node, tq_error *error)
{
    gain_control *s = NULL;
    int64_t shift = 0;
    TQ_TRY(check_vectors(node, 0, 1, TQ_T(UINT32), error));
    TQ_TRY(check_vectors(node, 2, 2, TQ_T(INT16), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    if (tq_tensor_count(node->in[1]) != tq_tensor_count(node->in[0]))
        return tq_input_fail(node, 1, error, "has %zu estimates for %zu channels", tq_tensor_count(node->in[1]),
                             tq_tensor_count(node->in[0]));
    if (tq_tensor_count(node->in[2]) < PARABOLAS)
        return tq_input_fail(node, 2, error, "is a table of %zu; it needs %d", tq_tensor_count(node->in[2]), PARABOLAS);
    TQ_TRY(tq_option_within(node, "snr_shift", 0, 63, &shift, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->shift = (int)shift;
    node->eval = eval_gain;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}

/* ---- SignalFilterBankLog ---- */

enum { SEGMENTS = 128 };

typedef struct logarithm {
    int shift;
    uint32_t scale;
    int32_t above[SEGMENTS + 1]; /* log2(1 + i / 128) - i / 128, with 16 fractional bits */
} logarithm;

/* log2 x of x > 0, with 16 fractional bits: a table of 128 entries.  tflite-micro reads f & 511, a
   fraction of 9 bits, as one of 16 bits, so it interpolates 1 / 128 of the distance. */
static uint32_t log2_of(const logarithm *s, uint32_t x)
{
    int whole = top_bit(x) - 1;
    uint32_t remainder = x - (UINT32_C(1) << whole);
    uint32_t f = whole < 16 ? remainder << (16 - whole) : remainder >> (whole - 16);
    int32_t at = s->above[f >> 9], next = s->above[(f >> 9) + 1];
    return ((uint32_t)whole << 16) + f + (uint32_t)(at + (((next - at) * (int32_t)(f & 511)) >> 16));
}

static tq_status eval_log(tq_node *node, tq_error *error)
{
    (void)error;
    const logarithm *s = node->state;
    const uint32_t *x = node->in[0]->data;
    int16_t *out = node->out[0]->data;
    const size_t count = tq_tensor_count(node->in[0]);
    TQ_EACH (i, count) {
        uint32_t scaled = x[i] << s->shift, result = 0;
        if (scaled > 1) {
            uint32_t natural =
                (uint32_t)((UINT64_C(45426) * log2_of(s, scaled) + 32768) >> 16); /* 45426 / 2^16 is ln 2 */
            result = (s->scale * natural + 32768) >> 16;
        }
        out[i] = (int16_t)(result < INT16_MAX ? result : INT16_MAX);
    }
    return TQ_OK;
}

tq_status tq_prepare_signal_filter_bank_log(tq_node *node, tq_error *error)
{
    logarithm *s = NULL;
    int64_t shift = 0, scale = 0;
    TQ_TRY(check_vectors(node, 0, 0, TQ_T(UINT32), error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT16), error));
    TQ_TRY(tq_option_within(node, "input_correction_bits", 0, 31, &shift, error));
    TQ_TRY(tq_option_within(node, "output_scale", INT32_MIN, INT32_MAX, &scale, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->shift = (int)shift;
    s->scale = (uint32_t)scale;
    for (int i = 0; i <= SEGMENTS; i++)
        s->above[i] = (int32_t)floor(65536 * (log2(1 + i / 128.0) - i / 128.0) + 0.5);
    node->eval = eval_log;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}
