/* SPDX-License-Identifier: Apache-2.0
 *
 * What TFLite's XNNPACK delegate sees of a node when it chooses: types, shapes, scales, constants and options as they
 * stand in the file, and the new shapes of inputs that were resized before.  A tensor that is left out, NULL, has no
 * type and no shape.
 */
#ifndef TQ_DELEGATE_SEEN_H
#define TQ_DELEGATE_SEEN_H

#include <math.h>

#include "model/quantization.h"
#include "ops/check.h"

enum { XNNPACK_DIMENSIONS = 6 }; /* of its tensors, at most */

/* Whether input i holds values: all do but the axes, shapes and paddings that steer an operator. */
bool tq_seen_is_value(const tq_node *node, int i);

/* The fused activation; NONE for operators that fuse none. */
int64_t tq_seen_activation(const tq_node *node);

static inline int32_t type_of(const tq_tensor *t)
{
    return t ? t->type : -1;
}

static inline int rank_of(const tq_tensor *t)
{
    if (t && t->resized)
        return t->shape.rank;
    return t ? (int)tq_get_vector(&t->table, TQ_Tensor_shape).count : -1;
}

static inline int32_t dimension(const tq_tensor *t, int i)
{
    if (!t)
        return 0;
    if (t->resized)
        return i >= 0 && i < t->shape.rank ? t->shape.dims[i] : 0;
    tq_vector dims = tq_get_vector(&t->table, TQ_Tensor_shape);
    return i >= 0 && (uint32_t)i < dims.count ? tq_vector_i32(&dims, (size_t)i) : 0;
}

/* From `low` to `high` dimensions, none of them 0. */
static inline bool has_dimensions(const tq_tensor *t, int low, int high)
{
    int rank = rank_of(t);
    for (int i = 0; i < rank; i++)
        if (dimension(t, i) <= 0)
            return false;
    return rank >= low && rank <= high;
}

static inline bool is_float(const tq_tensor *t)
{
    return type_of(t) == TQ_TensorType_FLOAT32 || type_of(t) == TQ_TensorType_FLOAT16;
}

static inline bool is_byte(const tq_tensor *t)
{
    return type_of(t) == TQ_TensorType_INT8 || type_of(t) == TQ_TensorType_UINT8;
}

static inline bool has_one_scale(const tq_quantization *q)
{
    return q->kind == TQ_QUANTIZATION_PER_TENSOR && q->quantized_dimension == 0;
}

/* 8-bit codes with one scale. */
static inline bool is_codes(const tq_tensor *t)
{
    if (!is_byte(t))
        return false;
    tq_quantization q = tq_tensor_quantization(&t->table);
    return has_one_scale(&q);
}

static inline bool is_float_or_codes(const tq_tensor *t)
{
    return is_float(t) || is_codes(t);
}

/* The scale of a tensor with one scale; 0 for others. */
static inline float scale_of(const tq_tensor *t)
{
    tq_quantization q = tq_tensor_quantization(&t->table);
    return q.scale.count == 1 ? tq_vector_f32(&q.scale, 0) : 0;
}

static inline int64_t zero_point_of(const tq_tensor *t)
{
    tq_quantization q = tq_tensor_quantization(&t->table);
    return q.scale.count == 1 && q.zero_point.count ? tq_vector_i64(&q.zero_point, 0) : 0;
}

static bool is_sound_scale(float scale)
{
    return isnormal(scale) && scale > 0;
}

/* Codes that XNNPACK can describe: one sound scale, a zero point that the type can hold. */
static inline bool is_sound(const tq_tensor *t)
{
    if (!is_byte(t))
        return false;
    tq_quantization q = tq_tensor_quantization(&t->table);
    int64_t low = t->type == TQ_TensorType_UINT8 ? 0 : -128;
    int64_t zero_point = q.zero_point.count ? tq_vector_i64(&q.zero_point, 0) : 0;
    return has_one_scale(&q) && is_sound_scale(tq_vector_f32(&q.scale, 0)) && zero_point >= low &&
           zero_point <= low + 255;
}

/* Whether the file has its value. */
static inline bool is_in_file(const tq_tensor *t)
{
    return t && t->in_file && t->data;
}

/* The same, or a constant that the delegate computed (tq_backend_unpacks). */
static inline bool is_static(const tq_tensor *t)
{
    return is_in_file(t) || (t && t->unpacked);
}

/* A constant of the file with `rank` dimensions. */
static inline bool is_list(const tq_tensor *t, int32_t type, int rank)
{
    return type_of(t) == type && rank_of(t) == rank && is_in_file(t);
}

static inline bool all_above(const tq_tensor *t, int64_t low)
{
    for (size_t i = 0; i < tq_tensor_count(t); i++)
        if (tq_integer_at(t, i) <= low)
            return false;
    return true;
}

static inline const tq_tensor *input(const tq_node *node, int i)
{
    return i < node->in_count ? node->in[i] : NULL;
}

static inline const tq_tensor *output(const tq_node *node, int i)
{
    return i < node->out_count ? node->out[i] : NULL;
}

static inline int64_t option(const tq_node *node, tq_field_id field)
{
    return tq_get_int(&node->options.table, field);
}

static inline float real_option(const tq_node *node, tq_field_id field)
{
    return (float)tq_get_scalar(&node->options.table, field).f;
}

#endif
