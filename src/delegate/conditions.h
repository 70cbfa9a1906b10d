/* SPDX-License-Identifier: Apache-2.0
 *
 * The conditions of backends.def as functions of a node without wrong_operands.  tq_condition_<name>: XNNPACK's
 * requirement holds.  tq_litert_failure_<name>: LiteRT fails at the node.
 */
#ifndef TQ_DELEGATE_CONDITIONS_H
#define TQ_DELEGATE_CONDITIONS_H

#include "delegate/node_view.h"

#define CONDITION(name, text) bool tq_condition_##name(const tq_node *node);
#define FAILURE(name, text) bool tq_litert_failure_##name(const tq_node *node);
#include "delegate/backends.def"

#endif
