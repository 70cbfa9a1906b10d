/* SPDX-License-Identifier: Apache-2.0
 *
 * tq._core.Interpreter, the base of tq.Interpreter (tq/running/interpreter.py).
 */
#include "python/interpreter/interpreter.h"

#include "runtime/operators.h"
#include "python/errors.h"
#include "python/interpreter/interpreter_methods.h"
#include "python/model/file.h"

/* ---- hooks of the runtime ---- */

static bool interrupted(void *context)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    bool stop = PyErr_CheckSignals() != 0;
    if (stop)
        tq_py_hold_exception(context);
    PyGILState_Release(gil);
    return stop;
}

/* The bytes of an external buffer group's file, which the model keeps open; false: it cannot be opened. */
static bool external_file(InterpreterObject *self, int64_t group, tq_bytes *out)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *file = tq_py_model_external_file(self->model, group);
    if (file)
        *out = ((FileObject *)file)->file.bytes;
    else
        PyErr_Clear();
    Py_XDECREF(file);
    PyGILState_Release(gil);
    return file != NULL;
}

static tq_status external(void *context, int64_t id, tq_bytes *out, tq_error *error)
{
    InterpreterObject *self = context;
    tq_table buffer = tq_model_external_buffer(&self->model->model, id);
    if (!buffer.at)
        return tq_fail(error, TQ_DATA_RANGE, TQ_NO_OFFSET, "external buffer %lld is not in the model", (long long)id);
    tq_bytes all;
    if (!external_file(self, tq_get_int(&buffer, TQ_ExternalBuffer_group), &all))
        return tq_fail(error, TQ_EXTERNAL_FILE, TQ_NO_OFFSET,
                       "the file that holds external buffer %lld cannot be opened", (long long)id);
    uint64_t offset = tq_get_u64(&buffer, TQ_ExternalBuffer_offset),
             length = tq_get_u64(&buffer, TQ_ExternalBuffer_length);
    if (!tq_bytes_hold(all, offset, length))
        return tq_fail(error, TQ_DATA_RANGE, TQ_NO_OFFSET, "%llu bytes at byte %llu of a side file that has %llu",
                       (unsigned long long)length, (unsigned long long)offset, (unsigned long long)all.size);
    *out = (tq_bytes){all.data + offset, (size_t)length};
    return TQ_OK;
}

/* Sets the exception for a failure of the run, with all lines of the report, if there is one. */
static PyObject *raise_run(InterpreterObject *self, tq_error *error)
{
    tq_state *state = tq_state_of((PyObject *)self);
    if (self->raised[0]) { /* of Ctrl-C or of a custom operator */
        PyErr_Restore(self->raised[0], self->raised[1], self->raised[2]);
        self->raised[0] = self->raised[1] = self->raised[2] = NULL;
        return NULL;
    }
    return tq_py_raise(state, error, NULL);
}

