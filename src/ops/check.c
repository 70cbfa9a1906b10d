/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/arity.h"
#include "ops/quantized.h"

/* ---- counts and types ---- */

tq_status tq_check_operands(const tq_node *node, tq_error *error)
{
    char needed[TQ_ARITY_TEXT];
    tq_arity_fit fit = tq_arity_check(&node->row, (uint32_t)node->in_count, (uint32_t)node->out_count, needed);
    if (fit == TQ_ARITY_INPUTS)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %d inputs; it needs %s", node->in_count, needed);
    if (fit == TQ_ARITY_OUTPUTS)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %d outputs; with %d inputs it needs %s", node->out_count,
                          node->in_count, needed);
    for (int i = 0; i < node->in_count; i++)
        if (!node->in[i] && !tq_arity_optional_input(&node->row, (uint32_t)i))
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "input %d is left out (-1); it is needed", i);
    for (int i = 0; i < node->out_count; i++)
        if (!node->out[i] && !tq_arity_optional_output(&node->row))
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "output %d is left out (-1); it is needed", i);
    return TQ_OK;
}

tq_status tq_check_output_count(const tq_node *node, int count, tq_error *error)
{
    if (node->out_count == count)
        return TQ_OK;
    return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %d outputs; with its options it needs %d", node->out_count,
                      count);
}

/* "FLOAT32, INT8" */
static void list_types(unsigned types, char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (int type = 0; type < TQ_TYPE_COUNT && at < size; type++)
        if (tq_type_is_in(type, types))
            at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", tq_type_name(type));
}

tq_status tq_check_input(const tq_node *node, int i, unsigned types, tq_error *error)
{
    char names[120];
    int32_t type = node->in[i]->type;
    if (tq_type_is_in(type, types))
        return TQ_OK;
    list_types(types, names, sizeof names);
    return tq_input_fail(node, i, error, "has type %s; tq runs this operator on %s", tq_type_name(type), names);
}

tq_status tq_check_output(const tq_node *node, int i, unsigned types, tq_error *error)
{
    char names[120];
    int32_t type = node->out[i]->type;
    if (tq_type_is_in(type, types))
        return TQ_OK;
    list_types(types, names, sizeof names);
    return tq_output_fail(node, i, error, "has type %s; it needs to be %s", tq_type_name(type), names);
}

tq_status tq_check_index_output(const tq_node *node, int i, int64_t option, tq_error *error)
{
    const bool narrow = option == TQ_TensorType_INT32, wide = option == TQ_TensorType_INT64;
    return tq_check_output(node, i, (wide ? 0 : TQ_T(INT32)) | (narrow ? 0 : TQ_T(INT64)), error);
}

tq_status tq_check_input_like(const tq_node *node, int i, int as, tq_error *error)
{
    if (node->in[i]->type == node->in[as]->type)
        return TQ_OK;
    return tq_input_fail(node, i, error, "has type %s; it needs that of input %d, %s", tq_type_name(node->in[i]->type),
                         as, tq_type_name(node->in[as]->type));
}

tq_status tq_check_output_like(const tq_node *node, int i, int as, tq_error *error)
{
    if (node->out[i]->type == node->in[as]->type)
        return TQ_OK;
    return tq_output_fail(node, i, error, "has type %s; it needs that of input %d, %s",
                          tq_type_name(node->out[i]->type), as, tq_type_name(node->in[as]->type));
}

tq_status tq_check_rank(const tq_node *node, int i, int low, int high, tq_error *error)
{
    int rank = node->in[i]->shape.rank;
    if (rank >= low && rank <= high)
        return TQ_OK;
    return low == high ? tq_input_fail(node, i, error, "has %d dimensions; it needs %d", rank, low)
                       : tq_input_fail(node, i, error, "has %d dimensions; it needs %d to %d", rank, low, high);
}

tq_status tq_check_single(const tq_node *node, int i, tq_error *error)
{
    if (tq_tensor_count(node->in[i]) != 1)
        return tq_input_fail(node, i, error, "has %zu elements; it needs 1", tq_tensor_count(node->in[i]));
    return TQ_OK;
}

/* ---- quantization ---- */

/* Why kernels cannot run with a tensor's scale and zero point; NULL: they can. */
static const char *scale_error(const tq_tensor *tensor)
{
    const float scale = tq_scale_of(tensor);
    if (!isfinite(scale) || scale < 0)
        return "has a scale that is negative or not finite";
    if (!tq_zero_point_fits(tensor->type, tq_zero_point_of(tensor)))
        return "has a zero point far outside its type; it needs one from -1792 to 1792 (INT16: 65536)";
    return NULL;
}

tq_status tq_check_input_scale(const tq_node *node, int i, tq_error *error)
{
    const char *wrong = scale_error(node->in[i]);
    return wrong ? tq_input_fail(node, i, error, "%s", wrong) : TQ_OK;
}

tq_status tq_check_output_scale(const tq_node *node, int i, tq_error *error)
{
    const char *wrong = scale_error(node->out[i]);
    return wrong ? tq_output_fail(node, i, error, "%s", wrong) : TQ_OK;
}

tq_status tq_check_quantized_input(const tq_node *node, int i, tq_error *error)
{
    if (node->in[i]->quantization.count == 0)
        return tq_input_fail(node, i, error, "has no scale; it needs one");
    return tq_check_input_scale(node, i, error);
}

tq_status tq_check_quantized_output(const tq_node *node, int i, tq_error *error)
{
    if (node->out[i]->quantization.count == 0)
        return tq_output_fail(node, i, error, "has no scale; it needs one");
    return tq_check_output_scale(node, i, error);
}

