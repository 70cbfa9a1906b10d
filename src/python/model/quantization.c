/* SPDX-License-Identifier: Apache-2.0
 *
 * tq.Quantization: the map from a tensor's quantized values to real values.
 */
#include "python/model/quantization.h"

#include "python/convert.h"
#include "python/dtypes.h"
#include "python/model/netron.h"
#include "python/model/parameter_values.h"
#include "python/model/quantization_object.h"

#include <structmember.h>

static PyObject *details_of(tq_state *state, const tq_quantization *q)
{
    tq_union details = tq_get_union(&q->table, TQ_QuantizationParameters_details);
    return tq_py_union(state, TQ_UNION_QuantizationDetails, &details);
}

PyObject *tq_py_quantization(ItemObject *tensor)
{
    tq_state *state = tq_state_of((PyObject *)tensor);
    tq_table view = tq_py_tensor_table(tensor);
    tq_quantization q = tq_tensor_quantization(&view);
    int64_t tensor_type = tq_get_int(&view, TQ_Tensor_type);
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
    self->dtype = tq_py_integer_name(tensor_type);
    self->tensor = Py_NewRef(tensor);
    if (!self->min || !self->max || !self->details || !self->dtype ||
        tq_py_tensor_scales(tensor, &q, &self->scale, &self->zero_point) < 0 ||
        tq_py_range_of_arrays(tensor_type, self->scale, self->zero_point, &self->range_min, &self->range_max) < 0)
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
    Py_XDECREF(self->dtype);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *get_kind(QuantizationObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(tq_quantization_kind_name(self->kind));
}

/* Netron reads the table's own vectors, even where the details name parameter tensors. */
static PyObject *stored_line(QuantizationObject *self)
{
    tq_table view = tq_py_tensor_table((ItemObject *)self->tensor);
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
                                tq_quantization_kind_name(self->kind), count, self->quantized_dimension,
                                self->block_size);
}

/* True where the file has a quantization: a kind, or a range without scales. */
static int is_true(QuantizationObject *self)
{
    return self->kind != TQ_QUANTIZATION_NONE || PyArray_SIZE((PyArrayObject *)self->zero_point) > 0 ||
           PyArray_SIZE((PyArrayObject *)self->min) > 0 || PyArray_SIZE((PyArrayObject *)self->max) > 0;
}

static PyObject *repr_html(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tq_py_call("tq.inspection.notebook", "quantization_html", self);
}

#define MEMBER_OF(name, text) {#name, T_OBJECT_EX, offsetof(QuantizationObject, name), READONLY, text}
static PyMemberDef members[] = {
    MEMBER_OF(scale,
              "float32 array: one scale, or one an index or block; empty: none.  Blockwise: the scale tensor's shape."),
    MEMBER_OF(zero_point,
              "int64 array as stored: the quantized value of real 0; empty where none is stored, which means 0."),
    MEMBER_OF(min, "float32 array: the least values seen, as stored; empty where the file stores none."),
    MEMBER_OF(max, "float32 array: the greatest values seen, as stored; empty where the file stores none."),
    MEMBER_OF(range_min, "float32 array: the least real value of the type, one a scale."),
    MEMBER_OF(range_max, "float32 array: the greatest real value of the type, one a scale."),
    MEMBER_OF(details, "dict of the details union's fields and its table's name under 'type', or None."),
    MEMBER_OF(
        dtype,
        "str: the type of its quantized values, such as 'int8' or 'int4'; None where its elements are not quantized."),
    {"quantized_dimension", T_INT, offsetof(QuantizationObject, quantized_dimension), READONLY,
     "Which dimension per-axis scales belong to."},
    {"block_size", T_INT, offsetof(QuantizationObject, block_size), READONLY,
     "Elements that share a scale; 0: no blocks."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"kind", (getter)get_kind, NULL, "'none', 'per-tensor', 'per-axis', 'blockwise', 'multi-axis' or 'custom'.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"quantize", (PyCFunction)(void (*)(void))tq_py_quantization_quantize, METH_VARARGS | METH_KEYWORDS,
     "quantize($self, x, /, *, narrow_range=False, rounding='away', out=None, num_threads=None)\n--\n\n"
     "tq.quantize with this scale, zero point, dtype and axis or blocks (along the last dimension)."},
    {"dequantize", (PyCFunction)(void (*)(void))tq_py_quantization_dequantize, METH_VARARGS | METH_KEYWORDS,
     "dequantize($self, q, /, *, dtype='float32', out=None, num_threads=None)\n--\n\n"
     "tq.dequantize with this scale, zero point and axis or blocks (along the last dimension).  TypeError: an array "
     "of\n"
     "the other sign than the quantized values', such as uint8 for int8: the same bytes mean other values."},
    {"_repr_html_", repr_html, METH_NOARGS, NULL},
    {"__reduce__", (PyCFunction)tq_py_quantization_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(
    doc,
    "Quantization(scale, zero_point=0, *, dtype='int8', quantized_dimension=0, block_size=0, min=None, "
    "max=None)\n--\n\n"
    "How a tensor's quantized values stand for real values: real = scale * (q - zero_point).\n\n"
    "str() is Netron's line, character for character: '-1.5 ≤ 0.0125 * (q - 3) ≤ 1.5', one line a channel.\n"
    "The stored range (min, max) and the representable one (range_min, range_max) are different facts, and\n"
    "neither is filled from the other.  It is false where the file says nothing about quantization.\n\n"
    "tensor.quantization gives one.  One made here has a scale, or one an index of quantized_dimension, in\n"
    "arrays of at most one dimension; or, with block_size, one a block of so many elements along the last dimension,\n"
    "in an array of the tensor's shape with that dimension counting blocks.  ValueError: counts that do not fit, or a\n"
    "dtype that has no quantized values; TypeError: scales that are no real numbers, zero points that are no "
    "integers.\n\n"
    "It can be copied and pickled; a tensor's too, without its file, if it has a dtype and no details: else "
    "TypeError.");

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)doc}, {Py_tp_new, tq_py_quantization_new},
    {Py_tp_dealloc, dealloc}, {Py_tp_repr, repr},
    {Py_tp_str, str},         {Py_nb_bool, is_true},
    {Py_tp_members, members}, {Py_tp_getset, properties},
    {Py_tp_methods, methods}, {0, NULL},
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
