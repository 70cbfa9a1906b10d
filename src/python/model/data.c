/* SPDX-License-Identifier: Apache-2.0
 *
 * A constant's data as NumPy arrays.
 */
#include "python/model/data.h"

#include "model/sparsity.h"
#include "model/tensor.h"
#include "python/convert.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "python/model/file.h"

PyObject *tq_py_raise_at(ItemObject *tensor, tq_error *error)
{
    tq_table view = tq_py_tensor_table(tensor);
    tq_bytes name = tq_get_string(&view, TQ_Tensor_name);
    int shown = name.size > 80 ? 80 : (int)name.size;
    char text[sizeof error->text];
    memcpy(text, error->text, sizeof text);
    text[sizeof text - 1] = 0;
    snprintf(error->text, sizeof error->text, "tensor %u '%.*s': %.140s", tensor->index, shown,
             name.data ? (const char *)name.data : "", text);
    return tq_py_raise(tq_state_of((PyObject *)tensor), error, NULL);
}

static int external_bytes(ItemObject *tensor, int64_t id, tq_bytes *bytes, PyObject **owner)
{
    tq_error error;
    tq_table buffer = tq_model_external_buffer(&tensor->model->model, id);
    if (!buffer.at) {
        tq_fail(&error, TQ_BAD_INDEX, TQ_NO_OFFSET, "external buffer %lld is not in the model", (long long)id);
        error.status = TQ_DATA_RANGE;
        tq_py_raise_at(tensor, &error);
        return -1;
    }
    PyObject *file = tq_py_model_external_file(tensor->model, tq_get_int(&buffer, TQ_ExternalBuffer_group));
    if (!file)
        return -1;
    tq_bytes all = ((FileObject *)file)->file.bytes;
    uint64_t offset = tq_get_u64(&buffer, TQ_ExternalBuffer_offset),
             length = tq_get_u64(&buffer, TQ_ExternalBuffer_length);
    if (!tq_bytes_hold(all, offset, length)) {
        tq_fail(&error, TQ_DATA_RANGE, TQ_NO_OFFSET, "%llu bytes at byte %llu of a side file that has %llu",
                (unsigned long long)length, (unsigned long long)offset, (unsigned long long)all.size);
        Py_DECREF(file);
        tq_py_raise_at(tensor, &error);
        return -1;
    }
    *bytes = (tq_bytes){all.data + offset, (size_t)length};
    *owner = file;
    return 0;
}

/* The stored bytes of a tensor, and the object that keeps them (a new reference): the model, or the
   file of an external buffer.  bytes.data NULL, and no owner: the tensor is no constant.
   0, or -1 with ModelError or OSError. */
static int stored_bytes(ItemObject *tensor, tq_bytes *bytes, PyObject **owner)
{
    tq_table view = tq_py_tensor_table(tensor);
    int64_t external = tq_get_int(&view, TQ_Tensor_external_buffer);
    tq_error error;
    *owner = NULL;
    *bytes = (tq_bytes){NULL, 0};
    if (external)
        return external_bytes(tensor, external, bytes, owner);
    tq_status status = tq_tensor_bytes(&tensor->model->model, &view, bytes, &error);
    if (status == TQ_BAD_INDEX)
        error.status = TQ_DATA_RANGE; /* to the user it is the file that is wrong, not an index of theirs */
    if (status != TQ_OK) {
        tq_py_raise_at(tensor, &error);
        return -1;
    }
    if (bytes->data)
        *owner = Py_NewRef(tensor->model);
    return 0;
}

enum { MAX_RANK = 32 }; /* what every NumPy holds */

/* A tensor's shape for NumPy; the rank, or -1 with ModelError for one that NumPy cannot hold. */
static int shape_of(ItemObject *tensor, npy_intp shape[MAX_RANK])
{
    tq_table view = tq_py_tensor_table(tensor);
    tq_vector dims = tq_get_vector(&view, TQ_Tensor_shape);
    tq_error error;
    uint64_t count;
    if (dims.count > MAX_RANK) {
        tq_fail(&error, TQ_BAD_SHAPE, TQ_NO_OFFSET, "rank %u; NumPy holds at most %d", dims.count, MAX_RANK);
    } else if (tq_shape_count(&dims, &count, &error) == TQ_OK) {
        for (uint32_t i = 0; i < dims.count; i++)
            shape[i] = tq_vector_i32(&dims, i);
        return (int)dims.count;
    }
    tq_py_raise_at(tensor, &error);
    return -1;
}

