/* SPDX-License-Identifier: Apache-2.0
 *
 * Every operator that tq runs.
 */
#ifndef TQ_RUNTIME_OPERATORS_H
#define TQ_RUNTIME_OPERATORS_H

#include "ops/op.h"

/* The row of a builtin operator; code: any value; NULL: tq does not run it. */
const tq_op *tq_op_find(int64_t code);

/* The row of a custom operator, by its name in files; NULL: tq does not run it. */
const tq_op *tq_custom_op_find(tq_bytes name);

/* Row i >= 0 of all operators, builtin operators first; NULL past the end. */
const tq_op *tq_op_row(size_t i, bool *is_custom);

#endif
