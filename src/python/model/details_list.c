/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of detail dicts that makes its dicts at its first use.
 *
 * A dict has up to ten arrays, and NumPy needs more time to make them than the core to find their values; most
 * callers read a few tensors, or none.  So a DetailsList starts as an empty list with a reference to its model, and
 * any access fills it first: every slot and method of list is below, fills, and calls list's own.  A filled one is
 * an ordinary list, and pickles and copies as list.
 */
#include "python/model/details_list.h"

typedef struct {
    PyListObject list;
    _Atomic(ModelObject *) model; /* NULL once filled */
    tq_py_mutex lock;             /* of filling */
    size_t subgraph;
    tq_py_details_of which;
} DetailsListObject;

PyObject *tq_py_details_list(ModelObject *model, size_t subgraph, tq_py_details_of which)
{
    PyTypeObject *type = (PyTypeObject *)tq_state_of((PyObject *)model)->DetailsList;
    DetailsListObject *self = (DetailsListObject *)type->tp_alloc(type, 0);
    if (self) {
        self->model = (ModelObject *)Py_NewRef(model);
        self->subgraph = subgraph;
        self->which = which;
    }
    return (PyObject *)self;
}

/* 0, or -1 with an exception; after a failure the next access tries again. */
static int fill(PyObject *object)
{
    DetailsListObject *self = (DetailsListObject *)object;
    if (!self->model)
        return 0;
    TQ_LOCK(&self->lock);
    PyObject *model = Py_XNewRef((PyObject *)self->model), *done = NULL;
    TQ_UNLOCK(&self->lock);
    PyObject *details = model ? tq_py_details((ModelObject *)model, self->subgraph, self->which) : NULL;
    int result = !model || details ? 0 : -1;
    /* Another thread may have filled it, or code that a garbage collection ran while the dicts were made. */
    TQ_LOCK(&self->lock);
    if (details && self->model && (result = PyList_SetSlice(object, 0, 0, details)) == 0)
        done = (PyObject *)atomic_exchange(&self->model, NULL);
    TQ_UNLOCK(&self->lock);
    Py_XDECREF(details);
    Py_XDECREF(done);
    Py_XDECREF(model);
    return result;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF((PyObject *)((DetailsListObject *)object)->model);
    PyList_Type.tp_dealloc(object);
    Py_DECREF(type);
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    return PyList_Type.tp_traverse(object, visit, arg);
}

/* ---- list's slots ---- */

#define SEQUENCE PyList_Type.tp_as_sequence
#define MAPPING PyList_Type.tp_as_mapping
#define SLOT(result, failed, name, handed_on, parameters, arguments) \
    static result slot_##name parameters                             \
    {                                                                \
        return fill(self) < 0 ? (failed) : handed_on arguments;      \
    }
SLOT(Py_ssize_t, -1, length, SEQUENCE->sq_length, (PyObject * self), (self))
SLOT(PyObject *, NULL, iter, PyList_Type.tp_iter, (PyObject * self), (self))
SLOT(PyObject *, NULL, repr, PyList_Type.tp_repr, (PyObject * self), (self))
SLOT(PyObject *, NULL, item, SEQUENCE->sq_item, (PyObject * self, Py_ssize_t i), (self, i))
SLOT(PyObject *, NULL, subscript, MAPPING->mp_subscript, (PyObject * self, PyObject *key), (self, key))
SLOT(int, -1, assign_item, SEQUENCE->sq_ass_item, (PyObject * self, Py_ssize_t i, PyObject *value), (self, i, value))
SLOT(int, -1, assign, MAPPING->mp_ass_subscript, (PyObject * self, PyObject *key, PyObject *value), (self, key, value))
SLOT(int, -1, contains, SEQUENCE->sq_contains, (PyObject * self, PyObject *value), (self, value))
SLOT(PyObject *, NULL, repeat, SEQUENCE->sq_repeat, (PyObject * self, Py_ssize_t n), (self, n))
SLOT(PyObject *, NULL, inplace_concat, SEQUENCE->sq_inplace_concat, (PyObject * self, PyObject *other), (self, other))
SLOT(PyObject *, NULL, inplace_repeat, SEQUENCE->sq_inplace_repeat, (PyObject * self, Py_ssize_t n), (self, n))