PyObject *tq_py_view(tq_bytes bytes, PyArray_Descr *dtype, int rank, const npy_intp *shape, PyObject *owner)
{
    Py_INCREF(dtype);
    PyObject *array =
        PyArray_NewFromDescr(&PyArray_Type, dtype, rank, shape, NULL, (void *)(uintptr_t)bytes.data, 0, NULL);
    if (!array || PyArray_SetBaseObject((PyArrayObject *)array, owner) < 0) {
        if (!array)
            Py_DECREF(owner); /* SetBaseObject took it otherwise */
        Py_XDECREF(array);
        return NULL;
    }
    PyArray_UpdateFlags((PyArrayObject *)array, NPY_ARRAY_UPDATE_ALL);
    return array;
}

/* ---- the stored forms ---- */

/* 4- and 2-bit quantized values, one to a byte. */
static PyObject *unpack(tq_bytes bytes, const tq_type_row *row, PyArray_Descr *dtype, int rank, const npy_intp *shape)
{
    Py_INCREF(dtype);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, dtype, rank, shape, NULL, NULL, 0, NULL);
    if (array) {
        uint64_t count = (uint64_t)PyArray_SIZE((PyArrayObject *)array);
        uint8_t *out = PyArray_DATA((PyArrayObject *)array);
        Py_BEGIN_ALLOW_THREADS
        tq_unpack_bits(bytes.data, row->bits, row->low < 0, count, out);
        Py_END_ALLOW_THREADS
        PyArray_CLEARFLAGS((PyArrayObject *)array, NPY_ARRAY_WRITEABLE);
    }
    return array;
}

/* An object array of bytes: in the tensor's shape where that has as many elements, else flat. */
static PyObject *string_array(ItemObject *tensor, tq_bytes bytes)
{
    npy_intp shape[MAX_RANK];
    tq_strings strings;
    tq_error error;
    if (tq_strings_open(bytes, &strings, &error) != TQ_OK)
        return tq_py_raise_at(tensor, &error);
    int rank = shape_of(tensor, shape);
    if (rank < 0 || PyArray_MultiplyList(shape, rank) != strings.count) {
        PyErr_Clear();
        rank = 1;
        shape[0] = strings.count;
    }
    PyObject *array = PyArray_SimpleNew(rank, shape, NPY_OBJECT);
    PyObject **items = array ? PyArray_DATA((PyArrayObject *)array) : NULL;
    for (uint32_t i = 0; array && i < strings.count; i++) {
        tq_bytes item = tq_strings_item(&strings, i);
        PyObject *made = PyBytes_FromStringAndSize((const char *)item.data, item.data ? (Py_ssize_t)item.size : 0);
        if (!made)
            Py_CLEAR(array);
        else
            Py_XSETREF(items[i], made);
    }
    if (array)
        PyArray_CLEARFLAGS((PyArrayObject *)array, NPY_ARRAY_WRITEABLE);
    return array;
}

/* Bytes of a dense tensor of fixed-size elements. */
static PyObject *dense_array(ItemObject *tensor, tq_bytes bytes, const tq_type_row *row, PyArray_Descr *dtype,
                             PyObject *owner)
{
    tq_table view = tq_py_tensor_table(tensor);
    npy_intp shape[MAX_RANK];
    tq_error error;
    uint64_t needed;
    int rank = shape_of(tensor, shape);
    if (rank < 0)
        return NULL;
    if (tq_tensor_size(&view, &needed, &error) != TQ_OK)
        return tq_py_raise_at(tensor, &error);
    if (bytes.size == 0 && needed > 0)
        Py_RETURN_NONE; /* a buffer that was never filled: no constant */
    if (bytes.size < needed) {
        tq_fail(&error, TQ_DATA_SIZE, TQ_NO_OFFSET, "its buffer has %llu bytes, shape and type need %llu",
                (unsigned long long)bytes.size, (unsigned long long)needed);
        return tq_py_raise_at(tensor, &error);
    }
    if (row->bits < 8)
        return unpack(bytes, row, dtype, rank, shape);
    return tq_py_view(bytes, dtype, rank, shape, Py_NewRef(owner));
}

/* The stored values of a sparse tensor, flat. */
static PyObject *sparse_values(tq_bytes bytes, const tq_type_row *row, PyArray_Descr *dtype, PyObject *owner)
{
    npy_intp count = (npy_intp)(bytes.size * 8 / row->bits);
    if (row->bits < 8)
        return unpack(bytes, row, dtype, 1, &count);
    return tq_py_view(bytes, dtype, 1, &count, Py_NewRef(owner));
}

