/* SPDX-License-Identifier: Apache-2.0
 *
 * tq.Operator: one node of a subgraph.
 */
#include "python/model/operator.h"

#include "flatbuffer/flexbuffer.h"
#include "model/multiply_adds.h"
#include "python/convert.h"
#include "python/errors.h"
#include "python/model/flex.h"
#include "python/model/item.h"
#include "python/model/records.h"

static tq_operator view_of(ItemObject *self)
{
    tq_subgraph subgraph = tq_py_subgraph_of(self);
    return tq_model_operator(&self->model->model, &subgraph, self->index);
}

static PyObject *get_name(ItemObject *self, void *closure)
{
    (void)closure;
    tq_operator op = view_of(self);
    return tq_py_operator_name(&op);
}

static PyObject *get_code(ItemObject *self, void *closure)
{
    (void)closure;
    return tq_py_enum_member(tq_state_of((PyObject *)self), TQ_ENUM_BuiltinOperator, view_of(self).code);
}

static PyObject *get_version(ItemObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(view_of(self).version);
}

/* The tensor indices of a field; closure: its id. */
static tq_vector indices_of(ItemObject *self, void *closure)
{
    tq_operator op = view_of(self);
    return tq_get_vector(&op.table, (tq_field_id)(intptr_t)closure);
}

static PyObject *get_tensors(ItemObject *self, void *closure)
{
    tq_vector indices = indices_of(self, closure);
    return tq_py_tensor_list(self->model, self->subgraph, &indices);
}

static PyObject *get_indices(ItemObject *self, void *closure)
{
    tq_vector indices = indices_of(self, closure);
    return tq_py_tuple_i32(&indices);
}

static PyObject *get_mutating(ItemObject *self, void *closure)
{
    tq_vector flags = indices_of(self, closure);
    PyObject *list = PyList_New(flags.count);
    for (uint32_t i = 0; list && i < flags.count; i++)
        PyList_SET_ITEM(list, i, PyBool_FromLong(flags.file.data[flags.at + i]));
    return list;
}

/* The custom options, or data NULL; 0, or -1 with an exception. */
static int custom_bytes(ItemObject *self, tq_bytes *out)
{
    tq_operator op = view_of(self);
    tq_error error;
    if (tq_operator_custom_options(&op, out, &error) == TQ_OK)
        return 0;
    tq_py_raise(tq_state_of((PyObject *)self), &error, NULL);
    return -1;
}

static PyObject *get_custom_options(ItemObject *self, void *closure)
{
    (void)closure;
    tq_bytes bytes;
    return custom_bytes(self, &bytes) < 0 ? NULL : tq_py_bytes(bytes);
}

/* A custom operator's options if they are a flexbuffer, otherwise data NULL. */
static tq_bytes flex_options(const tq_operator *op)
{
    tq_bytes bytes = {NULL, 0};
    bool custom = op->code == TQ_BuiltinOperator_CUSTOM && tq_operator_custom_options(op, &bytes, NULL) == TQ_OK;
    return custom && bytes.data && tq_flex_is_options(bytes) ? bytes : (tq_bytes){NULL, 0};
}

static PyObject *get_options(ItemObject *self, void *closure)
{
    (void)closure;
    tq_operator op = view_of(self);
    tq_options options = tq_operator_options(&op);
    tq_bytes flex = flex_options(&op);
    if (flex.data)
        return tq_py_flex(tq_state_of((PyObject *)self), flex);
    if (options.id == TQ_TABLE_NONE)
        return PyDict_New();
    return tq_py_table(tq_state_of((PyObject *)self), options.id, &options.table);
}

static PyObject *get_options_type(ItemObject *self, void *closure)
{
    (void)closure;
    tq_operator op = view_of(self);
    tq_options options = tq_operator_options(&op);
    if (flex_options(&op).data)
        return PyUnicode_FromString("flexbuffer");
    if (options.id == TQ_TABLE_NONE)
        Py_RETURN_NONE;
    return PyUnicode_FromString(tq_tables[options.id].name);
}

static PyObject *get_debug_metadata_index(ItemObject *self, void *closure)
{
    (void)closure;
    tq_operator op = view_of(self);
    return PyLong_FromLongLong(tq_get_int(&op.table, TQ_Operator_debug_metadata_index));
}

