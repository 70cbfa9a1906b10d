/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_BUFFER_H
#define TQ_PYTHON_MODEL_BUFFER_H

#include "python/state.h"

int tq_py_add_buffer(PyObject *module, tq_state *state);

#endif
