/* SPDX-License-Identifier: Apache-2.0
 *
 * tq.Subgraph: a graph of operators over tensors.
 */
#include "python/model/subgraph.h"

#include "python/convert.h"
#include "python/model/bulk.h"
#include "python/model/item.h"
#include "python/model/records.h"
#include "python/model/sequence.h"

static PyObject *get_name(ItemObject *self, void *closure)
{
    (void)closure;
    tq_subgraph view = tq_py_subgraph_of(self);
    return tq_py_text_or_none(tq_get_string(&view.table, TQ_SubGraph_name));
}

static PyObject *make_tensor(PyObject *owner, size_t index)
{
    ItemObject *self = (ItemObject *)owner;
    return tq_py_item(tq_state_of(owner)->Tensor, self->model, self->subgraph, index);
}

static PyObject *tensor_name(PyObject *owner, size_t index)
{
    tq_subgraph view = tq_py_subgraph_of((ItemObject *)owner);
    tq_table tensor = tq_vector_table(&view.tensors, index);
    return tq_py_text(tq_get_string(&tensor, TQ_Tensor_name));
}

static PyObject *get_tensors(PyObject *self, void *closure)
{
    static const tq_py_items items = {"tensors", make_tensor, tensor_name};
    (void)closure;
    return tq_py_sequence(tq_state_of(self), self, &items, tq_py_subgraph_of((ItemObject *)self).tensors.count);
}

static PyObject *make_operator(PyObject *owner, size_t index)
{
    ItemObject *self = (ItemObject *)owner;
    return tq_py_item(tq_state_of(owner)->Operator, self->model, self->subgraph, index);
}

static PyObject *operator_name(PyObject *owner, size_t index)
{
    ItemObject *self = (ItemObject *)owner;
    tq_subgraph view = tq_py_subgraph_of(self);
    tq_operator op = tq_model_operator(&self->model->model, &view, index);
    return tq_py_operator_name(&op);
}

static PyObject *get_operators(PyObject *self, void *closure)
{
    static const tq_py_items items = {"operators", make_operator, operator_name};
    (void)closure;
    return tq_py_sequence(tq_state_of(self), self, &items, tq_py_subgraph_of((ItemObject *)self).operators.count);
}

static PyObject *get_inputs(ItemObject *self, void *closure)
{
    (void)closure;
    tq_subgraph view = tq_py_subgraph_of(self);
    return tq_py_tensor_list(self->model, self->subgraph, &view.inputs);
}

static PyObject *get_outputs(ItemObject *self, void *closure)
{
    (void)closure;
    tq_subgraph view = tq_py_subgraph_of(self);
    return tq_py_tensor_list(self->model, self->subgraph, &view.outputs);
}

static PyObject *get_input_indices(ItemObject *self, void *closure)
{
    (void)closure;
    tq_subgraph view = tq_py_subgraph_of(self);
    return tq_py_tuple_i32(&view.inputs);
}

static PyObject *get_output_indices(ItemObject *self, void *closure)
{
    (void)closure;
    tq_subgraph view = tq_py_subgraph_of(self);
    return tq_py_tuple_i32(&view.outputs);
}

static PyObject *get_debug_metadata_index(ItemObject *self, void *closure)
{
    (void)closure;
    tq_subgraph view = tq_py_subgraph_of(self);
    return PyLong_FromLongLong(tq_get_int(&view.table, TQ_SubGraph_debug_metadata_index));
}

static PyObject *repr(ItemObject *self)
{
    tq_subgraph view = tq_py_subgraph_of(self);
    PyObject *name = get_name(self, NULL);
    PyObject *text = !name ? NULL
                           : PyUnicode_FromFormat("<tq.Subgraph %u %R: %u tensors, %u operators>", self->index, name,
                                                  view.tensors.count, view.operators.count);
    Py_XDECREF(name);
    return text;
}

static PyGetSetDef properties[] = {
    {"model", tq_py_item_model, NULL, "The model that it belongs to.", NULL},
    {"index", tq_py_item_index, NULL, "Its index among the model's subgraphs.", NULL},
    {"name", (getter)get_name, NULL, "str, or None where the file gives none.", NULL},
    {"tensors", get_tensors, NULL, "Sequence of Tensor, by index or by name.", NULL},
    {"operators", get_operators, NULL, "Sequence of Operator in execution order, by index or by name.", NULL},
    {"inputs", (getter)get_inputs, NULL, "Tensors that feed the subgraph; None for an index that is out of range.",
     NULL},
    {"outputs", (getter)get_outputs, NULL,
     "Tensors that the subgraph computes; None for an index that is out of range.", NULL},
    {"input_indices", (getter)get_input_indices, NULL, "The inputs' tensor indices as stored.", NULL},
    {"output_indices", (getter)get_output_indices, NULL, "The outputs' tensor indices as stored.", NULL},
    {"debug_metadata_index", (getter)get_debug_metadata_index, NULL,
     "Index into the debug metadata's subgraphs; -1: none.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"_unlike", tq_py_subgraph_unlike, METH_O, NULL},
    {"_facts", tq_py_subgraph_facts, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A graph of operators over tensors."},
    TQ_ITEM_SLOTS,
    {Py_tp_repr, repr},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core.Subgraph",
    .basicsize = sizeof(ItemObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tq_py_add_subgraph(PyObject *module, tq_state *state)
{
    return tq_py_add_type(module, &spec, &state->Subgraph);
}
