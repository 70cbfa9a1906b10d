/* SPDX-License-Identifier: Apache-2.0
 *
 * Hybrid operators (TFLite's "dynamic range"): float32 activations, weights of 8, 4 or 2 bits.  Eval quantizes a row of
 * activations, multiplies in integers, and scales the sums:
 *
 *     out = bias + f32(sum(w * q) - zero_point * sum(w)) * f32(scale * scale_w)
 *
 * tq_hybrid_rule_of chooses the function that quantizes rows.
 * Sources: LiteRT f6745779, tflite/kernels/{fully_connected,conv,depthwise_conv}.cc,
 * tflite/kernels/internal/optimized/neon_tensor_utils.cc (which x86 runs too, also in reference kernels);
 * XNNPACK 75db3c09, src/xnnpack/quantization.h, src/qd8-f32-qc8w-gemm.
 */
#ifndef TQ_OPS_PRODUCTS_HYBRID_H
#define TQ_OPS_PRODUCTS_HYBRID_H

#include "kernels/gemm/gemm.h"
#include "ops/op.h"

typedef tq_quantized_row tq_hybrid_row;

/* Quantizes values[0 .. n) to quantized[0 .. n), n >= 0; returns the row's parameters.  For a row with NaN or an
   infinity all quantized values are 0 and the scale is NaN, so that its products are NaN.  threads: at most, 1 and
   more; the result does not depend on it. */
typedef tq_hybrid_row (*tq_hybrid_rule)(const float *values, size_t n, int threads, int8_t *quantized);

/* As TFLite: in [-127, 127] with zero point 0, or in [-128, 127]. */
tq_hybrid_row tq_hybrid_symmetric(const float *values, size_t n, int threads, int8_t *quantized);
tq_hybrid_row tq_hybrid_asymmetric(const float *values, size_t n, int threads, int8_t *quantized);
/* As the optimized kernel for weights of 4 bits: symmetric, ties away from zero in all elements. */
tq_hybrid_row tq_hybrid_away(const float *values, size_t n, int threads, int8_t *quantized);
/* As XNNPACK: asymmetric, in float32, ties to even. */
tq_hybrid_row tq_hybrid_even(const float *values, size_t n, int threads, int8_t *quantized);

/* Quantizes `count` rows of n values, one after the other, each by `rule`; *rows: their parameters.  threads: at most.
 */
void tq_hybrid_quantize(tq_hybrid_rule rule, const float *values, size_t count, size_t n, int threads,
                        int8_t *quantized, tq_hybrid_row *rows);

/* The rule of this node's numerics.  asymmetric: the option asymmetric_quantize_inputs; XNNPACK ignores it. */
tq_hybrid_rule tq_hybrid_rule_of(const tq_node *node, bool asymmetric);

/* Input i, of weights, has one scale, or one for each index of its dimension `axis` >= 0; all scales are finite and
   >= 0, all zero points 0.  TQ_BAD_OPERATOR. */
tq_status tq_check_weight_scales(const tq_node *node, int i, int axis, tq_error *error);

/* sums[0 .. count): the sums of `count` rows of n values, saturated to int32. */
void tq_row_sums(const int8_t *quantized, size_t count, size_t n, int32_t *sums);

/* The scaling of products with `weights`, from channel `first` on; its rows and weight sums remain to be set.  bias:
   NULL: none. */
tq_gemm_scaling tq_hybrid_scaling(tq_scale_order order, const tq_tensor *weights, const tq_tensor *bias, size_t first);

/* Whether a fused activation is a clamp to [*low, *high]; if not, these are infinities. */
bool tq_activation_is_clamp(int64_t activation, float *low, float *high);

/* Sums of an image's pixels to floats, in place. */
typedef struct tq_hybrid_pixels {
    size_t count, channels;
    size_t remainder; /* the last channels, so many, have sum * row scale * scale */
    float low, high;  /* of the fused activation */
    float *values;    /* [count, channels]: integer sums, then results */
} tq_hybrid_pixels;

/* scaling: of order PLAIN or ROW_LAST, with one row. */
void tq_hybrid_scale_pixels(const tq_gemm_scaling *scaling, const tq_hybrid_pixels *to, int threads);

/* Applies a fused activation, TQ_ActivationFunctionType_x, also TANH and SIGN_BIT, to values[0 .. n), in place; other
   values of `activation`: none. */
void tq_activate(int64_t activation, float *values, size_t n);

/* TQ_BAD_OPERATOR for a value that is no ActivationFunctionType. */
tq_status tq_check_activation(const tq_node *node, int64_t activation, tq_error *error);

/* Types of 8-bit hybrid weights.  Old converters wrote int8 values with the type UINT8, and TFLite reads them as int8.
   TFLite's DEPTHWISE_CONV_2D, CONV_3D, TRANSPOSE_CONV and BATCH_MATMUL take INT8 only. */
#define TQ_HYBRID_WEIGHTS (TQ_T(INT8) | TQ_T(UINT8))

/* Whether a tensor's type is in TQ_HYBRID_WEIGHTS. */
static inline bool tq_is_hybrid_weights(const tq_tensor *tensor)
{
    return tensor->type == TQ_TensorType_INT8 || tensor->type == TQ_TensorType_UINT8;
}

#endif
