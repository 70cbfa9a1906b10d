/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of codes by tables that prepare fills.
 *
 * 8 bits: 256 entries, whatever the function.  INT16: the float function at 513 points, with linear
 * interpolation between them; the points are moved so that the error in the middle is halved.
 * Source: LiteRT f6745779, tflite/kernels/internal/common.h (LUTPopulate, LUTLookup).
 */
#ifndef TQ_OPS_ELEMENTWISE_LOOKUP_TABLE_H
#define TQ_OPS_ELEMENTWISE_LOOKUP_TABLE_H

#include "ops/elementwise/map.h"

/* The code for a code; saturated to the output's type by the caller. */
typedef int32_t (*tq_quantized_fn)(int32_t q, const void *params);

/* A function of real numbers. */
typedef float (*tq_real_fn)(float x, const void *params);

#define TQ_LOOKUP_STEPS 512

typedef struct tq_lookup {
    tq_map map;
    uint8_t codes[256];                  /* by the code's low 8 bits */
    uint8_t rest[256];                   /* for the elements after the last whole block, where there are blocks */
    size_t block;                        /* elements */
    int16_t points[TQ_LOOKUP_STEPS + 1]; /* INT16 */
} tq_lookup;

/* Prepares a node whose input and output have 8 bits: fills its table with code(q).  `params` are not read after that.
 */
tq_status tq_lookup_prepare(tq_node *node, tq_quantized_fn code, const void *params, tq_error *error);

/* Bounds the table of such a node to a fused activation's codes, once prepared. */
void tq_lookup_clamp(tq_node *node, int32_t low, int32_t high);

/* The same with another function for the elements after the last whole block of so many, a divisor of 64: the runtime's
   optimized kernels, whose vectors and scalars differ. */
tq_status tq_lookup_prepare_blocks(tq_node *node, size_t block, tq_quantized_fn code, tq_quantized_fn rest,
                                   const void *params, tq_error *error);

/* Prepares an INT8, UINT8 or INT16 node by a real function, by the scales of its input and output. */
tq_status tq_lookup_prepare_real(tq_node *node, tq_real_fn real, const void *params, tq_error *error);

/* The 513 points of `real` over [input_low, input_high], for outputs scale * [-32768, 32767], computed in float64 as
   SOFTMAX's are; those of other operators are computed in float32. */
void tq_lookup_points_f32(tq_real_fn real, const void *params, float input_low, float input_high, float output_scale,
                          int16_t *points);
void tq_lookup_points_f64(double (*real)(double x), double input_low, double input_high, double output_scale,
                          int16_t *points);

static inline int16_t tq_lookup_point(int16_t q, const int16_t *points)
{
    int at = (TQ_LOOKUP_STEPS / 2) + (q >> 7), offset = q & 127;
    int16_t slope = (int16_t)(points[at + 1] - points[at]);
    return (int16_t)(points[at] + ((slope * offset + 64) >> 7));
}

#endif
