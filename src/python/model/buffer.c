/* SPDX-License-Identifier: Apache-2.0
 *
 * tq.Buffer: raw bytes of a model.
 */
#include "python/model/buffer.h"

#include "python/model/data.h"
#include "python/errors.h"
#include "python/model/item.h"

/* 0, or -1 with ModelError. */
static int bytes_of(ItemObject *self, tq_bytes *bytes)
{
    tq_error error;
    if (tq_model_buffer(&self->model->model, self->index, bytes, &error) == TQ_OK)
        return 0;
    tq_py_raise(tq_state_of((PyObject *)self), &error, NULL);
    return -1;
}

static PyObject *get_nbytes(ItemObject *self, void *closure)
{
    (void)closure;
    tq_bytes bytes;
    return bytes_of(self, &bytes) < 0 ? NULL : PyLong_FromSize_t(bytes.data ? bytes.size : 0);
}

static PyObject *get_offset(ItemObject *self, void *closure)
{
    (void)closure;
    tq_bytes bytes;
    if (bytes_of(self, &bytes) < 0)
        return NULL;
    if (!bytes.data)
        Py_RETURN_NONE;
    return PyLong_FromSize_t((size_t)(bytes.data - self->model->model.file.data));
}

static PyObject *get_data(ItemObject *self, void *closure)
{
    (void)closure;
    tq_bytes bytes;
    if (bytes_of(self, &bytes) < 0)
        return NULL;
    if (!bytes.data)
        Py_RETURN_NONE;
    PyArray_Descr *dtype = PyArray_DescrFromType(NPY_UINT8);
    npy_intp size = (npy_intp)bytes.size;
    PyObject *array = tq_py_view(bytes, dtype, 1, &size, Py_NewRef(self->model));
    Py_DECREF(dtype);
    return array;
}

static PyObject *get_is_inline(ItemObject *self, void *closure)
{
    (void)closure;
    tq_table table = tq_vector_table(&self->model->model.buffers, self->index);
    return PyBool_FromLong(tq_get_vector(&table, TQ_Buffer_data).at != 0);
}

static PyObject *repr(ItemObject *self)
{
    tq_bytes bytes;
    if (tq_model_buffer(&self->model->model, self->index, &bytes, NULL) != TQ_OK)
        return PyUnicode_FromFormat("<tq.Buffer %u: outside the file>", self->index);
    return PyUnicode_FromFormat("<tq.Buffer %u: %zu bytes>", self->index, bytes.data ? bytes.size : 0);
}

static PyGetSetDef properties[] = {
    {"model", tq_py_item_model, NULL, "The model that it belongs to.", NULL},
    {"index", tq_py_item_index, NULL, "Its index among the model's buffers.", NULL},
    {"nbytes", (getter)get_nbytes, NULL, "How many bytes it has.  ModelError: they lie outside the file.", NULL},
    {"offset", (getter)get_offset, NULL, "Of its first byte in the file, or None without data.", NULL},
    {"data", (getter)get_data, NULL, "Its bytes as a read-only uint8 array, a view, or None without data.", NULL},
    {"is_inline", (getter)get_is_inline, NULL,
     "Whether its data stands in the flatbuffer, rather than behind it and found by offset.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Raw bytes of a model, which tensors and metadata refer to by index."},
    TQ_ITEM_SLOTS,
    {Py_tp_repr, repr},
    {Py_tp_getset, properties},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core.Buffer",
    .basicsize = sizeof(ItemObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tq_py_add_buffer(PyObject *module, tq_state *state)
{
    return tq_py_add_type(module, &spec, &state->Buffer);
}
