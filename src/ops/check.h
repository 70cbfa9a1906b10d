/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks that operators' contracts are made of.  Each is one line in a prepare function:
 *     TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT8), error));
 *     TQ_TRY(tq_check_output_like(node, 0, 0, error));
 */
#ifndef TQ_OPS_CHECK_H
#define TQ_OPS_CHECK_H

#include "ops/op.h"

/* A set of tensor types; of one that only the file knows, tq_type_set, which is empty for a type that tq does not. */
#define TQ_T(type) (1u << TQ_TensorType_##type)

static inline unsigned tq_type_set(int64_t type)
{
    _Static_assert(TQ_TYPE_COUNT <= 32, "a set of types has 32 bits");
    return type >= 0 && type < TQ_TYPE_COUNT ? 1u << type : 0;
}

static inline bool tq_type_is_in(int64_t type, unsigned types)
{
    return (tq_type_set(type) & types) != 0;
}

/* Inputs and outputs are as many as the operator's rows of arity.def say, and only optional ones are left out.  Done
   once, when the graph is opened: whoever reads a node's tensors, conditions and prepare among them, relies on it. */
tq_status tq_check_operands(const tq_node *node, tq_error *error);

/* For operators whose options say how many outputs of those they give. */
tq_status tq_check_output_count(const tq_node *node, int count, tq_error *error);

/* The type of input or output i, which must be there, is one of a set. */
tq_status tq_check_input(const tq_node *node, int i, unsigned types, tq_error *error);
tq_status tq_check_output(const tq_node *node, int i, unsigned types, tq_error *error);

/* Output i has the type that an option names, INT32 or INT64; either of them where it names neither. */
tq_status tq_check_index_output(const tq_node *node, int i, int64_t said, tq_error *error);

/* Input or output i has the type of input `as`. */
tq_status tq_check_input_like(const tq_node *node, int i, int as, tq_error *error);
tq_status tq_check_output_like(const tq_node *node, int i, int as, tq_error *error);

/* Input i has one element. */
tq_status tq_check_single(const tq_node *node, int i, tq_error *error);

tq_status tq_check_rank(const tq_node *node, int i, int low, int high, tq_error *error); /* of input i */

/* Input or output i has one scale (finite, > 0) and a zero point that its type can hold. */
tq_status tq_check_input_scale(const tq_node *node, int i, tq_error *error);
tq_status tq_check_output_scale(const tq_node *node, int i, tq_error *error);

/* Input and output i have the same scale and zero point, as far as both have any. */
tq_status tq_check_same_scale(const tq_node *node, int input, int output, tq_error *error);

/* Checks that input i is a list of `count` integers (-1: of any count) of INT32 or INT64, whatever its
   rank; the values are not looked at. */
tq_status tq_check_list(const tq_node *node, int i, int64_t count, tq_error *error);

/* *out = value, a dimension of output 0; fails if it is negative or does not fit 31 bits. */
tq_status tq_dim_of(const tq_node *node, int64_t value, int32_t *out, tq_error *error);

/* NumPy's broadcasting of two or more shapes, right-aligned; TQ_BAD_OPERATOR where they do not fit. */
tq_status tq_broadcast_shapes(const tq_node *node, const tq_tensor *const *tensors, int count, tq_shape *out,
                              tq_error *error);

/* An axis in [-rank, rank) as one in [0, rank); TQ_BAD_OPERATOR, naming `what`, else. */
tq_status tq_check_axis(const tq_node *node, int64_t axis, int rank, const char *what, int *out, tq_error *error);

/* Element `at` of an INT32 or INT64 (also INT16, INT8, UINT8 ...) tensor that has data. */
int64_t tq_integer_at(const tq_tensor *tensor, size_t at);

/* Writes element `at` of an INT32 or INT64 tensor that has data; INT32 keeps the lower 32 bits. */
void tq_integer_put(const tq_tensor *tensor, size_t at, int64_t value);

#endif
