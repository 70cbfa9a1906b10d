/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of operators, to walk.
 */
#ifndef TQ_OPS_OPS_H
#define TQ_OPS_OPS_H

#include "ops/op.h"

/* Row i of ops.def, builtin operators first; NULL past the end. */
const tq_op *tq_op_row(size_t i, bool *is_custom);

#endif
