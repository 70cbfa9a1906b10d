/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that the rows of operators.def name.
 */
#ifndef TQ_RUNTIME_PREPARE_FUNCTIONS_H
#define TQ_RUNTIME_PREPARE_FUNCTIONS_H

#include "ops/op.h"

#define OP(name, prepare, flags) tq_status tq_prepare_##prepare(tq_node *node, tq_error *error);
#include "runtime/operators.def"

#endif
