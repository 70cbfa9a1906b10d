/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_INTERPRETER_INTERPRETER_H
#define TQ_PYTHON_INTERPRETER_INTERPRETER_H

#include "python/state.h"

int tq_py_add_interpreter(PyObject *module, tq_state *state);

#endif
