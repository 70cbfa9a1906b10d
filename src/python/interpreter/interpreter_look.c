/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about an interpreter: shapes, memory, time, kernels.
 */
#include "python/interpreter/interpreter_methods.h"

#include "python/convert.h"
#include "python/dtypes.h"

/* The graph of the optional argument `subgraph`, after tq_py_enter; NULL with an exception. */
static tq_graph_run *enter_graph(InterpreterObject *self, PyObject *args)
{
    Py_ssize_t subgraph = 0;
    if (!PyArg_ParseTuple(args, "|n", &subgraph) || tq_py_enter(self) < 0)
        return NULL;
    tq_graph_run *graph = tq_py_graph(self, subgraph);
    if (!graph)
        tq_py_leave(self);
    return graph;
}

/* ---- shapes ---- */

static bool differs(const tq_tensor *tensor)
{
    tq_vector dims = tq_get_vector(&tensor->table, TQ_Tensor_shape);
    if (dims.count != (uint32_t)tensor->shape.rank)
        return true;
    for (uint32_t i = 0; i < dims.count; i++)
        if (tq_vector_i32(&dims, i) != tensor->shape.dims[i])
            return true;
    return false;
}

static int add_shape(PyObject *dict, const tq_tensor *tensor)
{
    PyObject *index = PyLong_FromUnsignedLong(tensor->index), *shape = PyTuple_New(tensor->shape.rank);
    int failed = !index || !shape;
    for (int i = 0; !failed && i < tensor->shape.rank; i++) {
        PyObject *dim = PyLong_FromLong(tensor->shape.dims[i]);
        failed = !dim;
        if (dim)
            PyTuple_SET_ITEM(shape, i, dim);
    }
    failed = failed || PyDict_SetItem(dict, index, shape) < 0;
    Py_XDECREF(index);
    Py_XDECREF(shape);
    return failed ? -1 : 0;
}

/* {tensor index: a fact} of a graph's tensors; add: adds what tensor i has to tell, -1 with an exception. */
static PyObject *facts_of_tensors(PyObject *op, PyObject *args,
                                  int (*add)(PyObject *dict, tq_state *state, const tq_graph_run *graph, uint32_t i))
{
    InterpreterObject *self = (InterpreterObject *)op;
    tq_graph_run *graph = enter_graph(self, args);
    if (!graph)
        return NULL;
    PyObject *dict = PyDict_New();
    for (uint32_t i = 0; dict && i < graph->tensor_count; i++)
        if (add(dict, tq_state_of(op), graph, i) < 0)
            Py_CLEAR(dict);
    tq_py_leave(self);
    return dict;
}

static int add_changed_shape(PyObject *dict, tq_state *state, const tq_graph_run *graph, uint32_t i)
{
    (void)state;
    const tq_tensor *tensor = &graph->tensors[i];
    const bool known = tensor->has_shape || graph->slots[i].resized;
    return known && !graph->slots[i].problem && differs(tensor) ? add_shape(dict, tensor) : 0;
}

/* {tensor index: shape} of the tensors whose shape is not the file's */
PyObject *tq_py_changed_shapes(PyObject *op, PyObject *args)
{
    return facts_of_tensors(op, args, add_changed_shape);
}

/* ---- types ---- */

static int add_given_type(PyObject *dict, tq_state *state, const tq_graph_run *graph, uint32_t i)
{
    const tq_tensor *tensor = &graph->tensors[i];
    if (tensor->type == (int32_t)tq_get_int(&tensor->table, TQ_Tensor_type))
        return 0;
    PyObject *index = PyLong_FromUnsignedLong(tensor->index);
    PyObject *class = tq_py_details_class(state, tensor->type); /* borrowed */
    const int failed = !index || !class || PyDict_SetItem(dict, index, class) < 0;
    Py_XDECREF(index);
    return failed ? -1 : 0;
}

/* {tensor index: class of its values} of the tensors whose type is not the file's: their operators give it. */
PyObject *tq_py_given_types(PyObject *op, PyObject *args)
{
    return facts_of_tensors(op, args, add_given_type);
}

/* ---- memory ---- */

/* (arena bytes, [(tensor index, offset, bytes, first operator, last operator)], [(operator, offset, bytes)] of
   scratch, [(tensor index, bytes)] of memory of its own) */