static PyObject *get_multiply_adds(ItemObject *self, void *closure)
{
    (void)closure;
    tq_subgraph subgraph = tq_py_subgraph_of(self);
    tq_operator op = tq_model_operator(&self->model->model, &subgraph, self->index);
    uint64_t count;
    if (tq_multiply_adds_in_file(&subgraph, &op, &count) != TQ_COUNT_KNOWN)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(count);
}

static PyObject *repr(ItemObject *self)
{
    PyObject *name = get_name(self, NULL);
    PyObject *inputs = get_indices(self, (void *)TQ_Operator_inputs);
    PyObject *outputs = get_indices(self, (void *)TQ_Operator_outputs);
    PyObject *text = NULL;
    if (name && inputs && outputs)
        text = PyUnicode_FromFormat("<tq.Operator %u %U: inputs %R, outputs %R>", self->index, name, inputs, outputs);
    Py_XDECREF(name);
    Py_XDECREF(inputs);
    Py_XDECREF(outputs);
    return text;
}

static PyObject *repr_html(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tq_py_call("tq.inspection.notebook", "operator_html", self);
}

#define OF(field) ((void *)TQ_Operator_##field)
static PyGetSetDef properties[] = {
    {"model", tq_py_item_model, NULL, "The model that it belongs to.", NULL},
    {"subgraph", tq_py_item_subgraph, NULL, "The subgraph that it belongs to.", NULL},
    {"index", tq_py_item_index, NULL, "Its index in the subgraph's execution order.", NULL},
    {"name", (getter)get_name, NULL, "'CONV_2D', or a custom operator's own name.", NULL},
    {"code", (getter)get_code, NULL,
     "BuiltinOperator; an int for a value unknown to the schema, -1 without an operator code.", NULL},
    {"version", (getter)get_version, NULL, "Which revision of the operator's semantics.", NULL},
    {"inputs", (getter)get_tensors, NULL,
     "Tensors; None for an optional input left out (-1) and for an index out of range.", OF(inputs)},
    {"outputs", (getter)get_tensors, NULL, "Tensors; None for an index out of range.", OF(outputs)},
    {"intermediates", (getter)get_tensors, NULL, "Tensors inside the operator, whose quantization it needs.",
     OF(intermediates)},
    {"input_indices", (getter)get_indices, NULL, "The inputs' tensor indices as stored.", OF(inputs)},
    {"output_indices", (getter)get_indices, NULL, "The outputs' tensor indices as stored.", OF(outputs)},
    {"intermediate_indices", (getter)get_indices, NULL, "The intermediates' tensor indices as stored.",
     OF(intermediates)},
    {"mutating_variable_inputs", (getter)get_mutating, NULL,
     "For each input, whether the operator changes it; empty: none.", OF(mutating_variable_inputs)},
    {"options", (getter)get_options, NULL,
     "dict of the builtin options by name, enums as members; of a custom operator, its flexbuffer decoded; {} without "
     "options.",
     NULL},
    {"options_type", (getter)get_options_type, NULL,
     "The options table's name such as 'Conv2DOptions', 'flexbuffer', or None.", NULL},
    {"custom_options", (getter)get_custom_options, NULL, "bytes, or None.  ModelError: they lie outside the file.",
     NULL},
    {"debug_metadata_index", (getter)get_debug_metadata_index, NULL,
     "Index into the debug metadata's operators; -1: none.", NULL},
    {"multiply_adds", (getter)get_multiply_adds, NULL,
     "How many multiply-adds one run takes, from the shapes in the file: what convolutions, matrix products and "
     "recurrent\n"
     "cells do; 0 for other builtin operators.  An operator that calls a subgraph counts 0: that subgraph's operators\n"
     "count.  None: shapes are missing or do not fit, the count is 2^64 or more, or it is a custom operator that tq "
     "has no\n"
     "count for.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"_repr_html_", repr_html, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "One operator of a subgraph."},
    TQ_ITEM_SLOTS,
    {Py_tp_repr, repr},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core.Operator",
    .basicsize = sizeof(ItemObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

/* counted_operators() -> names */
static PyObject *counted_operators(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    const char *name;
    for (size_t i = 0; list && (name = tq_multiply_adds_name(i)); i++) {
        PyObject *text = PyUnicode_FromString(name);
        if (!text || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyMethodDef functions[] = {
    {"counted_operators", counted_operators, METH_NOARGS,
     "counted_operators()\n--\n\nThe names of the operators that take multiply-adds."},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_operator(PyObject *module, tq_state *state)
{
    return tq_py_add_type(module, &spec, &state->Operator) < 0 ? -1 : PyModule_AddFunctions(module, functions);
}
