/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_NETRON_H
#define TQ_PYTHON_MODEL_NETRON_H

#include "python/state.h"

/* The text that Netron shows for a tensor's quantization, '' where it shows none.  Contiguous arrays of any
   shape: scale, min and max float32, zero_point int64. */
PyObject *tq_py_netron_line(PyObject *scale, PyObject *zero_point, PyObject *min, PyObject *max);

#endif
