/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/backends.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "model/quantization.h"
#include "ops/check.h"

enum { MOST_DIMENSIONS = 6 };

/* ---- what the file says of a tensor, or who resized it; NULL, one that is left out, has no type and no shape ---- */

static int32_t type_of(const tq_tensor *t)
{
    return t ? t->type : -1;
}

static int rank_of(const tq_tensor *t)
{
    if (t && t->resized)
        return t->shape.rank;
    return t ? (int)tq_get_vector(&t->table, TQ_Tensor_shape).count : -1;
}

static int32_t dimension(const tq_tensor *t, int i)
{
    if (!t)
        return 0;
    if (t->resized)
        return i >= 0 && i < t->shape.rank ? t->shape.dims[i] : 0;
    tq_vector dims = tq_get_vector(&t->table, TQ_Tensor_shape);
    return i >= 0 && (uint32_t)i < dims.count ? tq_vector_i32(&dims, (size_t)i) : 0;
}

static bool has_dimensions(const tq_tensor *t, int low, int high)
{
    int rank = rank_of(t);
    for (int i = 0; i < rank; i++)
        if (dimension(t, i) <= 0)
            return false;
    return rank >= low && rank <= high;
}

static bool is_float(const tq_tensor *t)
{
    return type_of(t) == TQ_TensorType_FLOAT32 || type_of(t) == TQ_TensorType_FLOAT16;
}

static bool is_byte(const tq_tensor *t)
{
    return type_of(t) == TQ_TensorType_INT8 || type_of(t) == TQ_TensorType_UINT8;
}

static bool is_affine(const tq_quantization *q)
{
    return q->kind == TQ_QUANTIZATION_PER_TENSOR || q->kind == TQ_QUANTIZATION_PER_AXIS;
}

/* 8-bit codes with one scale. */
static bool has_one_scale(const tq_quantization *q)
{
    return q->kind == TQ_QUANTIZATION_PER_TENSOR && q->quantized_dimension == 0;
}

static bool is_codes(const tq_tensor *t)
{
    if (!is_byte(t))
        return false;
    tq_quantization q = tq_tensor_quantization(&t->table);
    return has_one_scale(&q);
}

static bool is_float_or_codes(const tq_tensor *t)
{
    return is_float(t) || is_codes(t);
}

/* Of a tensor with one scale; 0 of others. */
static float scale_of(const tq_tensor *t)
{
    tq_quantization q = tq_tensor_quantization(&t->table);
    return q.scale.count == 1 ? tq_vector_f32(&q.scale, 0) : 0;
}

static int64_t zero_point_of(const tq_tensor *t)
{
    tq_quantization q = tq_tensor_quantization(&t->table);
    return q.scale.count == 1 && q.zero_point.count ? tq_vector_i64(&q.zero_point, 0) : 0;
}

static bool is_sound_scale(float scale)
{
    return isnormal(scale) && scale > 0;
}

/* Codes that XNNPACK can describe: one sound scale, a zero point that the type can hold. */
static bool is_sound(const tq_tensor *t)
{
    if (!is_byte(t))
        return false;
    tq_quantization q = tq_tensor_quantization(&t->table);
    int64_t low = t->type == TQ_TensorType_UINT8 ? 0 : -128;
    int64_t zero_point = q.zero_point.count ? tq_vector_i64(&q.zero_point, 0) : 0;
    return has_one_scale(&q) && is_sound_scale(tq_vector_f32(&q.scale, 0)) && zero_point >= low &&
           zero_point <= low + 255;
}

static bool is_in_file(const tq_tensor *t)
{
    return t && t->in_file && t->data;
}

static bool is_static(const tq_tensor *t)
{
    return is_in_file(t) || (t && t->unpacked);
}

static const tq_tensor *input(const tq_node *node, int i)
{
    return i < node->in_count ? node->in[i] : NULL;
}

static const tq_tensor *output(const tq_node *node, int i)
{
    return i < node->out_count ? node->out[i] : NULL;
}

static int64_t option(const tq_node *node, tq_field_id field)
{
    return tq_get_int(&node->options.table, field);
}

static float real_option(const tq_node *node, tq_field_id field)
{
    return (float)tq_get_scalar(&node->options.table, field).f;
}

/* ---- counts ---- */

static bool counts(const tq_node *node, int low, int high)
{
    return node->in_count >= low && node->in_count <= high && node->out_count == 1;
}

static bool need_one_input(const tq_node *node)
{
    return counts(node, 1, 1);
}

static bool need_two_inputs(const tq_node *node)
{
    return counts(node, 2, 2);
}

static bool need_three_inputs(const tq_node *node)
{
    return counts(node, 3, 3);
}

