/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a depthwise convolution: its body, and the bytes of its packed weights.
 */
#include "base/checked.h"
#include "kernels/depthwise/depthwise_parts.h"
#include "kernels/features.h"

static const struct {
    const tq_depthwise_kernel *kernel;
    const char *name;
    uint8_t in, feature;
} bodies[] = {
#define TQ_f32_fused TQ_ELEMENTS
#define DEPTHWISE(in, isa) {&tq_depthwise_##in##__##isa, "depthwise_" #in, TQ_##in, tq_feature_##isa},
#include "kernels/depthwise/depthwise.def"
};

/* Whether row i runs with these usable features. */
static bool reaches(uint32_t usable, size_t i)
{
    const bool both = bodies[i].feature != tq_feature_avx512vbmi || tq_kernels_features() & TQ_CPU_AVX512VNNI;
    return usable >> bodies[i].feature & 1 && both; /* the avx512vbmi row needs VNNI too */
}

static const tq_depthwise_kernel *find_body(unsigned in, bool small_weights)
{
    const tq_depthwise_kernel *found = NULL;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (bodies[i].in == in && reaches(tq_kernels_usable(), i) &&
            (bodies[i].kernel->weight_bytes > 1 || small_weights))
            found = bodies[i].kernel;
    return found;
}

const tq_depthwise_kernel *tq_depthwise_find(tq_element in, bool fused, bool small_weights)
{
    return find_body(in == TQ_f32 && fused ? TQ_f32_fused : in, small_weights);
}

bool tq_depthwise_variant(size_t i, tq_variant *row)
{
    if (i >= sizeof bodies / sizeof *bodies)
        return false;
    const tq_depthwise_kernel *kernel = bodies[i].kernel;
    *row = (tq_variant){bodies[i].name, kernel->isa, reaches(tq_kernels_features() | TQ_CPU_SCALAR, i),
                        find_body(bodies[i].in, true) == kernel};
    return true;
}

#define MOST_GROUPED 4    /* channels, inputs: groups of eight fill half a tile of a product, which is as fast */
#define MOST_WIDE (1 << 24) /* pixels: a wider scan fits int32 */

bool tq_depthwise_takes_depth(const tq_scan *s, size_t multiplier, size_t depth)
{
    return depth > 1 && depth <= MOST_GROUPED && multiplier <= MOST_GROUPED && s->dilation_w == 1 &&
           !s->columns_first && s->in_w < MOST_WIDE && s->filter_w < MOST_WIDE && s->stride_w < MOST_WIDE &&
           s->pad_w < MOST_WIDE && s->pad_w > -MOST_WIDE;
}

static tq_scan widened(tq_scan s, int32_t depth)
{
    s.in_w *= depth, s.filter_w *= depth, s.stride_w *= depth, s.pad_w *= depth;
    return s;
}

tq_status tq_depthwise_plan(tq_depthwise *depthwise, tq_element in, size_t channels, size_t multiplier, size_t depth,
                            const tq_scan *scan, int flags, tq_error *error)
{
    const bool wide = flags & TQ_GEMM_WIDE, fused = flags & TQ_GEMM_FUSED;
    const tq_scan wider = depth > 1 ? widened(*scan, (int32_t)depth) : *scan;
    const size_t taps = tq_scan_taps(&wider);
    tq_depthwise d = {.in = in,
                      .channels = channels,
                      .multiplier = multiplier,
                      .taps = taps,
                      .wide = wide,
                      .fused = fused,
                      .depth = depth,
                      .scan = wider};
    d.kernel = tq_depthwise_find(in, fused, true);
    uint64_t weights;
    if (channels > UINT32_MAX || taps > UINT32_MAX ||
        !tq_mul_u64(tq_round_up(taps, 4), (uint64_t)(channels + 64) * 4, &weights) || weights > PTRDIFF_MAX / 2)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "weights of %zu channels by %zu taps are too large", channels,
                       taps);
    if (in == TQ_f32)
        d.bands = tq_depthwise_plan_bands(d.kernel, &d.scan, channels);
    if (in == TQ_f32 && !d.bands.line_bytes)
        d.lines = tq_depthwise_plan_lines(d.kernel, &d.scan, channels);
    const size_t padded = tq_depthwise_packed_vectors(&d) *
                          d.kernel->lanes; /* with taps rounded up to 4: enough for any kernel that pack may choose */
    d.columns = tq_depthwise_plan_columns(d.kernel, in, &d.scan, channels);
    d.offset_bytes = tq_depthwise_offset_bytes(&d);
    d.packed_bytes = tq_round_up(padded * tq_round_up(taps, 4) * (in == TQ_f32 ? 4 : 2), TQ_DEPTHWISE_ALIGN) +
                     tq_round_up(padded * (wide ? 8 : 4), TQ_DEPTHWISE_ALIGN) +
                     tq_round_up(channels * tq_element_size(in) + TQ_DEPTHWISE_SLACK, TQ_DEPTHWISE_ALIGN) +
                     d.columns.weight_bytes + d.columns.bias_bytes + d.offset_bytes;
    *depthwise = d;
    return TQ_OK;
}
