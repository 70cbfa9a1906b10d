/* SPDX-License-Identifier: Apache-2.0
 *
 * Hybrid operators ("dynamic range"): float32 activations, weights of 8, 4 or 2 bits.  A row of activations is
 * quantized while the model runs, multiplied in integers, and scaled back:
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

#include "ops/op.h"

/* Quantization of a row: real = scale * (q - zero_point). */
typedef struct tq_hybrid_row {
    float scale;
    int32_t zero_point;
} tq_hybrid_row;

/* Quantizes values[0 .. n) to quantized[0 .. n), n >= 0; returns the row's parameters.  For a row with NaN or an
   infinity all quantized values are 0 and the scale is NaN, so that its products are NaN. */
typedef tq_hybrid_row (*tq_hybrid_rule)(const float *values, size_t n, int8_t *quantized);

tq_hybrid_row tq_hybrid_symmetric(const float *values, size_t n, int8_t *quantized);
tq_hybrid_row tq_hybrid_asymmetric(const float *values, size_t n, int8_t *quantized);
/* The optimized kernel's for weights of 4 bits: symmetric, ties away from zero in all elements. */
tq_hybrid_row tq_hybrid_away(const float *values, size_t n, int8_t *quantized);
/* XNNPACK's: asymmetric, in float32, ties to even. */
tq_hybrid_row tq_hybrid_even(const float *values, size_t n, int8_t *quantized);

/* The rule for this node's numerics.  asymmetric: the model's option asymmetric_quantize_inputs. */
tq_hybrid_rule tq_hybrid_rule_of(const tq_node *node, bool asymmetric);

/* Input i holds weights: one scale, or one for each of the channels along `axis`; each finite and >= 0, all zero
   points 0. */
tq_status tq_check_weight_scales(const tq_node *node, int i, int axis, tq_error *error);

/* sums[i]: the sum of row i; count rows of n int8 values; saturated to int32. */
void tq_row_sums(const int8_t *quantized, size_t count, size_t n, int32_t *sums);

/* Integer sums of one row to float32, for channels [first, first + count):
   y[c] = bias[c] + f32(sums[c] - zero_point * weight_sums[c]) * scales, in one of three orders.  y may be `sums`. */
typedef struct tq_hybrid_output {
    const tq_tensor *weights; /* their scales */
    const float *bias; /* NULL: none */
    bool one_by_one; /* sum * scale * row scale; else sum * (scale * row scale) */
    bool fused;      /* XNNPACK's: fma(sum * row scale, scale, bias) */
} tq_hybrid_output;
void tq_hybrid_store(const tq_hybrid_output *output, const int32_t *sums, const int32_t *weight_sums, tq_hybrid_row row,
                     size_t first, size_t count, float *y);

/* Applies a fused activation (TQ_ActivationFunctionType_x, also TANH and SIGN_BIT) to values[0 .. n), in place. */
void tq_activate(int64_t activation, float *values, size_t n);
/* TQ_BAD_OPERATOR for a value that is no ActivationFunctionType. */
tq_status tq_check_activation(const tq_node *node, int64_t activation, tq_error *error);

/* Types of 8-bit hybrid weights.  Old converters wrote int8 values with the type UINT8, and TFLite reads them as int8;
   its DEPTHWISE_CONV_2D, CONV_3D, TRANSPOSE_CONV and BATCH_MATMUL take INT8 only. */
#define TQ_HYBRID_WEIGHTS (TQ_T(INT8) | TQ_T(UINT8))

static inline bool tq_is_hybrid_weights(const tq_tensor *tensor)
{
    return tensor->type == TQ_TensorType_INT8 || tensor->type == TQ_TensorType_UINT8;
}

/* Prepare functions for a float32 input and an INT8, INT4 or INT2 filter, of FULLY_CONNECTED and CONV_2D also UINT8;
   the operator's own prepare calls them. */
tq_status tq_prepare_fully_connected_hybrid(tq_node *node, tq_error *error);
tq_status tq_prepare_conv_2d_hybrid(tq_node *node, tq_error *error);
tq_status tq_prepare_depthwise_hybrid(tq_node *node, tq_error *error);

/* For FULLY_CONNECTED and operators with its arithmetic: `rows` rows of `cols` elements, each quantized separately,
   times the `units` rows of input 1.  Output 0 has its shape. */
tq_status tq_prepare_hybrid_rows(tq_node *node, size_t rows, size_t cols, size_t units, int64_t activation,
                                 bool asymmetric, tq_error *error);

#endif
