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

/* The scales (float32) and zero points (int64) that hold for a tensor, C-contiguous new references: those
   in the file's vectors or, blockwise and multi-axis, in the tensors that the details name.  Empty where
   there are none.  0, or -1 with an exception. */
int tq_py_tensor_scales(ItemObject *tensor, const tq_quantization *q, PyObject **scale, PyObject **zero_point);

/* A parameter tensor's values, flat and in their own dtype, a new reference; empty of `type` where `index`
   is no tensor, or one without usable data. */
PyObject *tq_py_parameter_values(ItemObject *tensor, int64_t index, int type);

/* range_min and range_max: the real values of the lowest and highest integer of a type under each of `count`
   scales, scale * (q - zero_point) in float64, rounded to float32; empty for types that are no integers.
   scales: float32, zero_points: int64, as they stand in a file, at any alignment; of zero points there may
   be fewer, of which the last then holds for the rest, or none, which means 0.  New references; 0, or -1
   with an exception. */
int tq_py_range(int64_t type, const uint8_t *scales, size_t count, const uint8_t *zero_points, size_t zeros,
                PyObject **range_min, PyObject **range_max);

/* The same of arrays: float32 scales and int64 zero points, contiguous. */
int tq_py_range_of_arrays(int64_t type, PyObject *scale, PyObject *zero_point, PyObject **range_min,
                          PyObject **range_max);

#endif
