/* SPDX-License-Identifier: Apache-2.0
 *
 * tq.Tensor: a value of a subgraph, and its data where it is a constant.
 */
#include "python/model/tensor.h"

#include "model/same.h"
#include "model/sparsity.h"
#include "model/tensor.h"
#include "python/convert.h"
#include "python/model/data.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "python/model/quantization.h"
#include "python/model/records.h"

static PyObject *get_name(ItemObject *self, void *closure)
{
    (void)closure;
    tq_table view = tq_py_tensor_table(self);
    return tq_py_text(tq_get_string(&view, TQ_Tensor_name));
}

static PyObject *get_shape(ItemObject *self, void *closure)
{
    (void)closure;
    tq_table view = tq_py_tensor_table(self);
    tq_vector shape = tq_get_vector(&view, TQ_Tensor_shape);
    return tq_py_tuple_i32(&shape);
}

static PyObject *get_shape_signature(ItemObject *self, void *closure)
{
    (void)closure;
    tq_table view = tq_py_tensor_table(self);
    tq_vector signature = tq_get_vector(&view, TQ_Tensor_shape_signature);
    return signature.count ? tq_py_tuple_i32(&signature) : get_shape(self, NULL);
}

static PyObject *get_type(ItemObject *self, void *closure)
{
    (void)closure;
    tq_table view = tq_py_tensor_table(self);
    return tq_py_enum_member(tq_state_of((PyObject *)self), TQ_ENUM_TensorType, tq_get_int(&view, TQ_Tensor_type));
}

static PyObject *get_dtype(ItemObject *self, void *closure)
{
    (void)closure;
    tq_table view = tq_py_tensor_table(self);
    int64_t type = tq_get_int(&view, TQ_Tensor_type);
    if (!tq_type(type))
        Py_RETURN_NONE;
    return Py_XNewRef(tq_py_dtype(tq_state_of((PyObject *)self), type));
}

/* A bool or unsigned field; closure: its id. */
static PyObject *get_bool(ItemObject *self, void *closure)
{
    tq_table view = tq_py_tensor_table(self);
    return PyBool_FromLong(tq_get_int(&view, (tq_field_id)(intptr_t)closure) != 0);
}

static PyObject *get_buffer(ItemObject *self, void *closure)
{
    (void)closure;
    tq_table view = tq_py_tensor_table(self);
    return PyLong_FromLongLong(tq_get_int(&view, TQ_Tensor_buffer));
}

static PyObject *get_is_constant(ItemObject *self, void *closure)
{
    (void)closure;
    tq_table view = tq_py_tensor_table(self);
    return PyBool_FromLong(tq_tensor_is_constant(&self->model->model, &view) ||
                           tq_get_int(&view, TQ_Tensor_external_buffer) != 0);
}

static PyObject *get_external_buffer(ItemObject *self, void *closure)
{
    (void)closure;
    tq_table view = tq_py_tensor_table(self);
    int64_t id = tq_get_int(&view, TQ_Tensor_external_buffer);
    tq_table buffer = tq_model_external_buffer(&self->model->model, id);
    if (!id || !buffer.at)
        Py_RETURN_NONE;
    return tq_py_external_buffer(tq_state_of((PyObject *)self), &self->model->model, &buffer);
}

static PyObject *get_nbytes(ItemObject *self, void *closure)
{
    (void)closure;
    tq_table view = tq_py_tensor_table(self);
    uint64_t size = 0;
    tq_bytes bytes = {NULL, 0};
    if (tq_tensor_size(&view, &size, NULL) != TQ_OK &&
        tq_tensor_bytes(&self->model->model, &view, &bytes, NULL) == TQ_OK)
        size = bytes.data ? bytes.size : 0;
    return PyLong_FromUnsignedLongLong(size);
}

