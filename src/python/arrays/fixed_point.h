/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_ARRAYS_FIXED_POINT_H
#define TQ_PYTHON_ARRAYS_FIXED_POINT_H

#include "python/state.h"

int tq_py_add_fixed_point(PyObject *module, tq_state *state);

#endif
