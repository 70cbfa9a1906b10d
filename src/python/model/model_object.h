/* SPDX-License-Identifier: Apache-2.0
 *
 * The object behind tq.Model, as its items and interpreters see it.
 */
#ifndef TQ_PYTHON_MODEL_MODEL_OBJECT_H
#define TQ_PYTHON_MODEL_MODEL_OBJECT_H

#include "model/graph.h"
#include "model/model.h"
#include "python/state.h"

typedef struct {
    PyObject_HEAD
    tq_model model;
    PyObject *file;  /* File, or NULL where the bytes are a caller's */
    Py_buffer view;  /* .obj is NULL where they are a file's */
    PyObject *path;  /* str, or None */
    tq_graph *graphs;         /* by subgraph, or NULL before the first was asked for */
    tq_py_lazy external_files; /* {group index: File} */
} ModelObject;

/* The graph of a subgraph, built the first time; NULL with an exception. */
const tq_graph *tq_py_model_graph(ModelObject *model, size_t subgraph);

/* The File of an external buffer group, a new reference.  NULL with ModelError where the group's name is
   missing or leads outside the model's folder, OSError where the file cannot be opened. */
PyObject *tq_py_model_external_file(ModelObject *model, int64_t group);

#endif
