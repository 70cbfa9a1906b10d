/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_EDIT_TREE_H
#define TQ_PYTHON_EDIT_TREE_H

#include "python/state.h"

/* Of flatbuffer/tree.h, which files that also run models cannot include: ops/op.h has nodes of another kind. */
typedef struct tq_tree tq_tree;
typedef struct tq_node tq_node;

int tq_py_add_tree(PyObject *module, tq_state *state);

/* The tree of a _Node that is about to be changed, and its node, which must be a table of that name.  NULL: an exception
   is set. */
tq_tree *tq_py_change_node(tq_state *state, PyObject *object, const char *table, tq_node **node);

/* The _Tree that a _Node belongs to, borrowed; NULL, without an exception, for anything else. */
PyObject *tq_py_tree_of(tq_state *state, PyObject *object);

/* Keeps an object as long as the tree of a _Node. */
int tq_py_keep_for_node(PyObject *object, PyObject *owner);

#endif
