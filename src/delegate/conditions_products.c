/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions on convolutions, fully connected layers and matrix products.
 */
#include "base/bytes.h"
#include "model/quantization.h"
#include "ops/check.h"
#include "delegate/conditions.h"

static bool is_affine(const tq_quantization *q)
{
    return q->kind == TQ_QUANTIZATION_PER_TENSOR || q->kind == TQ_QUANTIZATION_PER_AXIS;
}

bool tq_condition_convolution_options(const tq_node *node)
{
    if (node->row.code == TQ_BuiltinOperator_CONV_2D)
        return tq_view_int_option(node, TQ_Conv2DOptions_stride_w) > 0 &&
               tq_view_int_option(node, TQ_Conv2DOptions_stride_h) > 0 &&
               tq_view_int_option(node, TQ_Conv2DOptions_dilation_w_factor) > 0 &&
               tq_view_int_option(node, TQ_Conv2DOptions_dilation_h_factor) > 0;
    return tq_view_int_option(node, TQ_DepthwiseConv2DOptions_stride_w) > 0 &&
           tq_view_int_option(node, TQ_DepthwiseConv2DOptions_stride_h) > 0 &&
           tq_view_int_option(node, TQ_DepthwiseConv2DOptions_dilation_w_factor) > 0 &&
           tq_view_int_option(node, TQ_DepthwiseConv2DOptions_dilation_h_factor) > 0;
}

static bool is_transposed(const tq_node *node)
{
    return node->row.code == TQ_BuiltinOperator_TRANSPOSE_CONV;
}

static const tq_tensor *image_of(const tq_node *node)
{
    return tq_view_input(node, is_transposed(node) ? 2 : 0);
}

bool tq_condition_image(const tq_node *node)
{
    const tq_tensor *x = image_of(node), *y = tq_view_output(node, 0);
    if (is_transposed(node) && (tq_view_type(x) == TQ_TensorType_FLOAT16 || tq_view_type(y) == TQ_TensorType_FLOAT16))
        return false;
    return tq_view_is_float_or_quantized(x) && tq_view_has_dimensions(x, 4, 4) && tq_view_is_float_or_quantized(y) &&
           tq_view_has_dimensions(y, 4, 4);
}

static bool has_normal_scales(const tq_quantization *q)
{
    const int32_t least = 0x00800000, greatest = 0x7F7FFFFF; /* the bits of FLT_MIN and FLT_MAX */
    const uint8_t *scales = tq_vector_bytes(&q->scale, sizeof(float)).data;
    int32_t outside = 0;
    for (uint32_t c = 0; c < q->scale.count; c++) { /* tq_view_is_normal_scale, for vectors */
        const int32_t bits = (int32_t)tq_load_u32(scales + 4 * c);
        outside |= (bits < least) | (bits > greatest);
    }
    return !outside;
}

/* Float, or quantized as XNNPACK can define it: several scales must lie along `axis`, with zero points 0. */
static bool is_filter(const tq_tensor *t, int axis)
{
    if (tq_view_is_float(t))
        return true;
    if (tq_view_type(t) == TQ_TensorType_UINT8)
        return tq_view_is_valid_quantized(t);
    if (tq_view_type(t) != TQ_TensorType_INT8)
        return false;
    tq_quantization q = tq_tensor_quantization(&t->table);
    if (!is_affine(&q) || !has_normal_scales(&q))
        return false;
    int64_t zero_point = q.zero_point.count ? tq_vector_i64(&q.zero_point, 0) : 0;
    return q.scale.count > 1 ? q.quantized_dimension == axis && zero_point == 0
                             : zero_point >= -128 && zero_point <= 127;
}

bool tq_condition_filter(const tq_node *node)
{
    const tq_tensor *w = tq_view_input(node, 1);
    int axis = node->row.code == TQ_BuiltinOperator_DEPTHWISE_CONV_2D ? 3 : 0;
    return is_filter(w, axis) && tq_view_has_dimensions(w, 4, 4) && tq_view_is_static(w);
}

