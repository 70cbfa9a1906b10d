/* SPDX-License-Identifier: Apache-2.0 */
#include "python/model/item.h"

#include "python/convert.h"

PyObject *tq_py_item(PyObject *type, ModelObject *model, size_t subgraph, size_t index)
{
    ItemObject *self = (ItemObject *)((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
    if (self) {
        self->model = (ModelObject *)Py_NewRef(model);
        self->subgraph = (uint32_t)subgraph;
        self->index = (uint32_t)index;
    }
    return (PyObject *)self;
}

void tq_py_item_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((ItemObject *)self)->model);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *tq_py_item_compare(PyObject *a, PyObject *b, int op)
{
    if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    ItemObject *x = (ItemObject *)a, *y = (ItemObject *)b;
    int equal = x->model == y->model && x->subgraph == y->subgraph && x->index == y->index;
    return PyBool_FromLong(equal == (op == Py_EQ));
}

Py_hash_t tq_py_item_hash(PyObject *self)
{
    ItemObject *item = (ItemObject *)self;
    uint64_t position = (uint64_t)item->subgraph << 32 | item->index;
    /* 2^64 / golden ratio spreads adjacent positions over all bits */
    Py_hash_t hash = (Py_hash_t)(((uint64_t)(uintptr_t)item->model ^ position) * UINT64_C(0x9E3779B97F4A7C15));
    return hash == -1 ? -2 : hash;
}

PyObject *tq_py_item_model(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(((ItemObject *)self)->model);
}

PyObject *tq_py_item_index(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(((ItemObject *)self)->index);
}

PyObject *tq_py_item_subgraph(PyObject *self, void *closure)
{
    (void)closure;
    ItemObject *item = (ItemObject *)self;
    return tq_py_item(tq_state_of(self)->Subgraph, item->model, item->subgraph, item->subgraph);
}

PyObject *tq_py_tensor_list(ModelObject *model, size_t subgraph, const tq_vector *indices)
{
    tq_state *state = tq_state_of((PyObject *)model);
    uint32_t tensors = tq_model_subgraph(&model->model, subgraph).tensors.count;
    PyObject *list = PyList_New(indices->count);
    for (uint32_t i = 0; list && i < indices->count; i++) {
        int32_t index = tq_vector_i32(indices, i);
        bool exists = index >= 0 && (uint32_t)index < tensors;
        PyObject *item = exists ? tq_py_item(state->Tensor, model, subgraph, (size_t)index) : Py_NewRef(Py_None);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

tq_table tq_py_tensor_table(ItemObject *tensor)
{
    tq_subgraph subgraph = tq_py_subgraph_of(tensor);
    return tq_vector_table(&subgraph.tensors, tensor->index);
}
