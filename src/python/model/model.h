/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_MODEL_H
#define TQ_PYTHON_MODEL_MODEL_H

#include "python/state.h"

int tq_py_add_model(PyObject *module, tq_state *state);

#endif
