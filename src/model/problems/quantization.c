/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of one tensor's quantization.  A float tensor may have parameters, from quantization-aware training: that is
 * no problem, and neither is a range without scales.
 */
#include <float.h>
#include <math.h>

#include "model/problems/checks.h"
#include "model/quantization.h"
#include "model/tensor.h"

#define ABSURD_SCALE 1e30f

typedef struct quantized {
    const tq_table *tensor;
    const tq_type_row *type; /* NULL: unknown */
    tq_vector shape;
    tq_quantization q;
    tq_location location;
} quantized;

/* ---- scales and zero points, per tensor and per axis ---- */

static void check_scale_values(tq_checker *checker, const quantized *t)
{
    const tq_vector *scales = &t->q.scale;
    uint32_t bad = UINT32_MAX, zero = UINT32_MAX, absurd = UINT32_MAX;
    for (uint32_t i = scales->count; i-- > 0;) { /* downwards, so that the first of each kind is left */
        float scale = tq_vector_f32(scales, i);
        if (!isfinite(scale) || scale < 0)
            bad = i;
        else if (scale == 0)
            zero = i;
        else if (scale < FLT_MIN || scale > ABSURD_SCALE)
            absurd = i;
    }
    if (bad != UINT32_MAX)
        tq_report(checker, TQ_PROBLEM_SCALE_VALUE, t->location, "scale %u is %g; it needs to be finite and above 0",
                  bad, (double)tq_vector_f32(scales, bad));
    if (zero != UINT32_MAX)
        tq_report(checker, TQ_PROBLEM_SCALE_ZERO, t->location, "scale %u is 0: every value means 0", zero);
    if (absurd != UINT32_MAX)
        tq_report(checker, TQ_PROBLEM_SCALE_ABSURD, t->location, "scale %u is %g, which no range of values has", absurd,
                  (double)tq_vector_f32(scales, absurd));
}

static void check_zero_point_values(tq_checker *checker, const quantized *t)
{
    bool is_integer = t->type && t->type->kind == TQ_KIND_INTEGER && t->type->bits <= 32;
    double low = is_integer ? t->type->low : INT32_MIN, high = is_integer ? t->type->high : INT32_MAX;
    for (uint32_t i = 0; i < t->q.zero_point.count; i++) {
        int64_t zero_point = tq_vector_i64(&t->q.zero_point, i);
        bool wide = zero_point < INT32_MIN || zero_point > INT32_MAX;
        if (!wide && (double)zero_point >= low && (double)zero_point <= high)
            continue;
        tq_report(checker, wide ? TQ_PROBLEM_ZERO_POINT_WIDE : TQ_PROBLEM_ZERO_POINT_RANGE, t->location,
                  "zero point %u is %lld; values of %s go from %.0f to %.0f", i, (long long)zero_point,
                  is_integer ? t->type->name : "a zero point", low, high);
        return;
    }
}

static void check_axis(tq_checker *checker, const quantized *t)
{
    int32_t axis = t->q.quantized_dimension;
    uint32_t rank = t->shape.count, scales = t->q.scale.count;
    if (!rank) { /* LiteRT takes any scales of a scalar */
        if (scales > 1)
            tq_report(checker, TQ_PROBLEM_SCALE_COUNT, t->location,
                      "there are %u scales; a tensor without dimensions needs 1", scales);
        return;
    }
    if (axis < 0 || (uint32_t)axis >= rank) {
        tq_report(checker, TQ_PROBLEM_QUANTIZED_DIMENSION, t->location,
                  "quantized_dimension is %d; it needs to be from 0 to %u", axis, rank - 1);
        return;
    }
    int32_t dimension = tq_vector_i32(&t->shape, (size_t)axis);
    if (scales != 1 && (int64_t)scales != dimension)
        tq_report(checker, TQ_PROBLEM_SCALE_COUNT, t->location,
                  "there are %u scales; there needs to be 1, or %d for dimension %d", scales, dimension, axis);
}

