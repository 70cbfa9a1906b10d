/* SPDX-License-Identifier: Apache-2.0
 *
 * The object that the files of tq.Quantization share: quantization.c has the type, quantization_new.c its constructor,
 * quantization_arrays.c its methods on arrays.
 */
#ifndef TQ_PYTHON_MODEL_QUANTIZATION_OBJECT_H
#define TQ_PYTHON_MODEL_QUANTIZATION_OBJECT_H

#include "model/quantization.h"
#include "python/state.h"

typedef struct QuantizationObject {
    PyObject_HEAD
    PyObject *scale, *zero_point, *min, *max, *range_min, *range_max, *details;
    PyObject *tensor;  /* whose it is; NULL for one made in Python */
    PyObject *dtype;   /* str: the type of the quantized values; None where the tensor has none */
    int quantized_dimension, block_size;
    tq_quantization_kind kind;
} QuantizationObject;

/* ---- quantization_new.c ---- */

PyObject *tq_py_quantization_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
PyObject *tq_py_quantization_reduce(QuantizationObject *self, PyObject *unused);

/* ---- quantization_arrays.c ---- */

PyObject *tq_py_quantization_quantize(QuantizationObject *self, PyObject *args, PyObject *kwargs);
PyObject *tq_py_quantization_dequantize(QuantizationObject *self, PyObject *args, PyObject *kwargs);

#endif