static PyObject *make_data(ItemObject *tensor, tq_bytes bytes, PyObject *owner)
{
    tq_table view = tq_py_tensor_table(tensor);
    int64_t type = tq_get_int(&view, TQ_Tensor_type);
    const tq_type_row *row = tq_type(type);
    tq_error error;
    if (row && row->kind == TQ_KIND_STRING)
        return bytes.size ? string_array(tensor, bytes) : Py_NewRef(Py_None);
    if (!row || !row->bits) {
        tq_fail(&error, TQ_BAD_TYPE, TQ_NO_OFFSET, "type %d %s has no array form", (int)type,
                row ? row->name : "(unknown)");
        return tq_py_raise_at(tensor, &error);
    }
    PyArray_Descr *dtype = tq_py_dtype(tq_state_of((PyObject *)tensor), type);
    if (!dtype)
        return NULL;
    if (tq_get_table(&view, TQ_Tensor_sparsity).at)
        return sparse_values(bytes, row, dtype, owner);
    return dense_array(tensor, bytes, row, dtype, owner);
}

PyObject *tq_py_tensor_data(ItemObject *tensor)
{
    tq_bytes bytes;
    PyObject *owner;
    if (stored_bytes(tensor, &bytes, &owner) < 0)
        return NULL;
    PyObject *data = owner ? make_data(tensor, bytes, owner) : Py_NewRef(Py_None);
    Py_XDECREF(owner);
    return data;
}

/* ---- derived arrays ---- */

static PyObject *densify_bytes(ItemObject *tensor, tq_bytes bytes)
{
    tq_table view = tq_py_tensor_table(tensor);
    int64_t type = tq_get_int(&view, TQ_Tensor_type);
    npy_intp shape[MAX_RANK];
    tq_sparsity sparsity;
    tq_error error;
    int rank = shape_of(tensor, shape);
    if (rank < 0)
        return NULL;
    /* Checked before the dense array is made, so that a file cannot ask for a large one that it does not describe. */
    if (!tq_type(type) || tq_type(type)->bits < 8) {
        tq_fail(&error, TQ_BAD_TYPE, TQ_NO_OFFSET, "type %d has no dense form of whole bytes", (int)type);
        return tq_py_raise_at(tensor, &error);
    }
    if (tq_sparsity_open(&view, &sparsity, &error) != TQ_OK)
        return tq_py_raise_at(tensor, &error);
    PyArray_Descr *dtype = tq_py_dtype(tq_state_of((PyObject *)tensor), type);
    PyObject *array = dtype ? PyArray_Zeros(rank, shape, (PyArray_Descr *)Py_NewRef(dtype), 0) : NULL;
    if (!array)
        return NULL;
    tq_status status;
    uint64_t size = (uint64_t)PyArray_NBYTES((PyArrayObject *)array);
    Py_BEGIN_ALLOW_THREADS
    status = tq_tensor_densify(&view, bytes, PyArray_DATA((PyArrayObject *)array), size, &error);
    Py_END_ALLOW_THREADS
    if (status != TQ_OK) {
        Py_DECREF(array);
        return tq_py_raise_at(tensor, &error);
    }
    PyArray_CLEARFLAGS((PyArrayObject *)array, NPY_ARRAY_WRITEABLE);
    return array;
}

/* The stored bytes of what must be a constant, and their owner; 0, or -1 with an exception. */
static int constant_bytes(ItemObject *tensor, tq_bytes *bytes, PyObject **owner)
{
    tq_error error;
    if (stored_bytes(tensor, bytes, owner) < 0)
        return -1;
    if (*owner)
        return 0;
    tq_fail(&error, TQ_DATA_SIZE, TQ_NO_OFFSET, "it is no constant: the model stores no data for it");
    tq_py_raise_at(tensor, &error);
    return -1;
}

PyObject *tq_py_tensor_densify(ItemObject *tensor)
{
    tq_table view = tq_py_tensor_table(tensor);
    tq_bytes bytes;
    PyObject *owner;
    if (constant_bytes(tensor, &bytes, &owner) < 0)
        return NULL;
    bool sparse = tq_get_table(&view, TQ_Tensor_sparsity).at != 0;
    PyObject *array = sparse ? densify_bytes(tensor, bytes) : make_data(tensor, bytes, owner);
    Py_DECREF(owner);
    return array;
}
