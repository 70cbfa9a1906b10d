/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_SUBGRAPH_H
#define TQ_PYTHON_MODEL_SUBGRAPH_H

#include "python/state.h"

int tq_py_add_subgraph(PyObject *module, tq_state *state);

#endif
