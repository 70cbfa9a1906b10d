/* SPDX-License-Identifier: Apache-2.0
 *
 * The neon rows of depthwise.def: 4 channels.
 */
#include <string.h>

#include "kernels/depthwise/depthwise_parts.h"

#if TQ_ARM64
#include "kernels/simd_neon.h"

#include "kernels/gemm/gemm_vectors_neon.h"

#define DEPTH_ISA neon
#define DEPTH_STORES tq_stores__neon

#define IN i8
#define DEPTH_LANES 8
#define DEPTH_GROUP 1
#define IN_BYTES 1
#define WEIGHT_BYTES 2
#define sums_t eight_sums
#define weights_t int16x8_t
#define load_weights(p) vld1q_s16((const int16_t *)(const void *)(p))
#define first_sums(p) load_eight(p)
#define last_sums(sums, p) sums
#define save_sums save_eight
#define multiply(sums, a, b, weights) multiply_eight(sums, vmovl_s8(vld1_s8((const int8_t *)(a))), weights)
#include "kernels/depthwise/depthwise_simd.h"

#define IN u8
#define DEPTH_LANES 8
#define DEPTH_GROUP 1
#define IN_BYTES 1
#define WEIGHT_BYTES 2
#define sums_t eight_sums
#define weights_t int16x8_t
#define load_weights(p) vld1q_s16((const int16_t *)(const void *)(p))
#define first_sums(p) load_eight(p)
#define last_sums(sums, p) sums
#define save_sums save_eight
#define multiply(sums, a, b, weights) \
    multiply_eight(sums, vreinterpretq_s16_u16(vmovl_u8(vld1_u8((const uint8_t *)(a)))), weights)
#include "kernels/depthwise/depthwise_simd.h"

#define IN i16
#define DEPTH_LANES 8
#define DEPTH_GROUP 1
#define IN_BYTES 2
#define WEIGHT_BYTES 2
#define sums_t eight_sums
#define weights_t int16x8_t
#define load_weights(p) vld1q_s16((const int16_t *)(const void *)(p))
#define first_sums(p) load_eight(p)
#define last_sums(sums, p) sums
#define save_sums save_eight
#define multiply(sums, a, b, weights) multiply_eight(sums, vld1q_s16((const int16_t *)(const void *)(a)), weights)
#include "kernels/depthwise/depthwise_simd.h"

#define IN f32
#define DEPTH_LANES 4
#define DEPTH_GROUP 1
#define IN_BYTES 4
#define WEIGHT_BYTES 4
#define sums_t vf
#define weights_t vf
#define load_weights(p) vld1q_f32((const float *)(const void *)(p))
#define first_sums(p) splat_f32(0)
#define last_sums(sums, p) TQ_BOUNDED(vaddq_f32(sums, vld1q_f32((const float *)(const void *)(p))))
#define save_sums(p, x) vst1q_f32((float *)(void *)(p), x)
#define multiply(sums, a, b, weights) vaddq_f32(sums, vmulq_f32(vld1q_f32((const float *)(const void *)(a)), weights))
#include "kernels/depthwise/depthwise_simd.h"

#define IN f32_fused
#define DEPTH_LANES 4
#define DEPTH_GROUP 1
#define IN_BYTES 4
#define WEIGHT_BYTES 4
#define sums_t vf
#define weights_t vf
#define load_weights(p) vld1q_f32((const float *)(const void *)(p))
#define first_sums(p) vld1q_f32((const float *)(const void *)(p))
#define last_sums(sums, p) TQ_BOUNDED(sums)
#define save_sums(p, x) vst1q_f32((float *)(void *)(p), x)
#define multiply(sums, a, b, weights) vfmaq_f32(sums, vld1q_f32((const float *)(const void *)(a)), weights)
#include "kernels/depthwise/depthwise_simd.h"
#endif
