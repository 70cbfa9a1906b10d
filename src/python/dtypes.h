/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_DTYPES_H
#define TQ_PYTHON_DTYPES_H

#include "python/state.h"

/* The NumPy dtype of Tensor.data for a TensorType (which must be known), a borrowed reference that
   the state keeps.  ml_dtypes is imported the first time that one of its types is asked for. */
PyArray_Descr *tq_py_dtype(tq_state *state, int64_t type);

/* The class that get_tensor_details reports for a TensorType, borrowed; None for one not known. */
PyObject *tq_py_details_class(tq_state *state, int64_t type);

/* "int4" of a TensorType whose elements are integers, a new str; a new reference to None of any other number. */
PyObject *tq_py_integer_name(int64_t type);

#endif
