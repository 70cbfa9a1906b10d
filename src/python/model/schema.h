/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_SCHEMA_H
#define TQ_PYTHON_SCHEMA_H

#include "python/state.h"

/* schema_tables, schema_enums, schema_unions, schema_builtins, statuses: the rows, for Python. */
int tq_py_add_schema(PyObject *module, tq_state *state);

#endif
