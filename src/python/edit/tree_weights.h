/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_EDIT_TREE_WEIGHTS_H
#define TQ_PYTHON_EDIT_TREE_WEIGHTS_H

#include "python/state.h"

int tq_py_add_tree_weights(PyObject *module, tq_state *state);

#endif
