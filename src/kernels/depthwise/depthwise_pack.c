/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs the weights of a depthwise convolution, in the layout of tq_depthwise_tile (depthwise_parts.h).  Behind them
 * stand the biases, into which the rows' zero point is folded, and a pixel of padding.
 */
#include <math.h>
#include <string.h>

#include "base/stop.h"
#include "kernels/depthwise/depthwise_parts.h"

static void pack_integer_channel(const tq_depthwise *d, const tq_gemm_weights *w, size_t c, void *to, void *bias)
{
    const size_t group = d->kernel->group, stride = d->kernel->lanes * group;
    const int32_t zero_point = w->row_zero_point + (d->kernel->flip ? 128 : 0); /* of flipped elements */
    int64_t sum = 0;
    for (size_t t = 0; t < d->taps; t++) {
        int32_t weight = tq_depthwise_weight(w, t, c);
        if (d->kernel->weight_bytes == 1)
            ((int8_t *)to)[t / group * stride + t % group] = (int8_t)weight;
        else
            ((int16_t *)to)[t / group * stride + t % group] = (int16_t)weight;
        sum += weight;
    }
    int64_t given = !w->bias                           ? 0
                    : w->bias_type == TQ_GEMM_BIAS_I64 ? ((const int64_t *)w->bias)[c]
                                                       : ((const int32_t *)w->bias)[c];
    uint64_t folded = (uint64_t)given - (uint64_t)(sum * zero_point);
    if (d->wide)
        ((uint64_t *)bias)[c] = folded;
    else
        ((uint32_t *)bias)[c] = (uint32_t)folded;
}

/* Packs channel c. */
static void pack_float_channel(tq_depthwise *d, const tq_gemm_weights *w, size_t c, float *to, float *bias)
{
    float sum = 0; /* 0, or NaN if a weight is not finite */
    const size_t rows = w->tap_rows ? w->tap_rows : 1, columns = d->taps / rows;
    for (size_t t = 0; t < d->taps; t++) {
        const size_t from = t % rows * columns + t / rows;
        float weight = ((const float *)w->data)[from * w->k_stride + c * w->channel_stride];
        to[t * d->kernel->lanes] = weight;
        sum += weight * 0.0f;
    }
    *bias = w->bias ? ((const float *)w->bias)[c] : 0;
    d->non_finite |= sum != 0 && !d->fused;
    /* products with padding that change a sum: of weights that are not finite, or of one that begins with -0 */
    if (d->fused && (sum != 0 || (*bias == 0 && signbit(*bias))))
        d->bands.line_bytes = 0;
}

/* A pixel of padding, and the bytes behind it that vectors read. */
static void fill_padding(const tq_depthwise *d, int32_t value, void *padding)
{
    if (tq_element_size(d->in) == 1)
        memset(padding, (uint8_t)value, d->channels + TQ_DEPTHWISE_SLACK);
    else if (d->in == TQ_i16)
        for (size_t c = 0; c < d->channels; c++)
            ((int16_t *)padding)[c] = (int16_t)value;
}

uint64_t tq_depthwise_padding_bytes(const tq_depthwise *depthwise)
{
    return (uint64_t)depthwise->channels + TQ_DEPTHWISE_SLACK;
}

tq_depthwise tq_depthwise_with_padding(const tq_depthwise *depthwise, int8_t value, void *memory)
{
    tq_depthwise padded = *depthwise;
    fill_padding(depthwise, value, memory);
    padded.padding = memory;
    return padded;
}

void tq_depthwise_pack(tq_depthwise *depthwise, const tq_gemm_weights *weights, void *memory)
{
    if (depthwise->kernel->weight_bytes == 1 && weights->zero_point != 0)
        depthwise->kernel = tq_depthwise_find(depthwise->in, depthwise->fused, false);
    const tq_depthwise_kernel *k = depthwise->kernel;
    const size_t lane = (size_t)k->group * k->weight_bytes, each = tq_depthwise_vector_bytes(depthwise);
    const size_t vectors = tq_depthwise_packed_vectors(depthwise), bias_bytes = depthwise->wide ? 8 : 4;
    char *to = memory, *bias = to + tq_round_up(vectors * each, TQ_DEPTHWISE_ALIGN);
    char *padding = bias + tq_round_up(vectors * k->lanes * bias_bytes, TQ_DEPTHWISE_ALIGN);
    tq_fill(memory, 0, (size_t)depthwise->packed_bytes);
    depthwise->non_finite = false;
    const size_t channels = depthwise->channels, tail = tq_depthwise_vectors(depthwise) * k->lanes;
    const size_t count = depthwise->lines.vectors || depthwise->bands.tail ? vectors * k->lanes : channels;
    for (size_t at = 0; at < count && !tq_stop_after(depthwise->taps); at++) {
        char *first = to + at / k->lanes * each + at % k->lanes * lane;
        const size_t channel = depthwise->bands.tail && at >= tail ? at - tail + channels - k->lanes : at % channels;
        if (depthwise->in == TQ_f32)
            pack_float_channel(depthwise, weights, channel, (float *)(void *)first, (float *)(void *)bias + at);
        else
            pack_integer_channel(depthwise, weights, at, first, bias);
    }
    fill_padding(depthwise, weights->row_zero_point, padding);
    depthwise->weights = to, depthwise->bias = bias, depthwise->padding = padding, depthwise->offsets = NULL;
    const size_t pixel = depthwise->channels * tq_element_size(depthwise->in) + TQ_DEPTHWISE_SLACK;
    char *rest = padding + tq_round_up(pixel, TQ_DEPTHWISE_ALIGN);
    if (depthwise->offset_bytes) {
        tq_depthwise_pack_offsets(depthwise, (int32_t *)(void *)rest);
        depthwise->offsets = (const int32_t *)(const void *)rest;
    }
    /* one int8, or two, whose sum is 254 at most */
    const bool fits = depthwise->in == TQ_u8 ? weights->zero_point > 0 : weights->zero_point == 0;
    if (!k->columns || !fits)
        depthwise->columns.period = 0;
    if (!depthwise->columns.period)
        return;
    int32_t *column_bias = (int32_t *)(void *)(rest + depthwise->columns.weight_bytes);
    tq_depthwise_pack_columns(depthwise, weights, (const int32_t *)(const void *)bias, (int8_t *)rest, column_bias);
    depthwise->weights = rest, depthwise->bias = column_bias;
}
