/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that compute nothing: BITCAST, DENSIFY, ZEROS_LIKE; and the parts of complex numbers: REAL, IMAG,
 * COMPLEX_ABS.
 *
 * DENSIFY copies a constant, or makes a sparse one dense.
 * Source: LiteRT f6745779, tflite/kernels/bitcast.cc, densify.cc, zeros_like.cc, complex_support.cc.
 */
#include <math.h>
#include <string.h>

#include "model/sparsity.h"
#include "ops/element.h"
#include "ops/elementwise/map.h"

static tq_status eval_copy(tq_node *node, tq_error *error)
{
    (void)error;
    if (node->out[0]->data != node->in[0]->data) /* BITCAST is TQ_OP_SAME */
        tq_copy(node->out[0]->data, node->in[0]->data, node->out[0]->bytes);
    return TQ_OK;
}

/* ---- BITCAST ---- */

/* The same bytes: a smaller element adds a last dimension, a larger one takes one away. */
static tq_status cast_shape(const tq_node *node, int from, int to, tq_shape *shape, tq_error *error)
{
    if (from > to) {
        if (shape->rank == TQ_DIMS)
            return tq_input_fail(node, 0, error, "has %d dimensions; the output would have one more than tq takes", TQ_DIMS);
        shape->dims[shape->rank++] = from / to;
    } else if (from < to) {
        if (shape->rank == 0 || shape->dims[shape->rank - 1] != to / from)
            return tq_input_fail(node, 0, error, "has elements of %d bytes for some of %d; it needs a last dimension of %d",
                                 from, to, to / from);
        shape->dims[--shape->rank] = 0;
    }
    return TQ_OK;
}

tq_status tq_prepare_bitcast(tq_node *node, tq_error *error)
{
    const unsigned types = TQ_T(FLOAT32) | TQ_T(FLOAT16) | TQ_T(BFLOAT16) | TQ_T(FLOAT64) | TQ_T(INT8) | TQ_T(UINT8) |
                           TQ_T(INT16) | TQ_T(UINT16) | TQ_T(INT32) | TQ_T(UINT32) | TQ_T(INT64) | TQ_T(UINT64) |
                           TQ_T(BOOL) | TQ_T(COMPLEX64) | TQ_T(COMPLEX128);
    TQ_TRY(tq_check_input(node, 0, types, error));
    TQ_TRY(tq_check_output(node, 0, types, error));
    tq_shape shape = node->in[0]->shape;
    TQ_TRY(cast_shape(node, (int)tq_element_bytes(node->in[0]->type), (int)tq_element_bytes(node->out[0]->type), &shape,
                      error));
    node->eval = eval_copy;
    return tq_output_shape(node, 0, &shape, error);
}

/* ---- DENSIFY, ZEROS_LIKE ---- */

static tq_status eval_densify(tq_node *node, tq_error *error)
{
    const tq_tensor *in = node->in[0], *out = node->out[0];
    tq_fill(out->data, 0, out->bytes);
    tq_bytes stored = {in->data, in->bytes};
    return tq_tensor_densify(&in->table, stored, out->data, out->bytes, error);
}

tq_status tq_prepare_densify(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(FLOAT16) | TQ_T(INT8), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    if (!tq_is_constant(node->in[0]))
        return tq_input_fail(node, 0, error, "is computed; DENSIFY needs a constant");
    node->eval = node->in[0]->packed ? eval_densify : eval_copy;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}

static tq_status eval_zeros(tq_node *node, tq_error *error)
{
    (void)error;
    tq_fill(node->out[0]->data, 0, node->out[0]->bytes);
    return TQ_OK;
}

tq_status tq_prepare_zeros_like(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT32) | TQ_T(INT64), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    node->eval = eval_zeros;
    node->foldable = true;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}

/* ---- parts of complex numbers ---- */

#define PARTS(part, of_64, of_128)                                      \
    TQ_MAP(part##_64, , tq_complex64, float, tq_map, of_64)             \
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
