/* SPDX-License-Identifier: Apache-2.0
 *
 * QUANTIZE and DEQUANTIZE, by the kernels of kernels/arrays/arrays.h.
 *
 *   QUANTIZE     of real values x:       clamp(away(f32(x / s)) + z)
 *                of quantized values q:  clamp(MBQM(q - zi, si / so) + zo)
 *     XNNPACK    clamp(even(f32(x f32(1 / s))) + z);  floor((q - zi) even(256 si / so) / 256 + 1/2) + zo
 *     optimized  in whole blocks of 8 real values as XNNPACK, after them away(f64(x) / s);
 *                in whole blocks of 16 quantized values of 8 bits the rule "up" in place of MBQM's "double"
 *   DEQUANTIZE   f32(s (q - z)); float16 is widened
 *     optimized  with one scale, in whole blocks of 8: f32(f32(q s) + f32(-z s))
 *
 * Infinities and quotients outside of int32 saturate.  NaN gives the zero point, where the runtime on x86 gives the
 * least quantized value.
 *
 * Source: LiteRT f6745779, tflite/kernels/quantize.cc, dequantize.cc, dequantize.h,
 * internal/optimized/optimized_ops.h.
 */
#include <math.h>

#include "kernels/arrays/arrays.h"
#include "kernels/isa.h"
#include "ops/elementwise/lookup_table.h"
#include "ops/parallel.h"
#include "ops/quantized.h"

#define COST 80 /* picoseconds for an element */

typedef struct state {
    tq_array_job job; /* in, out, scratch and threads are set in eval */
    int32_t low, high;
    double multiplier;
    int32_t zero_in, zero_out; /* beside a multiplier */
    tq_quantize_rule rule;
} state;

/* ---- shared by all ---- */

/* The kernels' element of a tensor type; values of 4 and 2 bits take a byte each. */
static tq_element element_of(int32_t type)
{
    switch (type) {
    case TQ_TensorType_INT4:
    case TQ_TensorType_INT2:
    case TQ_TensorType_INT8: return TQ_i8;
    case TQ_TensorType_UINT4:
    case TQ_TensorType_UINT8: return TQ_u8;
    case TQ_TensorType_INT16: return TQ_i16;
    case TQ_TensorType_INT32: return TQ_i32;
    case TQ_TensorType_FLOAT16: return TQ_f16;
    }
    return TQ_f32;
}

/* The elements of `tensor` outside, along and inside its axis of scales. */
static tq_layout layout_of(const tq_tensor *tensor, const tq_shape *shape)
{
    tq_layout layout = {1, 1, 1, tq_shape_size(shape)};
    if (tensor && tensor->quantization.count > 1) {
        int axis = tensor->quantization.axis;
        layout.outer = tq_shape_span(shape, 0, axis);
        layout.channels = (size_t)shape->dims[axis];
        layout.inner = tq_shape_span(shape, axis + 1, shape->rank);
    }
    return layout;
}

/* A fault of a tensor's scales and zero points, or NULL: one scale for each index of the axis, or one for all; finite;
   zero points that the arithmetic holds. */
static const char *find_fault(const tq_tensor *tensor, const tq_shape *shape)
{
    const tq_affine *q = &tensor->quantization;
    if (q->count > 1 && (q->axis >= shape->rank || (uint32_t)shape->dims[q->axis] != q->count))
        return "has scales for another number of channels than its shape has";
    for (uint32_t i = 0; i < q->count; i++) {
        if (!isfinite(q->scale[i]) || q->scale[i] < 0)
            return "has a scale that is negative or not finite";
        if (!tq_zero_point_fits(tensor->type, q->zero_point[i]))
            return "has a zero point far outside its type; it needs one from -1792 to 1792 (INT16: 65536)";
    }
    return NULL;
}

