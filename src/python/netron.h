/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_NETRON_H
#define TQ_PYTHON_NETRON_H

#include "model/quantization.h"
#include "python/state.h"

/* The text that Netron shows for a tensor's quantization: '' where it shows none. */
PyObject *tq_py_netron_line(const tq_quantization *q);

#endif
