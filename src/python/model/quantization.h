/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_QUANTIZATION_H
#define TQ_PYTHON_MODEL_QUANTIZATION_H

#include "python/model/item.h"

/* tensor.quantization: a new Quantization, or NULL. */
PyObject *tq_py_quantization(ItemObject *tensor);

int tq_py_add_quantization(PyObject *module, tq_state *state);

#endif
