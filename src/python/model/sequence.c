/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequence: a model's tensors, operators, buffers ... as a view that makes items when asked for, so
 * that looking at one tensor of ten thousand costs one tensor.
 */
#include "python/model/sequence.h"

#include "python/convert.h"

typedef struct {
    PyObject_HEAD
    PyObject *owner;
    const tq_py_items *items;
    Py_ssize_t count;
} SequenceObject;

PyObject *tq_py_sequence(tq_state *state, PyObject *owner, const tq_py_items *items, size_t count)
{
    PyTypeObject *type = (PyTypeObject *)state->Sequence;
    SequenceObject *self = (SequenceObject *)type->tp_alloc(type, 0);
    if (self) {
        self->owner = Py_NewRef(owner);
        self->items = items;
        self->count = (Py_ssize_t)count;
    }
    return (PyObject *)self;
}

static void dealloc(SequenceObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->owner);
    type->tp_free(self);
    Py_DECREF(type);
}

static Py_ssize_t length(SequenceObject *self)
{
    return self->count;
}

static PyObject *item(SequenceObject *self, Py_ssize_t index)
{
    if (index < 0 || index >= self->count)
        return PyErr_Format(PyExc_IndexError, "there are %zd %s, index %zd is out of range", self->count,
                            self->items->what, index);
    return self->items->item(self->owner, (size_t)index);
}

/* KeyError for a name that no item has, with those that are like it. */
static PyObject *refuse_name(SequenceObject *self, PyObject *name)
{
    PyObject *names = PyList_New(0);
    for (Py_ssize_t i = 0; names && self->items->name && i < self->count; i++) {
        PyObject *candidate = self->items->name(self->owner, (size_t)i);
        if (!candidate || (PyUnicode_Check(candidate) && PyList_Append(names, candidate) < 0))
            Py_CLEAR(names);
        Py_XDECREF(candidate);
    }
    PyObject *pair = names ? PyTuple_Pack(2, name, names) : NULL;
    PyObject *hint = pair ? tq_py_call("tq.nearest", "pair_hint", pair) : NULL;
    if (hint)
        PyErr_Format(PyExc_KeyError, "none of the %zd %s is named %R%U", self->count, self->items->what, name, hint);
    Py_XDECREF(hint);
    Py_XDECREF(pair);
    Py_XDECREF(names);
    return NULL;
}

static PyObject *by_name(SequenceObject *self, PyObject *name)
{
    for (Py_ssize_t i = 0; self->items->name && i < self->count; i++) {
        PyObject *candidate = self->items->name(self->owner, (size_t)i);
        if (!candidate)
            return NULL;
        int equal = PyUnicode_Check(candidate) && PyUnicode_Compare(candidate, name) == 0;
        Py_DECREF(candidate);
        if (equal)
            return item(self, i);
        if (PyErr_Occurred())
            return NULL;
    }
    return refuse_name(self, name);
}

static PyObject *slice_items(SequenceObject *self, PyObject *slice)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0)
        return NULL;
    Py_ssize_t count = PySlice_AdjustIndices(self->count, &start, &stop, step);
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *made = item(self, start + i * step);
        if (!made)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, made);
    }
    return list;
}

static PyObject *subscript(SequenceObject *self, PyObject *key)
{
    if (PyUnicode_Check(key))
        return by_name(self, key);
    if (PySlice_Check(key))
        return slice_items(self, key);
    Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred())
        return NULL;
    return item(self, index < 0 ? index + self->count : index);
}

static PyObject *repr(SequenceObject *self)
{
    return PyUnicode_FromFormat("<%zd %s>", self->count, self->items->what);
}

PyDoc_STRVAR(doc,
             "A read-only sequence of a model's tensors, operators or other items, made when asked for.\n\n"
             "s[i] and s[i:j] as in a list; s['name'] is the first item of that name (KeyError if there is none).");

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)doc}, {Py_tp_dealloc, dealloc}, {Py_tp_repr, repr},           {Py_sq_length, length},
    {Py_sq_item, item},       {Py_mp_length, length},   {Py_mp_subscript, subscript}, {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core.Sequence",
    .basicsize = sizeof(SequenceObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tq_py_add_sequence(PyObject *module, tq_state *state)
{
    return tq_py_add_type(module, &spec, &state->Sequence);
}
