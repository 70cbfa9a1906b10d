/* SPDX-License-Identifier: Apache-2.0 */
#include "python/interpreter/interpreter_object.h"

int tq_py_enter(InterpreterObject *self)
{
    if (tq_py_lock_take((PyObject *)self, &self->lock) < 0)
        return -1;
    if (self->run)
        return 0;
    tq_py_lock_give((PyObject *)self, &self->lock);
    PyErr_SetString(PyExc_ValueError, "Interpreter was not initialized.");
    return -1;
}

void tq_py_leave(InterpreterObject *self)
{
    tq_py_lock_give((PyObject *)self, &self->lock);
}

void tq_py_hold_exception(InterpreterObject *self)
{
    if (self->raised[0])
        PyErr_Clear(); /* the first exception is kept */
    else
        PyErr_Fetch(&self->raised[0], &self->raised[1], &self->raised[2]);
}

tq_graph_run *tq_py_graph(InterpreterObject *self, Py_ssize_t subgraph)
{
    if (subgraph >= 0 && (size_t)subgraph < self->run->graph_count)
        return &self->run->graphs[subgraph];
    PyErr_Format(PyExc_ValueError, "Invalid subgraph index %zd exceeds max subgraph index %zd", subgraph,
                 (Py_ssize_t)self->run->graph_count);
    return NULL;
}

tq_tensor *tq_py_tensor_at(tq_graph_run *graph, Py_ssize_t index)
{
    if (index >= 0 && (size_t)index < graph->tensor_count)
        return &graph->tensors[index];
    PyErr_Format(PyExc_ValueError, "Invalid tensor index %zd exceeds max tensor index %zd", index,
                 (Py_ssize_t)graph->tensor_count);
    return NULL;
}
