/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_FILE_H
#define TQ_PYTHON_MODEL_FILE_H

#include "base/file.h"
#include "python/state.h"

/* A mapped file that NumPy views keep alive. */
typedef struct {
    PyObject_HEAD
    tq_file file;
} FileObject;

/* Maps a file; `path` is a str, bytes or path-like object.  OSError, as open() raises it. */
PyObject *tq_py_file(tq_state *state, PyObject *path);

int tq_py_add_file(PyObject *module, tq_state *state);

#endif