static bool is_bias(const tq_tensor *t)
{
    if (tq_view_is_float(t))
        return true;
    if (tq_view_type(t) != TQ_TensorType_INT32)
        return false;
    tq_quantization q = tq_tensor_quantization(&t->table);
    return is_affine(&q) && q.quantized_dimension == 0 && has_normal_scales(&q) &&
           (q.scale.count > 1 || tq_view_zero_point(t) == 0);
}

/* A float filter needs a float bias; float16 and float32 may be mixed. */
static bool is_bias_of(const tq_tensor *bias, const tq_tensor *w)
{
    return !tq_view_is_float(w) || tq_view_is_float(bias);
}

bool tq_condition_bias(const tq_node *node)
{
    const tq_tensor *bias = tq_view_input(node, 2);
    return is_bias(bias) && tq_view_has_dimensions(bias, 1, 1) && tq_view_is_static(bias) &&
           is_bias_of(bias, tq_view_input(node, 1));
}

bool tq_condition_optional_bias(const tq_node *node)
{
    const tq_tensor *bias = tq_view_input(node, 3);
    return !bias || (is_bias(bias) && tq_view_has_dimensions(bias, 1, 1) && tq_view_is_static(bias));
}

bool tq_condition_filter_type(const tq_node *node)
{
    int32_t x = tq_view_type(tq_view_input(node, 0)), w = tq_view_type(tq_view_input(node, 1));
    return x == tq_view_type(tq_view_output(node, 0)) &&
           (x == w || (x == TQ_TensorType_FLOAT32 && w == TQ_TensorType_INT8));
}

bool tq_condition_plain_filter_type(const tq_node *node)
{
    int32_t x = tq_view_type(tq_view_input(node, 0));
    return x == tq_view_type(tq_view_output(node, 0)) && x == tq_view_type(tq_view_input(node, 1));
}

bool tq_condition_groups(const tq_node *node)
{
    return tq_view_dimension(tq_view_input(node, 0), 3) >= tq_view_dimension(tq_view_input(node, 1), 3);
}

bool tq_condition_depth_multiplier(const tq_node *node)
{
    int64_t multiplier = tq_view_int_option(node, TQ_DepthwiseConv2DOptions_depth_multiplier);
    return multiplier > 0 && tq_view_dimension(tq_view_input(node, 1), 3) % multiplier == 0;
}

/* Whether the delegate can pad one dimension of a transposed convolution. */
static bool can_pad(const tq_node *node, int64_t in, int64_t kernel, int64_t stride, int64_t out)
{
    if (stride <= 0)
        return false;
    if (tq_view_int_option(node, TQ_TransposeConvOptions_padding) == TQ_Padding_VALID)
        return kernel <= out;
    return (out + stride - 1) / stride == in && kernel >= stride;
}

bool tq_condition_output_shape(const tq_node *node)
{
    const tq_tensor *shape = tq_view_input(node, 0), *w = tq_view_input(node, 1), *x = tq_view_input(node, 2);
    if (tq_view_type(shape) != TQ_TensorType_INT32 || tq_view_rank(shape) != 1 || tq_view_dimension(shape, 0) != 4 ||
        !tq_view_is_in_file(shape))
        return false;
    return tq_integer_at(shape, 3) == tq_view_dimension(w, 0) && tq_view_dimension(x, 3) == tq_view_dimension(w, 3) &&
           can_pad(node, tq_view_dimension(x, 1), tq_view_dimension(w, 1),
                   tq_view_int_option(node, TQ_TransposeConvOptions_stride_h), tq_integer_at(shape, 1)) &&
           can_pad(node, tq_view_dimension(x, 2), tq_view_dimension(w, 2),
                   tq_view_int_option(node, TQ_TransposeConvOptions_stride_w), tq_integer_at(shape, 2));
}

bool tq_condition_version_but_8(const tq_node *node)
{
    return node->row.version != 8;
}

bool tq_condition_default_weights_format(const tq_node *node)
{
    return tq_view_int_option(node, TQ_FullyConnectedOptions_weights_format) == 0;
}

static bool is_narrow(const tq_tensor *t)
{
    return tq_view_type(t) == TQ_TensorType_INT4 || tq_view_type(t) == TQ_TensorType_INT2;
}