/* quantized: the tensor whose scales give the layout, each along its axis; NULL: both tensors have one. */
static tq_status begin(tq_node *node, const tq_tensor *quantized, state **out, tq_error *error)
{
    state *s;
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(tq_output_shape(node, 0, &node->in[0]->shape, error));
    s->job.in_type = element_of(node->in[0]->type);
    s->job.out_type = element_of(node->out[0]->type);
    s->job.layout = layout_of(quantized, &node->in[0]->shape);
    *out = s;
    uint64_t bytes;
    if (!tq_array_scratch(&s->job.layout, &bytes))
        return tq_op_fail(node, error, TQ_NO_MEMORY, "its parameters, one an element, need more than memory has");
    return tq_node_scratch(node, bytes, error);
}

static tq_array_job job_of(const tq_node *node)
{
    tq_array_job job = ((state *)node->state)->job;
    job.in = node->in[0]->data;
    job.out = node->out[0]->data;
    job.scratch = node->scratch;
    job.threads = tq_paying_threads(tq_tensor_count(node->out[0]), COST, node->threads);
    return job;
}

static tq_column_f32 scales_of(const tq_tensor *tensor)
{
    static const float none = 0;
    if (tensor->quantization.count == 0)
        return (tq_column_f32){&none, false};
    tq_column_f32 column = {tensor->quantization.scale, tensor->quantization.count > 1};
    return column;
}

static tq_column_i32 zero_points_of(const tq_tensor *tensor)
{
    static const int32_t none = 0;
    if (tensor->quantization.count == 0)
        return (tq_column_i32){&none, false};
    tq_column_i32 column = {tensor->quantization.zero_point, tensor->quantization.count > 1};
    return column;
}

/* Whether the optimized kernels compute whole blocks by another formula. */
static bool has_blocks(const tq_node *node, const tq_tensor *quantized)
{
    return node->numerics == TQ_NUMERICS_OPTIMIZED && quantized->quantization.count == 1;
}

/* ---- QUANTIZE ---- */

enum { BLOCK = 8, BLOCK_8BIT = 16 };

/* The real values after the last whole block. */
static void quantize_rest(const tq_node *node, const state *s, size_t first, size_t n)
{
    const tq_tensor *out = node->out[0];
    const double scale = (double)tq_scale_of(out);
    for (size_t i = first; i < n; i++) {
        double rounded = tq_round_f64((double)((const float *)node->in[0]->data)[i] / scale);
        int32_t q = tq_value_of_rounded(rounded, tq_zero_point_of(out), s->low, s->high);
        if (out->type == TQ_TensorType_INT16)
            ((int16_t *)out->data)[i] = (int16_t)q;
        else
            ((uint8_t *)out->data)[i] = (uint8_t)q;
    }
}

static tq_status eval_quantize_blocks(tq_node *node, tq_error *error)
{
    const state *s = node->state;
    tq_array_job job = job_of(node);
    const size_t n = job.layout.inner, whole = n - n % BLOCK;
    job.layout.inner = whole;
    quantize_rest(node, s, whole, n);
    return tq_quantize_array(&job, scales_of(node->out[0]), zero_points_of(node->out[0]), s->low, s->high,
                             TQ_QUANTIZE_EVEN, error);
}

static tq_status eval_quantize(tq_node *node, tq_error *error)
{
    const state *s = node->state;
    tq_array_job job = job_of(node);
    return tq_quantize_array(&job, scales_of(node->out[0]), zero_points_of(node->out[0]), s->low, s->high, s->rule,
                             error);
}

static tq_status eval_requantize(tq_node *node, tq_error *error)
{
    const state *s = node->state;
    tq_array_job job = job_of(node);
    tq_column_f64 multiplier = {&s->multiplier, false};
    tq_column_i32 zero_in = {&s->zero_in, false}, zero_out = {&s->zero_out, false};
    return tq_requantize_array(&job, multiplier, zero_in, zero_out, tq_reference_rule(node), NULL, error);
}

