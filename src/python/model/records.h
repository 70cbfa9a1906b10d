/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_RECORDS_H
#define TQ_PYTHON_MODEL_RECORDS_H

#include "model/model.h"
#include "python/state.h"

/* A named tuple of `type` with `count` items.  Consumes the items; NULL if one of them is NULL. */
PyObject *tq_py_record(PyObject *type, PyObject *const *items, Py_ssize_t count);

/* Named tuples of a model's small tables; each returns a new reference or NULL. */
PyObject *tq_py_operator_code(tq_state *state, const tq_table *operator_code);
PyObject *tq_py_signature(tq_state *state, const tq_table *signature);
PyObject *tq_py_external_buffer(tq_state *state, const tq_model *model, const tq_table *buffer);

/* "CONV_2D", a custom operator's name, "BUILTIN_250" for an operator unknown to the schema, "?" without a code. */
PyObject *tq_py_operator_name(const tq_operator *op);

int tq_py_add_records(PyObject *module, tq_state *state);

#endif