static bool need_two_or_three_inputs(const tq_node *node)
{
    return counts(node, 2, 3);
}

static bool need_three_or_four_inputs(const tq_node *node)
{
    return counts(node, 3, 4);
}

static bool need_up_to_five_inputs(const tq_node *node)
{
    return counts(node, 2, 5);
}

static bool need_up_to_four_outputs(const tq_node *node)
{
    return node->in_count == 2 && node->out_count >= 2 && node->out_count <= 4 &&
           option(node, TQ_SplitOptions_num_splits) == node->out_count;
}

/* ---- types and shapes ---- */

/* Inputs that are values: all but the axes, shapes and paddings that steer an operator. */
static bool is_value(const tq_node *node, int i)
{
    switch (node->row.code) {
    case TQ_BuiltinOperator_SPLIT: return i == 1;
    case TQ_BuiltinOperator_MEAN:
    case TQ_BuiltinOperator_SUM:
    case TQ_BuiltinOperator_REDUCE_MAX:
    case TQ_BuiltinOperator_REDUCE_MIN:
    case TQ_BuiltinOperator_RESIZE_BILINEAR:
    case TQ_BuiltinOperator_PAD:
    case TQ_BuiltinOperator_SLICE:
    case TQ_BuiltinOperator_STRIDED_SLICE:
    case TQ_BuiltinOperator_RESHAPE:
    case TQ_BuiltinOperator_TRANSPOSE: return i == 0;
    default: return true;
    }
}

static bool all(const tq_node *node, bool (*holds)(const tq_tensor *), bool outputs_too)
{
    for (int i = 0; i < node->in_count; i++)
        if (is_value(node, i) && !holds(node->in[i]))
            return false;
    for (int i = 0; outputs_too && i < node->out_count; i++)
        if (!holds(node->out[i]))
            return false;
    return true;
}

static bool fits(const tq_tensor *t)
{
    return has_dimensions(t, 0, MOST_DIMENSIONS);
}

static bool need_up_to_six_dimensions(const tq_node *node)
{
    bool needs_one = node->row.code == TQ_BuiltinOperator_PAD || node->row.code == TQ_BuiltinOperator_TRANSPOSE;
    return all(node, fits, false) && (!needs_one || rank_of(input(node, 0)) >= 1);
}

static bool need_no_empty_output(const tq_node *node)
{
    return fits(output(node, 0));
}

static bool need_float_types(const tq_node *node)
{
    return all(node, is_float, true);
}

static bool need_float_or_codes(const tq_node *node)
{
    return all(node, is_float_or_codes, true);
}

static bool is_float_or_int8(const tq_tensor *t)
{
    return is_float_or_codes(t) && type_of(t) != TQ_TensorType_UINT8;
}

static bool need_float_or_int8(const tq_node *node)
{
    return all(node, is_float_or_int8, true);
}

static bool need_codes_to_float(const tq_node *node)
{
    return is_codes(input(node, 0)) && is_float(output(node, 0));
}

static bool need_same_types(const tq_node *node)
{
    return type_of(input(node, 0)) == type_of(output(node, 0)) && type_of(input(node, 1)) == type_of(output(node, 0));
}

/* ---- options ---- */

static int64_t activation_of(const tq_node *node)
{
    switch (node->row.code) {
#define OF(operator, table) \
    case TQ_BuiltinOperator_##operator: return option(node, TQ_##table##_fused_activation_function);
        OF(ADD, AddOptions)
        OF(SUB, SubOptions)
        OF(MUL, MulOptions)
        OF(DIV, DivOptions)
        OF(CONV_2D, Conv2DOptions)
        OF(DEPTHWISE_CONV_2D, DepthwiseConv2DOptions)
        OF(TRANSPOSE_CONV, TransposeConvOptions)
        OF(FULLY_CONNECTED, FullyConnectedOptions)
        OF(MAX_POOL_2D, Pool2DOptions)
        OF(AVERAGE_POOL_2D, Pool2DOptions)
#undef OF
    default: return TQ_ActivationFunctionType_NONE;
    }
}

static bool need_plain_activation(const tq_node *node)
{
    int64_t activation = activation_of(node);
    return activation >= TQ_ActivationFunctionType_NONE && activation <= TQ_ActivationFunctionType_RELU6;
}

static bool need_beta_of_one(const tq_node *node)
{
    return real_option(node, TQ_SoftmaxOptions_beta) == 1;
}

static bool need_pool_options(const tq_node *node)
{
    int64_t strides[] = {option(node, TQ_Pool2DOptions_stride_h), option(node, TQ_Pool2DOptions_stride_w)};
    int64_t filter[] = {option(node, TQ_Pool2DOptions_filter_height), option(node, TQ_Pool2DOptions_filter_width)};
    for (int i = 0; i < 2; i++)
        if (strides[i] <= 0 || filter[i] <= 0 || strides[i] > filter[i])
            return false;
    return true;
}