static tq_status prepare_quantize(tq_node *node, tq_error *error)
{
    state *s;
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16) | TQ_T(INT4) | TQ_T(UINT4), error));
    const char *fault = node->out[0]->quantization.count == 0 ? "has no scale, and needs one or one for each channel"
                                                              : find_fault(node->out[0], &node->in[0]->shape);
    for (uint32_t i = 0; !fault && i < node->out[0]->quantization.count; i++)
        if (node->out[0]->quantization.scale[i] == 0)
            fault = "has the scale 0, and needs one above 0";
    if (fault)
        return tq_output_fail(node, 0, error, "%s", fault);
    TQ_TRY(begin(node, node->out[0], &s, error));
    tq_quantized_range(node->out[0]->type, &s->low, &s->high);
    s->rule = node->numerics == TQ_NUMERICS_XNNPACK ? TQ_QUANTIZE_EVEN : TQ_QUANTIZE_AWAY;
    const bool narrow = node->out[0]->type == TQ_TensorType_INT4 || node->out[0]->type == TQ_TensorType_UINT4;
    node->eval = has_blocks(node, node->out[0]) && !narrow ? eval_quantize_blocks : eval_quantize;
    return TQ_OK;
}

static unsigned requantized_types(int32_t from)
{
    switch (from) {
    case TQ_TensorType_INT16: return TQ_T(INT8) | TQ_T(INT16) | TQ_T(INT32);
    case TQ_TensorType_INT32: return TQ_T(INT8) | TQ_T(INT16);
    }
    return TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16);
}

typedef struct rescaling {
    tq_fixed by;
    int32_t by_256;
    int32_t zero_in, zero_out;
} rescaling;

static int32_t rescaled(int32_t q, const void *params)
{
    const rescaling *r = params;
    return tq_saturate_i32((int64_t)tq_multiply_fixed(q - r->zero_in, r->by) + r->zero_out);
}

static int32_t rescaled_up(int32_t q, const void *params)
{
    const rescaling *r = params;
    return tq_saturate_i32((int64_t)tq_multiply_up(q - r->zero_in, r->by.multiplier, r->by.shift) + r->zero_out);
}

/* XNNPACK's: a multiplier in units of 1 / 256, ties up. */
static int32_t rescaled_256(int32_t q, const void *params)
{
    const rescaling *r = params;
    return (((q - r->zero_in) * r->by_256 + 128) >> 8) + r->zero_out;
}

/* 8 bits to 8 bits, by a table. */
static tq_status prepare_bytes(tq_node *node, tq_error *error)
{
    const tq_tensor *in = node->in[0], *out = node->out[0];
    rescaling r = {.zero_in = tq_zero_point_of(in), .zero_out = tq_zero_point_of(out)};
    TQ_TRY(tq_fixed_find(node, (double)tq_scale_of(in) / (double)tq_scale_of(out), &r.by, error));
    r.by_256 = tq_multiplier_in_256ths(tq_scale_of(in) / tq_scale_of(out));
    if (node->numerics == TQ_NUMERICS_OPTIMIZED)
        return tq_lookup_prepare_blocks(node, BLOCK_8BIT, rescaled_up, rescaled, &r, error);
    const bool by_256 = node->numerics == TQ_NUMERICS_XNNPACK;
    TQ_TRY(tq_lookup_prepare(node, by_256 ? rescaled_256 : rescaled, &r, error));
    const double slope = by_256 ? r.by_256 / 256.0 : (double)tq_scale_of(in) / (double)tq_scale_of(out);
    tq_lookup_by_lines(node, slope, slope);
    return TQ_OK;
}

static tq_status prepare_requantize(tq_node *node, tq_error *error)
{
    state *s;
    const tq_tensor *in = node->in[0], *out = node->out[0];
    TQ_TRY(tq_check_output(node, 0, requantized_types(in->type), error));
    TQ_TRY(tq_check_input_scale(node, 0, error));
    TQ_TRY(tq_check_quantized_output(node, 0, error));
    if (tq_element_bytes(in->type) == 1 && tq_element_bytes(out->type) == 1)
        return prepare_bytes(node, error);
    if (in->type == TQ_TensorType_INT16 && out->type == TQ_TensorType_INT16 &&
        (tq_zero_point_of(in) != 0 || tq_zero_point_of(out) != 0))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "INT16 to INT16 needs zero points of 0, not %d and %d",
                          tq_zero_point_of(in), tq_zero_point_of(out));
    TQ_TRY(begin(node, NULL, &s, error));
    s->multiplier = (double)tq_scale_of(in) / (double)tq_scale_of(out);
    s->multiplier = isfinite((float)s->multiplier) ? s->multiplier : 0;
    s->zero_in = tq_zero_point_of(in);
    s->zero_out = tq_zero_point_of(out);
    node->eval = eval_requantize;
    return TQ_OK;
}

