/* SPDX-License-Identifier: Apache-2.0
 *
 * From an interpreter's tensors to NumPy arrays and back.  Messages begin as LiteRT's
 * (tflite/python/interpreter_wrapper), since users match on them, and go on with more.
 */
#include <ctype.h>

#include "model/tensor.h"
#include "ops/check.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "python/interpreter/interpreter_methods.h"
#include "python/model/item.h"

/* ---- arguments ---- */

static int number(PyObject *object, Py_ssize_t *out)
{
    *out = PyNumber_AsSsize_t(object, PyExc_IndexError);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

/* The arguments tensor_index, value and subgraph_index, by position or keyword; -1 with TypeError. */
enum { TENSOR_INDEX, VALUE, SUBGRAPH_INDEX, ARGUMENTS };
static const char *const argument_names[] = {"tensor_index", "value", "subgraph_index"};

static int take_arguments(PyObject *const *args, Py_ssize_t count, PyObject *names, bool has_value,
                          PyObject *out[ARGUMENTS])
{
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0, most = has_value ? 3 : 2;
    out[TENSOR_INDEX] = out[VALUE] = out[SUBGRAPH_INDEX] = NULL;
    if (count + named > most) {
        PyErr_Format(PyExc_TypeError, "takes at most %zd arguments, not %zd", most, count + named);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        out[i == 1 && !has_value ? SUBGRAPH_INDEX : i] = args[i];
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        int k = 0;
        while (k < ARGUMENTS &&
               (PyUnicode_CompareWithASCIIString(name, argument_names[k]) || (k == VALUE && !has_value)))
            k++;
        if (k == ARGUMENTS || out[k]) {
            PyErr_Format(PyExc_TypeError, k == ARGUMENTS ? "has no argument '%U'" : "got '%U' twice", name);
            return -1;
        }
        out[k] = args[count + i];
    }
    if (out[TENSOR_INDEX] && (out[VALUE] || !has_value))
        return 0;
    PyErr_Format(PyExc_TypeError, "misses '%s'", out[TENSOR_INDEX] ? "value" : "tensor_index");
    return -1;
}

static tq_tensor *find(InterpreterObject *self, PyObject *const given[ARGUMENTS], tq_graph_run **graph)
{
    Py_ssize_t index, subgraph = 0;
    if (number(given[TENSOR_INDEX], &index) < 0 ||
        (given[SUBGRAPH_INDEX] && number(given[SUBGRAPH_INDEX], &subgraph) < 0))
        return NULL;
    *graph = tq_py_graph(self, subgraph);
    return *graph ? tq_py_tensor_at(*graph, index) : NULL;
}

static PyObject *name_of(const tq_tensor *tensor)
{
    tq_bytes name = tq_get_string(&tensor->table, TQ_Tensor_name);
    return PyUnicode_DecodeUTF8(name.data ? (const char *)name.data : "", (Py_ssize_t)name.size, "replace");
}

/* The NumPy dtype of a tensor's values, a new reference: LiteRT's class, and bfloat16. */
static PyArray_Descr *dtype_of(InterpreterObject *self, int32_t type)
{
    const tq_type_row *row = tq_type(type);
    if (row && strcmp(row->dtype, row->details_dtype) == 0) {
        PyArray_Descr *held = tq_py_dtype(tq_state_of((PyObject *)self), type);
        Py_XINCREF(held);
        return held;
    }
    PyObject *class = tq_py_details_class(tq_state_of((PyObject *)self), type);
    PyArray_Descr *dtype = NULL;
    if (class && class != Py_None)
        PyArray_DescrConverter(class, &dtype);
    else if (class)
        PyErr_SetString(PyExc_ValueError, "Unknown tensor type.");
    return dtype;
}

/* The name of the first tensor type with this dtype. */
static const char *type_of_dtype(InterpreterObject *self, PyArray_Descr *dtype)
{
    if (PyTypeNum_ISSTRING(dtype->type_num) || dtype->type_num == NPY_OBJECT)
        return "STRING";
    for (int32_t type = 0; type <= TQ_TensorType_UINT16; type++) {
        PyArray_Descr *other = type == TQ_TensorType_STRING ? NULL : dtype_of(self, type);
        bool same = other && other->type_num == dtype->type_num;
        Py_XDECREF(other);
        if (same)
            return tq_type_name(type);
    }
    PyErr_Clear();
    return "NOTYPE";
}

/* Whether the tensor was resized and not allocated since: its memory does not fit its shape. */
static bool is_stale(const tq_tensor *tensor)
{
    const size_t each = tensor->packed || tensor->type == TQ_TensorType_STRING ? 0 : tq_element_bytes(tensor->type);
    return each && tensor->data && tq_tensor_count(tensor) * each != tensor->bytes;
}

/* ---- setting ---- */

/* A sentence on the call that makes a tensor's values of real numbers; empty where the value holds none, or the tensor
   has no scale.  A new reference. */
static PyObject *conversion(const tq_tensor *tensor, PyArrayObject *value)
{
    const tq_affine *q = &tensor->quantization;
    const tq_type_row *row = tq_type(tensor->type);
    char dtype[16] = "";
    if (q->count == 0 || !row || row->kind != TQ_KIND_INTEGER || !PyArray_ISFLOAT(value))
        return PyUnicode_FromString("");
    for (size_t i = 0; i + 1 < sizeof dtype && row->name[i]; i++)
        dtype[i] = (char)tolower((unsigned char)row->name[i]);
    if (q->count > 1)
        return PyUnicode_FromFormat(". It has %u scales along dimension %d: tq.quantize(value, scale, zero_point, "
                                    "dtype='%s', axis=%d) converts real numbers",
                                    (unsigned)q->count, (int)q->axis, dtype, (int)q->axis);
    PyObject *scale = PyFloat_FromDouble((double)q->scale[0]), *text = NULL;
    if (scale)
        text = PyUnicode_FromFormat(". It has scale %R and zero point %d: tq.quantize(value, %R, %d, dtype='%s') "
                                    "converts real numbers",
                                    scale, (int)q->zero_point[0], scale, (int)q->zero_point[0], dtype);
    Py_XDECREF(scale);
    return text;
}

static int refuse_type(InterpreterObject *self, const tq_tensor *tensor, PyArrayObject *value)
{
    PyObject *name = name_of(tensor), *more = name ? conversion(tensor, value) : NULL;
    if (more)
        PyErr_Format(PyExc_ValueError,
                     "Cannot set tensor: Got value of type %s but expected type %s for input %u, name: %U %U",
                     type_of_dtype(self, PyArray_DESCR(value)), tq_type_name(tensor->type), tensor->index, name, more);
    Py_XDECREF(name);
    Py_XDECREF(more);
    return -1;
}

static int refuse_shape(const tq_tensor *tensor, PyArrayObject *value, int dimension)
{
    char needs[80];
    unsigned index = tensor->index;
    tq_shape_format(&tensor->shape, needs, sizeof needs);
    PyObject *name = name_of(tensor), *got = PyObject_GetAttrString((PyObject *)value, "shape");
    if (name && got && dimension < 0)
        PyErr_Format(PyExc_ValueError,
                     "Cannot set tensor: Dimension mismatch. Got %d but expected %d for input %u. '%U' has shape %s; "
                     "the value has %S. resize_tensor_input changes an input's shape",
                     PyArray_NDIM(value), tensor->shape.rank, index, name, needs, got);
    else if (name && got)
        PyErr_Format(PyExc_ValueError,
                     "Cannot set tensor: Dimension mismatch. Got %zd but expected %d for dimension %d of input %u. "
                     "'%U' has shape %s; the value has %S. resize_tensor_input changes an input's shape",
                     (Py_ssize_t)PyArray_DIM(value, dimension), tensor->shape.dims[dimension], dimension, index, name,
                     needs, got);
    Py_XDECREF(name);
    Py_XDECREF(got);
    return -1;
}

static int check_shape(const tq_tensor *tensor, PyArrayObject *value)
{
    if (PyArray_NDIM(value) != tensor->shape.rank)
        return refuse_shape(tensor, value, -1);
    for (int i = 0; i < tensor->shape.rank; i++)
        if (PyArray_DIM(value, i) != tensor->shape.dims[i])
            return refuse_shape(tensor, value, i);
    return 0;
}

static int check_type(InterpreterObject *self, const tq_tensor *tensor, PyArrayObject *value)
{
    PyArray_Descr *dtype = dtype_of(self, tensor->type);
    if (!dtype)
        return -1;
    int got = PyArray_DESCR(value)->type_num;
    bool is_float8 = tensor->type == TQ_TensorType_FLOAT8_E4M3FN || tensor->type == TQ_TensorType_FLOAT8_E5M2;
    bool fits = PyArray_EquivTypenums(got, dtype->type_num) || (is_float8 && got == NPY_UINT8);
    Py_DECREF(dtype);
    return fits ? 0 : refuse_type(self, tensor, value);
}

/* Checks 4-bit and 2-bit values, which come as bytes, for their range. */
static int check_narrow(const tq_tensor *tensor, PyArrayObject *value)
{
    const tq_type_row *row = tq_type(tensor->type);
    if (row->bits >= 8)
        return 0;
    const uint8_t *bytes = PyArray_DATA(value);
    for (npy_intp i = 0; i < PyArray_SIZE(value); i++) {
        int element = row->low < 0 ? (int8_t)bytes[i] : bytes[i];
        if (element < row->low || element > row->high) {
            PyErr_Format(PyExc_ValueError,
                         "Cannot set tensor: Values for %s input must be between %d and %d. Element %zd is %d",
                         row->name, (int)row->low, (int)row->high, (Py_ssize_t)i, element);
            return -1;
        }
    }
    return 0;
}

/* One string of a value as bytes, a str as UTF-8; a new reference. */
static PyObject *string_bytes(PyObject *item)
{
    if (PyUnicode_Check(item))
        return PyUnicode_AsUTF8String(item);
    if (PyBytes_Check(item))
        return Py_NewRef(item);
    PyErr_Format(PyExc_ValueError, "Cannot use an item of type %.100s for a string tensor; it needs to be bytes or str",
                 Py_TYPE(item)->tp_name);
    return NULL;
}

/* The strings of an array as a list of bytes.  The string of a 0-d bytes array keeps its
   NULs at the end. */
static PyObject *string_list(PyArrayObject *value)
{
    if (PyArray_NDIM(value) == 0 && PyArray_TYPE(value) == NPY_STRING)
        return Py_BuildValue("[N]", PyBytes_FromStringAndSize(PyArray_DATA(value), PyArray_ITEMSIZE(value)));
    PyObject *flat = PyArray_Ravel(value, NPY_CORDER);
    PyObject *items = flat ? PyObject_CallMethod(flat, "tolist", NULL) : NULL;
    Py_XDECREF(flat);
    for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items); i++) {
        PyObject *bytes = string_bytes(PyList_GET_ITEM(items, i));
        if (!bytes || PyList_SetItem(items, i, bytes) < 0)
            Py_CLEAR(items);
    }
    return items;
}