static bool need_block(const tq_node *node)
{
    return option(node, TQ_DepthToSpaceOptions_block_size) > 1;
}

static bool need_blocks(const tq_node *node)
{
    const tq_tensor *x = input(node, 0);
    int64_t size = option(node, TQ_SpaceToDepthOptions_block_size);
    return size > 1 && rank_of(x) >= 3 && dimension(x, 1) % size == 0 && dimension(x, 2) % size == 0;
}

/* ---- element by element ---- */

static bool is_ratio(float ratio, float low, float high)
{
    return !(ratio < low) && !(ratio >= high);
}

static bool need_sum_ratios(const tq_node *node)
{
    for (int i = 0; i < 2 && is_byte(output(node, 0)); i++)
        if (!is_ratio(scale_of(node->in[i]) / scale_of(node->out[0]), 1.0f / 1024, 256))
            return false;
    return true;
}

static bool need_product_ratio(const tq_node *node)
{
    if (!is_byte(output(node, 0)))
        return true;
    float product = scale_of(node->in[0]) * scale_of(node->in[1]);
    return is_ratio(product / scale_of(node->out[0]), 1.0f / 65536, 256);
}

static bool need_constant_slope(const tq_node *node)
{
    return is_static(input(node, 1));
}

static bool need_slope(const tq_node *node)
{
    float alpha = real_option(node, TQ_LeakyReluOptions_alpha);
    if (!isnormal(alpha))
        return false;
    const tq_tensor *x = input(node, 0), *y = output(node, 0);
    if (!is_codes(x) || !is_codes(y) || !isnormal(scale_of(x)) || !isnormal(scale_of(y)))
        return true;
    float positive = scale_of(x) / scale_of(y), negative = positive * alpha;
    return !(positive < 1.0f / 256 || positive > 128) &&
           !(negative < -127.99609375f || negative > 128 || fabsf(negative) < 1.0f / 256);
}

static bool need_conversion(const tq_node *node)
{
    const tq_tensor *x = input(node, 0), *y = output(node, 0);
    if (is_float(x))
        return true;
    float ratio = scale_of(x) / scale_of(y);
    return type_of(x) == type_of(y) && is_sound(x) && is_sound(y) && !(ratio < 1.0f / 256 || ratio > 128);
}

/* ---- convolutions ---- */

static bool need_convolution_options(const tq_node *node)
{
    if (node->row.code == TQ_BuiltinOperator_CONV_2D)
        return option(node, TQ_Conv2DOptions_stride_w) > 0 && option(node, TQ_Conv2DOptions_stride_h) > 0 &&
               option(node, TQ_Conv2DOptions_dilation_w_factor) > 0 &&
               option(node, TQ_Conv2DOptions_dilation_h_factor) > 0;
    return option(node, TQ_DepthwiseConv2DOptions_stride_w) > 0 &&
           option(node, TQ_DepthwiseConv2DOptions_stride_h) > 0 &&
           option(node, TQ_DepthwiseConv2DOptions_dilation_w_factor) > 0 &&
           option(node, TQ_DepthwiseConv2DOptions_dilation_h_factor) > 0;
}

static bool is_transposed(const tq_node *node)
{
    return node->row.code == TQ_BuiltinOperator_TRANSPOSE_CONV;
}

static const tq_tensor *image_of(const tq_node *node)
{
    return input(node, is_transposed(node) ? 2 : 0);
}

static bool need_image(const tq_node *node)
{
    const tq_tensor *x = image_of(node), *y = output(node, 0);
    if (is_transposed(node) && (type_of(x) == TQ_TensorType_FLOAT16 || type_of(y) == TQ_TensorType_FLOAT16))
        return false;
    return is_float_or_codes(x) && has_dimensions(x, 4, 4) && is_float_or_codes(y) && has_dimensions(y, 4, 4);
}

static bool has_sound_scales(const tq_quantization *q)
{
    const int32_t least = 0x00800000, greatest = 0x7F7FFFFF; /* the bits of FLT_MIN and FLT_MAX */
    const uint8_t *scales = tq_vector_bytes(&q->scale, sizeof(float)).data;
    int32_t outside = 0;
    for (uint32_t c = 0; c < q->scale.count; c++) { /* is_sound_scale, for vectors */
        const int32_t bits = (int32_t)tq_load_u32(scales + 4 * c);
        outside |= (bits < least) | (bits > greatest);
    }
    return !outside;
}