tq_status tq_check_activation_scale(const tq_node *node, int64_t activation, tq_error *error)
{
    const bool bounded = activation >= TQ_ActivationFunctionType_RELU && activation <= TQ_ActivationFunctionType_RELU6;
    if (bounded && tq_scale_of(node->out[0]) == 0)
        return tq_output_fail(node, 0, error, "has no scale, several, or 0; the fused activation needs one above 0");
    return TQ_OK;
}

tq_status tq_check_activation_bounds(const tq_node *node, int64_t activation, bool cuts, tq_error *error)
{
    int32_t low, high, zero_point = tq_zero_point_of(node->out[0]);
    if (activation == TQ_ActivationFunctionType_NONE)
        return TQ_OK;
    TQ_TRY(tq_check_output_scale(node, 0, error));
    TQ_TRY(tq_check_activation_scale(node, activation, error));
    tq_quantized_range(node->out[0]->type, &low, &high);
    if (cuts && (zero_point < low || zero_point > high))
        return tq_output_fail(node, 0, error,
                              "has the zero point %d; with a fused activation it needs one from %d to %d", zero_point,
                              low, high);
    return TQ_OK;
}

tq_status tq_check_input_divisor(const tq_node *node, int i, tq_error *error)
{
    if (tq_kernel_scale(node, node->in[i]) == 0)
        return tq_input_fail(node, i, error, "has no scale, several, or 0; %s needs one above 0", node->op->name);
    return TQ_OK;
}

tq_status tq_check_output_divisor(const tq_node *node, tq_error *error)
{
    if (tq_kernel_scale(node, node->out[0]) == 0)
        return tq_output_fail(node, 0, error, "has no scale, several, or 0; %s needs one above 0", node->op->name);
    return TQ_OK;
}

tq_status tq_check_symmetric_input(const tq_node *node, int i, tq_error *error)
{
    if (tq_zero_point_of(node->in[i]) != 0)
        return tq_input_fail(node, i, error, "has the zero point %d; it needs 0", tq_zero_point_of(node->in[i]));
    return TQ_OK;
}

tq_status tq_check_same_scale(const tq_node *node, int input, int output, tq_error *error)
{
    const tq_tensor *in = node->in[input], *out = node->out[output];
    float a = tq_scale_of(in), b = tq_scale_of(out);
    int32_t za = tq_zero_point_of(in), zb = tq_zero_point_of(out);
    if (a == b && za == zb)
        return TQ_OK;
    return tq_output_fail(node, output, error,
                          "has scale %.9g and zero point %d; it needs those of input %d, %.9g and %d", (double)b, zb,
                          input, (double)a, za);
}

/* ---- shapes and values ---- */

tq_status tq_broadcast_shapes(const tq_node *node, const tq_tensor *const *tensors, int count, tq_shape *out,
                              tq_error *error)
{
    tq_shape shape = {0};
    for (int t = 0; t < count; t++)
        if (tensors[t]->shape.rank > shape.rank)
            shape.rank = tensors[t]->shape.rank;
    for (int i = 0; i < shape.rank; i++) {
        int32_t dim = 1; /* counted from the last */
        for (int t = 0; t < count; t++) {
            const tq_shape *s = &tensors[t]->shape;
            int32_t other = i < s->rank ? s->dims[s->rank - 1 - i] : 1;
            if (other != 1 && dim != 1 && other != dim)
                return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                                  "shapes do not broadcast: dimension %d from the last is %d and %d", i + 1, dim,
                                  other);
            dim = other != 1 ? other : dim;
        }
        shape.dims[shape.rank - 1 - i] = dim;
    }
    *out = shape;
    return TQ_OK;
}

tq_status tq_check_axis(const tq_node *node, int64_t axis, int rank, const char *what, int *out, tq_error *error)
{
    if (axis < -rank || axis >= rank)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "%s is %lld; with %d dimensions it needs to be from %d to %d",
                          what, (long long)axis, rank, -rank, rank - 1);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return TQ_OK;
}

tq_status tq_check_list(const tq_node *node, int i, int64_t count, tq_error *error)
{
    TQ_TRY(tq_check_input(node, i, TQ_T(INT32) | TQ_T(INT64), error));
    if (count >= 0 && tq_tensor_count(node->in[i]) != (size_t)count)
        return tq_input_fail(node, i, error, "has %zu elements; it needs %lld", tq_tensor_count(node->in[i]),
                             (long long)count);
    return TQ_OK;
}

tq_status tq_dim_of(const tq_node *node, int64_t value, int32_t *out, tq_error *error)
{
    if (value < 0 || value > INT32_MAX)
        return tq_output_fail(node, 0, error, "would have a dimension of %lld; it needs one from 0 to 2^31 - 1",
                              (long long)value);
    *out = (int32_t)value;
    return TQ_OK;
}

int64_t tq_integer_at(const tq_tensor *tensor, size_t at)
{
    switch (tensor->type) {
    case TQ_TensorType_INT8: return ((const int8_t *)tensor->data)[at];
    case TQ_TensorType_UINT8:
    case TQ_TensorType_BOOL: return ((const uint8_t *)tensor->data)[at];
    case TQ_TensorType_INT16: return ((const int16_t *)tensor->data)[at];
    case TQ_TensorType_UINT16: return ((const uint16_t *)tensor->data)[at];
    case TQ_TensorType_INT32: return ((const int32_t *)tensor->data)[at];
    case TQ_TensorType_UINT32: return ((const uint32_t *)tensor->data)[at];
    case TQ_TensorType_INT64: return ((const int64_t *)tensor->data)[at];
    }
    return 0;
}

void tq_integer_put(const tq_tensor *tensor, size_t at, int64_t value)
{
    if (tensor->type == TQ_TensorType_INT64)
        ((int64_t *)tensor->data)[at] = value;
    else
        ((int32_t *)tensor->data)[at] = (int32_t)value;
}
