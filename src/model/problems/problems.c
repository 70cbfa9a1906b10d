/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of problems.def as a table.
 */
#include "model/problems/problems.h"

const tq_problem_kind tq_problem_kinds[TQ_PROBLEM_COUNT] = {
#define PROBLEM(symbol, code, severity, text) {code, TQ_SEVERITY_##severity, text},
#include "model/problems/problems.def"
#undef PROBLEM
};

const char *tq_severity_name(tq_severity severity)
{
    return severity == TQ_SEVERITY_ERROR ? "error" : "warning";
}
