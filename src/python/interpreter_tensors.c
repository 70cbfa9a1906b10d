/* SPDX-License-Identifier: Apache-2.0
 *
 * Between an interpreter's tensors and NumPy arrays.
 */
#include "ops/check.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "python/interpreter.h"

/* (tensor_index, [value,] subgraph_index=0) */
static tq_tensor *find(InterpreterObject *self, PyObject *const *args, Py_ssize_t count, Py_ssize_t values,
                       tq_graph_run **graph)
{
    Py_ssize_t index, subgraph = 0;
    if (count < 1 + values || count > 2 + values) {
        PyErr_Format(PyExc_TypeError, "takes %zd or %zd arguments, not %zd", 1 + values, 2 + values, count);
        return NULL;
    }
    index = PyNumber_AsSsize_t(args[0], PyExc_IndexError);
    if (index == -1 && PyErr_Occurred())
        return NULL;
    if (count == 2 + values) {
        subgraph = PyNumber_AsSsize_t(args[1 + values], PyExc_IndexError);
        if (subgraph == -1 && PyErr_Occurred())
            return NULL;
    }
    *graph = tq_py_graph(self, subgraph);
    if (!*graph)
        return NULL;
    if (index < 0 || (size_t)index >= (*graph)->tensor_count) {
        PyErr_Format(PyExc_ValueError, "Invalid tensor index %zd exceeds max tensor index %zd", index,
                     (Py_ssize_t)(*graph)->tensor_count - 1);
        return NULL;
    }
    return &(*graph)->tensors[index];
}

static PyObject *name_of(const tq_tensor *tensor)
{
    tq_bytes name = tq_get_string(&tensor->table, TQ_Tensor_name);
    return PyUnicode_DecodeUTF8(name.data ? (const char *)name.data : "", (Py_ssize_t)name.size, "replace");
}

/* The NumPy dtype of a tensor's values, a new reference: LiteRT's class, and bfloat16. */
static PyArray_Descr *dtype_of(InterpreterObject *self, const tq_tensor *tensor)
{
    PyObject *class = tq_py_details_class(tq_state_of((PyObject *)self), tensor->type);
    PyArray_Descr *dtype = NULL;
    if (class && class != Py_None)
        PyArray_DescrConverter(class, &dtype);
    else if (class)
        PyErr_SetString(PyExc_ValueError, "Unknown tensor type.");
    return dtype;
}

/* ---- setting ---- */

static int check_value(const tq_tensor *tensor, PyArrayObject *value, PyArray_Descr *dtype)
{
    const tq_shape *shape = &tensor->shape;
    int index = (int)tensor->index;
    if (PyArray_DESCR(value)->type_num != dtype->type_num) {
        PyObject *name = name_of(tensor);
        if (name)
            PyErr_Format(PyExc_ValueError,
                         "Cannot set tensor: Got value of type %S but expected type %s for input %d, name: %U ",
                         (PyObject *)PyArray_DESCR(value), tq_type_name(tensor->type), index, name);
        Py_XDECREF(name);
        return -1;
    }
    if (PyArray_NDIM(value) != shape->rank) {
        PyErr_Format(PyExc_ValueError, "Cannot set tensor: Dimension mismatch. Got %d but expected %d for input %d.",
                     PyArray_NDIM(value), shape->rank, index);
        return -1;
    }
    for (int i = 0; i < shape->rank; i++)
        if (PyArray_DIM(value, i) != shape->dims[i]) {
            PyErr_Format(PyExc_ValueError,
                         "Cannot set tensor: Dimension mismatch. Got %zd but expected %d for dimension %d of input %d.",
                         (Py_ssize_t)PyArray_DIM(value, i), shape->dims[i], i, index);
            return -1;
        }
    return 0;
}

static int set_value(InterpreterObject *self, tq_tensor *tensor, PyObject *object)
{
    if (tq_is_constant(tensor)) {
        PyErr_Format(PyExc_ValueError, "Cannot set tensor: tensor %u is a constant of the model", tensor->index);
        return -1;
    }
    PyArray_Descr *dtype = dtype_of(self, tensor);
    if (!dtype)
        return -1;
    int result = -1;
    PyArrayObject *value = (PyArrayObject *)PyArray_FromAny(object, NULL, 0, 0, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED, NULL);
    if (value && check_value(tensor, value, dtype) == 0) {
        if (!tensor->data)
            PyErr_SetString(PyExc_ValueError,
                            "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first");
        else if ((size_t)PyArray_NBYTES(value) != tensor->bytes)
            PyErr_Format(PyExc_ValueError, "numpy array had %zd bytes but expected %zu bytes.",
                         (Py_ssize_t)PyArray_NBYTES(value), tensor->bytes);
        else {
            memcpy(tensor->data, PyArray_DATA(value), tensor->bytes);
            result = 0;
        }
    }
    Py_XDECREF(value);
    Py_DECREF(dtype);
    return result;
}

