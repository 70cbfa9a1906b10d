/* SPDX-License-Identifier: Apache-2.0
 *
 * What convolutions, fully connected layers and matrix products need.
 */
#include "base/bytes.h"
#include "model/quantization.h"
#include "ops/check.h"
#include "delegate/needs.h"

static bool is_affine(const tq_quantization *q)
{
    return q->kind == TQ_QUANTIZATION_PER_TENSOR || q->kind == TQ_QUANTIZATION_PER_AXIS;
}

bool tq_need_convolution_options(const tq_node *node)
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

bool tq_need_image(const tq_node *node)
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

bool tq_need_filter(const tq_node *node)
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

bool tq_need_bias(const tq_node *node)
{
    const tq_tensor *bias = input(node, 2);
    return is_bias(bias) && has_dimensions(bias, 1, 1) && is_static(bias) && is_bias_of(bias, input(node, 1));
}

bool tq_need_optional_bias(const tq_node *node)
{
    const tq_tensor *bias = input(node, 3);
    return !bias || (is_bias(bias) && has_dimensions(bias, 1, 1) && is_static(bias));
}

bool tq_need_filter_type(const tq_node *node)
{
    int32_t x = type_of(input(node, 0)), w = type_of(input(node, 1));
    return x == type_of(output(node, 0)) && (x == w || (x == TQ_TensorType_FLOAT32 && w == TQ_TensorType_INT8));
}

bool tq_need_plain_filter_type(const tq_node *node)
{
    int32_t x = type_of(input(node, 0));
    return x == type_of(output(node, 0)) && x == type_of(input(node, 1));
}

bool tq_need_groups(const tq_node *node)
{
    return dimension(input(node, 0), 3) >= dimension(input(node, 1), 3);
}

bool tq_need_depth_multiplier(const tq_node *node)
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

bool tq_need_output_shape(const tq_node *node)
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

bool tq_need_version_but_8(const tq_node *node)
{
    return node->row.version != 8;
}

bool tq_need_default_weights_format(const tq_node *node)
{
    return option(node, TQ_FullyConnectedOptions_weights_format) == 0;
}

static bool is_narrow(const tq_tensor *t)
{
    return type_of(t) == TQ_TensorType_INT4 || type_of(t) == TQ_TensorType_INT2;
}

bool tq_need_matrix(const tq_node *node)
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

bool tq_need_matrix_bias(const tq_node *node)
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

bool tq_need_matrix_types(const tq_node *node)
{
    const tq_tensor *x = input(node, 0), *w = input(node, 1), *y = output(node, 0);
    bool narrow = type_of(w) == TQ_TensorType_INT8 || is_narrow(w);
    return is_float_or_codes(x) && is_float_or_codes(y) && type_of(x) == type_of(y) &&
           (type_of(x) == type_of(w) || (narrow && type_of(x) != TQ_TensorType_UINT8));
}

bool tq_need_matrix_zero_points(const tq_node *node)
{
    const tq_tensor *w = input(node, 1);
    return is_float(input(node, 0)) || type_of(w) != TQ_TensorType_INT8 || zero_point_of(w) == 0;
}

bool tq_need_matrix_depth(const tq_node *node)
{
    const tq_tensor *w = input(node, 1);
    int32_t depth = dimension(w, 1);
    return type_of(w) == TQ_TensorType_INT4 ? depth % 2 == 0 : type_of(w) != TQ_TensorType_INT2 || depth % 4 == 0;
}

bool tq_need_batches(const tq_node *node)
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
