/* SPDX-License-Identifier: Apache-2.0
 *
 * tq.Quantization on arrays: quantize() and dequantize() are the module's functions of these names, called with the
 * parameters that the quantization holds.
 */
#include "python/model/quantization_object.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "python/arrays/array_args.h"
#include "python/convert.h"
#include "python/arrays/operands.h"

/* Replaces NumPy's error about a wrong shape, which does not name the argument. */
static void refuse_blocks(const QuantizationObject *self, const char *name, PyObject *values, PyArrayObject *x)
{
    PyObject *found = PyObject_GetAttrString(values, "shape");
    PyObject *shape = found ? PyObject_GetAttrString((PyObject *)x, "shape") : NULL;
    if (shape)
        PyErr_Format(PyExc_ValueError,
                     "%s has shape %R: it does not fit an array of shape %R in blocks of %d along the last dimension",
                     name, found, shape, self->block_size);
    Py_XDECREF(found);
    Py_XDECREF(shape);
}

/* The scales of blocks in the array functions' shape: the input's, with the number of blocks as last dimension.  Where
   the ranks are equal, these functions report a wrong shape. */
static PyObject *block_scales(const QuantizationObject *self, const char *name, PyObject *values, PyObject *input)
{
    PyArrayObject *x = tq_py_array(input, "x", false);
    if (!x)
        return NULL;
    int rank = PyArray_NDIM(x);
    PyObject *result = NULL, *shape = NULL;
    if (rank == 0 || rank == PyArray_NDIM((PyArrayObject *)values))
        result = Py_NewRef(values);
    else
        shape = PyTuple_New(rank);
    for (int d = 0; shape && d < rank; d++)
        PyTuple_SET_ITEM(shape, d, PyLong_FromSsize_t(d + 1 < rank ? PyArray_DIM(x, d) : -1));
    if (shape)
        result = PyObject_CallMethod(values, "reshape", "(O)", shape);
    if (!result && PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear();
        refuse_blocks(self, name, values, x);
    }
    Py_XDECREF(shape);
    Py_DECREF(x);
    return result;
}

/* A scale or zero point argument: the array, or one value where all are equal. */
static PyObject *argument_of(QuantizationObject *self, const char *name, PyObject *values, PyObject *x)
{
    if (PyArray_SIZE((PyArrayObject *)values) == 0)
        return PyLong_FromLong(0);
    bool for_all = self->kind == TQ_QUANTIZATION_PER_TENSOR || values == self->zero_point;
    if (PyArray_SIZE((PyArrayObject *)values) == 1 && for_all)
        return PyArray_ToScalar(PyArray_DATA((PyArrayObject *)values), (PyArrayObject *)values);
    return self->kind == TQ_QUANTIZATION_BLOCKWISE ? block_scales(self, name, values, x) : Py_NewRef(values);
}

/* Refuses keywords for parameters of the quantization. */
static int check_keywords(bool quantizing, PyObject *kwargs)
{
    static const char *const own[] = {"scale", "zero_point", "axis", "block_size", "dtype"};
    const int count = quantizing ? 5 : 4; /* dequantize has its own dtype, of the result */
    for (int i = 0; kwargs && i < count; i++)
        if (PyDict_GetItemString(kwargs, own[i])) {
            PyErr_Format(PyExc_TypeError, "%s() has no argument '%s': the quantization has its own",
                         quantizing ? "quantize" : "dequantize", own[i]);
            return -1;
        }
    return 0;
}

static int check_kind(const QuantizationObject *self, bool quantizing)
{
    if (self->kind != TQ_QUANTIZATION_PER_TENSOR && self->kind != TQ_QUANTIZATION_PER_AXIS &&
        self->kind != TQ_QUANTIZATION_BLOCKWISE) {
        PyErr_Format(PyExc_ValueError, "%s quantization has no scales that an array could be %s with",
                     tq_quantization_kind_name(self->kind), quantizing ? "quantized" : "dequantized");
        return -1;
    }
    if (!quantizing || self->dtype != Py_None)
        return 0;
    PyErr_SetString(PyExc_TypeError,
                    "the tensor's elements are no quantized values, so that its quantization says no dtype: "
                    "call tq.quantize with one");
    return -1;
}

/* Refuses values of the same size but the other signedness: bytes that were read as the wrong type. */
static int check_sign(const QuantizationObject *self, PyObject *q)
{
    tq_py_type found;
    if (self->dtype == Py_None || !PyArray_Check(q) || !tq_py_type_of_array((PyArrayObject *)q, &found) ||
        found.low == found.high)
        return 0;
    const char *name = PyUnicode_AsUTF8(self->dtype), *bits = name ? strpbrk(name, "0123456789") : NULL;
    if (!bits)
        return name ? 0 : -1;
    const size_t size = (size_t)(strtol(bits, NULL, 10) + 7) / 8;
    if (tq_element_size(found.element) != size || (found.low == 0) == (*name == 'u'))
        return 0;
    PyErr_Format(PyExc_TypeError,
                 "q has dtype %R: this quantization is of %s quantized values (tq.dequantize takes any)",
                 (PyObject *)PyArray_DESCR((PyArrayObject *)q), name);
    return -1;
}

/* The caller's keywords and the quantization's parameters, a new dict. */
static PyObject *all_keywords(const QuantizationObject *self, bool quantizing, PyObject *kwargs)
{
    PyObject *all = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
    int failed = !all;
    if (!failed && self->kind == TQ_QUANTIZATION_PER_AXIS)
        failed = tq_py_set_string(all, "axis", PyLong_FromLong(self->quantized_dimension));
    if (!failed && self->kind == TQ_QUANTIZATION_BLOCKWISE)
        failed = tq_py_set_string(all, "block_size", PyLong_FromLong(self->block_size));
    if (!failed && quantizing)
        failed = PyDict_SetItemString(all, "dtype", self->dtype);
    if (failed)
        Py_CLEAR(all);
    return all;
}

/* tq.quantize or tq.dequantize of x with this quantization's parameters. */
static PyObject *apply(QuantizationObject *self, bool quantizing, PyObject *args, PyObject *kwargs)
{
    PyObject *x;
    if (!PyArg_ParseTuple(args, quantizing ? "O:quantize" : "O:dequantize", &x) ||
        check_keywords(quantizing, kwargs) < 0 || check_kind(self, quantizing) < 0 ||
        (!quantizing && check_sign(self, x) < 0))
        return NULL;
    PyObject *scale = argument_of(self, "scale", self->scale, x);
    PyObject *zero_point = scale ? argument_of(self, "zero_point", self->zero_point, x) : NULL;
    PyObject *positional = zero_point ? PyTuple_Pack(3, x, scale, zero_point) : NULL;
    PyObject *keywords = positional ? all_keywords(self, quantizing, kwargs) : NULL;
    PyObject *module = keywords ? PyImport_ImportModule("tq._core") : NULL;
    PyObject *function = module ? PyObject_GetAttrString(module, quantizing ? "quantize" : "dequantize") : NULL;
    PyObject *result = function ? PyObject_Call(function, positional, keywords) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(module);
    Py_XDECREF(keywords);
    Py_XDECREF(positional);
    Py_XDECREF(zero_point);
    Py_XDECREF(scale);
    return result;
}

PyObject *tq_py_quantization_quantize(QuantizationObject *self, PyObject *args, PyObject *kwargs)
{
    return apply(self, true, args, kwargs);
}

PyObject *tq_py_quantization_dequantize(QuantizationObject *self, PyObject *args, PyObject *kwargs)
{
    return apply(self, false, args, kwargs);
}
