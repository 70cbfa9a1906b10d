/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_DATA_H
#define TQ_PYTHON_MODEL_DATA_H

#include "base/bytes.h"
#include "python/model/item.h"

/* Tensor.data: a read-only view where the stored form allows it, otherwise a new array. */
PyObject *tq_py_tensor_data(ItemObject *tensor);

/* Tensor.densify(): a sparse constant in its full shape; Tensor.data for a dense one. */
PyObject *tq_py_tensor_densify(ItemObject *tensor);

/* Tensor.dequantized(): float32 in the tensor's shape. */
PyObject *tq_py_tensor_dequantized(ItemObject *tensor);

/* Sets the exception of `error` with the tensor's name before its text; returns NULL. */
PyObject *tq_py_raise_at(ItemObject *tensor, tq_error *error);

/* A read-only array over `bytes`, which live as long as `owner` (consumed). */
PyObject *tq_py_view(tq_bytes bytes, PyArray_Descr *dtype, int rank, const npy_intp *shape, PyObject *owner);

#endif