PyObject *tq_py_memory_plan(PyObject *op, PyObject *args)
{
    InterpreterObject *self = (InterpreterObject *)op;
    tq_graph_run *graph = enter_graph(self, args);
    if (!graph)
        return NULL;
    PyObject *placed = PyList_New(0), *scratch = PyList_New(0), *own = PyList_New(0);
    int failed = !placed || !scratch || !own;
    for (uint32_t i = 0; !failed && i < graph->tensor_count; i++) {
        const tq_slot *slot = &graph->slots[i];
        if (slot->in_arena)
            failed = tq_py_append(placed, Py_BuildValue("(IKKii)", i, (unsigned long long)slot->offset,
                                                        (unsigned long long)graph->tensors[i].bytes, slot->first,
                                                        slot->last)) < 0;
        else if (graph->tensors[i].block)
            failed = tq_py_append(own, Py_BuildValue("(IK)", i, (unsigned long long)graph->tensors[i].block->size)) < 0;
    }
    for (uint32_t k = 0; !failed && k < graph->step_count; k++) {
        const tq_step *step = &graph->steps[k];
        if (step->phase == TQ_NODE_READY && step->node.request.scratch_bytes)
            failed = tq_py_append(scratch, Py_BuildValue("(IKK)", k, (unsigned long long)step->scratch_offset,
                                                         (unsigned long long)step->node.request.scratch_bytes)) < 0;
    }
    unsigned long long arena = graph->arena_bytes;
    tq_py_leave(self);
    if (!failed)
        return Py_BuildValue("(KNNN)", arena, placed, scratch, own);
    Py_XDECREF(placed);
    Py_XDECREF(scratch);
    Py_XDECREF(own);
    return NULL;
}

/* (bytes in use, their maximum so far) */
PyObject *tq_py_memory_used(PyObject *op, PyObject *unused)
{
    InterpreterObject *self = (InterpreterObject *)op;
    (void)unused;
    if (tq_py_enter(self) < 0)
        return NULL;
    unsigned long long used = tq_pool_used(self->run->pool), peak = tq_pool_peak(self->run->pool);
    tq_py_leave(self);
    return Py_BuildValue("(KK)", used, peak);
}

/* ---- time ---- */

/* _profile_start(on): counting starts at zero, or ends */
PyObject *tq_py_profile_start(PyObject *op, PyObject *args)
{
    InterpreterObject *self = (InterpreterObject *)op;
    int on;
    if (!PyArg_ParseTuple(args, "p:_profile_start", &on) || tq_py_enter(self) < 0)
        return NULL;
    self->run->options.profile = on;
    for (uint32_t g = 0; on && g < self->run->graph_count; g++)
        for (uint32_t k = 0; k < self->run->graphs[g].step_count; k++)
            self->run->graphs[g].steps[k].runs = self->run->graphs[g].steps[k].nanoseconds = 0;
    tq_py_leave(self);
    Py_RETURN_NONE;
}

/* _profile_read(subgraph=0) -> [(runs, nanoseconds, computed when prepared)] by operator */
PyObject *tq_py_profile_read(PyObject *op, PyObject *args)
{
    InterpreterObject *self = (InterpreterObject *)op;
    tq_graph_run *graph = enter_graph(self, args);
    if (!graph)
        return NULL;
    PyObject *list = PyList_New(0);
    for (uint32_t k = 0; list && k < graph->step_count; k++) {
        const tq_step *step = &graph->steps[k];
        PyObject *row = Py_BuildValue("(KKN)", (unsigned long long)step->runs, (unsigned long long)step->nanoseconds,
                                      PyBool_FromLong(step->phase == TQ_NODE_FOLDED));
        if (tq_py_append(list, row) < 0)
            Py_CLEAR(list);
    }
    tq_py_leave(self);
    return list;
}

/* ---- backends ---- */

/* By tq_numerics.  The two reference kernels differ in Python's `rounding`. */
static const char *const numerics_names[] = {"reference", "reference-single", "optimized", "xnnpack"};

int tq_py_numerics(const char *name, tq_numerics *out)
{
    for (size_t i = 0; i < sizeof numerics_names / sizeof *numerics_names; i++)
        if (strcmp(name, numerics_names[i]) == 0) {
            *out = (tq_numerics)i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "numerics is '%.60s'; it needs to be 'reference', 'optimized' or 'xnnpack'", name);
    return -1;
}

static const char *backend_name(tq_numerics numerics)
{
    return numerics_names[numerics == TQ_NUMERICS_SINGLE ? TQ_NUMERICS_REFERENCE : numerics];
}

/* _backends(subgraph=0) -> [(numerics, rule, how LiteRT fails at it, or None)] by operator */
PyObject *tq_py_backends(PyObject *op, PyObject *args)
{
    InterpreterObject *self = (InterpreterObject *)op;
    tq_graph_run *graph = enter_graph(self, args);
    if (!graph)
        return NULL;
    PyObject *list = PyList_New(0);
    for (uint32_t k = 0; list && k < graph->step_count; k++) {
        const tq_step *step = &graph->steps[k];
        if (tq_py_hears(k) < 0 ||
            tq_py_append(list, Py_BuildValue("(ssz)", backend_name(step->backend.numerics), step->backend.rule,
                                             tq_step_litert_failure(graph, step))) < 0)
            Py_CLEAR(list);
    }
    tq_py_leave(self);
    return list;
}
