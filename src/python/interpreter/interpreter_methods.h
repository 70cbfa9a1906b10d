/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods of Interpreter outside of interpreter.c, and the hook for operators written in Python.
 */
#ifndef TQ_PYTHON_INTERPRETER_INTERPRETER_METHODS_H
#define TQ_PYTHON_INTERPRETER_INTERPRETER_METHODS_H

#include "python/interpreter/interpreter_object.h"

/* ---- interpreter_tensors.c ---- */

/* Interpreter.set_tensor, get_tensor, and the view that tensor() returns. */
PyObject *tq_py_set_tensor(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *tq_py_get_tensor(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *tq_py_view_tensor(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* A new array with a tensor's value; NULL with an exception. */
PyObject *tq_py_tensor_copy(InterpreterObject *self, const tq_graph_run *graph, const tq_tensor *tensor);

/* Copies `value`, which must have the tensor's shape, to a tensor.  0, or -1 with ValueError. */
int tq_py_tensor_assign(InterpreterObject *self, tq_graph_run *graph, tq_tensor *tensor, PyObject *value);

/* ---- interpreter_custom.c ---- */

/* tq_run_hooks.custom_op: the registered operator of this name; NULL: none. */
const tq_op *tq_py_custom_op(void *interpreter, tq_bytes name);
void tq_py_custom_clear(InterpreterObject *self); /* releases the callables; the rows stay, for the run */
void tq_py_custom_free(InterpreterObject *self); /* releases the rows, after the run */

/* ---- interpreter_look.c: methods, described there ---- */

PyObject *tq_py_changed_shapes(PyObject *self, PyObject *args);
PyObject *tq_py_given_types(PyObject *self, PyObject *args);
PyObject *tq_py_memory_plan(PyObject *self, PyObject *args);
PyObject *tq_py_profile_start(PyObject *self, PyObject *args);
PyObject *tq_py_profile_read(PyObject *self, PyObject *args);
PyObject *tq_py_backends(PyObject *self, PyObject *args);

/* The numerics of this name.  0, or -1 with ValueError. */
int tq_py_numerics(const char *name, tq_numerics *out);
PyObject *tq_py_memory_used(PyObject *self, PyObject *unused);

#endif