static void check_scales(tq_checker *checker, const quantized *t)
{
    const tq_quantization *q = &t->q;
    if (!q->scale.count) {
        if (q->zero_point.count && q->kind == TQ_QUANTIZATION_NONE)
            tq_report(checker, TQ_PROBLEM_SCALE_MISSING, t->location,
                      "there are %u zero points and no scale; TFLite ignores them", q->zero_point.count);
        return;
    }
    if (q->zero_point.count != q->scale.count)
        tq_report(checker, TQ_PROBLEM_ZERO_POINT_COUNT, t->location,
                  "there are %u scales and %u zero points; each scale needs one", q->scale.count, q->zero_point.count);
    check_axis(checker, t);
    check_scale_values(checker, t);
    check_zero_point_values(checker, t);
    unsigned kind = t->type ? t->type->kind : TQ_KIND_FLOAT;
    if (kind != TQ_KIND_FLOAT && kind != TQ_KIND_INTEGER)
        tq_report(checker, TQ_PROBLEM_QUANTIZATION_TYPE, t->location,
                  "a tensor of type %s has %u scales, which its values cannot be multiplied by", t->type->name,
                  q->scale.count);
}

/* ---- ranges ---- */

/* Calibration stores ranges along dimensions other than quantized_dimension. */
static bool is_dimension(const quantized *t, uint32_t count)
{
    for (uint32_t i = 0; i < t->shape.count; i++)
        if ((int64_t)count == tq_vector_i32(&t->shape, i))
            return true;
    return false;
}

static void check_ranges(tq_checker *checker, const quantized *t)
{
    const tq_vector *min = &t->q.min, *max = &t->q.max;
    if (min->count != max->count)
        tq_report(checker, TQ_PROBLEM_RANGE_COUNT, t->location, "there are %u minima and %u maxima", min->count,
                  max->count);
    else if (min->count > 1 && min->count != t->q.scale.count && (t->q.scale.count || !is_dimension(t, min->count)))
        tq_report(checker, TQ_PROBLEM_RANGE_COUNT, t->location,
                  "there are %u ranges and %u scales; there needs to be 1, or one a channel", min->count,
                  t->q.scale.count);
    uint32_t most = min->count > max->count ? min->count : max->count;
    bool finite = true, ordered = true;
    for (uint32_t i = 0; i < most && (finite || ordered); i++) {
        float low = i < min->count ? tq_vector_f32(min, i) : 0, high = i < max->count ? tq_vector_f32(max, i) : 0;
        if (finite && !(isfinite(low) && isfinite(high))) {
            finite = false;
            tq_report(checker, TQ_PROBLEM_RANGE_NOT_FINITE, t->location, "range %u is from %g to %g", i, (double)low,
                      (double)high);
        }
        if (ordered && i < min->count && i < max->count && low > high) {
            ordered = false;
            tq_report(checker, TQ_PROBLEM_RANGE_ORDER, t->location,
                      "range %u is from %g to %g; min needs to be at most max", i, (double)low, (double)high);
        }
    }
}

/* ---- parameters in other tensors ---- */

static bool is_floating(const tq_type_row *type)
{
    return type && type->kind == TQ_KIND_FLOAT;
}

static bool is_numeric(const tq_type_row *type)
{
    return type && (type->kind == TQ_KIND_FLOAT || type->kind == TQ_KIND_INTEGER);
}

/* Checks tensor `index`, which holds parameters.  count: the values that it must have; 0: unknown. */
static void check_parameter_tensor(tq_checker *checker, const quantized *t, int32_t index, uint64_t count,
                                   const char *role, bool (*fits)(const tq_type_row *type))
{
    if (index < 0 || (uint32_t)index >= checker->subgraph.tensors.count) {
        tq_report(checker, TQ_PROBLEM_BLOCK_TENSOR, t->location, "the tensor of %s is %d of %u", role, index,
                  checker->subgraph.tensors.count);
        return;
    }
    tq_table tensor = tq_vector_table(&checker->subgraph.tensors, (size_t)index);
    tq_vector shape = tq_get_vector(&tensor, TQ_Tensor_shape);
    int64_t number = tq_get_int(&tensor, TQ_Tensor_type);
    const tq_type_row *type = tq_type(number);
    uint64_t held;
    if (!fits(type))
        tq_report(checker, TQ_PROBLEM_BLOCK_TENSOR, t->location, "tensor %d, which should hold %s, has type %s (%lld)",
                  index, role, type ? type->name : "unknown", (long long)number);
    else if (count && tq_shape_count(&shape, &held, NULL) == TQ_OK && held != count && held != 1)
        tq_report(checker, TQ_PROBLEM_BLOCK_TENSOR, t->location,
                  "tensor %d, which should hold %s, has %llu values; it needs %llu", index, role,
                  (unsigned long long)held, (unsigned long long)count);
}

