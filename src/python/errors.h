/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_ERRORS_H
#define TQ_PYTHON_ERRORS_H

#include "python/state.h"

/* Sets the Python exception of `error`; an exception of tq has the attributes `code` and `offset`.  path: the file name
   of an OSError, or NULL.  Returns NULL, so that a function can return the call. */
PyObject *tq_py_raise(tq_state *state, const tq_error *error, PyObject *path);

int tq_py_add_errors(PyObject *module, tq_state *state);

#endif