/* Python calls these two, as slots of numbers, for a DetailsList on either side. */
static int fill_either(PyObject *a, PyObject *b)
{
    destructor ours = dealloc; /* identifies a DetailsList among lists */
    return (Py_TYPE(a)->tp_dealloc == ours && fill(a) < 0) || (Py_TYPE(b)->tp_dealloc == ours && fill(b) < 0) ? -1 : 0;
}

static PyObject *slot_add(PyObject *a, PyObject *b)
{
    if (fill_either(a, b) < 0)
        return NULL;
    if (!PyList_Check(a) || !PyList_Check(b))
        Py_RETURN_NOTIMPLEMENTED;
    return SEQUENCE->sq_concat(a, b);
}

static PyObject *slot_compare(PyObject *a, PyObject *b, int op)
{
    return fill_either(a, b) < 0 ? NULL : PyList_Type.tp_richcompare(a, b, op);
}

/* ---- list's methods ---- */

static PyObject *call_method(PyObject *self, const char *name, PyObject *args, PyObject *kwargs)
{
    if (fill(self) < 0)
        return NULL;
    PyObject *function = PyObject_GetAttrString((PyObject *)&PyList_Type, name);
    PyObject *first = function ? PyTuple_Pack(1, self) : NULL;
    PyObject *all = first ? PySequence_Concat(first, args) : NULL;
    PyObject *result = all ? PyObject_Call(function, all, kwargs) : NULL;
    Py_XDECREF(all);
    Py_XDECREF(first);
    Py_XDECREF(function);
    return result;
}

/* clang-format off */
#define METHODS(METHOD)                                                                                              \
    METHOD(append) METHOD(clear) METHOD(copy) METHOD(count) METHOD(extend) METHOD(index) METHOD(insert) METHOD(pop)  \
    METHOD(remove) METHOD(reverse) METHOD(sort) METHOD(__reversed__) METHOD(__sizeof__)
/* clang-format on */

#define METHOD(name)                                                                 \
    static PyObject *method_##name(PyObject *self, PyObject *args, PyObject *kwargs) \
    {                                                                                \
        return call_method(self, #name, args, kwargs);                               \
    }
METHODS(METHOD)
#undef METHOD

/* Pickled and copied it becomes a plain list. */
static PyObject *reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *items = PySequence_List(self);
    return items ? Py_BuildValue("O(N)", (PyObject *)&PyList_Type, items) : NULL;
}

static PyMethodDef methods[] = {
#define METHOD(name) {#name, (PyCFunction)(void (*)(void))method_##name, METH_VARARGS | METH_KEYWORDS, NULL},
    METHODS(METHOD)
#undef METHOD
        {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The list that get_tensor_details returns: its dicts are made when it is first looked at."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_iter, slot_iter},
    {Py_tp_repr, slot_repr},
    {Py_tp_richcompare, slot_compare},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_methods, methods},
    {Py_nb_add, slot_add},
    {Py_nb_inplace_add, slot_inplace_concat},
    {Py_sq_length, slot_length},
    {Py_sq_item, slot_item},
    {Py_sq_ass_item, slot_assign_item},
    {Py_sq_contains, slot_contains},
    {Py_sq_repeat, slot_repeat},
    {Py_sq_inplace_concat, slot_inplace_concat},
    {Py_sq_inplace_repeat, slot_inplace_repeat},
    {Py_mp_length, slot_length},
    {Py_mp_subscript, slot_subscript},
    {Py_mp_ass_subscript, slot_assign},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core.DetailsList",
    .basicsize = sizeof(DetailsListObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tq_py_add_details_list(PyObject *module, tq_state *state)
{
    state->DetailsList = PyType_FromModuleAndSpec(module, &spec, (PyObject *)&PyList_Type);
    return state->DetailsList ? PyModule_AddObjectRef(module, "DetailsList", state->DetailsList) : -1;
}
