/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequence: a view of a model's tensors, operators, buffers ... that makes an item when it is read, so that
 * reading one tensor of ten thousand costs one tensor.
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
                            self->items->noun, index);
    return self->items->item(self->owner, (size_t)index);
}

/* The items' names, in their order; also what IPython completes after s[' . */
static PyObject *names_of(SequenceObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *names = PyList_New(0);
    for (Py_ssize_t i = 0; names && self->items->name && i < self->count; i++) {
        PyObject *candidate = self->items->name(self->owner, (size_t)i);
        if (!candidate || tq_py_hears(i) < 0 || (PyUnicode_Check(candidate) && PyList_Append(names, candidate) < 0))
            Py_CLEAR(names);
        Py_XDECREF(candidate);
    }
    return names;
}

/* KeyError for an unknown name, with similar names. */
static PyObject *refuse_name(SequenceObject *self, PyObject *name)
{
    PyObject *names = names_of(self, NULL);
    PyObject *pair = names ? PyTuple_Pack(2, name, names) : NULL;
    PyObject *hint = pair ? tq_py_call("tq.nearest", "pair_hint", pair) : NULL;
    if (hint)
        PyErr_Format(PyExc_KeyError, "none of the %zd %s is named %R%U", self->count, self->items->noun, name, hint);
    Py_XDECREF(hint);
    Py_XDECREF(pair);
    Py_XDECREF(names);
    return NULL;
}

/* The index of the first item of this name; the count where none has it; -1 with an exception. */
static Py_ssize_t find(SequenceObject *self, PyObject *name)
{
    for (Py_ssize_t i = 0; self->items->name && i < self->count; i++) {
        PyObject *candidate = self->items->name(self->owner, (size_t)i);
        if (!candidate)
            return -1;
        int equal = PyUnicode_Check(candidate) && PyUnicode_Compare(candidate, name) == 0;
        Py_DECREF(candidate);
        if (equal)
            return i;
        if (PyErr_Occurred() || tq_py_hears(i) < 0)
            return -1;
    }
    return self->count;
}

static PyObject *by_name(SequenceObject *self, PyObject *name)
{
    Py_ssize_t index = find(self, name);
    if (index < 0)
        return NULL;
    return index < self->count ? item(self, index) : refuse_name(self, name);
}

/* Whether an item has this name, or equals this value. */
static int contains(SequenceObject *self, PyObject *value)
{
    if (PyUnicode_Check(value)) {
        Py_ssize_t index = find(self, value);
        return index < 0 ? -1 : index < self->count;
    }
    int found = 0;
    for (Py_ssize_t i = 0; !found && i < self->count; i++) {
        PyObject *candidate = item(self, i);
        found = candidate && tq_py_hears(i) == 0 ? PyObject_RichCompareBool(candidate, value, Py_EQ) : -1;
        Py_XDECREF(candidate);
    }
    return found;
}

static PyObject *get(SequenceObject *self, PyObject *args)
{
    PyObject *name, *otherwise = Py_None;
    if (!PyArg_ParseTuple(args, "U|O:get", &name, &otherwise))
        return NULL;
    Py_ssize_t index = find(self, name);
    if (index < 0)
        return NULL;
    return index < self->count ? item(self, index) : Py_NewRef(otherwise);
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
    return PyUnicode_FromFormat("<%zd %s>", self->count, self->items->noun);
}

PyDoc_STRVAR(doc,
             "A read-only sequence of a model's tensors, operators or other items, made when asked for.\n\n"
             "s[i] and s[i:j] as in a list; s['name'] is the first item of that name (KeyError if there is none).\n"
             "'name' in s tells whether an item has the name.");

PyDoc_STRVAR(get_doc, "get($self, name, default=None, /)\n--\n\n"
                      "The first item of this name; `default` where none has it.");

static PyMethodDef methods[] = {
    {"get", (PyCFunction)get, METH_VARARGS, get_doc},
    {"_ipython_key_completions_", (PyCFunction)names_of, METH_NOARGS,
     "_ipython_key_completions_($self, /)\n--\n\nThe items' names, which IPython completes."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)doc}, {Py_tp_dealloc, dealloc},     {Py_tp_repr, repr}, {Py_tp_iter, PySeqIter_New},
    {Py_tp_methods, methods}, {Py_sq_length, length},       {Py_sq_item, item}, {Py_sq_contains, contains},
    {Py_mp_length, length},   {Py_mp_subscript, subscript}, {0, NULL},
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
