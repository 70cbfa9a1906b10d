/* SPDX-License-Identifier: Apache-2.0
 *
 * tq.Quantization(...): made in Python from arguments, which are checked and copied; and __reduce__, for copies and
 * pickles.
 */
#include "python/model/quantization_object.h"

#include "python/arrays/array_args.h"
#include "python/convert.h"
#include "python/dtypes.h"
#include "python/arrays/operands.h"
#include "python/model/parameter_values.h"

/* The TensorType of a dtype argument; -1 with an exception. */
static int64_t type_of(PyObject *dtype)
{
    PyObject *name = NULL;
    PyArray_Descr *descr = NULL;
    if (PyUnicode_Check(dtype)) {
        name = Py_NewRef(dtype);
    } else if (dtype == Py_None || PyArray_DescrConverter(dtype, &descr) != NPY_SUCCEED) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "dtype is %R; it must be an integer type such as 'int8' or 'int4'", dtype);
        return -1;
    } else {
        name = PyObject_GetAttrString((PyObject *)descr, "name");
        Py_DECREF(descr);
    }
    for (int64_t type = 0; name && type < TQ_TYPE_COUNT; type++) {
        PyObject *candidate = tq_py_integer_name(type);
        int equal = candidate && candidate != Py_None && PyUnicode_Compare(candidate, name) == 0;
        Py_XDECREF(candidate);
        if (equal) {
            Py_DECREF(name);
            return type;
        }
    }
    if (name && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "dtype must be an integer type such as 'int8' or 'int4', not %R", name);
    Py_XDECREF(name);
    return -1;
}

/* A copy, of one dimension unless `blocks`.  Steals `array`. */
static PyObject *own_copy(PyArrayObject *array, const char *name, bool blocks)
{
    PyObject *copy = NULL;
    if (array && PyArray_NDIM(array) > 1 && !blocks)
        PyErr_Format(PyExc_ValueError, "%s must have at most one dimension, not %d", name, PyArray_NDIM(array));
    else if (array)
        copy = PyArray_NDIM(array) > 1 ? PyArray_NewCopy(array, NPY_CORDER) : PyArray_Flatten(array, NPY_CORDER);
    Py_XDECREF(array);
    return copy;
}

/* Real values as float32; NULL and None give an empty array. */
static PyObject *own_reals(PyObject *argument, const char *name, bool blocks)
{
    if (!argument || argument == Py_None)
        return tq_py_empty_array(NPY_FLOAT32);
    return own_copy(tq_py_dense_floats(argument, name), name, blocks);
}

static PyObject *own_integers(PyObject *argument, const char *name, bool blocks)
{
    if (!argument || argument == Py_None)
        return tq_py_empty_array(NPY_INT64);
    return own_copy(tq_py_integers(argument, name, NPY_INT64), name, blocks);
}

static int counts_fit(QuantizationObject *self)
{
    npy_intp scales = PyArray_SIZE((PyArrayObject *)self->scale);
    struct {
        const char *name;
        PyObject *array;
        int may_be_one;
    } rows[] = {{"zero_point", self->zero_point, 1}, {"min", self->min, 0}, {"max", self->max, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        npy_intp count = PyArray_SIZE((PyArrayObject *)rows[i].array);
        if (count && count != scales && !(rows[i].may_be_one && count == 1)) {
            PyErr_Format(PyExc_ValueError, "%s has %zd values, scale has %zd; they need as many", rows[i].name,
                         (Py_ssize_t)count, (Py_ssize_t)scales);
            return 0;
        }
    }
    return 1;
}

PyObject *tq_py_quantization_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"scale", "zero_point", "dtype", "quantized_dimension", "block_size", "min", "max", NULL};
    PyObject *scale, *zero_point = NULL, *dtype = NULL, *axis = NULL, *block_size = NULL, *min = NULL, *max = NULL;
    bool given;
    long dimension = 0, block = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$OOOOO:Quantization", names, &scale, &zero_point, &dtype, &axis,
                                     &block_size, &min, &max) ||
        !tq_py_optional_int(axis, "quantized_dimension", INT32_MIN, INT32_MAX, &given, &dimension) ||
        !tq_py_optional_int(block_size, "block_size", 0, INT32_MAX, &given, &block))
        return NULL;
    int64_t tensor_type = dtype ? type_of(dtype) : TQ_TensorType_INT8;
    QuantizationObject *self = tensor_type < 0 ? NULL : (QuantizationObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->quantized_dimension = (int)dimension;
    self->block_size = (int)block;
    self->details = Py_NewRef(Py_None);
    self->dtype = tq_py_integer_name(tensor_type);
    self->scale = own_reals(scale, "scale", block > 0);
    self->zero_point = self->scale ? own_integers(zero_point, "zero_point", block > 0) : NULL;
    self->min = self->zero_point ? own_reals(min, "min", false) : NULL;
    self->max = self->min ? own_reals(max, "max", false) : NULL;
    if (!self->dtype || !self->max || !counts_fit(self) ||
        tq_py_range_of_arrays(tensor_type, self->scale, self->zero_point, &self->range_min, &self->range_max) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    npy_intp scales = PyArray_SIZE((PyArrayObject *)self->scale);
    self->kind = scales == 0   ? TQ_QUANTIZATION_NONE
                 : block > 0   ? TQ_QUANTIZATION_BLOCKWISE
                 : scales == 1 ? TQ_QUANTIZATION_PER_TENSOR
                               : TQ_QUANTIZATION_PER_AXIS;
    return (PyObject *)self;
}

PyObject *tq_py_quantization_reduce(QuantizationObject *self, PyObject *unused)
{
    (void)unused;
    if (self->details != Py_None || self->dtype == Py_None)
        return PyErr_Format(PyExc_TypeError,
                            "a Quantization is copied by its scale, zero_point and dtype: this one has %s",
                            self->dtype == Py_None ? "no dtype, since its tensor's elements are no quantized values"
                                                   : "details, which stand for more in its file");
    if (!counts_fit(self))
        return NULL;
    PyObject *keywords =
        Py_BuildValue("{sOsisisOsO}", "dtype", self->dtype, "quantized_dimension", self->quantized_dimension,
                      "block_size", self->block_size, "min", self->min, "max", self->max);
    return tq_py_reduced((PyObject *)self, PyTuple_Pack(2, self->scale, self->zero_point), keywords);
}