static int assign_strings(tq_graph_run *graph, tq_tensor *tensor, PyArrayObject *value)
{
    int type = PyArray_TYPE(value);
    if (type != NPY_OBJECT && type != NPY_STRING && type != NPY_UNICODE) {
        PyErr_Format(PyExc_ValueError, "Cannot use numpy array of type %d for string tensor.", type);
        return -1;
    }
    PyObject *items = string_list(value);
    if (!items)
        return -1;
    Py_ssize_t count = PyList_GET_SIZE(items);
    uint64_t at = 4 * ((uint64_t)count + 2), size = at;
    for (Py_ssize_t i = 0; i < count; i++)
        size += (uint64_t)PyBytes_GET_SIZE(PyList_GET_ITEM(items, i));
    int result = -1;
    if (size > INT32_MAX)
        PyErr_SetString(PyExc_ValueError, "Cannot set tensor: a string tensor holds less than 2 GB");
    else if (tq_tensor_allocate(tensor, graph->run->pool, size, NULL) != TQ_OK)
        PyErr_NoMemory();
    else {
        int32_t *header = tensor->data;
        *header++ = (int32_t)count;
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *item = PyList_GET_ITEM(items, i);
            *header++ = (int32_t)at;
            memcpy((char *)tensor->data + at, PyBytes_AS_STRING(item), (size_t)PyBytes_GET_SIZE(item));
            at += (uint64_t)PyBytes_GET_SIZE(item);
        }
        *header = (int32_t)at;
        result = 0;
    }
    Py_DECREF(items);
    return result;
}

