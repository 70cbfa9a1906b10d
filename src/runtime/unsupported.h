/* SPDX-License-Identifier: Apache-2.0
 *
 * Custom operators that tq knows by name and does not run.
 */
#ifndef TQ_RUNTIME_UNSUPPORTED_H
#define TQ_RUNTIME_UNSUPPORTED_H

#include "base/bytes.h"

/* The end of a sentence that begins with "Operator 3": the row's text, or advice for a name without a row. */
const char *tq_unsupported_text(tq_bytes name);

#endif
