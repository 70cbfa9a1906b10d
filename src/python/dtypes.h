/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_DTYPES_H
#define TQ_PYTHON_DTYPES_H

#include "python/state.h"

/* The NumPy dtype of Tensor.data for a known TensorType, borrowed from the state; NULL with an exception.  The first
   use of an ml_dtypes type imports ml_dtypes. */
PyArray_Descr *tq_py_dtype(tq_state *state, int64_t type);

/* The class that get_tensor_details reports for a TensorType, borrowed; None for an unknown type. */
PyObject *tq_py_details_class(tq_state *state, int64_t type);

/* The name of an integer TensorType, "int4", as a new str; None for any other value. */
PyObject *tq_py_integer_name(int64_t type);

#endif
