/* SPDX-License-Identifier: Apache-2.0
 *
 * Custom operators written in Python (tq.register_op).  They are called with the GIL, by a run that has let
 * it go; what they raise is put aside until the run has returned.
 */
#include "ops/check.h"
#include "python/convert.h"
#include "python/interpreter/interpreter_methods.h"

/* Python hears Ctrl-C itself; tq's functions that it calls are no part of the run, and must not leave garbage. */
static const tq_listener deaf = {NULL, false};

static tq_py_op *op_of(const tq_node *node)
{
    return node->op->context;
}

static tq_status failed(tq_node *node, tq_error *error)
{
    tq_py_hold_exception(op_of(node)->interpreter);
    return tq_op_fail(node, error, TQ_BAD_DATA, "raised an exception");
}

/* One of an operator's functions; the collector has taken it from an interpreter that nothing else refers to. */
static PyObject *call(PyObject *function, PyObject *values, PyObject *options)
{
    if (function)
        return PyObject_CallFunctionObjArgs(function, values, options, NULL);
    PyErr_SetString(PyExc_RuntimeError, "the interpreter is being collected");
    return NULL;
}

static PyObject *options_of(const tq_node *node)
{
    tq_bytes options = {NULL, 0};
    if (tq_operator_custom_options(&node->row, &options, NULL) != TQ_OK || !options.data)
        return PyBytes_FromStringAndSize(NULL, 0);
    return tq_py_bytes(options);
}

static PyObject *shape_tuple(const tq_shape *shape)
{
    PyObject *tuple = PyTuple_New(shape->rank);
    for (int i = 0; tuple && i < shape->rank; i++) {
        PyObject *dim = PyLong_FromLong(shape->dims[i]);
        if (!dim)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, dim);
    }
    return tuple;
}

/* ---- prepare: shapes in, shapes out ---- */

/* Output i's shape from a sequence of ints; None: known when the operator has run. */
static int take_shape(tq_node *node, int i, PyObject *object, tq_status *status, tq_error *error)
{
    tq_shape shape = {0};
    if (object == Py_None) {
        tq_output_later(node, i);
        return 0;
    }
    PyObject *dims = PySequence_Tuple(object);
    if (!dims)
        return -1;
    Py_ssize_t rank = PyTuple_GET_SIZE(dims);
    if (rank > TQ_DIMS)
        PyErr_Format(PyExc_ValueError, "output %d has %zd dimensions; tq takes %d", i, rank, TQ_DIMS);
    shape.rank = (int32_t)rank;
    for (int d = 0; d < rank && !PyErr_Occurred(); d++) {
        long dim = PyLong_AsLong(PyTuple_GET_ITEM(dims, d));
        if (!PyErr_Occurred() && (dim < 0 || dim > INT32_MAX))
            PyErr_Format(PyExc_ValueError, "dimension %d of output %d is %ld", d, i, dim);
        shape.dims[d] = (int32_t)dim;
    }
    Py_DECREF(dims);
    if (PyErr_Occurred())
        return -1;
    *status = tq_output_shape(node, i, &shape, error);
    return 0;
}

static tq_status eval(tq_node *node, tq_error *error);

static int prepare_in_python(tq_node *node, tq_status *status, tq_error *error)
{
    PyObject *shapes = PyTuple_New(node->in_count), *options = options_of(node), *result = NULL;
    int ok = shapes && options;
    for (int i = 0; ok && i < node->in_count; i++) {
        PyObject *shape = node->in[i] ? shape_tuple(&node->in[i]->shape) : Py_NewRef(Py_None);
        ok = shape != NULL;
        if (shape)
            PyTuple_SET_ITEM(shapes, i, shape);
    }
    if (ok)
        result = call(op_of(node)->prepare, shapes, options);
    PyObject *rows = result ? tq_py_tuple_of(result, "prepare must return a list of output shapes") : NULL;
    ok = rows != NULL;
    if (ok && PyTuple_GET_SIZE(rows) != node->out_count) {
        PyErr_Format(PyExc_ValueError, "prepare of '%U' returned %zd shapes; the operator has %d outputs",
                     op_of(node)->name, PyTuple_GET_SIZE(rows), node->out_count);
        ok = 0;
    }
    for (int i = 0; ok && *status == TQ_OK && i < node->out_count; i++)
        ok = take_shape(node, i, PyTuple_GET_ITEM(rows, i), status, error) == 0;
    Py_XDECREF(rows);
    Py_XDECREF(result);
    Py_XDECREF(options);
    Py_XDECREF(shapes);
    return ok ? 0 : -1;
}

static tq_status prepare(tq_node *node, tq_error *error)
{
    tq_status status = TQ_OK;
    node->eval = eval;
    PyGILState_STATE gil = PyGILState_Ensure();
    const tq_listener before = tq_stop_enter(deaf);
    if (prepare_in_python(node, &status, error) < 0)
        status = failed(node, error);
    tq_stop_enter(before);
    PyGILState_Release(gil);
    return status;
}