/* float, or codes that XNNPACK can describe: many scales lie along `axis` with zero points of 0. */
static bool is_filter(const tq_tensor *t, int axis)
{
    if (is_float(t))
        return true;
    if (type_of(t) == TQ_TensorType_UINT8)
        return is_sound(t);
    if (type_of(t) != TQ_TensorType_INT8)
        return false;
    tq_quantization q = tq_tensor_quantization(&t->table);
    if (!is_affine(&q) || !has_sound_scales(&q))
        return false;
    int64_t zero_point = q.zero_point.count ? tq_vector_i64(&q.zero_point, 0) : 0;
    return q.scale.count > 1 ? q.quantized_dimension == axis && zero_point == 0
                             : zero_point >= -128 && zero_point <= 127;
}

static bool need_filter(const tq_node *node)
{
    const tq_tensor *w = input(node, 1);
    int axis = node->row.code == TQ_BuiltinOperator_DEPTHWISE_CONV_2D ? 3 : 0;
    return is_filter(w, axis) && has_dimensions(w, 4, 4) && is_static(w);
}

static bool is_bias(const tq_tensor *t)
{
    if (is_float(t))
        return true;
    if (type_of(t) != TQ_TensorType_INT32)
        return false;
    tq_quantization q = tq_tensor_quantization(&t->table);
    return is_affine(&q) && q.quantized_dimension == 0 && has_sound_scales(&q) &&
           (q.scale.count > 1 || zero_point_of(t) == 0);
}

/* A float filter goes with a float bias; float16, which is told from what is unpacked, also with float32. */
static bool is_bias_of(const tq_tensor *bias, const tq_tensor *w)
{
    return !is_float(w) || is_float(bias);
}

static bool need_bias(const tq_node *node)
{
    const tq_tensor *bias = input(node, 2);
    return is_bias(bias) && has_dimensions(bias, 1, 1) && is_static(bias) && is_bias_of(bias, input(node, 1));
}

static bool need_optional_bias(const tq_node *node)
{
    const tq_tensor *bias = input(node, 3);
    return !bias || (is_bias(bias) && has_dimensions(bias, 1, 1) && is_static(bias));
}

static bool need_filter_type(const tq_node *node)
{
    int32_t x = type_of(input(node, 0)), w = type_of(input(node, 1));
    return x == type_of(output(node, 0)) && (x == w || (x == TQ_TensorType_FLOAT32 && w == TQ_TensorType_INT8));
}

static bool need_plain_filter_type(const tq_node *node)
{
    int32_t x = type_of(input(node, 0));
    return x == type_of(output(node, 0)) && x == type_of(input(node, 1));
}

static bool need_groups(const tq_node *node)
{
    return dimension(input(node, 0), 3) >= dimension(input(node, 1), 3);
}

static bool need_depth_multiplier(const tq_node *node)
{
    int64_t multiplier = option(node, TQ_DepthwiseConv2DOptions_depth_multiplier);
    return multiplier > 0 && dimension(input(node, 1), 3) % multiplier == 0;
}

/* Whether one dimension of a transposed convolution is one that the delegate can pad. */
static bool can_pad(const tq_node *node, int64_t in, int64_t kernel, int64_t stride, int64_t out)
{
    if (stride <= 0)
        return false;
    if (option(node, TQ_TransposeConvOptions_padding) == TQ_Padding_VALID)
        return kernel <= out;
    return (out + stride - 1) / stride == in && kernel >= stride;
}

static bool need_output_shape(const tq_node *node)
{
    const tq_tensor *shape = input(node, 0), *w = input(node, 1), *x = input(node, 2);
    if (type_of(shape) != TQ_TensorType_INT32 || rank_of(shape) != 1 || dimension(shape, 0) != 4 || !is_in_file(shape))
        return false;
    return tq_integer_at(shape, 3) == dimension(w, 0) && dimension(x, 3) == dimension(w, 3) &&
           can_pad(node, dimension(x, 1), dimension(w, 1), option(node, TQ_TransposeConvOptions_stride_h),
                   tq_integer_at(shape, 1)) &&
           can_pad(node, dimension(x, 2), dimension(w, 2), option(node, TQ_TransposeConvOptions_stride_w),
                   tq_integer_at(shape, 2));
}

/* ---- matrices ---- */

static bool need_version_but_8(const tq_node *node)
{
    return node->row.version != 8;
}

static bool need_default_weights_format(const tq_node *node)
{
    return option(node, TQ_FullyConnectedOptions_weights_format) == 0;
}

static bool is_narrow(const tq_tensor *t)
{
    return type_of(t) == TQ_TensorType_INT4 || type_of(t) == TQ_TensorType_INT2;
}

