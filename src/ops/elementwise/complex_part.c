/* SPDX-License-Identifier: Apache-2.0
 *
 * REAL, IMAG and COMPLEX_ABS: a part of each complex number, or its absolute value.
 * Source: LiteRT f6745779, tflite/kernels/complex_support.cc.
 */
#include <math.h>

#include "ops/check.h"
#include "ops/element.h"
#include "ops/elementwise/map.h"

#define PARTS(part, of_64, of_128)                          \
    TQ_MAP(part##_64, , tq_complex64, float, tq_map, of_64) \
    TQ_MAP(part##_128, , tq_complex128, double, tq_map, of_128)
PARTS(real, x.real, x.real)
PARTS(imag, x.imaginary, x.imaginary)
PARTS(modulus, hypotf(x.real, x.imaginary), hypot(x.real, x.imaginary))

tq_status tq_prepare_complex_part(tq_node *node, tq_error *error)
{
    tq_map *map;
    TQ_TRY(tq_check_input(node, 0, TQ_T(COMPLEX64) | TQ_T(COMPLEX128), error));
    bool is_64 = node->in[0]->type == TQ_TensorType_COMPLEX64;
    TQ_TRY(tq_check_output(node, 0, is_64 ? TQ_T(FLOAT32) : TQ_T(FLOAT64), error));
    TQ_TRY(tq_node_state(node, sizeof *map, &map, error));
    switch (node->row.code) {
    case TQ_BuiltinOperator_REAL: map->run = is_64 ? real_64 : real_128; break;
    case TQ_BuiltinOperator_IMAG: map->run = is_64 ? imag_64 : imag_128; break;
    default: map->run = is_64 ? modulus_64 : modulus_128; break;
    }
    map->params = map;
    return tq_map_prepare(node, map, error);
}
