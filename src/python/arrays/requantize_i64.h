/* SPDX-License-Identifier: Apache-2.0
 *
 * requantize() of int64 accumulators.
 */
#ifndef TQ_PYTHON_ARRAYS_REQUANTIZE_I64_H
#define TQ_PYTHON_ARRAYS_REQUANTIZE_I64_H

#include "python/arrays/requantize_args.h"

/* Whether `q`, requantize()'s first argument, is an array or a scalar of int64: Python's own integers have no width. */
bool tq_py_is_int64(PyObject *q);

/* requantize() of such an array.  v[i]: NULL where it did not come.  NULL with an exception. */
PyObject *tq_py_requantize_i64(PyObject *module, PyObject *const v[TQ_RQ_ARGUMENTS]);

#endif
