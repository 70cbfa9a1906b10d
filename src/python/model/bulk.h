/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts of all items of a subgraph at once, for readers of models with very many tensors and operators.
 */
#ifndef TQ_PYTHON_MODEL_BULK_H
#define TQ_PYTHON_MODEL_BULK_H

#include "python/model/item.h"

/* Subgraph._unlike(other) -> None where the names of tensors or operators, in their order, differ; else
   (operators, tensors): the indices of those that may differ from the other subgraph's. */
PyObject *tq_py_subgraph_unlike(PyObject *self, PyObject *other);

/* Subgraph._facts(tensor_type, constant_type) -> (constants, operators), of tensors and operators in their order.
   tensor_type, constant_type: named tuples of (type, shape) and (identity, parameters, nbytes); see
   tq/inspection/summary.py. constants: one of constant_type a tensor, None for a tensor that is none. operators: tuples
   of (name, inputs, outputs, constants read or None, multiply-adds or None); inputs and outputs are lists of
   tensor_type, or None where a tensor does not exist. */
PyObject *tq_py_subgraph_facts(PyObject *self, PyObject *args);

#endif