static int assign_narrow(tq_tensor *tensor, PyArrayObject *value)
{
    if (check_narrow(tensor, value) < 0)
        return -1;
    if (is_stale(tensor) || (!tensor->data && PyArray_NBYTES(value) > 0)) {
        PyErr_SetString(PyExc_ValueError,
                        "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first");
        return -1;
    }
    if (tensor->data && (size_t)PyArray_NBYTES(value) != tensor->bytes) {
        PyErr_Format(PyExc_ValueError, "numpy array had %zd bytes but expected %zu bytes.",
                     (Py_ssize_t)PyArray_NBYTES(value), tensor->bytes);
        return -1;
    }
    if (tensor->bytes)
        memcpy(tensor->data, PyArray_DATA(value), tensor->bytes);
    return 0;
}

/* Copies a value that needs no conversion, as most do; false: it needs one. */
static bool assign_plainly(InterpreterObject *self, tq_tensor *tensor, PyObject *object)
{
    PyArrayObject *value = (PyArrayObject *)object;
    const tq_type_row *row = tq_type(tensor->type);
    if (!PyArray_Check(object) || !tensor->data || is_stale(tensor) || !row || row->bits < 8 ||
        row->kind == TQ_KIND_OPAQUE || !PyArray_ISCARRAY_RO(value) || PyArray_NDIM(value) != tensor->shape.rank)
        return false;
    for (int i = 0; i < tensor->shape.rank; i++)
        if (PyArray_DIM(value, i) != tensor->shape.dims[i])
            return false;
    PyArray_Descr *dtype = dtype_of(self, tensor->type);
    bool fits = dtype && PyArray_DESCR(value)->type_num == dtype->type_num &&
                (size_t)PyArray_ITEMSIZE(value) == tq_element_bytes(tensor->type);
    Py_XDECREF(dtype);
    if (!dtype)
        PyErr_Clear();
    if (fits)
        memcpy(tensor->data, PyArray_DATA(value), tensor->bytes);
    return fits;
}

