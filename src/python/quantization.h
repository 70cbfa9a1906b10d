/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_QUANTIZATION_H
#define TQ_PYTHON_QUANTIZATION_H

#include "model/quantization.h"
#include "python/part.h"

/* tensor.quantization: a new Quantization, or NULL. */
PyObject *tq_py_quantization(PartObject *tensor);

/* The scales (float32) and zero points (int64) that hold for a tensor, C-contiguous new references: those
   in the file's vectors or, blockwise and multi-axis, in the tensors that the details name.  Empty where
   there are none.  0, or -1 with an exception. */
int tq_py_tensor_scales(PartObject *tensor, const tq_quantization *q, PyObject **scale, PyObject **zero_point);

/* A parameter tensor's values, flat and in their own dtype, a new reference; empty of `type` where `index`
   is no tensor, or one without usable data. */
PyObject *tq_py_parameter_values(PartObject *tensor, int64_t index, int type);

/* What a code stands for, as range_min and range_max state it. */
static inline float tq_py_real(float scale, double code, double zero_point)
{
    return (float)(scale * (code - zero_point));
}

/* What one code, `factor` above its zero point, stands for under each of `count` float32 scales at any
   alignment. */
void tq_py_multiply_scales(const uint8_t *scales, size_t count, double factor, float *out);

/* The lowest and highest real numbers that codes can stand for, one a scale: scale * (code - zero_point)
   in float64, rounded to float32.  Empty for types without codes.  0, or -1 with an exception. */
int tq_py_range(int64_t type, PyObject *scale, PyObject *zero_point, PyObject **range_min, PyObject **range_max);

int tq_py_add_quantization(PyObject *module, tq_state *state);

#endif
