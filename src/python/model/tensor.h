/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_TENSOR_H
#define TQ_PYTHON_MODEL_TENSOR_H

#include "python/model/item.h"

/* {} for a dense tensor; else traversal_order, block_map (where stored) and dim_metadata as
   get_tensor_details gives them. */
PyObject *tq_py_sparsity(tq_state *state, const tq_table *tensor);

int tq_py_add_tensor(PyObject *module, tq_state *state);

#endif
