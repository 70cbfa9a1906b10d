/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored constants to real numbers, whatever their type and however their scales lie.  The kernels of
 * kernels/arrays/arrays.h are the fast way for the types and layouts that they know.
 */
#ifndef TQ_QUANT_DEQUANTIZE_H
#define TQ_QUANT_DEQUANTIZE_H

#include "base/scalar.h"
#include "quant/scale_map.h"

/* out[i] = f32(f64(scale) * (f64(q) - f64(zero_point))), which for values to 16 bits is TFLite's
   DEQUANTIZE: its one float32 multiplication rounds the same product, exact in float64, once.
   type: an integer.  values: unaligned, little-endian as in a file on a little-endian machine, in row-major order.
   scale: map->scales values; zero_point: as many, or one (zero_point_count 1), or none (0, which means 0). */
void tq_dequantize_values(tq_scalar type, const void *values, const tq_scale_map *map, const float *scale,
                          const int64_t *zero_point, uint64_t zero_point_count, float *out);

#endif