bool tq_condition_matrix(const tq_node *node)
{
    const tq_tensor *w = tq_view_input(node, 1);
    if (!tq_view_has_dimensions(w, 2, 2) || !tq_view_is_static(w))
        return false;
    if (tq_view_is_float(w) || tq_view_is_quantized(w))
        return true;
    if (tq_view_type(w) != TQ_TensorType_INT8 && !is_narrow(w))
        return false;
    tq_quantization q = tq_tensor_quantization(&w->table);
    if (q.kind == TQ_QUANTIZATION_BLOCKWISE)
        return q.scales_tensor >= 0 && q.block_size % 32 == 0;
    return is_affine(&q) && (q.scale.count == 1 || q.quantized_dimension == 0) &&
           (tq_view_type(w) != TQ_TensorType_INT2 ||
            (int64_t)q.scale.count == tq_view_dimension(w, q.quantized_dimension));
}

bool tq_condition_matrix_bias(const tq_node *node)
{
    const tq_tensor *bias = tq_view_input(node, 2);
    if (!bias)
        return true;
    int64_t count = 1;
    for (int i = 0; i < tq_view_rank(bias) && count <= INT32_MAX; i++)
        count *= tq_view_dimension(bias, i);
    return is_bias(bias) && count == tq_view_dimension(tq_view_input(node, 1), 0) && tq_view_is_static(bias) &&
           is_bias_of(bias, tq_view_input(node, 1));
}

bool tq_condition_matrix_types(const tq_node *node)
{
    const tq_tensor *x = tq_view_input(node, 0), *w = tq_view_input(node, 1), *y = tq_view_output(node, 0);
    bool narrow = tq_view_type(w) == TQ_TensorType_INT8 || is_narrow(w);
    return tq_view_is_float_or_quantized(x) && tq_view_is_float_or_quantized(y) && tq_view_type(x) == tq_view_type(y) &&
           (tq_view_type(x) == tq_view_type(w) || (narrow && tq_view_type(x) != TQ_TensorType_UINT8));
}

bool tq_condition_matrix_zero_points(const tq_node *node)
{
    const tq_tensor *w = tq_view_input(node, 1);
    return tq_view_is_float(tq_view_input(node, 0)) || tq_view_type(w) != TQ_TensorType_INT8 ||
           tq_view_zero_point(w) == 0;
}

bool tq_condition_matrix_depth(const tq_node *node)
{
    const tq_tensor *w = tq_view_input(node, 1);
    int32_t depth = tq_view_dimension(w, 1);
    return tq_view_type(w) == TQ_TensorType_INT4 ? depth % 2 == 0
                                                 : tq_view_type(w) != TQ_TensorType_INT2 || depth % 4 == 0;
}

bool tq_condition_batches(const tq_node *node)
{
    const tq_tensor *a = tq_view_input(node, 0), *b = tq_view_input(node, 1);
    int axis = tq_view_rank(b) - (tq_view_int_option(node, TQ_BatchMatMulOptions_adj_y) ? 2 : 1);
    if (!tq_view_is_float_or_quantized(a) || !tq_view_is_float_or_quantized(tq_view_output(node, 0)) ||
        !is_filter(b, axis) || tq_view_rank(a) < 2 || tq_view_rank(b) < 2)
        return false;
    if (tq_view_type(a) == TQ_TensorType_FLOAT32 && tq_view_type(b) == TQ_TensorType_INT8)
        return true;
    if (tq_view_type(a) != tq_view_type(b))
        return false;
    return tq_view_is_float(a) || (tq_view_is_valid_quantized(a) && tq_view_is_valid_quantized(b) &&
                                   (tq_view_type(b) == TQ_TensorType_UINT8 || tq_view_zero_point(b) == 0));
}

bool tq_condition_constant_experts(const tq_node *node)
{
    enum { FIRST_CONSTANT = 3 };
    for (int i = FIRST_CONSTANT; i < node->in_count; i++)
        if (!tq_view_is_in_file(node->in[i]))
            return false;
    return true;
}
