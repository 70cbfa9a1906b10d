/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_ITEM_H
#define TQ_PYTHON_MODEL_ITEM_H

#include "model/model.h"
#include "python/model/model_object.h"
#include "python/state.h"

/* Subgraph, Tensor, Operator and Buffer: a place in a model.  Two objects of one place are equal. */
typedef struct {
    PyObject_HEAD
    ModelObject *model;
    uint32_t subgraph; /* 0 for buffers */
    uint32_t index;
} ItemObject;

PyObject *tq_py_item(PyObject *type, ModelObject *model, size_t subgraph, size_t index);

static inline tq_subgraph tq_py_subgraph_of(ItemObject *item)
{
    return tq_model_subgraph(&item->model->model, item->subgraph);
}

/* The row of a Tensor in the file. */
tq_table tq_py_tensor_table(ItemObject *tensor);

/* The slots that every item's type has. */
#define TQ_ITEM_SLOTS                                                             \
    {Py_tp_dealloc, tq_py_item_dealloc}, {Py_tp_richcompare, tq_py_item_compare}, \
    {                                                                             \
        Py_tp_hash, tq_py_item_hash                                               \
    }
void tq_py_item_dealloc(PyObject *self);
PyObject *tq_py_item_compare(PyObject *a, PyObject *b, int op);
Py_hash_t tq_py_item_hash(PyObject *self);

/* Getters for `model` and `index`; the closure is not used. */
PyObject *tq_py_item_model(PyObject *self, void *closure);
PyObject *tq_py_item_index(PyObject *self, void *closure);
PyObject *tq_py_item_subgraph(PyObject *self, void *closure);

/* [Tensor or None] for tensor indices of a subgraph: None where no such tensor exists. */
PyObject *tq_py_tensor_list(ModelObject *model, size_t subgraph, const tq_vector *indices);

#endif
