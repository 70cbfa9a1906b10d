/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored constants as real values, for every integer type and every layout of scales.  The kernels of
 * kernels/arrays/arrays.h are faster, for fewer types and layouts.
 */
#ifndef TQ_QUANT_DEQUANTIZE_H
#define TQ_QUANT_DEQUANTIZE_H

#include "base/scalar.h"
#include "quant/scale_map.h"

/* out[i] = f32(f64(scale) * (f64(q) - f64(zero_point))) for every element of the map.  For values of up to 16 bits that
   is TFLite's DEQUANTIZE: its one float32 multiplication rounds the same product, exact in float64, once. type: an
   integer of 8 to 64 bits.  values: row-major, native byte order, any alignment.  scale: [map->scales], any float32.
   zero_point: [zero_point_count]; the count is map->scales, 1 (for all) or 0 (zero points are 0). */
void tq_dequantize_values(tq_scalar type, const void *values, const tq_scale_map *map, const float *scale,
                          const int64_t *zero_point, uint64_t zero_point_count, float *out);

#endif
