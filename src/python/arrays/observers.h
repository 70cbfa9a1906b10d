/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_ARRAYS_OBSERVERS_H
#define TQ_PYTHON_ARRAYS_OBSERVERS_H

#include "python/state.h"

int tq_py_add_observers(PyObject *module, tq_state *state);

#endif
