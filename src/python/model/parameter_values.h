/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor's quantization parameters as arrays, and the range of real values that follows from them.
 */
#ifndef TQ_PYTHON_MODEL_PARAMETER_VALUES_H
#define TQ_PYTHON_MODEL_PARAMETER_VALUES_H

#include "model/quantization.h"
#include "python/model/item.h"

/* A new array of one dimension and no elements, of that NumPy type. */
PyObject *tq_py_empty_array(int type);

/* The scales (float32) and zero points (int64) of a tensor as C-contiguous arrays, new references: from the file's
   vectors or, blockwise and multi-axis, from the parameter tensors.  Empty where there are none.  0, or -1 with an
   exception. */
int tq_py_tensor_scales(ItemObject *tensor, const tq_quantization *q, PyObject **scale, PyObject **zero_point);

/* The values of a parameter tensor, flat, in its dtype, a new reference.  Empty, of `type`: index out of range, or no
   usable data. */
PyObject *tq_py_parameter_values(ItemObject *tensor, int64_t index, int type);

/* range_min and range_max: the real values of the lowest and highest integer of a type with each of `count`
   scales, scale * (q - zero_point) in float64, rounded to float32; empty for types that are no integers.
   scales: float32, zero_points: int64, little-endian, at any alignment.  With fewer zero points the last counts for all
   further scales; none mean 0.  New references; 0, or -1 with an exception. */
int tq_py_range(int64_t type, const uint8_t *scales, size_t count, const uint8_t *zero_points, size_t zeros,
                PyObject **range_min, PyObject **range_max);

/* The same of arrays: float32 scales and int64 zero points, contiguous. */
int tq_py_range_of_arrays(int64_t type, PyObject *scale, PyObject *zero_point, PyObject **range_min,
                          PyObject **range_max);

#endif