static bool need_matrix(const tq_node *node)
{
    const tq_tensor *w = input(node, 1);
    if (!has_dimensions(w, 2, 2) || !is_static(w))
        return false;
    if (is_float(w) || is_codes(w))
        return true;
    if (type_of(w) != TQ_TensorType_INT8 && !is_narrow(w))
        return false;
    tq_quantization q = tq_tensor_quantization(&w->table);
    if (q.kind == TQ_QUANTIZATION_BLOCKWISE)
        return q.scales_tensor >= 0 && q.block_size % 32 == 0;
    return is_affine(&q) && (q.scale.count == 1 || q.quantized_dimension == 0) &&
           (type_of(w) != TQ_TensorType_INT2 || (int64_t)q.scale.count == dimension(w, q.quantized_dimension));
}

static bool need_matrix_bias(const tq_node *node)
{
    const tq_tensor *bias = input(node, 2);
    if (!bias)
        return true;
    int64_t count = 1;
    for (int i = 0; i < rank_of(bias) && count <= INT32_MAX; i++)
        count *= dimension(bias, i);
    return is_bias(bias) && count == dimension(input(node, 1), 0) && is_static(bias) &&
           is_bias_of(bias, input(node, 1));
}

static bool need_matrix_types(const tq_node *node)
{
    const tq_tensor *x = input(node, 0), *w = input(node, 1), *y = output(node, 0);
    bool narrow = type_of(w) == TQ_TensorType_INT8 || is_narrow(w);
    return is_float_or_codes(x) && is_float_or_codes(y) && type_of(x) == type_of(y) &&
           (type_of(x) == type_of(w) || (narrow && type_of(x) != TQ_TensorType_UINT8));
}

static bool need_matrix_zero_points(const tq_node *node)
{
    const tq_tensor *w = input(node, 1);
    return is_float(input(node, 0)) || type_of(w) != TQ_TensorType_INT8 || zero_point_of(w) == 0;
}

static bool need_matrix_depth(const tq_node *node)
{
    const tq_tensor *w = input(node, 1);
    int32_t depth = dimension(w, 1);
    return type_of(w) == TQ_TensorType_INT4 ? depth % 2 == 0 : type_of(w) != TQ_TensorType_INT2 || depth % 4 == 0;
}

static bool need_batches(const tq_node *node)
{
    const tq_tensor *a = input(node, 0), *b = input(node, 1);
    int axis = rank_of(b) - (option(node, TQ_BatchMatMulOptions_adj_y) ? 2 : 1);
    if (!is_float_or_codes(a) || !is_float_or_codes(output(node, 0)) || !is_filter(b, axis) || rank_of(a) < 2 ||
        rank_of(b) < 2)
        return false;
    if (type_of(a) == TQ_TensorType_FLOAT32 && type_of(b) == TQ_TensorType_INT8)
        return true;
    if (type_of(a) != type_of(b))
        return false;
    return is_float(a) || (is_sound(a) && is_sound(b) && (type_of(b) == TQ_TensorType_UINT8 || zero_point_of(b) == 0));
}

/* ---- element by element, as XNNPACK's graph has it ---- */

static bool is_one_pixel_pool(const tq_node *node)
{
    bool pools = node->row.code == TQ_BuiltinOperator_MAX_POOL_2D || node->row.code == TQ_BuiltinOperator_AVERAGE_POOL_2D;
    return pools && option(node, TQ_Pool2DOptions_filter_height) == 1 && option(node, TQ_Pool2DOptions_filter_width) == 1;
}

static bool is_function(const tq_node *node)
{
    switch (node->row.code) {
    case TQ_BuiltinOperator_ABS:
    case TQ_BuiltinOperator_CEIL:
    case TQ_BuiltinOperator_COS:
    case TQ_BuiltinOperator_DEQUANTIZE:
    case TQ_BuiltinOperator_ELU:
    case TQ_BuiltinOperator_EXP:
    case TQ_BuiltinOperator_FLOOR:
    case TQ_BuiltinOperator_GELU:
    case TQ_BuiltinOperator_HARD_SWISH:
    case TQ_BuiltinOperator_LEAKY_RELU:
    case TQ_BuiltinOperator_LOG:
    case TQ_BuiltinOperator_LOGISTIC:
    case TQ_BuiltinOperator_NEG:
    case TQ_BuiltinOperator_QUANTIZE:
    case TQ_BuiltinOperator_RELU:
    case TQ_BuiltinOperator_RELU6:
    case TQ_BuiltinOperator_RELU_N1_TO_1:
    case TQ_BuiltinOperator_ROUND:
    case TQ_BuiltinOperator_RSQRT:
    case TQ_BuiltinOperator_SIN:
    case TQ_BuiltinOperator_SQRT:
    case TQ_BuiltinOperator_SQUARE:
    case TQ_BuiltinOperator_TANH: return true;
    default: return is_one_pixel_pool(node);
    }
}

