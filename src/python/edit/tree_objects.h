/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects of this folder, and the helpers that its files share.
 */
#ifndef TQ_PYTHON_EDIT_TREE_OBJECTS_H
#define TQ_PYTHON_EDIT_TREE_OBJECTS_H

#include "python/state.h" /* Python.h comes first */

#include "model/rewrite.h"

typedef struct {
    PyObject_HEAD
    tq_tree tree;
    bool is_open;
    bool is_busy;       /* being written, without the GIL: may be read, but not changed */
    uint64_t end;       /* the end of the bytes that the tree borrows from the model's file */
    uint64_t changes;   /* counts changes */
    PyObject *model;    /* whose bytes the tree borrows, or NULL */
    PyObject *borrowed; /* list of memoryviews: other memory that the tree borrows from */
} TreeObject;

typedef struct {
    PyObject_HEAD
    TreeObject *tree;
    tq_tree_node *node;
} NodeObject;

/* A new _Node for a node of the tree; NULL with an exception. */
PyObject *tq_py_node(TreeObject *tree, tq_tree_node *node);

/* 0 for TQ_OK, otherwise -1 with the exception of `error`. */
int tq_py_tree_result(TreeObject *tree, tq_status status, const tq_error *error);

/* 0; -1 with an exception while another thread writes the tree. */
int tq_py_tree_may_allocate(TreeObject *tree);

/* The same, and counts a change. */
int tq_py_tree_begin_change(TreeObject *tree);

/* The bytes of an object with a buffer, which then live as long as the tree.  0, or -1 with an exception. */
int tq_py_tree_take_bytes(TreeObject *tree, PyObject *object, tq_bytes *out);

/* Begins a change of a _Node, which must be a table of this name: its tree and node.  NULL with an exception. */
tq_tree *tq_py_change_node(tq_state *state, PyObject *object, const char *table, tq_tree_node **node);

/* The _Tree that a _Node belongs to, borrowed; NULL, without an exception, for anything else. */
PyObject *tq_py_tree_of(tq_state *state, PyObject *object);

/* Keeps `owner` alive as long as the tree of a _Node.  0, or -1 with an exception. */
int tq_py_hold_for_node(PyObject *object, PyObject *owner);

/* The name of a node's table, "Tensor"; "of unknown type" for an unknown one. */
const char *tq_py_table_name(const tq_tree_node *node);

/* The field of the node's table with this name; NULL with TypeError (no str) or KeyError. */
const tq_field *tq_py_node_field(NodeObject *self, PyObject *name);

static inline tq_field_id tq_py_field_id(const tq_field *field)
{
    return (tq_field_id)(field - tq_fields);
}

static inline bool tq_py_is_integer(const tq_field *field)
{
    return field->scalar != TQ_BOOL && field->scalar != TQ_F32 && field->scalar != TQ_F64;
}

/* NumPy's type numbers of a vector's elements, by tq_scalar. */
extern const int tq_py_vector_types[TQ_SCALAR_COUNT];

/* ---- methods of _Node that set, in node_set.c ---- */

/* store(field, value): stores an int, a short list of ints, or an array of the field's dtype.  False, and no change,
   for other values and values that do not fit. */
PyObject *tq_py_node_store(NodeObject *self, PyObject *const *args, Py_ssize_t count);

/* set(field, value): sets any kind of field; None removes it. */
PyObject *tq_py_node_set(NodeObject *self, PyObject *args);

/* ---- types ---- */

int tq_py_add_node(PyObject *module, tq_state *state);

#endif
