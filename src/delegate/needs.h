/* SPDX-License-Identifier: Apache-2.0
 *
 * The conditions of backends.def, as functions: what XNNPACK needs of an operator that it takes, and what keeps LiteRT
 * from running one.
 */
#ifndef TQ_DELEGATE_NEEDS_H
#define TQ_DELEGATE_NEEDS_H

#include "delegate/seen.h"

#define NEED(name, text) bool tq_need_##name(const tq_node *node);
#define FAULT(name, text) bool tq_fault_##name(const tq_node *node);
#include "delegate/backends.def"

#endif