static PyObject *stored(ItemObject *self, PyObject *name)
{
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "field must be a str, not %s", Py_TYPE(name)->tp_name);
    tq_table view = tq_py_tensor_table(self);
    return tq_py_stored(tq_state_of((PyObject *)self), TQ_TABLE_Tensor, &view, name);
}

static PyObject *get_quantization(PyObject *self, void *closure)
{
    (void)closure;
    return tq_py_quantization((ItemObject *)self);
}

/* ---- sparsity ---- */

static PyObject *index_array(const tq_indices *indices)
{
    npy_intp count = indices->vector.count;
    PyObject *array = PyArray_SimpleNew(1, &count, NPY_INT32);
    int32_t *out = array ? PyArray_DATA((PyArrayObject *)array) : NULL;
    const uint8_t *in = indices->vector.file.data + indices->vector.at; /* tq_vector_find checked all elements */
    if (out && indices->scalar == TQ_U8)
        for (npy_intp i = 0; i < count; i++)
            out[i] = in[i];
    else if (out && indices->scalar == TQ_U16)
        for (npy_intp i = 0; i < count; i++)
            out[i] = tq_load_u16(in + 2 * i);
    else if (out)
        for (npy_intp i = 0; i < count; i++)
            out[i] = (int32_t)tq_load_u32(in + 4 * i);
    return array;
}

static PyObject *dimension_dict(tq_state *state, const tq_dimension *dimension)
{
    PyObject *dict = PyDict_New();
    int failed = !dict || tq_py_set(dict, state->key.format, PyLong_FromLongLong(dimension->format)) < 0;
    if (dimension->format == TQ_DimensionType_DENSE)
        failed = failed || tq_py_set(dict, state->key.dense_size, PyLong_FromLong(dimension->dense_size)) < 0;
    else
        failed = failed || tq_py_set(dict, state->key.array_segments, index_array(&dimension->segments)) < 0 ||
                 tq_py_set(dict, state->key.array_indices, index_array(&dimension->indices)) < 0;
    if (failed)
        Py_CLEAR(dict);
    return dict;
}

