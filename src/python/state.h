/* SPDX-License-Identifier: Apache-2.0
 *
 * The module's state, and what every file of the binding includes.
 *
 * One file holds one Python type or one family of functions.  It offers
 *     int tq_py_add_<what>(PyObject *module, tq_state *state)    -> 0, or -1 with an exception
 * and module.c calls it from a row of its table.
 */
#ifndef TQ_PYTHON_STATE_H
#define TQ_PYTHON_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define PY_ARRAY_UNIQUE_SYMBOL tq_numpy_api
#ifndef TQ_PYTHON_MODULE_C
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "base/status.h"

typedef struct tq_state {
#define OBJECT(name) PyObject *name;
#include "python/state.def"
#undef OBJECT
} tq_state;

extern struct PyModuleDef tq_module;

/* The state behind a method's `self`, whose type (or a base of it) this module made. */
tq_state *tq_state_of(PyObject *self);

/* Sets the Python exception that `error` stands for, with attributes `code` and `offset` where the
   exception is one of tq's own.  `path` (may be NULL) is the file name that an OSError carries.
   Returns NULL, so that a function can end with it. */
PyObject *tq_py_raise(tq_state *state, const tq_error *error, PyObject *path);

#endif