int tq_py_tensor_assign(InterpreterObject *self, tq_graph_run *graph, tq_tensor *tensor, PyObject *object)
{
    if (assign_plainly(self, tensor, object))
        return 0;
    PyArrayObject *value =
        (PyArrayObject *)PyArray_CheckFromAny(object, NULL, 0, 0, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED, NULL);
    if (!value)
        return -1;
    int result;
    if (tensor->type == TQ_TensorType_STRING)
        result = check_shape(tensor, value) < 0 ? -1 : assign_strings(graph, tensor, value);
    else
        result =
            check_type(self, tensor, value) < 0 || check_shape(tensor, value) < 0 ? -1 : assign_narrow(tensor, value);
    Py_DECREF(value);
    return result;
}

PyObject *tq_py_set_tensor(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    InterpreterObject *self = (InterpreterObject *)op;
    PyObject *given[ARGUMENTS];
    tq_graph_run *graph;
    int result = -1;
    if (take_arguments(args, count, names, true, given) < 0 || tq_py_enter(self) < 0)
        return NULL;
    tq_tensor *tensor = find(self, given, &graph);
    if (tensor && tq_is_constant(tensor))
        PyErr_Format(PyExc_ValueError, "Cannot set tensor: tensor %u is a constant of the model", tensor->index);
    else if (tensor)
        result = tq_py_tensor_assign(self, graph, tensor, given[VALUE]);
    tq_py_leave(self);
    if (result < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- getting ---- */

static int check_readable(InterpreterObject *self, tq_graph_run *graph, const tq_tensor *tensor)
{
    tq_error error;
    if (graph->ready && tq_is_constant(tensor) && tq_graph_compute_once(graph, &error) != TQ_OK) {
        tq_py_raise(tq_state_of((PyObject *)self), &error, NULL);
        return -1;
    }
    if (is_stale(tensor) || (!tensor->data && (tensor->bytes || !tensor->has_shape || tq_tensor_count(tensor)))) {
        PyErr_SetString(PyExc_ValueError, graph->ready ? "Tensor data is null. No operator has given it a value yet"
                                                       : "Tensor data is null. Run allocate_tensors() first");
        return -1;
    }
    if (graph->has_run && !tq_graph_holds(graph, tensor->index)) {
        PyErr_Format(
            PyExc_ValueError,
            "Tensor data is null. Tensor %u was not kept: an operator after its last reader took its memory, or "
            "a table computes it together with its reader. "
            "experimental_preserve_all_tensors=True keeps every tensor",
            tensor->index);
        return -1;
    }
    return 0;
}

static int fill_dims(const tq_tensor *tensor, npy_intp dims[TQ_DIMS])
{
    for (int i = 0; i < tensor->shape.rank; i++)
        dims[i] = tensor->shape.dims[i];
    return tensor->shape.rank;
}

static PyObject *array_of(InterpreterObject *self, const tq_tensor *tensor, void *data)
{
    npy_intp dims[TQ_DIMS];
    int rank = fill_dims(tensor, dims);
    PyArray_Descr *dtype = dtype_of(self, tensor->type);
    if (!dtype)
        return NULL;
    return PyArray_NewFromDescr(&PyArray_Type, dtype, rank, dims, NULL, data, data ? NPY_ARRAY_CARRAY : 0, NULL);
}

static PyObject *copy_strings(const tq_tensor *tensor)
{
    npy_intp dims[TQ_DIMS];
    int rank = fill_dims(tensor, dims);
    tq_strings strings = {{NULL, 0}, 0};
    tq_bytes bytes = {tensor->data, tensor->bytes};
    if (tensor->bytes && tq_strings_open(bytes, &strings, NULL) != TQ_OK)
        return PyErr_Format(PyExc_ValueError, "Invalid tensor size.");
    PyObject *array = PyArray_EMPTY(rank, dims, NPY_OBJECT, 0);
    PyObject **items = array ? PyArray_DATA((PyArrayObject *)array) : NULL;
    for (npy_intp i = 0; array && i < PyArray_SIZE((PyArrayObject *)array) && i < strings.count; i++) {
        tq_bytes item = tq_strings_item(&strings, (uint32_t)i);
        PyObject *made = PyBytes_FromStringAndSize((const char *)item.data, (Py_ssize_t)item.size);
        if (!made)
            Py_CLEAR(array);
        else
            Py_XSETREF(items[i], made);
    }
    return array;
}

/* A copy of constants that memory does not hold as plain elements: packed values, unpacked; of sparse tensors the
   stored values. */
static PyObject *copy_stored(InterpreterObject *self, const tq_graph_run *graph, const tq_tensor *tensor)
{
    tq_state *state = tq_state_of((PyObject *)self);
    PyObject *class = tq_py_details_class(state, tensor->type);
    PyObject *tensor_item = class ? tq_py_item(state->Tensor, self->model, graph->index, tensor->index) : NULL;
    PyObject *data = tensor_item ? PyObject_GetAttrString(tensor_item, "data") : NULL;
    PyObject *copy = data ? PyObject_CallMethod(data, "astype", "O", class) : NULL;
    Py_XDECREF(data);
    Py_XDECREF(tensor_item);
    return copy;
}

PyObject *tq_py_tensor_copy(InterpreterObject *self, const tq_graph_run *graph, const tq_tensor *tensor)
{
    bool is_sparse = tq_get_table(&tensor->table, TQ_Tensor_sparsity).at != 0;
    if (tensor->type == TQ_TensorType_STRING)
        return copy_strings(tensor);
    if (graph->slots[tensor->index].file_constant && (tensor->packed || is_sparse))
        return copy_stored(self, graph, tensor);
    PyObject *array = array_of(self, tensor, NULL);
    if (!array)
        return NULL;
    if ((size_t)PyArray_NBYTES((PyArrayObject *)array) != tensor->bytes && tensor->type != TQ_TensorType_RESOURCE &&
        tensor->type != TQ_TensorType_VARIANT) {
        PyErr_SetString(PyExc_ValueError, "Invalid tensor size.");
        Py_DECREF(array);
        return NULL;
    }
    if (PyArray_TYPE((PyArrayObject *)array) != NPY_OBJECT && tensor->bytes)
        memcpy(PyArray_DATA((PyArrayObject *)array), tensor->data, tensor->bytes);
    return array;
}

PyObject *tq_py_get_tensor(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    InterpreterObject *self = (InterpreterObject *)op;
    PyObject *given[ARGUMENTS];
    tq_graph_run *graph;
    if (take_arguments(args, count, names, false, given) < 0 || tq_py_enter(self) < 0)
        return NULL;
    tq_tensor *tensor = find(self, given, &graph);
    PyObject *array =
        tensor && check_readable(self, graph, tensor) == 0 ? tq_py_tensor_copy(self, graph, tensor) : NULL;
    tq_py_leave(self);
    /* rank 0 becomes a NumPy scalar, as in LiteRT, except strings */
    if (!array || tensor->type == TQ_TensorType_STRING)
        return array;
    return PyArray_Return((PyArrayObject *)array);
}

static void release_block(PyObject *capsule)
{
    tq_block_release(PyCapsule_GetPointer(capsule, "tq.block"));
}

/* The owner of a tensor's memory, for views: its block, or the model. */
static PyObject *owner_of(InterpreterObject *self, const tq_graph_run *graph, const tq_tensor *tensor)
{
    tq_block *block = graph->slots[tensor->index].in_arena ? graph->arena : tensor->block;
    if (!block)
        return Py_NewRef(self->model);
    PyObject *capsule = PyCapsule_New(tq_block_retain(block), "tq.block", release_block);
    if (!capsule)
        tq_block_release(block);
    return capsule;
}

static PyObject *view_of(InterpreterObject *self, const tq_graph_run *graph, const tq_tensor *tensor)
{
    const tq_type_row *row = tq_type(tensor->type);
    if (!row || row->kind == TQ_KIND_STRING || row->kind == TQ_KIND_OPAQUE || tensor->packed)
        return tq_py_tensor_copy(self, graph, tensor); /* no view: a handle is no Python object */
    PyObject *array = array_of(self, tensor, tensor->data);
    PyObject *base = array && tensor->data ? owner_of(self, graph, tensor) : NULL;
    if (array && tensor->data && (!base || PyArray_SetBaseObject((PyArrayObject *)array, base) < 0))
        Py_CLEAR(array);
    else if (array && tq_is_constant(tensor))
        PyArray_CLEARFLAGS((PyArrayObject *)array, NPY_ARRAY_WRITEABLE);
    return array;
}

PyObject *tq_py_view_tensor(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    InterpreterObject *self = (InterpreterObject *)op;
    PyObject *given[ARGUMENTS];
    tq_graph_run *graph;
    if (take_arguments(args, count, names, false, given) < 0 || tq_py_enter(self) < 0)
        return NULL;
    tq_tensor *tensor = find(self, given, &graph);
    PyObject *array = tensor && check_readable(self, graph, tensor) == 0 ? view_of(self, graph, tensor) : NULL;
    tq_py_leave(self);
    return array;
}
