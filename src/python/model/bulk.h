/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about all items of a subgraph in one call, for models with very many tensors and operators.
 */
#ifndef TQ_PYTHON_MODEL_BULK_H
#define TQ_PYTHON_MODEL_BULK_H

#include "python/model/item.h"

/* Subgraph._unlike(other) -> None where the names of tensors or operators, in order, differ; otherwise (operators,
   tensors): the indices of operators and tensors that may differ. */
PyObject *tq_py_subgraph_unlike(PyObject *self, PyObject *other);

/* Subgraph._facts(tensor_type, constant_type) -> (constants, operators), of tensors and operators in their order.
   tensor_type, constant_type: named tuples of (type, shape) and (identity, parameters, nbytes); see
   tq/inspection/summary.py. constants: a constant_type for each tensor, None for a tensor without data. operators:
   tuples of (name, inputs, outputs, constants read or None, multiply-adds or None); inputs and outputs are lists of
   tensor_type, None for an index out of range. */
PyObject *tq_py_subgraph_facts(PyObject *self, PyObject *args);

#endif