/* ---- eval: arrays in, arrays out ---- */

static int take_output(tq_node *node, int i, PyObject *value, tq_status *status, tq_error *error)
{
    tq_graph_run *graph = tq_graph_of(node);
    tq_tensor *tensor = node->out[i];
    if (!tensor)
        return 0;
    if (tensor->storage == TQ_STORAGE_DYNAMIC && tensor->type != TQ_TensorType_STRING) {
        PyObject *shape = PyObject_GetAttrString(value, "shape");
        int result = shape ? take_shape(node, i, shape, status, error) : -1;
        Py_XDECREF(shape);
        if (result < 0 || *status != TQ_OK)
            return result;
    }
    return tq_py_tensor_assign(op_of(node)->interpreter, graph, tensor, value);
}

static int eval_in_python(tq_node *node, tq_status *status, tq_error *error)
{
    tq_py_op *row = op_of(node);
    PyObject *inputs = PyTuple_New(node->in_count), *options = options_of(node), *result = NULL;
    int ok = inputs && options;
    for (int i = 0; ok && i < node->in_count; i++) {
        PyObject *array =
            node->in[i] ? tq_py_tensor_copy(row->interpreter, tq_graph_of(node), node->in[i]) : Py_NewRef(Py_None);
        ok = array != NULL;
        if (array)
            PyTuple_SET_ITEM(inputs, i, array);
    }
    if (ok)
        result = call(row->eval, inputs, options);
    ok = result != NULL;
    if (ok && PyArray_Check(result) && node->out_count == 1) {
        ok = take_output(node, 0, result, status, error) == 0;
    } else if (ok) {
        PyObject *rows = tq_py_tuple_of(result, "eval must return an array, or a list of arrays");
        ok = rows != NULL;
        if (ok && PyTuple_GET_SIZE(rows) != node->out_count) {
            PyErr_Format(PyExc_ValueError, "eval of '%U' returned %zd arrays; the operator has %d outputs", row->name,
                         PyTuple_GET_SIZE(rows), node->out_count);
            ok = 0;
        }
        for (int i = 0; ok && *status == TQ_OK && i < node->out_count; i++)
            ok = take_output(node, i, PyTuple_GET_ITEM(rows, i), status, error) == 0;
        Py_XDECREF(rows);
    }
    Py_XDECREF(result);
    Py_XDECREF(options);
    Py_XDECREF(inputs);
    return ok ? 0 : -1;
}

static tq_status eval(tq_node *node, tq_error *error)
{
    tq_status status = TQ_OK;
    PyGILState_STATE gil = PyGILState_Ensure();
    const tq_listener before = tq_stop_enter(deaf);
    if (eval_in_python(node, &status, error) < 0)
        status = failed(node, error);
    tq_stop_enter(before);
    PyGILState_Release(gil);
    return status;
}

/* ---- finding ---- */

static const tq_op *find_op(InterpreterObject *self, tq_bytes name)
{
    PyObject *key = PyUnicode_DecodeUTF8(name.data ? (const char *)name.data : "", (Py_ssize_t)name.size, "replace");
    PyObject *pair = key ? PyDict_GetItemWithError(self->registered, key) : NULL; /* borrowed */
    PyErr_Clear();
    for (tq_py_op *row = self->custom; pair && row; row = row->next)
        if (PyUnicode_Compare(row->name, key) == 0) {
            Py_DECREF(key);
            return &row->op;
        }
    tq_py_op *row = pair && PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2 ? PyMem_Calloc(1, sizeof *row) : NULL;
    const char *text = row ? PyUnicode_AsUTF8(key) : NULL;
    if (!text) {
        PyErr_Clear();
        PyMem_Free(row);
        Py_XDECREF(key);
        return NULL;
    }
    row->name = key; /* keeps `text` */
    row->prepare = Py_NewRef(PyTuple_GET_ITEM(pair, 0));
    row->eval = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
    row->interpreter = self;
    row->op = (tq_op){text, prepare, TQ_OP_IMPURE, row};
    row->next = self->custom;
    self->custom = row;
    return &row->op;
}

const tq_op *tq_py_custom_op(void *interpreter, tq_bytes name)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    const tq_op *op = find_op(interpreter, name);
    PyGILState_Release(gil);
    return op;
}

void tq_py_custom_clear(InterpreterObject *self)
{
    for (tq_py_op *row = self->custom; row; row = row->next) {
        Py_CLEAR(row->prepare);
        Py_CLEAR(row->eval);
    }
}

void tq_py_custom_free(InterpreterObject *self)
{
    tq_py_custom_clear(self);
    while (self->custom) {
        tq_py_op *row = self->custom;
        self->custom = row->next;
        Py_XDECREF(row->name);
        PyMem_Free(row);
    }
}
