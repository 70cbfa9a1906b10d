/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_OPERATOR_H
#define TQ_PYTHON_MODEL_OPERATOR_H

#include "python/state.h"

int tq_py_add_operator(PyObject *module, tq_state *state);

#endif
