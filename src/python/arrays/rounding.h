/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_ARRAYS_ROUNDING_H
#define TQ_PYTHON_ARRAYS_ROUNDING_H

#include "python/state.h"

int tq_py_add_rounding(PyObject *module, tq_state *state);

#endif
