/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_ERRORS_H
#define TQ_PYTHON_ERRORS_H

#include "python/state.h"

/* Sets the Python exception that `error` stands for, with attributes `code` and `offset` where the
   exception is one of tq's own.  `path` (may be NULL) is the file name that an OSError carries.
   Returns NULL, so that a function can end with it. */
PyObject *tq_py_raise(tq_state *state, const tq_error *error, PyObject *path);

int tq_py_add_errors(PyObject *module, tq_state *state);

#endif
