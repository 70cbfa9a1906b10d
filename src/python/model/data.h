/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_DATA_H
#define TQ_PYTHON_MODEL_DATA_H

#include "base/bytes.h"
#include "python/model/item.h"

/* Tensor.data: a read-only view where the stored form allows one, else a new array. */
PyObject *tq_py_tensor_data(ItemObject *tensor);

/* Tensor.densify(): a sparse constant in its full shape; Tensor.data where it is not sparse. */
PyObject *tq_py_tensor_densify(ItemObject *tensor);

/* Tensor.dequantized(): float32 in the tensor's shape. */
PyObject *tq_py_tensor_dequantized(ItemObject *tensor);

/* Raises `error` with the tensor named in front of its text; returns NULL. */
PyObject *tq_py_raise_at(ItemObject *tensor, tq_error *error);

/* A read-only array over `bytes`, which live as long as `owner` (consumed). */
PyObject *tq_py_view(tq_bytes bytes, PyArray_Descr *dtype, int rank, const npy_intp *shape, PyObject *owner);

#endif