static bool is_function_of_two(const tq_node *node)
{
    switch (node->row.code) {
    case TQ_BuiltinOperator_ADD:
    case TQ_BuiltinOperator_DIV:
    case TQ_BuiltinOperator_MAXIMUM:
    case TQ_BuiltinOperator_MINIMUM:
    case TQ_BuiltinOperator_MUL:
    case TQ_BuiltinOperator_PRELU:
    case TQ_BuiltinOperator_SQUARED_DIFFERENCE:
    case TQ_BuiltinOperator_SUB: return true;
    default: return false;
    }
}

static bool is_one_element(const tq_tensor *t)
{
    if (!is_static(t))
        return false;
    for (int i = 0; i < rank_of(t); i++)
        if (dimension(t, i) != 1)
            return false;
    return true;
}

tq_backend_shape tq_backend_element(const tq_node *node, const tq_tensor **in)
{
    const tq_tensor *a = input(node, 0), *b = input(node, 1);
    if (!a || !output(node, 0) || tq_backend_unpacks(node))
        return TQ_BACKEND_OTHER;
    *in = a;
    if (is_function(node))
        return TQ_BACKEND_UNARY;
    if (!b || !is_function_of_two(node))
        return TQ_BACKEND_OTHER;
    if (is_one_element(b) && !is_static(a))
        return TQ_BACKEND_UNARY;
    if (is_one_element(a) && !is_static(b)) {
        *in = b;
        return TQ_BACKEND_UNARY;
    }
    return TQ_BACKEND_BINARY;
}

bool tq_backend_clamps(const tq_node *node)
{
    int64_t activation = is_function_of_two(node) ? activation_of(node) : TQ_ActivationFunctionType_NONE;
    return activation != TQ_ActivationFunctionType_NONE;
}

/* ---- constants that steer ---- */

/* A constant of the file with `rank` dimensions. */
static bool is_list(const tq_tensor *t, int32_t type, int rank)
{
    return type_of(t) == type && rank_of(t) == rank && is_in_file(t);
}

static bool all_above(const tq_tensor *t, int64_t low)
{
    for (size_t i = 0; i < tq_tensor_count(t); i++)
        if (tq_integer_at(t, i) <= low)
            return false;
    return true;
}

static bool need_constant_axes(const tq_node *node)
{
    const tq_tensor *axes = input(node, 1);
    if (type_of(axes) != TQ_TensorType_INT32 || rank_of(axes) > 1 || !is_in_file(axes))
        return false;
    size_t count = tq_tensor_count(axes);
    return count >= 1 && count <= MOST_DIMENSIONS &&
           !(count == 1 && tq_integer_at(axes, 0) == 0 && rank_of(input(node, 0)) == 0);
}

static bool need_constant_size(const tq_node *node)
{
    const tq_tensor *size = input(node, 1), *x = input(node, 0), *y = output(node, 0);
    return type_of(x) != TQ_TensorType_FLOAT16 && has_dimensions(x, 4, 4) && has_dimensions(y, 4, 4) &&
           is_list(size, TQ_TensorType_INT32, 1) && tq_tensor_count(size) == 2 && all_above(size, 0);
}

static bool need_joined_axis(const tq_node *node)
{
    int64_t axis = option(node, TQ_ConcatenationOptions_axis);
    for (int i = 0; i < node->in_count; i++)
        if (axis >= rank_of(node->in[i]))
            return false;
    return true;
}

static bool has_equal_quantization(const tq_tensor *a, const tq_tensor *b)
{
    return scale_of(a) == scale_of(b) && zero_point_of(a) == zero_point_of(b);
}

static bool need_equal_uint8(const tq_node *node)
{
    for (int i = 0; i < node->in_count && type_of(output(node, 0)) == TQ_TensorType_UINT8; i++)
        if (!has_equal_quantization(node->in[i], node->out[0]))
            return false;
    return true;
}

static bool need_constant_axis(const tq_node *node)
{
    const tq_tensor *axis = input(node, 0);
    return type_of(axis) == TQ_TensorType_INT32 && is_in_file(axis);
}

static bool need_constant_widths(const tq_node *node)
{
    const tq_tensor *widths = input(node, 1);
    return is_list(widths, TQ_TensorType_INT32, 2) && dimension(widths, 0) == rank_of(input(node, 0)) &&
           dimension(widths, 1) == 2 && all_above(widths, -1);
}

static bool is_whole_list(const tq_tensor *t)
{
    return is_list(t, TQ_TensorType_INT32, 1) || is_list(t, TQ_TensorType_INT64, 1);
}

