/* SPDX-License-Identifier: Apache-2.0
 *
 * Hybrid operators ("dynamic range"): float32 activations, weights of 8, 4 or 2 bits.  A row of activations is
 * quantized while the model runs, multiplied in integers, and scaled back:
 *
 *     out = bias + f32(sum(w * q) - zero_point * sum(w)) * f32(scale * scale_w)
 *
 * The rule by which rows are quantized is one function, chosen by tq_hybrid_rule_of.
 * Sources: LiteRT f6745779, tflite/kernels/{fully_connected,conv,depthwise_conv}.cc,
 * tflite/kernels/internal/optimized/neon_tensor_utils.cc (which x86 runs too, also in reference kernels);
 * XNNPACK 75db3c09, src/xnnpack/quantization.h, src/qd8-f32-qc8w-gemm.
 */
#ifndef TQ_OPS_PRODUCTS_HYBRID_H
#define TQ_OPS_PRODUCTS_HYBRID_H

#include "ops/op.h"

/* What a row's codes mean: real = scale * (code - zero_point). */
typedef struct tq_hybrid_row {
    float scale;
    int32_t zero_point;
} tq_hybrid_row;

/* Quantizes n floats to int8 codes.  A row that holds NaN or an infinity gets codes of 0 and the scale NaN, so that
   what is computed from it is NaN. */
typedef tq_hybrid_row (*tq_hybrid_rule)(const float *values, size_t n, int8_t *codes);

tq_hybrid_row tq_hybrid_symmetric(const float *values, size_t n, int8_t *codes);
tq_hybrid_row tq_hybrid_asymmetric(const float *values, size_t n, int8_t *codes);
/* The optimized kernel's for weights of 4 bits: symmetric, every value away from zero. */
tq_hybrid_row tq_hybrid_away(const float *values, size_t n, int8_t *codes);
/* XNNPACK's: asymmetric, in float32, ties to even. */
tq_hybrid_row tq_hybrid_even(const float *values, size_t n, int8_t *codes);

/* The rule for this node's numerics; asymmetric: what the model asks for. */
tq_hybrid_rule tq_hybrid_rule_of(const tq_node *node, bool asymmetric);

/* Input i holds weights: one scale, or one for each of the channels along `axis`; each finite and >= 0, all zero
   points 0. */
tq_status tq_check_weight_scales(const tq_node *node, int i, int axis, tq_error *error);

/* Sums of `count` rows of n codes each. */
void tq_row_sums(const int8_t *codes, size_t count, size_t n, int32_t *sums);

/* Sums of codes to floats, for channels [first, first + count) of one row:
   y[c] = bias + f32(sums[c] - zero_point * weight_sums[c]) by the scales, in one of three ways.
   y may lie where the sums do.  bias: NULL for none. */
typedef struct tq_hybrid_output {
    const tq_tensor *weights; /* whose scales count */
    const float *bias;
    bool one_by_one; /* sum * scale * row scale; else sum * (scale * row scale) */
    bool fused;      /* XNNPACK's: fma(sum * row scale, scale, bias) */
} tq_hybrid_output;
void tq_hybrid_store(const tq_hybrid_output *output, const int32_t *sums, const int32_t *weight_sums,
                     tq_hybrid_row row, size_t first, size_t count, float *y);

/* A fused activation, with TANH and SIGN_BIT, which float kernels of this family apply.  In place. */
void tq_activate(int64_t activation, float *values, size_t n);
/* Whether there is such an activation. */
tq_status tq_check_activation(const tq_node *node, int64_t activation, tq_error *error);

/* Types of hybrid weights of 8 bits.  Old converters wrote UINT8 for what are int8's bytes, and so the runtime reads
   them; its DEPTHWISE_CONV_2D, CONV_3D, TRANSPOSE_CONV and BATCH_MATMUL know INT8 alone. */
#define TQ_HYBRID_WEIGHTS (TQ_T(INT8) | TQ_T(UINT8))

static inline bool tq_is_hybrid_weights(const tq_tensor *tensor)
{
    return tensor->type == TQ_TensorType_INT8 || tensor->type == TQ_TensorType_UINT8;
}

/* Float32 input, INT8, INT4 or INT2 filter, FULLY_CONNECTED's and CONV_2D's also UINT8; to be called by the
   operator's own prepare. */
tq_status tq_prepare_fully_connected_hybrid(tq_node *node, tq_error *error);
tq_status tq_prepare_conv_2d_hybrid(tq_node *node, tq_error *error);
tq_status tq_prepare_depthwise_hybrid(tq_node *node, tq_error *error);

/* For FULLY_CONNECTED and operators that compute the same: `rows` rows of `cols` elements, each quantized on its own, by
   `units` rows of input 1.  Output 0 has its shape. */
tq_status tq_prepare_hybrid_rows(tq_node *node, size_t rows, size_t cols, size_t units, int64_t activation,
                                 bool asymmetric, tq_error *error);

#endif
