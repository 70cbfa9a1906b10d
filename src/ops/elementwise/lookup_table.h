/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of quantized values by tables that prepare fills.
 *
 * 8 bits: 256 entries, for any function.  INT16: the float function at 513 points, with linear interpolation between
 * them; the points are moved so that the error in the middle is halved.
 * Source: LiteRT f6745779, tflite/kernels/internal/common.h (LUTPopulate, LUTLookup).
 */
#ifndef TQ_OPS_ELEMENTWISE_LOOKUP_TABLE_H
#define TQ_OPS_ELEMENTWISE_LOOKUP_TABLE_H

#include "kernels/arrays/lines.h"
#include "ops/elementwise/map.h"

/* The quantized output for a quantized input q.  The caller saturates it to the output's type. */
typedef int32_t (*tq_quantized_fn)(int32_t q, const void *params);

/* A function of real values. */
typedef float (*tq_real_fn)(float x, const void *params);

#define TQ_LOOKUP_STEPS 512

typedef struct tq_lookup {
    tq_map map;
    uint8_t table[256];                  /* indexed by a quantized value's low 8 bits */
    uint8_t remainder[256];              /* with blocks: the table for the elements after the last whole block */
    size_t block;                        /* elements of a block */
    tq_lines lines;                      /* tq_lookup_by_lines */
    int16_t points[TQ_LOOKUP_STEPS + 1]; /* INT16 */
} tq_lookup;

/* Prepares a node whose input and output have 8 bits: fills its table with function(q, params).  `params` are not read
   after the return. */
tq_status tq_lookup_prepare(tq_node *node, tq_quantized_fn function, const void *params, tq_error *error);

/* Clamps the table of a node that tq_lookup_prepare has prepared to [low, high], a fused activation's bounds, both
   within the output's type. */
void tq_lookup_clamp(tq_node *node, int32_t low, int32_t high);

/* After tq_lookup_prepare: arithmetic takes the table's place where the function is the greater of two lines of about
   these slopes, which meet at the input's zero point.  below: for the lesser quantized values. */
void tq_lookup_by_lines(tq_node *node, double below, double above);

/* tq_lookup_prepare with another function for the elements after the last whole block.  block: elements, a divisor of
   64.  The runtime's optimized kernels need it where their vectors and scalars differ. */
tq_status tq_lookup_prepare_blocks(tq_node *node, size_t block, tq_quantized_fn function, tq_quantized_fn remainder,
                                   const void *params, tq_error *error);

/* Prepares an INT8, UINT8 or INT16 node by a function of real values, by the scales and zero points of its input and
   output, which the caller has checked.  `params` are not read after the return. */
tq_status tq_lookup_prepare_real(tq_node *node, tq_real_fn real, const void *params, tq_error *error);

/* Writes the 513 points of `real` over [input_low, input_high], input_low < input_high, for outputs of
   output_scale * [-32768, 32767], output_scale > 0.  In float32, and in float64 as SOFTMAX needs them.  output_zero:
   the output's zero point, which moves the rounding of that range, and not the points. */
void tq_lookup_points_f32(tq_real_fn real, const void *params, float input_low, float input_high, float output_scale,
                          int32_t output_zero, int16_t *points);
void tq_lookup_points_f64(double (*real)(double x), double input_low, double input_high, double output_scale,
                          int16_t *points);

/* The value at q, any INT16: the points at its upper 9 bits, interpolated by its lower 7. */
static inline int16_t tq_lookup_point(int16_t q, const int16_t *points)
{
    int at = (TQ_LOOKUP_STEPS / 2) + (q >> 7), offset = q & 127;
    int16_t slope = (int16_t)(points[at + 1] - points[at]);
    return (int16_t)(points[at] + ((slope * offset + 64) >> 7));
}

#endif
