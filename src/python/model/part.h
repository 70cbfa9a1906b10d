/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_PART_H
#define TQ_PYTHON_MODEL_PART_H

#include "model/model.h"
#include "python/model/model.h"
#include "python/state.h"

/* Subgraph, Tensor, Operator and Buffer: a place in a model.  Two objects of one place are equal. */
typedef struct {
    PyObject_HEAD
    ModelObject *model;
    uint32_t subgraph; /* 0 for buffers */
    uint32_t index;
} PartObject;

PyObject *tq_py_part(PyObject *type, ModelObject *model, size_t subgraph, size_t index);

static inline tq_subgraph tq_py_subgraph_of(PartObject *part)
{
    return tq_model_subgraph(&part->model->model, part->subgraph);
}

/* The slots that every part's type has. */
#define TQ_PART_SLOTS                          \
    {Py_tp_dealloc, tq_py_part_dealloc},       \
    {Py_tp_richcompare, tq_py_part_compare},   \
    {Py_tp_hash, tq_py_part_hash}
void tq_py_part_dealloc(PyObject *self);
PyObject *tq_py_part_compare(PyObject *a, PyObject *b, int op);
Py_hash_t tq_py_part_hash(PyObject *self);

/* Getters for `model` and `index`; the closure is not used. */
PyObject *tq_py_part_model(PyObject *self, void *closure);
PyObject *tq_py_part_index(PyObject *self, void *closure);
PyObject *tq_py_part_subgraph(PyObject *self, void *closure);

/* [Tensor or None] for tensor indices of a subgraph: None where no such tensor exists. */
PyObject *tq_py_tensor_list(ModelObject *model, size_t subgraph, const tq_vector *indices);

#endif
