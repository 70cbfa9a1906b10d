/* SPDX-License-Identifier: Apache-2.0
 *
 * The view of a node that TFLite's XNNPACK delegate has when it accepts or refuses it: types, shapes, scales, constants
 * and options as the file has them, and the new shapes of inputs that were resized before.  All functions take NULL, an
 * optional tensor that is left out, unless they say "t: not NULL".  node: without
 * wrong_operands.
 */
#ifndef TQ_DELEGATE_NODE_VIEW_H
#define TQ_DELEGATE_NODE_VIEW_H

#include <math.h>

#include "model/quantization.h"
#include "ops/check.h"

enum { TQ_XNNPACK_DIMENSIONS = 6 }; /* XNNPACK's limit on a tensor's rank, XNN_MAX_TENSOR_DIMS */

/* Whether input i >= 0 is data; false for parameters: axes, shapes, paddings, sizes. */
bool tq_view_is_data(const tq_node *node, int i);

/* The fused activation, as the file has it; NONE for operators without that option. */
int64_t tq_view_activation(const tq_node *node);

/* TQ_TensorType_x; -1 for NULL. */
static inline int32_t tq_view_type(const tq_tensor *t)
{
    return t ? (int32_t)tq_get_int(&t->table, TQ_Tensor_type) : -1;
}

/* The number of dimensions; -1 for NULL. */
static inline int tq_view_rank(const tq_tensor *t)
{
    if (t && t->resized)
        return t->shape.rank;
    return t ? (int)tq_get_vector(&t->table, TQ_Tensor_shape).count : -1;
}

/* Dimension i; 0 where there is none.  The file may have negative ones. */
static inline int32_t tq_view_dimension(const tq_tensor *t, int i)
{
    if (!t)
        return 0;
    if (t->resized)
        return i >= 0 && i < t->shape.rank ? t->shape.dims[i] : 0;
    tq_vector dims = tq_get_vector(&t->table, TQ_Tensor_shape);
    return i >= 0 && (uint32_t)i < dims.count ? tq_vector_i32(&dims, (size_t)i) : 0;
}

/* The rank is in [low, high], and all dimensions are > 0. */
static inline bool tq_view_has_dimensions(const tq_tensor *t, int low, int high)
{
    int rank = tq_view_rank(t);
    for (int i = 0; i < rank; i++)
        if (tq_view_dimension(t, i) <= 0)
            return false;
    return rank >= low && rank <= high;
}

static inline bool tq_view_is_float(const tq_tensor *t)
{
    return tq_view_type(t) == TQ_TensorType_FLOAT32 || tq_view_type(t) == TQ_TensorType_FLOAT16;
}

static inline bool tq_view_is_8_bit(const tq_tensor *t)
{
    return tq_view_type(t) == TQ_TensorType_INT8 || tq_view_type(t) == TQ_TensorType_UINT8;
}

static inline bool tq_view_has_one_scale(const tq_quantization *q)
{
    return q->kind == TQ_QUANTIZATION_PER_TENSOR && q->quantized_dimension == 0;
}

/* INT8 or UINT8 with one scale and quantized_dimension 0. */
static inline bool tq_view_is_quantized(const tq_tensor *t)
{
    if (!tq_view_is_8_bit(t))
        return false;
    tq_quantization q = tq_tensor_quantization(&t->table);
    return tq_view_has_one_scale(&q);
}

static inline bool tq_view_is_float_or_quantized(const tq_tensor *t)
{
    return tq_view_is_float(t) || tq_view_is_quantized(t);
}

/* The scale of a tensor with one scale; 0 for others.  t: not NULL. */
static inline float tq_view_scale(const tq_tensor *t)
{
    tq_quantization q = tq_tensor_quantization(&t->table);
    return q.scale.count == 1 ? tq_vector_f32(&q.scale, 0) : 0;
}

/* The zero point of a tensor with one scale; 0 for others.  t: not NULL. */
static inline int64_t tq_view_zero_point(const tq_tensor *t)
{
    tq_quantization q = tq_tensor_quantization(&t->table);
    return q.scale.count == 1 && q.zero_point.count ? tq_vector_i64(&q.zero_point, 0) : 0;
}

/* Neither 0, negative, denormal, infinite nor NaN. */
static inline bool tq_view_is_normal_scale(float scale)
{
    return isnormal(scale) && scale > 0;
}

/* INT8 or UINT8 with a quantization that XNNPACK can define: one normal scale, a zero point in the type's range. */
static inline bool tq_view_is_valid_quantized(const tq_tensor *t)
{
    if (!tq_view_is_8_bit(t))
        return false;
    tq_quantization q = tq_tensor_quantization(&t->table);
    int64_t low = t->type == TQ_TensorType_UINT8 ? 0 : -128;
    int64_t zero_point = q.zero_point.count ? tq_vector_i64(&q.zero_point, 0) : 0;
    return tq_view_has_one_scale(&q) && tq_view_is_normal_scale(tq_vector_f32(&q.scale, 0)) && zero_point >= low &&
           zero_point <= low + 255;
}

/* The file has the tensor's value. */
static inline bool tq_view_is_in_file(const tq_tensor *t)
{
    return t && t->in_file && t->data;
}

/* The file has the tensor's value, or the delegate computes it once (tq_backend_unpacks). */
static inline bool tq_view_is_static(const tq_tensor *t)
{
    return tq_view_is_in_file(t) || (t && t->unpacked);
}

/* A constant of the file, of this type and rank. */
static inline bool tq_view_is_constant(const tq_tensor *t, int32_t type, int rank)
{
    return tq_view_type(t) == type && tq_view_rank(t) == rank && tq_view_is_in_file(t);
}

/* All elements are > low.  t: not NULL, an integer constant with data. */
static inline bool tq_view_all_above(const tq_tensor *t, int64_t low)
{
    for (size_t i = 0; i < tq_tensor_count(t); i++)
        if (tq_integer_at(t, i) <= low)
            return false;
    return true;
}

/* Input i >= 0; NULL where there is none. */
static inline const tq_tensor *tq_view_input(const tq_node *node, int i)
{
    return i < node->in_count ? node->in[i] : NULL;
}

/* Output i >= 0; NULL where there is none. */
static inline const tq_tensor *tq_view_output(const tq_node *node, int i)
{
    return i < node->out_count ? node->out[i] : NULL;
}

/* An option; the schema's default where the file has none. */
static inline int64_t tq_view_int_option(const tq_node *node, tq_field_id field)
{
    return tq_get_int(&node->options.table, field);
}

static inline float tq_view_float_option(const tq_node *node, tq_field_id field)
{
    return (float)tq_get_scalar(&node->options.table, field).f;
}

#endif
