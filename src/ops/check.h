/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of operators' contracts.  Each is one line in a prepare function:
 *     TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT8), error));
 *     TQ_TRY(tq_check_output_like(node, 0, 0, error));
 * They return TQ_OK, or TQ_BAD_OPERATOR with a message.  Inputs and outputs i exist and are not NULL.
 */
#ifndef TQ_OPS_CHECK_H
#define TQ_OPS_CHECK_H

#include "ops/op.h"

/* A set of tensor types has a bit for each: TQ_T(INT8) | TQ_T(UINT8). */
#define TQ_T(type) (1u << TQ_TensorType_##type)

/* The set of one type; empty for a value that is no TensorType. */
static inline unsigned tq_type_set(int64_t type)
{
    _Static_assert(TQ_TYPE_COUNT <= 32, "a set of types has 32 bits");
    return type >= 0 && type < TQ_TYPE_COUNT ? 1u << type : 0;
}

/* Whether a set has a type; false for a value that is no TensorType. */
static inline bool tq_type_is_in(int64_t type, unsigned types)
{
    return (tq_type_set(type) & types) != 0;
}

/* The counts of inputs and outputs fit the operator's rows of model/arity.def, and only optional tensors are NULL.
   The runtime checks once, when it opens a graph: prepare functions and the delegate's conditions rely on it. */
tq_status tq_check_operands(const tq_node *node, tq_error *error);

/* The node has `count` outputs: for operators whose options give the count. */
tq_status tq_check_output_count(const tq_node *node, int count, tq_error *error);

/* The type of input or output i is in a set. */
tq_status tq_check_input(const tq_node *node, int i, unsigned types, tq_error *error);
tq_status tq_check_output(const tq_node *node, int i, unsigned types, tq_error *error);

/* Output i has the type `option`, if that is INT32 or INT64; else one of both. */
tq_status tq_check_index_output(const tq_node *node, int i, int64_t option, tq_error *error);

/* Input or output i has the type of input `as`. */
tq_status tq_check_input_like(const tq_node *node, int i, int as, tq_error *error);
tq_status tq_check_output_like(const tq_node *node, int i, int as, tq_error *error);

/* Input i has one element. */
tq_status tq_check_single(const tq_node *node, int i, tq_error *error);

/* Input i has `low` to `high` dimensions. */
tq_status tq_check_rank(const tq_node *node, int i, int low, int high, tq_error *error);

/* The scale and zero point that kernels read of input or output i (tq_scale_of), are finite, not negative, and fit
   their arithmetic (tq_zero_point_fits).  Kernels run with a tensor that has no scale, or several, as if it were 0, as
   in the runtime. */
tq_status tq_check_input_scale(const tq_node *node, int i, tq_error *error);
tq_status tq_check_output_scale(const tq_node *node, int i, tq_error *error);

/* The same for kernels that refuse a tensor without scales. */
tq_status tq_check_quantized_input(const tq_node *node, int i, tq_error *error);
tq_status tq_check_quantized_output(const tq_node *node, int i, tq_error *error);

/* A fused activation that has bounds finds an output scale other than 0. */
tq_status tq_check_activation_scale(const tq_node *node, int64_t activation, tq_error *error);

/* The same, and, for kernels that cut bounds to the type, an output zero point that the type holds.  cuts: whether the
   node's kernel does. */
tq_status tq_check_activation_bounds(const tq_node *node, int64_t activation, bool cuts, tq_error *error);

/* An input's or the output's scale other than 0, where the runtime divides by it and converts what comes of it to an
   integer: undefined in C. */
tq_status tq_check_input_divisor(const tq_node *node, int i, tq_error *error);
tq_status tq_check_output_divisor(const tq_node *node, tq_error *error);

/* Input i has the zero point 0, or several. */
tq_status tq_check_symmetric_input(const tq_node *node, int i, tq_error *error);

/* Input and output i have the same scale and zero point, as far as both have any. */
tq_status tq_check_same_scale(const tq_node *node, int input, int output, tq_error *error);

/* Input i has `count` elements (-1: any count) of INT32 or INT64, and any rank.  Reads no value. */
tq_status tq_check_list(const tq_node *node, int i, int64_t count, tq_error *error);

/* *out = value, a dimension of output 0, in [0, 2^31). */
tq_status tq_dim_of(const tq_node *node, int64_t value, int32_t *out, tq_error *error);

/* *out: NumPy's broadcasting of the shapes of tensors[0 .. count), right-aligned. */
tq_status tq_broadcast_shapes(const tq_node *node, const tq_tensor *const *tensors, int count, tq_shape *out,
                              tq_error *error);

/* *out = axis + rank for axis in [-rank, 0), axis for [0, rank); fails for others.  what: "axis", for the message. */
tq_status tq_check_axis(const tq_node *node, int64_t axis, int rank, const char *what, int *out, tq_error *error);

/* Element `at` of an integer or BOOL tensor of up to 64 bits that has data; 0 for other types.  at < its elements. */
int64_t tq_integer_at(const tq_tensor *tensor, size_t at);

/* Writes element `at` of an INT32 or INT64 tensor that has data; INT32 takes the lower 32 bits.  at < its elements. */
void tq_integer_put(const tq_tensor *tensor, size_t at, int64_t value);

#endif
