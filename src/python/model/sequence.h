/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_SEQUENCE_H
#define TQ_PYTHON_MODEL_SEQUENCE_H

#include "python/state.h"

/* The kind of items of a Sequence: a function that makes item `index` of `owner`, and one that reads its name without
   making it (NULL: items have no names). */
typedef struct tq_py_items {
    const char *noun; /* "tensors", for repr and errors */
    PyObject *(*item)(PyObject *owner, size_t index);
    PyObject *(*name)(PyObject *owner, size_t index);
} tq_py_items;

/* A read-only view of `count` items of `owner`, which the view keeps alive.  items: static. */
PyObject *tq_py_sequence(tq_state *state, PyObject *owner, const tq_py_items *items, size_t count);

int tq_py_add_sequence(PyObject *module, tq_state *state);

#endif
