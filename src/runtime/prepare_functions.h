/* SPDX-License-Identifier: Apache-2.0
 *
 * The prepare functions of the rows of operators.def.
 */
#ifndef TQ_RUNTIME_PREPARE_FUNCTIONS_H
#define TQ_RUNTIME_PREPARE_FUNCTIONS_H

#include "ops/op.h"

#define OP(name, prepare, flags) tq_status tq_prepare_##prepare(tq_node *node, tq_error *error);
#include "runtime/operators.def"

#endif
