/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_DETAILS_LIST_H
#define TQ_PYTHON_MODEL_DETAILS_LIST_H

#include "python/model/details.h"

/* The list that get_tensor_details, get_input_details and get_output_details return. */
PyObject *tq_py_details_list(ModelObject *model, size_t subgraph, tq_py_details_of which);

int tq_py_add_details_list(PyObject *module, tq_state *state);

#endif
