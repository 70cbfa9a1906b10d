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
    uint64_t end;       /* of the bytes that the tree borrows from the model's file */
    uint64_t changes;   /* how often something was set */
    PyObject *model;    /* whose bytes the tree borrows, or NULL */
    PyObject *borrowed; /* list of memoryviews: the other memory that it borrows from */
} TreeObject;

typedef struct {
    PyObject_HEAD
    TreeObject *tree;
    tq_tree_node *node;
} NodeObject;

PyObject *tq_py_node(TreeObject *tree, tq_tree_node *node);

/* 0, or -1 with the exception that a status stands for. */
int tq_py_tree_result(TreeObject *tree, tq_status status, const tq_error *error);

/* 0, or -1 while another thread writes the tree. */
int tq_py_tree_may_allocate(TreeObject *tree);

/* The same, and one change more. */
int tq_py_tree_begin_change(TreeObject *tree);

/* Bytes of an object with a buffer, which live as long as the tree. */
int tq_py_tree_take_bytes(TreeObject *tree, PyObject *object, tq_bytes *out);

/* The tree of a _Node that is about to be changed, and its node, which must be a table of that name.  NULL: an
   exception is set. */
tq_tree *tq_py_change_node(tq_state *state, PyObject *object, const char *table, tq_tree_node **node);

/* The _Tree that a _Node belongs to, borrowed; NULL, without an exception, for anything else. */
PyObject *tq_py_tree_of(tq_state *state, PyObject *object);

/* Keeps `owner` alive as long as the tree of a _Node.  0, or -1 with an exception. */
int tq_py_hold_for_node(PyObject *object, PyObject *owner);

/* "Tensor" of a node; "of unknown type" where the rows do not know its table. */
const char *tq_py_table_name(const tq_tree_node *node);

/* A field of the node's table by its name; NULL: TypeError, it is no str, or KeyError. */
const tq_field *tq_py_node_field(NodeObject *self, PyObject *name);

static inline tq_field_id tq_py_field_id(const tq_field *field)
{
    return (tq_field_id)(field - tq_fields);
}

static inline bool tq_py_is_integer(const tq_field *field)
{
    return field->scalar != TQ_BOOL && field->scalar != TQ_F32 && field->scalar != TQ_F64;
}

/* NumPy's type of the elements of each kind of vector. */
extern const int tq_py_vector_types[TQ_SCALAR_COUNT];

/* ---- methods of _Node that set, in node_set.c ---- */

/* store(field, value): a number, a short list of ints or an array of its own dtype; False, and nothing is done, for all
   else and for what does not fit. */
PyObject *tq_py_node_store(NodeObject *self, PyObject *const *args, Py_ssize_t count);

/* set(field, value): whatever a field may hold; None takes it away. */
PyObject *tq_py_node_set(NodeObject *self, PyObject *args);

/* ---- types ---- */

int tq_py_add_node(PyObject *module, tq_state *state);

#endif
