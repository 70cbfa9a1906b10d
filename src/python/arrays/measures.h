/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_ARRAYS_MEASURES_H
#define TQ_PYTHON_ARRAYS_MEASURES_H

#include "python/state.h"

int tq_py_add_measures(PyObject *module, tq_state *state);

#endif
