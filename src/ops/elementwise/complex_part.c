/* SPDX-License-Identifier: Apache-2.0
 *
 * REAL, IMAG and COMPLEX_ABS: a part of each complex number, or its absolute value.
 * Source: LiteRT f6745779, tflite/kernels/complex_support.cc.
 */
#include <math.h>

#include "kernels/isa.h"
#include "ops/check.h"
#include "ops/element.h"
#include "ops/elementwise/map.h"

/* glibc's hypotf, as a form that compilers vectorize.  The squares are exact; infinity wins against NaN. */
TQ_BODY float modulus(tq_complex64 x)
{
    const double real = (double)x.real, imaginary = (double)x.imaginary;
    const float root = (float)sqrt(real * real + imaginary * imaginary);
    return fabsf(x.real) == INFINITY || fabsf(x.imaginary) == INFINITY ? INFINITY : root;
}

#define PARTS(part, of)                                  \
    TQ_MAP(part##_64, , tq_complex64, float, tq_map, of) \
    TQ_MAP(part##_128, , tq_complex128, double, tq_map, of)
PARTS(real, x.real)
PARTS(imag, x.imaginary)
TQ_ISA_DEFINE(TQ_MAP, modulus_64, tq_complex64, float, tq_map, modulus(x))
TQ_MAP(modulus_128, , tq_complex128, double, tq_map, hypot(x.real, x.imaginary))

tq_status tq_prepare_complex_part(tq_node *node, tq_error *error)
{
    static const tq_map_fn moduli_64[TQ_ISAS] = TQ_ISA_FUNCTIONS(modulus_64);
    tq_map *map;
    TQ_TRY(tq_check_input(node, 0, TQ_T(COMPLEX64) | TQ_T(COMPLEX128), error));
    bool is_64 = node->in[0]->type == TQ_TensorType_COMPLEX64;
    TQ_TRY(tq_check_output(node, 0, is_64 ? TQ_T(FLOAT32) : TQ_T(FLOAT64), error));
    TQ_TRY(tq_node_state(node, sizeof *map, &map, error));
    switch (node->row.code) {
    case TQ_BuiltinOperator_REAL: map->run = is_64 ? real_64 : real_128; break;
    case TQ_BuiltinOperator_IMAG: map->run = is_64 ? imag_64 : imag_128; break;
    default: map->run = is_64 ? moduli_64[tq_isa()] : modulus_128; break;
    }
    map->params = map;
    return tq_map_prepare(node, map, error);
}