PyObject *tq_py_sparsity(tq_state *state, const tq_table *tensor)
{
    tq_table sparsity = tq_get_table(tensor, TQ_Tensor_sparsity);
    PyObject *dict = PyDict_New();
    if (!dict || !sparsity.at)
        return dict;
    tq_vector order = tq_get_vector(&sparsity, TQ_SparsityParameters_traversal_order);
    tq_vector map = tq_get_vector(&sparsity, TQ_SparsityParameters_block_map);
    tq_vector dimensions = tq_get_vector(&sparsity, TQ_SparsityParameters_dim_metadata);
    int failed = tq_py_set(dict, state->key.traversal_order, tq_py_array_i32(&order)) < 0;
    failed = failed || (map.at && tq_py_set(dict, state->key.block_map, tq_py_array_i32(&map)) < 0);
    PyObject *list = PyList_New(dimensions.count);
    for (uint32_t i = 0; list && i < dimensions.count; i++) {
        tq_dimension dimension = tq_sparsity_dimension(&sparsity, i);
        PyObject *item = dimension_dict(state, &dimension);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    if (failed) {
        Py_XDECREF(list);
        Py_CLEAR(dict);
    } else if (tq_py_set(dict, state->key.dim_metadata, list) < 0) {
        Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *get_sparsity(ItemObject *self, void *closure)
{
    (void)closure;
    tq_table view = tq_py_tensor_table(self);
    if (!tq_get_table(&view, TQ_Tensor_sparsity).at)
        Py_RETURN_NONE;
    return tq_py_sparsity(tq_state_of((PyObject *)self), &view);
}

static PyObject *get_variant_tensors(ItemObject *self, void *closure)
{
    (void)closure;
    tq_table view = tq_py_tensor_table(self);
    tq_vector variants = tq_get_vector(&view, TQ_Tensor_variant_tensors);
    PyObject *list = PyList_New(variants.count);
    for (uint32_t i = 0; list && i < variants.count; i++) {
        tq_table variant = tq_vector_table(&variants, i);
        PyObject *item = tq_py_table(tq_state_of((PyObject *)self), TQ_TABLE_VariantSubType, &variant);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

/* ---- neighbours ---- */

static PyObject *operator_part(ItemObject *self, size_t index)
{
    return tq_py_item(tq_state_of((PyObject *)self)->Operator, self->model, self->subgraph, index);
}

static PyObject *get_producer(ItemObject *self, void *closure)
{
    (void)closure;
    const tq_graph *graph = tq_py_model_graph(self->model, self->subgraph);
    if (!graph)
        return NULL;
    int64_t producer = tq_graph_producer(graph, self->index);
    if (producer < 0)
        Py_RETURN_NONE;
    return operator_part(self, (size_t)producer);
}

static PyObject *get_consumers(ItemObject *self, void *closure)
{
    (void)closure;
    const tq_graph *graph = tq_py_model_graph(self->model, self->subgraph);
    if (!graph)
        return NULL;
    uint32_t count;
    const uint32_t *operators = tq_graph_consumers(graph, self->index, &count);
    PyObject *list = PyList_New(count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *item = operator_part(self, operators[i]);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

/* ---- data ---- */

static PyObject *get_data(PyObject *self, void *closure)
{
    (void)closure;
    return tq_py_tensor_data((ItemObject *)self);
}

static PyObject *dequantized(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tq_py_tensor_dequantized((ItemObject *)self);
}

static PyObject *densify(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tq_py_tensor_densify((ItemObject *)self);
}

/* _is_same(other) -> whether both tensors are surely equal */
static PyObject *is_same(PyObject *self, PyObject *other)
{
    if (Py_TYPE(other) != Py_TYPE(self))
        return PyErr_Format(PyExc_TypeError, "other must be a Tensor, not %.100s", Py_TYPE(other)->tp_name);
    const tq_table a = tq_py_tensor_table((ItemObject *)self), b = tq_py_tensor_table((ItemObject *)other);
    return PyBool_FromLong(
        tq_tensor_is_same(&((ItemObject *)self)->model->model, &a, &((ItemObject *)other)->model->model, &b));
}

static PyObject *plot(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return tq_py_call_with("tq.inspection.plots", "plot_tensor", self, args, kwargs);
}

static PyObject *repr_html(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tq_py_call("tq.inspection.notebook", "tensor_html", self);
}

static PyObject *repr(ItemObject *self)
{
    tq_table view = tq_py_tensor_table(self);
    const tq_type_row *row = tq_type(tq_get_int(&view, TQ_Tensor_type));
    PyObject *name = get_name(self, NULL), *shape = get_shape_signature(self, NULL), *text = NULL;
    if (name && shape)
        text = PyUnicode_FromFormat("<tq.Tensor %u %R: %s %R>", self->index, name, row ? row->name : "?", shape);
    Py_XDECREF(name);
    Py_XDECREF(shape);
    return text;
}

static PyGetSetDef properties[] = {
    {"model", tq_py_item_model, NULL, "The model that it belongs to.", NULL},
    {"subgraph", tq_py_item_subgraph, NULL, "The subgraph that it belongs to.", NULL},
    {"index", tq_py_item_index, NULL, "Its index among the subgraph's tensors.", NULL},
    {"name", (getter)get_name, NULL, "str; '' where the file gives none.", NULL},
    {"shape", (getter)get_shape, NULL, "tuple of int; () for a scalar and for a shape not stored.", NULL},
    {"shape_signature", (getter)get_shape_signature, NULL,
     "tuple of int with -1 for unknown dimensions; equals shape where none is stored.", NULL},
    {"type", (getter)get_type, NULL, "TensorType; an int for a value unknown to the schema.", NULL},
    {"dtype", (getter)get_dtype, NULL,
     "NumPy dtype of `data` (ml_dtypes for int4 and its kin); None for an unknown type.", NULL},
    {"is_variable", (getter)get_bool, NULL, "Whether it keeps its value between runs.", (void *)TQ_Tensor_is_variable},
    {"is_constant", (getter)get_is_constant, NULL, "Whether the model stores its data.", NULL},
    {"has_rank", (getter)get_bool, NULL, "Whether an empty shape means a scalar rather than an unknown rank.",
     (void *)TQ_Tensor_has_rank},
    {"buffer", (getter)get_buffer, NULL, "Index into model.buffers; 0: none.", NULL},
    {"external_buffer", (getter)get_external_buffer, NULL, "ExternalBuffer that holds its data, or None.", NULL},
    {"nbytes", (getter)get_nbytes, NULL,
     "Bytes that shape and type need in a buffer; of strings, that the buffer has; 0 where that is unknown.", NULL},
    {"quantization", get_quantization, NULL, "Quantization; false where the file says nothing.", NULL},
    {"sparsity", (getter)get_sparsity, NULL,
     "dict of traversal_order, block_map and dim_metadata, or None for a dense tensor.", NULL},
    {"variant_tensors", (getter)get_variant_tensors, NULL,
     "What a VARIANT holds: list of dicts of shape, type, has_rank.", NULL},
    {"producer", (getter)get_producer, NULL, "The Operator that computes it, or None.", NULL},
    {"consumers", (getter)get_consumers, NULL, "The Operators that read it.", NULL},
    {"data", get_data, NULL,
     "The constant's values as a read-only array, or None where it is no constant.\n\n"
     "A view into the file wherever elements are whole bytes.  INT4, UINT4 and INT2 are unpacked to ml_dtypes\n"
     "arrays, one element to a byte; STRING gives an object array of bytes; a sparse tensor its stored values,\n"
     "flat (see densify).\n\n"
     "ModelError: the buffer is too short or lies outside the file, strings are malformed.\n"
     "OSError: the file of an external buffer cannot be opened.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"dequantized", dequantized, METH_NOARGS,
     "dequantized($self, /)\n--\n\n"
     "The constant's real values, float32, in the tensor's shape.\n\n"
     "float32(scale * (q - zero_point)) with the scale of the tensor, of the index along quantized_dimension, or "
     "of\n"
     "the block along the last dimension; floating-point types without scales are converted; sparse ones are\n"
     "densified first.\n\n"
     "ModelError: no constant, quantized values without scales, or parameters that do not fit the shape."},
    {"densify", densify, METH_NOARGS,
     "densify($self, /)\n--\n\n"
     "A sparse constant's values in its full shape, zero where none is stored; `data` for a dense one.\n\n"
     "ModelError: no constant, or sparsity parameters that contradict the shape or the data."},
    {"stored", (PyCFunction)stored, METH_O,
     "stored($self, field, /)\n--\n\n"
     "A field of the schema's table Tensor as the file stores it, or None where it does not: what tells\n"
     "an empty name or shape_signature from one left out.\n\n"
     "ValueError: the table has no such field."},
    {"plot", (PyCFunction)(void (*)(void))plot, METH_VARARGS | METH_KEYWORDS,
     "plot($self, /, ax=None, *, bins=None, dequantized=True, kind='histogram', log=False)\n--\n\n"
     "Draws the histogram of its values with its stored and representable ranges (needs matplotlib); returns the "
     "Axes."},
    {"_is_same", is_same, METH_O, NULL},
    {"_repr_html_", repr_html, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A value of a subgraph: an input, a constant, or an operator's output."},
    TQ_ITEM_SLOTS,
    {Py_tp_repr, repr},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core.Tensor",
    .basicsize = sizeof(ItemObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tq_py_add_tensor(PyObject *module, tq_state *state)
{
    return tq_py_add_type(module, &spec, &state->Tensor);
}