static bool need_constant_range(const tq_node *node)
{
    const tq_tensor *begin = input(node, 1), *size = input(node, 2);
    return is_whole_list(begin) && is_whole_list(size) && dimension(begin, 0) == dimension(size, 0) &&
           all_above(size, 0);
}

static bool need_plain_strides(const tq_node *node)
{
    if (option(node, TQ_StridedSliceOptions_ellipsis_mask) || option(node, TQ_StridedSliceOptions_new_axis_mask) ||
        option(node, TQ_StridedSliceOptions_shrink_axis_mask))
        return false;
    for (int i = 1; i < 4; i++)
        if (!is_list(input(node, i), TQ_TensorType_INT32, 1) || dimension(input(node, i), 0) != rank_of(input(node, 0)))
            return false;
    for (size_t i = 0; i < tq_tensor_count(input(node, 3)); i++)
        if (tq_integer_at(input(node, 3), i) != 1)
            return false;
    return true;
}

static bool need_constant_shape(const tq_node *node)
{
    const tq_tensor *shape = input(node, 1);
    if (node->in_count < 1 || node->in_count > 2 || node->out_count != 1)
        return false;
    if (node->in_count == 1) {
        tq_vector wanted = tq_get_vector(&node->options.table, TQ_ReshapeOptions_new_shape);
        return !(wanted.count == 1 && tq_vector_i32(&wanted, 0) <= 0);
    }
    if (type_of(shape) != TQ_TensorType_INT32 || !is_in_file(shape))
        return false;
    for (int i = 0; i < rank_of(shape) - 1; i++)
        if (dimension(shape, i) != 1)
            return false;
    int64_t first = tq_tensor_count(shape) == 1 ? tq_integer_at(shape, 0) : 1;
    return first != -1 && first != 0;
}

static bool need_equal_quantization(const tq_node *node)
{
    return !is_byte(output(node, 0)) || has_equal_quantization(input(node, 0), output(node, 0));
}

static bool need_constant_permutation(const tq_node *node)
{
    return is_in_file(input(node, 1));
}

/* ---- what LiteRT does not run ---- */

static bool fault_no_kernel(const tq_node *node)
{
    (void)node;
    return true;
}

static bool fault_no_bias(const tq_node *node)
{
    return !input(node, 2);
}

static bool fault_one_bias_scale(const tq_node *node)
{
    const tq_tensor *w = input(node, 1), *bias = input(node, 2);
    if (type_of(w) != TQ_TensorType_INT8 || type_of(bias) != TQ_TensorType_INT32)
        return false;
    return tq_tensor_quantization(&w->table).scale.count > 1 && tq_tensor_quantization(&bias->table).scale.count == 1;
}

static bool fault_large_multiplier(const tq_node *node)
{
    if (!is_codes(input(node, 0)) || !is_codes(output(node, 0)))
        return false;
    const tq_quantization q = tq_tensor_quantization(&node->in[1]->table);
    const uint8_t *scales = tq_vector_bytes(&q.scale, sizeof(float)).data;
    const float in = scale_of(node->in[0]), out = scale_of(node->out[0]);
    bool large = false;
    for (uint32_t c = 0; c < q.scale.count; c++)
        large |= in * tq_load_f32(scales + 4 * c) / out >= 256;
    return large;
}

/* Whether one of the last dimensions is 0. */
static bool ends_in_nothing(const tq_tensor *t, int count)
{
    int rank = rank_of(t);
    for (int i = rank > count ? rank - count : 0; i < rank; i++)
        if (dimension(t, i) == 0)
            return true;
    return false;
}

static bool fault_empty_rows(const tq_node *node)
{
    return ends_in_nothing(input(node, 0), 1);
}

static bool fault_empty_matrices(const tq_node *node)
{
    return ends_in_nothing(input(node, 0), 2) || ends_in_nothing(input(node, 1), 2);
}

static bool fault_unsigned_codes(const tq_node *node)
{
    return type_of(input(node, 0)) == TQ_TensorType_UINT8;
}

/* Codes that XNNPACK takes by their type, and cannot describe. */
static bool has_unsound_codes(const tq_node *node)
{
    for (int i = 0; i < node->in_count; i++)
        if (is_codes(node->in[i]) && is_value(node, i) && !is_sound(node->in[i]))
            return true;
    for (int i = 0; i < node->out_count; i++)
        if (is_codes(node->out[i]) && !is_sound(node->out[i]))
            return true;
    return false;
}

static bool has_many_dimensions(const tq_node *node)
{
    for (int i = 0; i < node->in_count; i++)
        if (rank_of(node->in[i]) > MOST_DIMENSIONS)
            return true;
    for (int i = 0; i < node->out_count; i++)
        if (rank_of(node->out[i]) > MOST_DIMENSIONS)
            return true;
    return false;
}

