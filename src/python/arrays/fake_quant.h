/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_ARRAYS_FAKE_QUANT_H
#define TQ_PYTHON_ARRAYS_FAKE_QUANT_H

#include "python/state.h"

int tq_py_add_fake_quant(PyObject *module, tq_state *state);

#endif
