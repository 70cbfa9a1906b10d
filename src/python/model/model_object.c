/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a model that are made at their first use: graphs, and files beside the model.
 */
#include "python/model/model_object.h"

#include "python/convert.h"
#include "python/errors.h"
#include "python/model/file.h"

static tq_status build_graph(ModelObject *self, size_t subgraph, tq_error *error)
{
    tq_status status = TQ_OK;
    if (!self->graphs)
        status =
            tq_allocate(&tq_default_allocator, self->model.subgraphs.count, sizeof *self->graphs, &self->graphs, error);
    if (status != TQ_OK || self->graphs[subgraph].producers)
        return status;
    tq_subgraph view = tq_model_subgraph(&self->model, subgraph);
    return tq_graph_build(&view, &tq_default_allocator, &self->graphs[subgraph], error);
}

const tq_graph *tq_py_model_graph(ModelObject *self, size_t subgraph)
{
    tq_error error;
    tq_status status;
    TQ_HOLD(self)
    status = build_graph(self, subgraph, &error);
    TQ_LET_GO()
    if (status != TQ_OK) {
        tq_py_raise(tq_state_of((PyObject *)self), &error, NULL);
        return NULL;
    }
    return &self->graphs[subgraph];
}

/* Maps the file of an external buffer group. */
static PyObject *open_external_file(ModelObject *self, int64_t group)
{
    tq_table row = tq_vector_table(&self->model.external_groups, (size_t)group);
    PyObject *name = tq_py_text(tq_get_string(&row, TQ_ExternalBufferGroup_name));
    PyObject *pair = name ? PyTuple_Pack(2, self->path, name) : NULL;
    PyObject *path = pair ? tq_py_call("tq.external", "side_file", pair) : NULL;
    PyObject *file = path ? tq_py_file(tq_state_of((PyObject *)self), path) : NULL;
    Py_XDECREF(path);
    Py_XDECREF(pair);
    Py_XDECREF(name);
    return file;
}

PyObject *tq_py_model_external_file(ModelObject *self, int64_t group)
{
    PyObject *files = self->external_files, *key = PyLong_FromLongLong(group), *file = NULL;
    if (!files)
        files = tq_py_publish(&self->external_files, PyDict_New());
    if (key && files)
        file = Py_XNewRef(PyDict_GetItemWithError(files, key)); /* entries are never removed */
    if (key && files && !file && !PyErr_Occurred()) {
        /* If another thread opens it at the same time, the first stays: interpreters read it without a reference. */
        PyObject *made = open_external_file(self, group);
        file = made ? Py_XNewRef(PyDict_SetDefault(files, key, made)) : NULL;
        Py_XDECREF(made);
    }
    Py_XDECREF(key);
    return file;
}
