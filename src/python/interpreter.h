/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_INTERPRETER_H
#define TQ_PYTHON_INTERPRETER_H

#include "python/model.h"
#include "python/state.h"
#include "runtime/run.h"

/* tq._core.Interpreter: a run of a model.  tq.Interpreter, in Python, derives from it. */
typedef struct {
    PyObject_HEAD
    tq_run *run;      /* NULL: not initialized */
    ModelObject *model;
    PyObject *custom; /* dict: name -> what was registered when the interpreter was made; or NULL */
    PyObject *watch;  /* called for each operator that has run, or NULL */
    PyThread_type_lock lock;
    unsigned long owner; /* the thread that holds the lock; 0: none */
} InterpreterObject;

/* One thread at a time works with an interpreter: others wait, and a call from inside one (a custom operator,
   a watcher) is refused with RuntimeError.  Each is 0, or -1 with an exception. */
int tq_py_enter(InterpreterObject *self);
void tq_py_leave(InterpreterObject *self);

/* A graph of an interpreter, or NULL with ValueError. */
tq_graph_run *tq_py_graph(InterpreterObject *self, Py_ssize_t subgraph);

/* ---- tensors.c ---- */

PyObject *tq_py_set_tensor(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *tq_py_get_tensor(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *tq_py_view_tensor(PyObject *self, PyObject *const *args, Py_ssize_t count);

int tq_py_add_interpreter(PyObject *module, tq_state *state);

#endif
