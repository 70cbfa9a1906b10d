/* SPDX-License-Identifier: Apache-2.0
 *
 * The object behind tq._core.Interpreter, and the helpers that its files share.
 */
#ifndef TQ_PYTHON_INTERPRETER_INTERPRETER_OBJECT_H
#define TQ_PYTHON_INTERPRETER_INTERPRETER_OBJECT_H

#include "python/interpreter/interpreter_lock.h"
#include "python/model/model_object.h"
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
    PyObject *raised[3]; /* the exception of a Python operator or of Ctrl-C, until the run has returned */
} InterpreterObject;

/* One thread at a time works with an interpreter: others wait, and a call from inside one (from a custom
   operator) is refused with RuntimeError (interpreter_lock.h).  0, or -1 with an exception. */
int tq_py_enter(InterpreterObject *self);
void tq_py_leave(InterpreterObject *self);

/* A graph or a tensor of an interpreter, or NULL with ValueError. */
tq_graph_run *tq_py_graph(InterpreterObject *self, Py_ssize_t subgraph);
tq_tensor *tq_py_tensor_at(tq_graph_run *graph, Py_ssize_t index);

/* Puts the exception that is set aside until the run has returned: nothing may call Python with one set. */
void tq_py_hold_exception(InterpreterObject *self);

#endif