PyObject *tq_py_set_tensor(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    InterpreterObject *self = (InterpreterObject *)op;
    tq_graph_run *graph;
    if (tq_py_enter(self) < 0)
        return NULL;
    tq_tensor *tensor = find(self, args, count, 1, &graph);
    int result = tensor ? set_value(self, tensor, args[1]) : -1;
    tq_py_leave(self);
    if (result < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- getting ---- */

static int check_readable(const tq_graph_run *graph, const tq_tensor *tensor)
{
    if (!tensor->data) {
        PyErr_SetString(PyExc_ValueError, "Tensor data is null. Run allocate_tensors() first");
        return -1;
    }
    if (graph->has_run && !tq_graph_keeps(graph, tensor->index)) {
        PyErr_Format(PyExc_ValueError,
                     "Tensor data is null. Tensor %u was not kept: an operator after its last reader took its memory. "
                     "experimental_preserve_all_tensors=True keeps every tensor",
                     tensor->index);
        return -1;
    }
    return 0;
}

static PyObject *array_of(InterpreterObject *self, const tq_tensor *tensor, void *data)
{
    npy_intp dims[TQ_DIMS + 1] = {0};
    PyArray_Descr *dtype = dtype_of(self, tensor);
    if (!dtype)
        return NULL;
    for (int i = 0; i < tensor->shape.rank; i++)
        dims[i] = tensor->shape.dims[i];
    return PyArray_NewFromDescr(&PyArray_Type, dtype, tensor->shape.rank, dims, NULL, data, data ? NPY_ARRAY_CARRAY : 0, NULL);
}

static PyObject *copy_of(InterpreterObject *self, const tq_tensor *tensor)
{
    PyObject *array = array_of(self, tensor, NULL);
    if (array && (size_t)PyArray_NBYTES((PyArrayObject *)array) == tensor->bytes)
        memcpy(PyArray_DATA((PyArrayObject *)array), tensor->data, tensor->bytes);
    else if (array) {
        PyErr_SetString(PyExc_ValueError, "Invalid tensor size.");
        Py_CLEAR(array);
    }
    return array;
}

PyObject *tq_py_get_tensor(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    InterpreterObject *self = (InterpreterObject *)op;
    tq_graph_run *graph;
    if (tq_py_enter(self) < 0)
        return NULL;
    tq_tensor *tensor = find(self, args, count, 0, &graph);
    PyObject *array = tensor && check_readable(graph, tensor) == 0 ? copy_of(self, tensor) : NULL;
    tq_py_leave(self);
    return array;
}

static void release_block(PyObject *capsule)
{
    tq_block_release(PyCapsule_GetPointer(capsule, "tq.block"));
}

/* What keeps a tensor's memory while a view of it lives: its block, or the model. */
static PyObject *keeper(InterpreterObject *self, const tq_graph_run *graph, const tq_tensor *tensor)
{
    const tq_slot *slot = &graph->slots[tensor->index];
    tq_block *block = slot->in_arena ? graph->arena : slot->block;
    if (!block)
        return Py_NewRef(self->model);
    PyObject *capsule = PyCapsule_New(tq_block_retain(block), "tq.block", release_block);
    if (!capsule)
        tq_block_release(block);
    return capsule;
}

PyObject *tq_py_view_tensor(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    InterpreterObject *self = (InterpreterObject *)op;
    tq_graph_run *graph;
    if (tq_py_enter(self) < 0)
        return NULL;
    tq_tensor *tensor = find(self, args, count, 0, &graph);
    PyObject *array = NULL, *base = NULL;
    if (tensor && check_readable(graph, tensor) == 0 && (array = array_of(self, tensor, tensor->data))) {
        base = keeper(self, graph, tensor);
        if (!base || PyArray_SetBaseObject((PyArrayObject *)array, base) < 0)
            Py_CLEAR(array);
        else if (tq_is_constant(tensor))
            PyArray_CLEARFLAGS((PyArrayObject *)array, NPY_ARRAY_WRITEABLE);
    }
    tq_py_leave(self);
    return array;
}
