/* SPDX-License-Identifier: Apache-2.0
 *
 * Scales, zero points and ranges of a model's tensors, as arrays.
 */
#include "python/model/parameter_values.h"

#include "python/convert.h"
#include "python/model/data.h"

PyObject *tq_py_empty_array(int type)
{
    npy_intp none = 0;
    return PyArray_SimpleNew(1, &none, type);
}

/* The data of a parameter tensor of the same subgraph; None: index out of range, or no usable data.  NULL with an
   exception that the file did not cause. */
static PyObject *parameter_data(ItemObject *tensor, int64_t index)
{
    tq_subgraph subgraph = tq_py_subgraph_of(tensor);
    if (index < 0 || index >= subgraph.tensors.count)
        return Py_NewRef(Py_None);
    tq_state *state = tq_state_of((PyObject *)tensor);
    PyObject *other = tq_py_item(state->Tensor, tensor->model, tensor->subgraph, (size_t)index);
    PyObject *data = other ? tq_py_tensor_data((ItemObject *)other) : NULL;
    Py_XDECREF(other);
    if (!data && (PyErr_ExceptionMatches(state->ModelError) || PyErr_ExceptionMatches(PyExc_OSError))) {
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    if (data && data != Py_None && PyArray_DESCR((PyArrayObject *)data)->kind == 'O')
        Py_SETREF(data, Py_NewRef(Py_None));
    return data;
}

PyObject *tq_py_parameter_values(ItemObject *tensor, int64_t index, int type)
{
    PyObject *data = parameter_data(tensor, index);
    PyObject *values = !data || data == Py_None ? data ? tq_py_empty_array(type) : NULL
                                                : PyArray_Flatten((PyArrayObject *)data, NPY_CORDER);
    Py_XDECREF(data);
    return values;
}

/* The same in the tensor's shape, as `type`; rank 0 becomes shape (1,). */
static PyObject *values_as(ItemObject *tensor, int64_t index, int type)
{
    PyObject *data = parameter_data(tensor, index);
    if (data && data != Py_None && PyArray_NDIM((PyArrayObject *)data) == 0)
        Py_SETREF(data, PyArray_Flatten((PyArrayObject *)data, NPY_CORDER));
    PyObject *values = !data || data == Py_None
                           ? data ? tq_py_empty_array(type) : NULL
                           : PyArray_FromArray((PyArrayObject *)data, PyArray_DescrFromType(type),
                                               NPY_ARRAY_CARRAY | NPY_ARRAY_FORCECAST | NPY_ARRAY_ENSURECOPY);
    Py_XDECREF(data);
    return values;
}

int tq_py_tensor_scales(ItemObject *tensor, const tq_quantization *q, PyObject **scale, PyObject **zero_point)
{
    if (q->scales_tensor >= 0 || q->kind == TQ_QUANTIZATION_BLOCKWISE || q->kind == TQ_QUANTIZATION_MULTI_AXIS) {
        *scale = values_as(tensor, q->scales_tensor, NPY_FLOAT32);
        *zero_point = *scale ? values_as(tensor, q->zero_points_tensor, NPY_INT64) : NULL;
    } else {
        *scale = tq_py_array_f32(&q->scale);
        *zero_point = *scale ? tq_py_array_i64(&q->zero_point) : NULL;
    }
    if (*zero_point)
        return 0;
    Py_CLEAR(*scale);
    return -1;
}

/* out[i] = f32(f64(scale[i]) * factor).  If the factor is a float32, the product is exact in float64, so a float32
   multiplication gives the same result in half the time. */
static void multiply_scales(const uint8_t *scales, size_t count, double factor, float *out)
{
    float narrow = (float)factor;
    if ((double)narrow == factor)
        for (size_t i = 0; i < count; i++)
            out[i] = tq_load_f32(scales + 4 * i) * narrow;
    else
        for (size_t i = 0; i < count; i++)
            out[i] = (float)(tq_load_f32(scales + 4 * i) * factor);
}

/* Whether all zero points are equal, as they nearly always are. */
static bool all_agree(const uint8_t *zero_points, size_t zeros)
{
    uint64_t differ = 0; /* bits in which any differs from the first */
    for (size_t i = 1; i < zeros; i++)
        differ |= tq_load_u64(zero_points + 8 * i) ^ tq_load_u64(zero_points);
    return !differ;
}

int tq_py_range(int64_t type, const uint8_t *scales, size_t count, const uint8_t *zero_points, size_t zeros,
                PyObject **range_min, PyObject **range_max)
{
    const tq_type_row *row = tq_type(type);
    npy_intp size = row && row->kind == TQ_KIND_INTEGER ? (npy_intp)count : 0;
    *range_min = PyArray_SimpleNew(1, &size, NPY_FLOAT32);
    *range_max = *range_min ? PyArray_SimpleNew(1, &size, NPY_FLOAT32) : NULL;
    if (!*range_max) {
        Py_CLEAR(*range_min);
        return -1;
    }
    if (!size)
        return 0;
    float *low = PyArray_DATA((PyArrayObject *)*range_min), *high = PyArray_DATA((PyArrayObject *)*range_max);
    if (all_agree(zero_points, zeros)) {
        double zero = zeros ? (double)(int64_t)tq_load_u64(zero_points) : 0;
        multiply_scales(scales, count, row->low - zero, low);
        multiply_scales(scales, count, row->high - zero, high);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        double zero = (double)(int64_t)tq_load_u64(zero_points + 8 * (i < zeros ? i : zeros - 1));
        low[i] = (float)(tq_load_f32(scales + 4 * i) * (row->low - zero));
        high[i] = (float)(tq_load_f32(scales + 4 * i) * (row->high - zero));
    }
    return 0;
}

int tq_py_range_of_arrays(int64_t type, PyObject *scale, PyObject *zero_point, PyObject **range_min,
                          PyObject **range_max)
{
    PyArrayObject *s = (PyArrayObject *)scale, *z = (PyArrayObject *)zero_point;
    return tq_py_range(type, PyArray_DATA(s), (size_t)PyArray_SIZE(s), PyArray_DATA(z), (size_t)PyArray_SIZE(z),
                       range_min, range_max);
}
