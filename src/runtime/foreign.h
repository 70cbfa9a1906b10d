/* SPDX-License-Identifier: Apache-2.0
 *
 * What those custom operators are that tq does not run.
 */
#ifndef TQ_RUNTIME_FOREIGN_H
#define TQ_RUNTIME_FOREIGN_H

#include "base/bytes.h"

/* A sentence to go on behind "Operator 3". */
const char *tq_foreign_text(tq_bytes name);

#endif