typedef struct fault {
    bool (*has)(const tq_node *node);
    const char *text;
} fault;

#define FAULT(name, text) static const fault name[] = {{fault_##name, text}};
#include "ops/backends.def"

static const struct {
    int64_t code;
    tq_numerics numerics;
    const fault *fault;
} failures[] = {
#define FAILS(operator, numerics, fault) {TQ_BuiltinOperator_##operator, TQ_NUMERICS_##numerics, fault},
#include "ops/backends.def"
};

const char *tq_backend_fault(const tq_node *node, tq_numerics numerics)
{
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if (failures[i].code == node->row.code && failures[i].numerics == numerics && failures[i].fault->has(node))
            return failures[i].fault->text;
    if (numerics == TQ_NUMERICS_XNNPACK && has_unsound_codes(node))
        return "LiteRT raises: XNNPACK accepts codes, but not a scale that is 0 or denormal, or a zero point that they "
               "cannot hold";
    if (numerics == TQ_NUMERICS_XNNPACK && has_many_dimensions(node))
        return "LiteRT raises: XNNPACK accepts the operator, but no tensor of more than 6 dimensions";
    return NULL;
}

/* ---- rows ---- */

typedef struct need {
    bool (*holds)(const tq_node *node);
    const char *text;
} need;

/* Arrays of one, so that rows name them as they are. */
#define NEED(name, text) static const need name[] = {{need_##name, "XNNPACK needs " text}};
#include "ops/backends.def"

#define TAKES(operator, ...) static const need *const needs_of_##operator[] = {__VA_ARGS__, NULL};
#include "ops/backends.def"

static const struct {
    int64_t code;
    const need *const *needs;
} builtins[] = {
#define TAKES(operator, ...) {TQ_BuiltinOperator_##operator, needs_of_##operator},
#include "ops/backends.def"
};

static const struct {
    const char *name;
    const need *needs[2];
} customs[] = {
#define TAKES_CUSTOM(name, only) {name, {only, NULL}},
#include "ops/backends.def"
};

static const need *const *needs_of(const tq_node *node)
{
    if (node->row.code == TQ_BuiltinOperator_CUSTOM) {
        tq_bytes name = node->row.custom_name;
        for (size_t i = 0; i < sizeof customs / sizeof *customs; i++)
            if (name.data && name.size == strlen(customs[i].name) && !memcmp(name.data, customs[i].name, name.size))
                return customs[i].needs;
        return NULL;
    }
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (builtins[i].code == node->row.code)
            return builtins[i].needs;
    return NULL;
}

bool tq_backend_unpacks(const tq_node *node)
{
    const tq_tensor *x = input(node, 0), *y = output(node, 0);
    if (!counts(node, 1, 1) || !is_static(x) || !y)
        return false;
    bool sparse = tq_get_table(&x->table, TQ_Tensor_sparsity).at != 0;
    if (node->row.code == TQ_BuiltinOperator_DEQUANTIZE)
        return !sparse && type_of(y) == TQ_TensorType_FLOAT32 &&
               (type_of(x) == TQ_TensorType_FLOAT16 || type_of(x) == TQ_TensorType_INT8);
    return node->row.code == TQ_BuiltinOperator_DENSIFY && sparse && is_in_file(x) && type_of(x) == type_of(y) &&
           (is_float(x) || type_of(x) == TQ_TensorType_INT8);
}

const char tq_backend_unwritten[] = "LiteRT does not write the output of the graph: its delegate keeps what it computed "
                                    "to itself, and raises where nothing else is to be done";

/* The text of what keeps XNNPACK from taking the node, or NULL. */
static const char *refusal(const tq_node *node)
{
    if (tq_backend_unpacks(node))
        return "computed once, by the delegate with the optimized kernel: its input is constant";
    const need *const *needs = needs_of(node);
    if (!needs)
        return "XNNPACK does not have the operator";
    for (; *needs; needs++)
        if (!(*needs)->holds(node))
            return (*needs)->text;
    return NULL;
}

tq_backend tq_backend_choose(const tq_node *node, tq_numerics asked)
{
    tq_backend backend = {asked, "reference kernels were asked for"};
    if (asked == TQ_NUMERICS_OPTIMIZED)
        backend.rule = "optimized kernels were asked for";
    if (asked == TQ_NUMERICS_XNNPACK) {
        const char *why = refusal(node);
        backend.numerics = why ? TQ_NUMERICS_OPTIMIZED : TQ_NUMERICS_XNNPACK;
        backend.rule = why ? why : "XNNPACK takes it";
    }
    return backend;
}