tq_status tq_prepare_quantize(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16) | TQ_T(INT32), error));
    return node->in[0]->type == TQ_TensorType_FLOAT32 ? prepare_quantize(node, error) : prepare_requantize(node, error);
}

/* ---- DEQUANTIZE ---- */

static tq_status eval_dequantize(tq_node *node, tq_error *error)
{
    tq_array_job job = job_of(node);
    return tq_dequantize_array(&job, scales_of(node->in[0]), zero_points_of(node->in[0]), error);
}

typedef struct shifted {
    tq_map map;
    float scale, offset;
    int32_t zero_point;
} shifted;

#define SHIFTED_BODY(target, isa, name, type)                                                          \
    target static void shifted_##name##_##isa(const void *in, void *out, size_t n, const void *params) \
    {                                                                                                  \
        const type *restrict q = in;                                                                   \
        float *restrict y = out;                                                                       \
        const shifted *s = params;                                                                     \
        const float scale = s->scale, offset = s->offset;                                              \
        const size_t whole = n - n % BLOCK; /* a range begins at a multiple of 64 (map.h) */           \
        for (size_t i = 0; i < whole; i++)                                                             \
            y[i] = (float)q[i] * scale + offset;                                                       \
        for (size_t i = whole; i < n; i++)                                                             \
            y[i] = (float)(q[i] - s->zero_point) * scale;                                              \
    }
#define SHIFTED(isa, target)              \
    SHIFTED_BODY(target, isa, i8, int8_t) \
    SHIFTED_BODY(target, isa, u8, uint8_t)
TQ_EVERY_ISA(SHIFTED)

/* Quantized values of at most 8 bits, in the optimized kernel's blocks. */
static tq_status prepare_shifted(tq_node *node, tq_error *error)
{
    static const tq_map_fn i8[] = TQ_ISA_FUNCTIONS(shifted_i8), u8[] = TQ_ISA_FUNCTIONS(shifted_u8);
    const bool is_unsigned = node->in[0]->type == TQ_TensorType_UINT8;
    shifted *s;
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->scale = tq_scale_of(node->in[0]);
    s->zero_point = tq_zero_point_of(node->in[0]);
    s->offset = (float)-s->zero_point * s->scale;
    s->map.run = (is_unsigned ? u8 : i8)[tq_isa()];
    s->map.params = s;
    return tq_map_prepare(node, &s->map, error);
}

static void widen(const void *in, void *out, size_t n, const void *params)
{
    (void)params;
    tq_kernel_find(TQ_KERNEL_convert, TQ_f16, TQ_f32)->row(in, out, n, 1, n, NULL, 0);
}

static tq_status prepare_widen(tq_node *node, tq_error *error)
{
    tq_map *map;
    TQ_TRY(tq_node_state(node, sizeof *map, &map, error));
    map->run = widen;
    return tq_map_prepare(node, map, error);
}

tq_status tq_prepare_dequantize(tq_node *node, tq_error *error)
{
    state *s;
    const unsigned types = TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16) | TQ_T(INT4) | TQ_T(UINT4) | TQ_T(INT2);
    TQ_TRY(tq_check_input(node, 0, types | TQ_T(FLOAT16), error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(FLOAT32), error));
    if (node->in[0]->type == TQ_TensorType_FLOAT16)
        return prepare_widen(node, error);
    const char *fault = find_fault(node->in[0], &node->in[0]->shape);
    if (fault)
        return tq_input_fail(node, 0, error, "%s", fault);
    if (node->in[0]->type == TQ_TensorType_INT16 && tq_zero_point_of(node->in[0]) != 0)
        return tq_input_fail(node, 0, error, "has zero point %d; INT16 needs 0", tq_zero_point_of(node->in[0]));
    if (has_blocks(node, node->in[0]) && tq_zero_point_of(node->in[0]) != 0)
        return prepare_shifted(node, error);
    TQ_TRY(begin(node, node->in[0], &s, error));
    node->eval = eval_dequantize;
    return TQ_OK;
}
