/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_INTERPRETER_INTERPRETER_H
#define TQ_PYTHON_INTERPRETER_INTERPRETER_H

#include "python/interpreter/interpreter_lock.h"
#include "python/model/model.h"
#include "python/state.h"
#include "runtime/run.h"

/* A custom operator written in Python; `op.context` is this record. */
typedef struct tq_py_op {
    struct tq_py_op *next;
    tq_op op;
    PyObject *name, *prepare, *eval; /* str, callables */
    struct InterpreterObject *interpreter;
} tq_py_op;

/* tq._core.Interpreter: a run of a model.  tq.Interpreter, in Python, derives from it. */
typedef struct InterpreterObject {
    PyObject_HEAD
    tq_run *run; /* NULL: not initialized */
    ModelObject *model;
    PyObject *registered; /* dict: name -> (prepare, eval), or NULL */
    tq_py_op *custom;     /* list */
    tq_py_lock lock;
    PyObject *raised[3]; /* what a Python operator raised, until the run has returned */
} InterpreterObject;

/* One thread at a time works with an interpreter: others wait, and a call from inside one (from a custom
   operator) is refused with RuntimeError (interpreter_lock.h).  0, or -1 with an exception. */
int tq_py_enter(InterpreterObject *self);
void tq_py_leave(InterpreterObject *self);

/* A graph or a tensor of an interpreter, or NULL with ValueError. */
tq_graph_run *tq_py_graph(InterpreterObject *self, Py_ssize_t subgraph);
tq_tensor *tq_py_tensor_at(tq_graph_run *graph, Py_ssize_t index);

/* Puts the exception that is set aside until the run has returned: nothing may call Python with one set. */
void tq_py_keep_exception(InterpreterObject *self);

/* ---- interpreter_tensors.c ---- */

PyObject *tq_py_set_tensor(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *tq_py_get_tensor(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *tq_py_view_tensor(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* A new array with a tensor's value. */
PyObject *tq_py_tensor_copy(InterpreterObject *self, const tq_graph_run *graph, const tq_tensor *tensor);

/* Copies `value` to a tensor, whose shape it must have.  0, or -1 with ValueError. */
int tq_py_tensor_assign(InterpreterObject *self, tq_graph_run *graph, tq_tensor *tensor, PyObject *value);

/* ---- interpreter_custom.c ---- */

const tq_op *tq_py_custom_op(void *interpreter, tq_bytes name);
void tq_py_custom_clear(InterpreterObject *self); /* lets the callables go; the rows stay, for the run */
void tq_py_custom_free(InterpreterObject *self);

/* ---- interpreter_look.c ---- */

PyObject *tq_py_changed_shapes(PyObject *self, PyObject *args);
PyObject *tq_py_memory_plan(PyObject *self, PyObject *args);
PyObject *tq_py_profile_start(PyObject *self, PyObject *args);
PyObject *tq_py_profile_read(PyObject *self, PyObject *args);
PyObject *tq_py_backends(PyObject *self, PyObject *args);

/* By its name; -1 with a ValueError. */
int tq_py_numerics(const char *name, tq_numerics *out);
PyObject *tq_py_memory_used(PyObject *self, PyObject *unused);

int tq_py_add_interpreter(PyObject *module, tq_state *state);

#endif
