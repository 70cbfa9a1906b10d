/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_EDIT_TREE_H
#define TQ_PYTHON_EDIT_TREE_H

#include "python/state.h"

/* Adds _Tree and _Node. */
int tq_py_add_tree(PyObject *module, tq_state *state);

#endif