/* ---- making ---- */

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    InterpreterObject *self = (InterpreterObject *)type->tp_alloc(type, 0);
    if (self && tq_py_lock_open(&self->lock) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* _open(model, numerics, num_threads, preserve_all_tensors, max_memory, max_multiply_adds, registered) */
static PyObject *open_run(PyObject *op, PyObject *args)
{
    InterpreterObject *self = (InterpreterObject *)op;
    const tq_state *state = tq_state_of(op);
    PyObject *model, *registered;
    const char *numerics;
    tq_run_options options = {
        .hooks = {.context = self, .custom_op = tq_py_custom_op, .external = external, .interrupted = interrupted}};
    int preserve_all;
    unsigned long long max_memory, max_multiply_adds;
    tq_error error;
    tq_status status;
    if (!PyArg_ParseTuple(args, "O!sipKKO!:_open", (PyTypeObject *)state->Model, &model, &numerics, &options.threads,
                          &preserve_all, &max_memory, &max_multiply_adds, &PyDict_Type, &registered) ||
        tq_py_numerics(numerics, &options.numerics) < 0)
        return NULL;
    options.preserve_all = preserve_all;
    options.max_memory = max_memory;
    if (tq_py_lock_take(op, &self->lock) < 0)
        return NULL;
    if (self->run) {
        tq_py_leave(self);
        PyErr_SetString(PyExc_RuntimeError, "the interpreter is open already");
        return NULL;
    }
    options.max_multiply_adds = max_multiply_adds;
    Py_XSETREF(self->model, (ModelObject *)Py_NewRef(model)); /* an earlier call may have failed */
    Py_XSETREF(self->registered, Py_NewRef(registered));
    tq_run *run = NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tq_run_open(&self->model->model, &options, &tq_default_allocator, &run, &error);
    Py_END_ALLOW_THREADS
    self->run = run; /* NULL: it failed */
    if (status != TQ_OK)
        raise_run(self, &error);
    tq_py_leave(self);
    return status == TQ_OK ? Py_NewRef(Py_None) : NULL;
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    InterpreterObject *self = (InterpreterObject *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->model);
    Py_VISIT(self->registered);
    for (tq_py_op *op_row = self->custom; op_row; op_row = op_row->next) {
        Py_VISIT(op_row->prepare);
        Py_VISIT(op_row->eval);
    }
    for (int i = 0; i < 3; i++)
        Py_VISIT(self->raised[i]);
    return 0;
}

static int clear(PyObject *op)
{
    InterpreterObject *self = (InterpreterObject *)op;
    Py_CLEAR(self->registered);
    tq_py_custom_clear(self);
    for (int i = 0; i < 3; i++)
        Py_CLEAR(self->raised[i]);
    return 0;
}

static void dealloc(PyObject *op)
{
    InterpreterObject *self = (InterpreterObject *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    clear(op);
    if (!self->lock.wake ||
        !tq_py_lock_is_lost(op, &self->lock)) { /* a run that the parent was using at the fork is not released */
        tq_run_close(self->run);
        tq_py_custom_free(self);
    }
    Py_CLEAR(self->model); /* after the run, which reads its bytes */
    tq_py_lock_close(&self->lock);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- running ---- */

static PyObject *raise_allocate(InterpreterObject *self, const tq_error *error)
{
    tq_run *run = self->run;
    if (self->raised[0] || tq_ends_the_pass(error->status) || !run->report_size)
        return raise_run(self, (tq_error *)error);
    tq_state *state = tq_state_of((PyObject *)self);
    PyObject *text = PyUnicode_DecodeUTF8(run->report, (Py_ssize_t)run->report_size, "replace");
    PyObject *exception = text ? PyObject_CallOneArg(state->RunError, text) : NULL;
    PyObject *code = exception ? PyUnicode_FromString(tq_status_name(error->status)) : NULL;
    if (code && PyObject_SetAttrString(exception, "code", code) == 0 &&
        PyObject_SetAttrString(exception, "offset", Py_None) == 0)
        PyErr_SetObject(state->RunError, exception);
    Py_XDECREF(code);
    Py_XDECREF(exception);
    Py_XDECREF(text);
    return NULL;
}

static PyObject *allocate(PyObject *op, PyObject *args)
{
    InterpreterObject *self = (InterpreterObject *)op;
    Py_ssize_t subgraph = 0;
    tq_error error;
    tq_status status = TQ_OK;
    if (!PyArg_ParseTuple(args, "|n:_allocate", &subgraph) || tq_py_enter(self) < 0)
        return NULL;
    tq_graph_run *graph = tq_py_graph(self, subgraph);
    if (graph) {
        self->run->report_size = self->run->report_base;
        self->run->spent = 0;
        Py_BEGIN_ALLOW_THREADS
        status = tq_graph_allocate(graph, &error);
        Py_END_ALLOW_THREADS
        if (status != TQ_OK)
            raise_allocate(self, &error);
    }
    tq_py_leave(self);
    if (!graph || status != TQ_OK)
        return NULL;
    Py_RETURN_NONE;
}

/* _invoke(subgraph=0, begin=0, end=all) */
static PyObject *invoke(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    InterpreterObject *self = (InterpreterObject *)op;
    Py_ssize_t numbers[3] = {0, 0, -1};
    tq_error error;
    tq_status status = TQ_OK;
    if (count > 3) {
        PyErr_SetString(PyExc_TypeError, "_invoke takes at most 3 arguments");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if ((numbers[i] = PyNumber_AsSsize_t(args[i], PyExc_IndexError)) == -1 && PyErr_Occurred())
            return NULL;
    if (tq_py_enter(self) < 0)
        return NULL;
    tq_graph_run *graph = tq_py_graph(self, numbers[0]);
    if (graph) {
        uint32_t end =
            numbers[2] < 0 || numbers[2] > (Py_ssize_t)graph->step_count ? graph->step_count : (uint32_t)numbers[2];
        uint32_t begin = numbers[1]<0 ? 0 : numbers[1]>(Py_ssize_t) end ? end : (uint32_t)numbers[1];
        self->run->spent = 0;
        Py_BEGIN_ALLOW_THREADS
        status = tq_graph_invoke_range(graph, begin, end, &error);
        Py_END_ALLOW_THREADS
        if (status != TQ_OK)
            raise_run(self, &error);
    }
    tq_py_leave(self);
    if (!graph || status != TQ_OK)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *invoke_all(PyObject *op, PyObject *unused)
{
    (void)unused;
    return invoke(op, NULL, 0);
}

static PyObject *resize(PyObject *op, PyObject *args)
{
    InterpreterObject *self = (InterpreterObject *)op;
    Py_ssize_t tensor, subgraph = 0;
    PyObject *dims;
    tq_shape shape = {0};
    tq_error error;
    if (!PyArg_ParseTuple(args, "nO!|n:_resize", &tensor, &PyTuple_Type, &dims, &subgraph))
        return NULL;
    if (PyTuple_GET_SIZE(dims) > TQ_DIMS)
        return PyErr_Format(PyExc_ValueError, "the shape has %zd dimensions; tq runs tensors of up to %d",
                            PyTuple_GET_SIZE(dims), TQ_DIMS);
    shape.rank = (int32_t)PyTuple_GET_SIZE(dims);
    for (int i = 0; i < shape.rank; i++) {
        long dim = PyLong_AsLong(PyTuple_GET_ITEM(dims, i));
        if (dim == -1 && PyErr_Occurred())
            return NULL;
        if (dim < 0 || dim > INT32_MAX)
            return PyErr_Format(PyExc_ValueError, "dimension %d is %ld; it needs to be 0 to 2147483647", i, dim);
        shape.dims[i] = (int32_t)dim;
    }
    if (tq_py_enter(self) < 0)
        return NULL;
    tq_graph_run *graph = tq_py_graph(self, subgraph);
    tq_status status = TQ_OK;
    if (graph && !tq_py_tensor_at(graph, tensor))
        graph = NULL;
    if (graph && (status = tq_graph_resize(graph, (uint32_t)tensor, &shape, &error)) != TQ_OK)
        raise_run(self, &error);
    tq_py_leave(self);
    if (!graph || status != TQ_OK)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *reset_variables(PyObject *op, PyObject *unused)
{
    InterpreterObject *self = (InterpreterObject *)op;
    (void)unused;
    if (tq_py_enter(self) < 0)
        return NULL;
    for (uint32_t i = 0; i < self->run->graph_count; i++)
        tq_graph_reset_variables(&self->run->graphs[i]);
    tq_py_leave(self);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"_open", open_run, METH_VARARGS, NULL},
    {"_allocate", allocate, METH_VARARGS, NULL},
    {"_invoke", (PyCFunction)(void (*)(void))invoke, METH_FASTCALL, NULL},
    {"invoke", invoke_all, METH_NOARGS,
     "invoke($self, /)\n--\n\nRuns the model on what set_tensor gave it.  The GIL is released meanwhile.\n\n"
     "tq.RunError, a RuntimeError: allocate_tensors is still to be called, or an operator met data that it\n"
     "cannot take; the interpreter can be used further."},
    {"_resize", resize, METH_VARARGS, NULL},
    {"reset_all_variables", reset_variables, METH_NOARGS,
     "reset_all_variables($self, /)\n--\n\nPuts every variable tensor back to its start: zero, int8 ones to their zero "
     "point."},
    {"set_tensor", (PyCFunction)(void (*)(void))tq_py_set_tensor, METH_FASTCALL | METH_KEYWORDS,
     "set_tensor($self, /, tensor_index, value, subgraph_index=0)\n--\n\nCopies an array into a tensor."},
    {"get_tensor", (PyCFunction)(void (*)(void))tq_py_get_tensor, METH_FASTCALL | METH_KEYWORDS,
     "get_tensor($self, /, tensor_index, subgraph_index=0)\n--\n\nA copy of a tensor's value."},
    {"_view", (PyCFunction)(void (*)(void))tq_py_view_tensor, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"_changed_shapes", tq_py_changed_shapes, METH_VARARGS, NULL},
    {"_given_types", tq_py_given_types, METH_VARARGS, NULL},
    {"_memory_plan", tq_py_memory_plan, METH_VARARGS, NULL},
    {"_memory_used", tq_py_memory_used, METH_NOARGS, NULL},
    {"_profile_start", tq_py_profile_start, METH_VARARGS, NULL},
    {"_profile_read", tq_py_profile_read, METH_VARARGS, NULL},
    {"_backends", tq_py_backends, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot type_slots[] = {
    {Py_tp_new, new},     {Py_tp_dealloc, dealloc}, {Py_tp_traverse, traverse},
    {Py_tp_clear, clear}, {Py_tp_methods, methods}, {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core.Interpreter",
    .basicsize = sizeof(InterpreterObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = type_slots,
};

/* operators() -> (names of the builtin operators that tq runs, names of the custom ones) */
static PyObject *operators(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *lists[2] = {PyList_New(0), PyList_New(0)};
    const tq_op *op;
    bool is_custom;
    bool failed = !lists[0] || !lists[1];
    for (size_t i = 0; !failed && (op = tq_op_row(i, &is_custom)); i++) {
        PyObject *name = PyUnicode_FromString(op->name);
        failed = !name || PyList_Append(lists[is_custom], name) < 0;
        Py_XDECREF(name);
    }
    if (!failed)
        return Py_BuildValue("(NN)", lists[0], lists[1]);
    Py_XDECREF(lists[0]);
    Py_XDECREF(lists[1]);
    return NULL;
}

static PyMethodDef functions[] = {
    {"operators", operators, METH_NOARGS,
     "operators()\n--\n\nThe names of the builtin operators that tq runs, and those of the custom ones: two lists."},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_interpreter(PyObject *module, tq_state *state)
{
    return tq_py_add_type(module, &spec, &state->Interpreter) < 0 ? -1 : PyModule_AddFunctions(module, functions);
}
