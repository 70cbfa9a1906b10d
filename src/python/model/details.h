/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_DETAILS_H
#define TQ_PYTHON_MODEL_DETAILS_H

#include "python/model/model_object.h"

typedef enum { TQ_PY_ALL_TENSORS, TQ_PY_INPUTS, TQ_PY_OUTPUTS } tq_py_details_of;

/* A list of tensor detail dicts of a subgraph; indices that are no tensor are left out. */
PyObject *tq_py_details(ModelObject *model, size_t subgraph, tq_py_details_of which);

int tq_py_add_details(PyObject *module, tq_state *state);

#endif