static void check_parameter_tensors(tq_checker *checker, const quantized *t, uint64_t count)
{
    check_parameter_tensor(checker, t, t->q.scales_tensor, count, "scales", is_floating);
    if (t->q.zero_points_tensor != -1 && t->q.zero_points_tensor != 0) /* an absent field reads as 0, too */
        check_parameter_tensor(checker, t, t->q.zero_points_tensor, count, "zero points", is_numeric);
}

static bool check_block(tq_checker *checker, const quantized *t, int32_t dimension)
{
    int32_t size = t->q.block_size;
    if (size > 0 && dimension % size == 0)
        return true;
    tq_report(checker, TQ_PROBLEM_BLOCK_SIZE, t->location, "the block size is %d; it needs to divide the dimension, %d",
              size, dimension);
    return false;
}

/* Blocks lie along the last dimension. */
static void check_blockwise(tq_checker *checker, const quantized *t)
{
    uint64_t elements, count = 0;
    uint32_t rank = t->shape.count;
    if (!rank)
        tq_report(checker, TQ_PROBLEM_BLOCK_DIMENSIONS, t->location, "the tensor has no dimensions; blocks need one");
    else if (check_block(checker, t, tq_vector_i32(&t->shape, rank - 1)) &&
             tq_shape_count(&t->shape, &elements, NULL) == TQ_OK)
        count = elements / (uint64_t)t->q.block_size;
    check_parameter_tensors(checker, t, count);
}

/* Repeats past this index are not reported, so that comparing all pairs stays cheap.  No tensor in use has as many
   dimensions. */
enum { PAIRS_LIMIT = 64 };

/* Whether dimension i is equal to an earlier one. */
static bool named_before(const tq_vector *axes, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (tq_vector_i32(axes, j) == tq_vector_i32(axes, i))
            return true;
    return false;
}

static void check_multi_axis(tq_checker *checker, const quantized *t)
{
    const tq_vector *axes = &t->q.quantized_dimensions;
    uint32_t rank = t->shape.count;
    uint64_t count = 1;
    if (!axes->count || axes->count > rank) {
        tq_report(checker, TQ_PROBLEM_BLOCK_DIMENSIONS, t->location,
                  "%u quantized dimensions; there need to be from 1 to %u", axes->count, rank);
        count = 0;
    }
    for (uint32_t i = 0; count && i < axes->count; i++) {
        int32_t axis = tq_vector_i32(axes, i);
        if (axis < 0 || (uint32_t)axis >= rank || (i < PAIRS_LIMIT && named_before(axes, i))) {
            tq_report(checker, TQ_PROBLEM_BLOCK_DIMENSIONS, t->location,
                      "quantized dimension %u is %d; each needs to be below %u and differ", i, axis, rank);
            count = 0;
            break;
        }
        int32_t dimension = tq_vector_i32(&t->shape, (size_t)axis);
        bool blocked = t->q.block_size && i + 1 == axes->count;
        if (dimension < 0 || (blocked && !check_block(checker, t, dimension)))
            count = 0;
        else if (count <= UINT32_MAX) /* no tensor has more; a larger product is not compared */
            count *= (uint64_t)(blocked ? dimension / t->q.block_size : dimension);
    }
    check_parameter_tensors(checker, t, count <= UINT32_MAX ? count : 0);
}

void tq_check_quantization(tq_checker *checker, uint32_t index, const tq_table *tensor)
{
    quantized t = {
        .tensor = tensor,
        .type = tq_type(tq_get_int(tensor, TQ_Tensor_type)),
        .shape = tq_get_vector(tensor, TQ_Tensor_shape),
        .q = tq_tensor_quantization(tensor),
        .location = tq_location_in(checker, TQ_LOCATION_TENSOR, index, 0),
    };
    if (!t.q.table.at)
        return;
    check_scales(checker, &t);
    check_ranges(checker, &t);
    tq_union details = tq_get_union(&t.q.table, TQ_QuantizationParameters_details);
    if (details.type && tq_union_member(TQ_UNION_QuantizationDetails, details.type) == TQ_TABLE_NONE)
        tq_report(checker, TQ_PROBLEM_UNION_UNKNOWN, t.location,
                  "the quantization's details are of type %u, which this schema does not know", details.type);
    if (t.q.kind == TQ_QUANTIZATION_BLOCKWISE)
        check_blockwise(checker, &t);
    if (t.q.kind == TQ_QUANTIZATION_MULTI_AXIS)
        check_multi_axis(checker, &t);
}
