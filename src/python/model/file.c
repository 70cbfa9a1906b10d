/* SPDX-License-Identifier: Apache-2.0
 *
 * A mapped file as a Python object: internal, never seen by users but as the base of an array.
 */
#include "python/model/file.h"

#include "python/errors.h"

/* Bytes that the core can open a path by. */
static PyObject *encode_path(PyObject *path)
{
    PyObject *encoded = NULL;
#ifdef _WIN32
    PyObject *text;
    if (PyUnicode_FSDecoder(path, &text)) {
        encoded = PyUnicode_AsUTF8String(text);
        Py_DECREF(text);
    }
#else
    if (!PyUnicode_FSConverter(path, &encoded))
        encoded = NULL;
#endif
    return encoded;
}

PyObject *tq_py_file(tq_state *state, PyObject *path)
{
    PyObject *encoded = encode_path(path);
    if (!encoded)
        return NULL;
    tq_file file;
    tq_error error;
    tq_status status;
    Py_BEGIN_ALLOW_THREADS
    status = tq_file_map(PyBytes_AS_STRING(encoded), &file, &error);
    Py_END_ALLOW_THREADS
    Py_DECREF(encoded);
    if (status != TQ_OK)
        return tq_py_raise(state, &error, path);
    PyTypeObject *type = (PyTypeObject *)state->File;
    FileObject *self = (FileObject *)type->tp_alloc(type, 0);
    if (self)
        self->file = file;
    else
        tq_file_unmap(&file);
    return (PyObject *)self;
}

static void dealloc(FileObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    tq_file_unmap(&self->file);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core._File",
    .basicsize = sizeof(FileObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tq_py_add_file(PyObject *module, tq_state *state)
{
    return tq_py_add_type(module, &spec, &state->File);
}
