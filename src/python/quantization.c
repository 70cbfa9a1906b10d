/* SPDX-License-Identifier: Apache-2.0
 *
 * tq.Quantization: how a tensor's codes stand for real numbers.
 */
#include "python/quantization.h"

#include "python/convert.h"
#include "python/data.h"
#include "python/errors.h"
#include "python/netron.h"
#include "python/tensor.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *scale, *zero_point, *min, *max, *range_min, *range_max, *details;
    PyObject *tensor; /* whose it is */
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

int tq_py_range(int64_t type, PyObject *scale, PyObject *zero_point, PyObject **range_min, PyObject **range_max)
{
    const tq_type_row *row = tq_type(type);
    npy_intp count = PyArray_SIZE((PyArrayObject *)scale), zeros = PyArray_SIZE((PyArrayObject *)zero_point);
    if (!row || row->kind != TQ_KIND_INTEGER)
        count = 0;
    *range_min = PyArray_SimpleNew(1, &count, NPY_FLOAT32);
    *range_max = *range_min ? PyArray_SimpleNew(1, &count, NPY_FLOAT32) : NULL;
    if (!*range_max) {
        Py_CLEAR(*range_min);
        return -1;
    }
    const float *s = PyArray_DATA((PyArrayObject *)scale);
    const int64_t *z = PyArray_DATA((PyArrayObject *)zero_point);
    float *low = PyArray_DATA((PyArrayObject *)*range_min), *high = PyArray_DATA((PyArrayObject *)*range_max);
    for (npy_intp i = 0; i < count; i++) {
        double zero = zeros == 0 ? 0 : (double)z[i < zeros ? i : zeros - 1];
        low[i] = tq_py_real(s[i], row->low, zero);
        high[i] = tq_py_real(s[i], row->high, zero);
    }
    return 0;
}

static PyObject *details_of(tq_state *state, const tq_quantization *q)
{
    tq_union details = tq_get_union(&q->table, TQ_QuantizationParameters_details);
    return tq_py_union(state, TQ_UNION_QuantizationDetails, &details);
}

PyObject *tq_py_quantization(PartObject *tensor)
{
    tq_state *state = tq_state_of((PyObject *)tensor);
    tq_table view = tq_py_tensor_view(tensor);
    tq_quantization q = tq_tensor_quantization(&view);
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
    self->tensor = Py_NewRef(tensor);
    if (!self->min || !self->max || !self->details ||
        tq_py_tensor_scales(tensor, &q, &self->scale, &self->zero_point) < 0 ||
        tq_py_range(tq_get_int(&view, TQ_Tensor_type), self->scale, self->zero_point, &self->range_min, &self->range_max) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

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
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *get_kind(QuantizationObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(tq_quantization_kind_name(self->kind));
}

static PyObject *str(QuantizationObject *self)
{
    tq_table view = tq_py_tensor_view((PartObject *)self->tensor);
    tq_quantization q = tq_tensor_quantization(&view);
    return tq_py_netron_line(&q);
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
    {"quantized_dimension", T_INT, offsetof(QuantizationObject, quantized_dimension), READONLY, "Which dimension per-axis scales belong to."},
    {"block_size", T_INT, offsetof(QuantizationObject, block_size), READONLY, "Elements that share a scale; 0: no blocks."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"kind", (getter)get_kind, NULL, "'none', 'per-tensor', 'per-axis', 'blockwise', 'multi-axis' or 'custom'.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"_repr_html_", repr_html, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(doc,
"How a tensor's codes stand for real numbers: real = scale * (code - zero_point).\n\n"
"str() is Netron's line, character for character: '-1.5 ≤ 0.0125 * (q - 3) ≤ 1.5', one line a channel.\n"
"The stored range (min, max) and the representable one (range_min, range_max) are different facts, and\n"
"neither is filled from the other.  It is false where the file says nothing about quantization.");

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)doc},
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
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tq_py_add_quantization(PyObject *module, tq_state *state)
{
    return tq_py_add_type(module, &spec, &state->Quantization);
}
