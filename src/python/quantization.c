/* SPDX-License-Identifier: Apache-2.0
 *
 * tq.Quantization: how a tensor's codes stand for real numbers.
 */
#include "python/quantization.h"

#include "python/array_args.h"
#include "python/convert.h"
#include "python/data.h"
#include "python/errors.h"
#include "python/netron.h"
#include "python/operands.h"
#include "python/tensor.h"

#include <stdlib.h>
#include <string.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *scale, *zero_point, *min, *max, *range_min, *range_max, *details;
    PyObject *tensor;  /* whose it is; NULL for one made in Python */
    PyObject *dtype;   /* str, of the codes; None where they are none */
    int quantized_dimension, block_size;
    tq_quantization_kind kind;
} QuantizationObject;

static PyObject *empty(int type)
{
    npy_intp none = 0;
    return PyArray_SimpleNew(1, &none, type);
}

/* The data of another tensor of the subgraph that holds parameters, or None where `index` is no tensor, or
   one without usable data; NULL with an exception that is not the file's fault. */
static PyObject *parameter_data(PartObject *tensor, int64_t index)
{
    tq_subgraph subgraph = tq_py_subgraph_of(tensor);
    if (index < 0 || index >= subgraph.tensors.count)
        return Py_NewRef(Py_None);
    tq_state *state = tq_state_of((PyObject *)tensor);
    PyObject *other = tq_py_part(state->Tensor, tensor->model, tensor->subgraph, (size_t)index);
    PyObject *data = other ? tq_py_tensor_data((PartObject *)other) : NULL;
    Py_XDECREF(other);
    if (!data && (PyErr_ExceptionMatches(state->ModelError) || PyErr_ExceptionMatches(PyExc_OSError))) {
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    if (data && data != Py_None && PyArray_DESCR((PyArrayObject *)data)->kind == 'O')
        Py_SETREF(data, Py_NewRef(Py_None));
    return data;
}

PyObject *tq_py_parameter_values(PartObject *tensor, int64_t index, int type)
{
    PyObject *data = parameter_data(tensor, index);
    PyObject *values = !data || data == Py_None ? data ? empty(type) : NULL
                                                : PyArray_Flatten((PyArrayObject *)data, NPY_CORDER);
    Py_XDECREF(data);
    return values;
}

/* The same in their own shape, as `type`. */
static PyObject *values_as(PartObject *tensor, int64_t index, int type)
{
    PyObject *data = parameter_data(tensor, index);
    PyObject *values = !data || data == Py_None
                           ? data ? empty(type) : NULL
                           : PyArray_FromArray((PyArrayObject *)data, PyArray_DescrFromType(type),
                                               NPY_ARRAY_CARRAY | NPY_ARRAY_FORCECAST | NPY_ARRAY_ENSURECOPY);
    Py_XDECREF(data);
    return values;
}

int tq_py_tensor_scales(PartObject *tensor, const tq_quantization *q, PyObject **scale, PyObject **zero_point)
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

/* out[i] = f32(f64(scale[i]) * factor).  Where float32 holds the factor, a float32 multiplication rounds
   the same product, which float64 holds exactly, to the same result, and takes half the time. */
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

/* Whether one zero point serves all, as along an axis it nearly always does. */
static bool all_agree(const uint8_t *zero_points, size_t zeros)
{
    uint64_t differ = 0; /* bits in which any is not the first */
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

int tq_py_range_of_arrays(int64_t type, PyObject *scale, PyObject *zero_point, PyObject **range_min, PyObject **range_max)
{
    PyArrayObject *s = (PyArrayObject *)scale, *z = (PyArrayObject *)zero_point;
    return tq_py_range(type, PyArray_DATA(s), (size_t)PyArray_SIZE(s), PyArray_DATA(z), (size_t)PyArray_SIZE(z), range_min, range_max);
}

static PyObject *details_of(tq_state *state, const tq_quantization *q)
{
    tq_union details = tq_get_union(&q->table, TQ_QuantizationParameters_details);
    return tq_py_union(state, TQ_UNION_QuantizationDetails, &details);
}

/* "int4" of a type whose elements are codes; None of any other. */
static PyObject *dtype_name(int64_t type)
{
    const tq_type_row *row = tq_type(type);
    if (!row || row->kind != TQ_KIND_INTEGER)
        return Py_NewRef(Py_None);
    const char *dot = strchr(row->dtype, '.');
    return PyUnicode_FromString(dot ? dot + 1 : row->dtype);
}

PyObject *tq_py_quantization(PartObject *tensor)
{
    tq_state *state = tq_state_of((PyObject *)tensor);
    tq_table view = tq_py_tensor_view(tensor);
    tq_quantization q = tq_tensor_quantization(&view);
    int64_t codes = tq_get_int(&view, TQ_Tensor_type);
    PyTypeObject *type = (PyTypeObject *)state->Quantization;
    QuantizationObject *self = (QuantizationObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->kind = q.kind;
    self->quantized_dimension = q.quantized_dimension;
    self->block_size = q.block_size;
    self->min = tq_py_array_f32(&q.min);
    self->max = tq_py_array_f32(&q.max);
    self->details = details_of(state, &q);
    self->dtype = dtype_name(codes);
    self->tensor = Py_NewRef(tensor);
    if (!self->min || !self->max || !self->details || !self->dtype ||
        tq_py_tensor_scales(tensor, &q, &self->scale, &self->zero_point) < 0 ||
        tq_py_range_of_arrays(codes, self->scale, self->zero_point, &self->range_min, &self->range_max) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* ---- made in Python ---- */

/* The TensorType whose codes a dtype argument means; -1 with an exception. */
static int64_t codes_of(PyObject *dtype)
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
        PyObject *candidate = dtype_name(type);
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

/* Steals `array`: a copy, in one dimension; that of blocks may have more. */
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

/* Real numbers as float32; NULL and None give an empty array. */
static PyObject *own_reals(PyObject *argument, const char *name, bool blocks)
{
    if (!argument || argument == Py_None)
        return empty(NPY_FLOAT32);
    return own_copy(tq_py_dense_floats(argument, name), name, blocks);
}

static PyObject *own_integers(PyObject *argument, const char *name, bool blocks)
{
    if (!argument || argument == Py_None)
        return empty(NPY_INT64);
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
            PyErr_Format(PyExc_ValueError, "%s has %zd values, scale has %zd; they need as many", rows[i].name, (Py_ssize_t)count,
                         (Py_ssize_t)scales);
            return 0;
        }
    }
    return 1;
}

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
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
    int64_t codes = dtype ? codes_of(dtype) : TQ_TensorType_INT8;
    QuantizationObject *self = codes < 0 ? NULL : (QuantizationObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->quantized_dimension = (int)dimension;
    self->block_size = (int)block;
    self->details = Py_NewRef(Py_None);
    self->dtype = dtype_name(codes);
    self->scale = own_reals(scale, "scale", block > 0);
    self->zero_point = self->scale ? own_integers(zero_point, "zero_point", block > 0) : NULL;
    self->min = self->zero_point ? own_reals(min, "min", false) : NULL;
    self->max = self->min ? own_reals(max, "max", false) : NULL;
    if (!self->dtype || !self->max || !counts_fit(self) ||
        tq_py_range_of_arrays(codes, self->scale, self->zero_point, &self->range_min, &self->range_max) < 0) {
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

/* ---- on arrays ---- */

/* NumPy's words name no argument. */
static void refuse_blocks(const QuantizationObject *self, const char *name, PyObject *values, PyArrayObject *x)
{
    PyObject *found = PyObject_GetAttrString(values, "shape");
    PyObject *shape = found ? PyObject_GetAttrString((PyObject *)x, "shape") : NULL;
    if (shape)
        PyErr_Format(PyExc_ValueError,
                     "%s has shape %R: it does not fit an array of shape %R in blocks of %d along the last dimension", name,
                     found, shape, self->block_size);
    Py_XDECREF(found);
    Py_XDECREF(shape);
}

/* Blocks' scales in the shape that the array functions want: the input's, whose last dimension counts blocks.  Where
   their ranks are the same these functions say what does not fit. */
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

/* A scale or zero point argument: the array where there are several, one value where all agree on one. */
static PyObject *argument_of(QuantizationObject *self, const char *name, PyObject *values, PyObject *x)
{
    if (PyArray_SIZE((PyArrayObject *)values) == 0)
        return PyLong_FromLong(0);
    bool for_all = self->kind == TQ_QUANTIZATION_PER_TENSOR || values == self->zero_point;
    if (PyArray_SIZE((PyArrayObject *)values) == 1 && for_all)
        return PyArray_ToScalar(PyArray_DATA((PyArrayObject *)values), (PyArrayObject *)values);
    return self->kind == TQ_QUANTIZATION_BLOCKWISE ? block_scales(self, name, values, x) : Py_NewRef(values);
}

/* What the quantization itself says may not come as a keyword too. */
static int check_keywords(const char *function, PyObject *kwargs)
{
    static const char *const own[] = {"scale", "zero_point", "axis", "block_size", "dtype"};
    int count = *function == 'q' ? 5 : 4;
    for (int i = 0; kwargs && i < count; i++)
        if (PyDict_GetItemString(kwargs, own[i])) {
            PyErr_Format(PyExc_TypeError, "%s() has no argument '%s': the quantization has its own", function, own[i]);
            return -1;
        }
    return 0;
}

/* Codes of the other sign, in elements of the size that these have, are bytes that were read as the wrong type. */
static int check_sign(QuantizationObject *self, PyObject *x)
{
    tq_py_type found;
    const char *name = self->dtype != Py_None ? PyUnicode_AsUTF8(self->dtype) : NULL;
    if (!name || !PyArray_Check(x) || !tq_py_type_of_array((PyArrayObject *)x, &found) || found.low == found.high)
        return PyErr_Occurred() ? -1 : 0;
    long bits = strtol(strpbrk(name, "0123456789"), NULL, 10);
    if (tq_element_size(found.element) != (size_t)(bits + 7) / 8 || (found.low == 0) == (*name == 'u'))
        return 0;
    PyErr_Format(PyExc_TypeError, "q has dtype %R: this quantization is of %s codes (tq.dequantize takes any)",
                 (PyObject *)PyArray_DESCR((PyArrayObject *)x), name);
    return -1;
}

/* function(x, scale, zero_point, axis or block_size ..., **kwargs) of this module. */
static PyObject *apply(QuantizationObject *self, const char *function, PyObject *args, PyObject *kwargs)
{
    PyObject *x;
    if (!PyArg_ParseTuple(args, *function == 'q' ? "O:quantize" : "O:dequantize", &x) ||
        check_keywords(function, kwargs) < 0)
        return NULL;
    if (self->kind != TQ_QUANTIZATION_PER_TENSOR && self->kind != TQ_QUANTIZATION_PER_AXIS && self->kind != TQ_QUANTIZATION_BLOCKWISE)
        return PyErr_Format(PyExc_ValueError, "%s quantization has no scales that an array could be %sd with",
                            tq_quantization_kind_name(self->kind), function);
    if (*function == 'q' && self->dtype == Py_None)
        return PyErr_Format(PyExc_TypeError, "the tensor's elements are no codes, so that its quantization says no dtype: "
                                             "call tq.quantize with one");
    if (*function == 'd' && check_sign(self, x) < 0)
        return NULL;
    PyObject *keywords = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
    PyObject *scale = argument_of(self, "scale", self->scale, x);
    PyObject *zero_point = scale ? argument_of(self, "zero_point", self->zero_point, x) : NULL;
    PyObject *all = zero_point ? PyTuple_Pack(3, x, scale, zero_point) : NULL;
    int failed = !keywords || !all;
    if (!failed && self->kind == TQ_QUANTIZATION_PER_AXIS)
        failed = tq_py_set_string(keywords, "axis", PyLong_FromLong(self->quantized_dimension));
    if (!failed && self->kind == TQ_QUANTIZATION_BLOCKWISE)
        failed = tq_py_set_string(keywords, "block_size", PyLong_FromLong(self->block_size));
    if (!failed && *function == 'q')
        failed = PyDict_SetItemString(keywords, "dtype", self->dtype);
    PyObject *module = failed ? NULL : PyImport_ImportModule("tq._core");
    PyObject *callable = module ? PyObject_GetAttrString(module, function) : NULL;
    PyObject *result = callable ? PyObject_Call(callable, all, keywords) : NULL;
    Py_XDECREF(callable);
    Py_XDECREF(module);
    Py_XDECREF(all);
    Py_XDECREF(zero_point);
    Py_XDECREF(scale);
    Py_XDECREF(keywords);
    return result;
}

static PyObject *quantize(QuantizationObject *self, PyObject *args, PyObject *kwargs)
{
    return apply(self, "quantize", args, kwargs);
}

static PyObject *dequantize(QuantizationObject *self, PyObject *args, PyObject *kwargs)
{
    return apply(self, "dequantize", args, kwargs);
}

/* ---- the type ---- */

static void dealloc(QuantizationObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->scale);
    Py_XDECREF(self->zero_point);
    Py_XDECREF(self->min);
    Py_XDECREF(self->max);
    Py_XDECREF(self->range_min);
    Py_XDECREF(self->range_max);
    Py_XDECREF(self->details);
    Py_XDECREF(self->tensor);
    Py_XDECREF(self->dtype);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *get_kind(QuantizationObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(tq_quantization_kind_name(self->kind));
}

/* Netron reads the table's own vectors, also where the details say that scales stand elsewhere. */
static PyObject *stored_line(QuantizationObject *self)
{
    tq_table view = tq_py_tensor_view((PartObject *)self->tensor);
    tq_quantization q = tq_tensor_quantization(&view);
    PyObject *scale = tq_py_array_f32(&q.scale), *zero_point = tq_py_array_i64(&q.zero_point);
    PyObject *line = scale && zero_point ? tq_py_netron_line(scale, zero_point, self->min, self->max) : NULL;
    Py_XDECREF(scale);
    Py_XDECREF(zero_point);
    return line;
}

static PyObject *str(QuantizationObject *self)
{
    if (self->tensor && (self->kind == TQ_QUANTIZATION_BLOCKWISE || self->kind == TQ_QUANTIZATION_MULTI_AXIS))
        return stored_line(self);
    return tq_py_netron_line(self->scale, self->zero_point, self->min, self->max);
}

static PyObject *repr(QuantizationObject *self)
{
    Py_ssize_t count = PyArray_SIZE((PyArrayObject *)self->scale);
    if (self->kind == TQ_QUANTIZATION_PER_TENSOR) {
        PyObject *line = str(self);
        PyObject *text = line ? PyUnicode_FromFormat("<tq.Quantization per-tensor: %U>", line) : NULL;
        Py_XDECREF(line);
        return text;
    }
    return PyUnicode_FromFormat("<tq.Quantization %s: %zd scales, quantized_dimension %d, block_size %d>",
                                tq_quantization_kind_name(self->kind), count, self->quantized_dimension, self->block_size);
}

/* True where the file says anything: a kind, or a range without scales. */
static int is_true(QuantizationObject *self)
{
    return self->kind != TQ_QUANTIZATION_NONE || PyArray_SIZE((PyArrayObject *)self->zero_point) > 0 ||
           PyArray_SIZE((PyArrayObject *)self->min) > 0 || PyArray_SIZE((PyArrayObject *)self->max) > 0;
}

static PyObject *repr_html(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tq_py_call("tq.notebook", "quantization_html", self);
}

#define MEMBER_OF(name, text) {#name, T_OBJECT_EX, offsetof(QuantizationObject, name), READONLY, text}
static PyMemberDef members[] = {
    MEMBER_OF(scale, "float32 array: one scale, or one an index or block; empty: none.  Blockwise: the scale tensor's shape."),
    MEMBER_OF(zero_point, "int64 array as stored: the codes of real 0; empty where none is stored, which means 0."),
    MEMBER_OF(min, "float32 array: the least values seen, as stored; empty where the file stores none."),
    MEMBER_OF(max, "float32 array: the greatest values seen, as stored; empty where the file stores none."),
    MEMBER_OF(range_min, "float32 array: the least value that codes can stand for, one a scale."),
    MEMBER_OF(range_max, "float32 array: the greatest value that codes can stand for, one a scale."),
    MEMBER_OF(details, "dict of the details union's fields and its table's name under 'type', or None."),
    MEMBER_OF(dtype, "str: the type of its codes, such as 'int8' or 'int4'; None where elements are no codes."),
    {"quantized_dimension", T_INT, offsetof(QuantizationObject, quantized_dimension), READONLY, "Which dimension per-axis scales belong to."},
    {"block_size", T_INT, offsetof(QuantizationObject, block_size), READONLY, "Elements that share a scale; 0: no blocks."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"kind", (getter)get_kind, NULL, "'none', 'per-tensor', 'per-axis', 'blockwise', 'multi-axis' or 'custom'.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"quantize", (PyCFunction)(void (*)(void))quantize, METH_VARARGS | METH_KEYWORDS,
     "quantize($self, x, /, *, narrow_range=False, rounding='away', out=None, num_threads=None)\n--\n\n"
     "tq.quantize with this scale, zero point, dtype and axis or blocks (along the last dimension)."},
    {"dequantize", (PyCFunction)(void (*)(void))dequantize, METH_VARARGS | METH_KEYWORDS,
     "dequantize($self, q, /, *, dtype='float32', out=None, num_threads=None)\n--\n\n"
     "tq.dequantize with this scale, zero point and axis or blocks (along the last dimension).  TypeError: an array of\n"
     "the other sign than the codes', such as uint8 where they are int8, which are other numbers in the same bytes."},
    {"_repr_html_", repr_html, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(doc,
"Quantization(scale, zero_point=0, *, dtype='int8', quantized_dimension=0, block_size=0, min=None, max=None)\n--\n\n"
"How a tensor's codes stand for real numbers: real = scale * (code - zero_point).\n\n"
"str() is Netron's line, character for character: '-1.5 ≤ 0.0125 * (q - 3) ≤ 1.5', one line a channel.\n"
"The stored range (min, max) and the representable one (range_min, range_max) are different facts, and\n"
"neither is filled from the other.  It is false where the file says nothing about quantization.\n\n"
"tensor.quantization gives one.  One made here has a scale, or one an index of quantized_dimension, in\n"
"arrays of at most one dimension; or, with block_size, one a block of so many elements along the last dimension,\n"
"in an array of the tensor's shape with that dimension counting blocks.  ValueError: counts that do not fit, or a\n"
"dtype that has no codes; TypeError: scales that are no real numbers, zero points that are no integers.");

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)doc},
    {Py_tp_new, new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_repr, repr},
    {Py_tp_str, str},
    {Py_nb_bool, is_true},
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core.Quantization",
    .basicsize = sizeof(QuantizationObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tq_py_add_quantization(PyObject *module, tq_state *state)
{
    return tq_py_add_type(module, &spec, &state->Quantization);
}
