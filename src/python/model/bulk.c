/* SPDX-License-Identifier: Apache-2.0 */
#include "python/model/bulk.h"

#include "model/multiply_adds.h"
#include "model/quantization.h"
#include "model/same.h"
#include "model/tensor.h"
#include "python/convert.h"
#include "python/model/records.h"

/* ---- comparing ---- */

static bool same_text(tq_bytes a, tq_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* What is compared: two subgraphs of as many tensors and operators each. */
typedef struct {
    const tq_model *models[2];
    tq_subgraph graphs[2];
} pair;

/* Of a tensor or operator: whether both have one name, and whether they are surely the same. */
typedef struct {
    bool named, same;
} likeness;

static likeness compare_tensors(const pair *p, size_t i)
{
    const tq_table a = tq_vector_table(&p->graphs[0].tensors, i), b = tq_vector_table(&p->graphs[1].tensors, i);
    return (likeness){same_text(tq_get_string(&a, TQ_Tensor_name), tq_get_string(&b, TQ_Tensor_name)),
                      tq_tensor_is_same(p->models[0], &a, p->models[1], &b)};
}

static likeness compare_operators(const pair *p, size_t i)
{
    const tq_operator a = tq_model_operator(p->models[0], &p->graphs[0], i);
    const tq_operator b = tq_model_operator(p->models[1], &p->graphs[1], i);
    return (likeness){a.code == b.code && same_text(a.custom_name, b.custom_name), tq_operator_is_same(&a, &b)};
}

/* The first part from `i` on that is not surely the same, or the end of a piece that one round compares. */
static uint32_t skip_same(const pair *p, uint32_t i, uint32_t end, likeness (*compare)(const pair *, size_t),
                          likeness *last)
{
    while (i < end && (*last = compare(p, i), last->named && last->same))
        i++;
    return i;
}

/* Appends the indices of parts that may differ.  1, 0 where names differ, -1 with an exception. */
static int list_unlike(const pair *p, uint32_t count, likeness (*compare)(const pair *, size_t), PyObject *out)
{
    enum { PIECE = 4096 };
    for (uint32_t i = 0; i < count;) {
        const uint32_t end = count - i < PIECE ? count : i + PIECE;
        likeness last;
        Py_BEGIN_ALLOW_THREADS
        i = skip_same(p, i, end, compare, &last);
        Py_END_ALLOW_THREADS
        if (i < end && !last.named)
            return 0;
        if ((i < end && tq_py_append(out, PyLong_FromUnsignedLong(i++)) < 0) || PyErr_CheckSignals() < 0)
            return -1;
    }
    return 1;
}

PyObject *tq_py_subgraph_unlike(PyObject *self, PyObject *other)
{
    if (Py_TYPE(other) != Py_TYPE(self))
        return PyErr_Format(PyExc_TypeError, "other must be a Subgraph, not %.100s", Py_TYPE(other)->tp_name);
    ItemObject *parts[] = {(ItemObject *)self, (ItemObject *)other};
    pair p;
    for (int i = 0; i < 2; i++) {
        p.models[i] = &parts[i]->model->model;
        p.graphs[i] = tq_py_subgraph_of(parts[i]);
    }
    const uint32_t operators = p.graphs[0].operators.count, tensors = p.graphs[0].tensors.count;
    if (operators != p.graphs[1].operators.count || tensors != p.graphs[1].tensors.count)
        Py_RETURN_NONE;
    PyObject *lists[] = {PyList_New(0), PyList_New(0)};
    int found = lists[0] && lists[1] ? list_unlike(&p, operators, compare_operators, lists[0]) : -1;
    if (found > 0)
        found = list_unlike(&p, tensors, compare_tensors, lists[1]);
    if (found > 0)
        return Py_BuildValue("(NN)", lists[0], lists[1]);
    Py_XDECREF(lists[0]);
    Py_XDECREF(lists[1]);
    return found < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- facts ---- */

typedef struct {
    const tq_model *model;
    tq_subgraph graph;
    PyObject *tensor_type, *constant_type; /* named tuples */
    PyObject *tensors;                     /* list of the first */
    PyObject *constants;                   /* list of the second, or None */
    PyObject *names;                       /* of operators: dict from operator code to str */
} facts;

/* type(*fields), for a subtype of tuple; `fields` is consumed (and may be NULL). */
static PyObject *typed(PyObject *type, PyObject *fields)
{
    PyObject *args = fields ? PyTuple_Pack(1, fields) : NULL;
    PyObject *made = args ? PyTuple_Type.tp_new((PyTypeObject *)type, args, NULL) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(fields);
    return made;
}

static PyObject *tensor_facts(const facts *f, const tq_table *tensor)
{
    const int64_t type = tq_get_int(tensor, TQ_Tensor_type);
    const char *name = tq_enum_name(TQ_ENUM_TensorType, type);
    const tq_vector shape = tq_get_vector(tensor, TQ_Tensor_shape);
    PyObject *text = name ? PyUnicode_InternFromString(name) : PyUnicode_FromFormat("%lld", (long long)type);
    PyObject *dims = shape.count <= TQ_EXTENT_DIMS ? tq_py_tuple_i32(&shape) : Py_NewRef(Py_None);
    if (text && dims)
        return typed(f->tensor_type, Py_BuildValue("(NN)", text, dims));
    Py_XDECREF(text);
    Py_XDECREF(dims);
    return NULL;
}

/* Whether elements are shapes, axes or indices, unless they are quantized. */
static bool are_indices(const tq_table *tensor)
{
    switch (tq_get_int(tensor, TQ_Tensor_type)) {
    case TQ_TensorType_INT32:
    case TQ_TensorType_INT64:
    case TQ_TensorType_UINT32:
    case TQ_TensorType_UINT64:
    case TQ_TensorType_BOOL:
    case TQ_TensorType_STRING:
    case TQ_TensorType_RESOURCE:
    case TQ_TensorType_VARIANT: {
        const tq_quantization q = tq_tensor_quantization(tensor);
        return q.kind == TQ_QUANTIZATION_NONE && !q.zero_point.count && !q.min.count && !q.max.count;
    }
    default: return false;
    }
}

/* How many elements a constant has that count as parameters: an int of any size. */
static PyObject *parameters(const tq_table *tensor)
{
    const tq_vector shape = tq_get_vector(tensor, TQ_Tensor_shape);
    bool sound = shape.count <= TQ_EXTENT_DIMS;
    for (uint32_t i = 0; sound && i < shape.count; i++)
        sound = tq_vector_i32(&shape, i) >= 0;
    if (!sound || are_indices(tensor))
        return PyLong_FromLong(0);
    PyObject *product = PyLong_FromLong(1);
    for (uint32_t i = 0; product && i < shape.count; i++) {
        PyObject *dim = PyLong_FromLong(tq_vector_i32(&shape, i));
        PyObject *next = dim ? PyNumber_Multiply(product, dim) : NULL;
        Py_XDECREF(dim);
        Py_SETREF(product, next);
    }
    return product;
}

/* (what holds the bytes, offset, length), equal for tensors that share their bytes; None where a tensor is no constant.
 */
static PyObject *constant_facts(const facts *f, const tq_table *tensor)
{
    const int64_t index = tq_get_int(tensor, TQ_Tensor_buffer),
                  external = tq_get_int(tensor, TQ_Tensor_external_buffer);
    const tq_table outside = tq_model_external_buffer(f->model, external);
    unsigned long long offset = 0, length = 0;
    PyObject *place;
    if (index > 0 && index < f->model->buffers.count && (external || tq_tensor_is_constant(f->model, tensor))) {
        tq_bytes bytes;
        if (tq_model_buffer(f->model, (uint64_t)index, &bytes, NULL) != TQ_OK)
            Py_RETURN_NONE; /* it lies outside the file */
        if (bytes.data) {
            offset = (unsigned long long)(bytes.data - f->model->file.data);
            length = bytes.size;
        }
        place = PyUnicode_InternFromString("buffer");
    } else if (external && outside.at) {
        const tq_table group =
            tq_vector_table(&f->model->external_groups, (size_t)tq_get_int(&outside, TQ_ExternalBuffer_group));
        PyObject *name = tq_py_text_or_none(tq_get_string(&group, TQ_ExternalBufferGroup_name));
        place = name ? PyUnicode_FromFormat("external %S", name) : NULL;
        Py_XDECREF(name);
        offset = tq_get_u64(&outside, TQ_ExternalBuffer_offset);
        length = tq_get_u64(&outside, TQ_ExternalBuffer_length);
    } else {
        Py_RETURN_NONE;
    }
    if (!place)
        return NULL;
    PyObject *count = parameters(tensor);
    if (count)
        return typed(f->constant_type, Py_BuildValue("((NKK)NK)", place, offset, length, count, length));
    Py_DECREF(place);
    return NULL;
}

static int add_tensors(const facts *f)
{
    for (uint32_t i = 0; i < f->graph.tensors.count; i++) {
        const tq_table tensor = tq_vector_table(&f->graph.tensors, i);
        if (tq_py_append(f->tensors, tensor_facts(f, &tensor)) < 0 ||
            tq_py_append(f->constants, constant_facts(f, &tensor)) < 0 || tq_py_hears(i) < 0)
            return -1;
    }
    return 0;
}

/* The items of `list` that tensor indices name; what does not exist gives None. */
static PyObject *items_at(PyObject *list, const tq_vector *indices)
{
    PyObject *out = PyList_New(indices->count);
    for (uint32_t i = 0; out && i < indices->count; i++) {
        const int32_t index = tq_vector_i32(indices, i);
        const bool exists = index >= 0 && index < PyList_GET_SIZE(list);
        PyList_SET_ITEM(out, i, Py_NewRef(exists ? PyList_GET_ITEM(list, index) : Py_None));
    }
    return out;
}

/* The constants among inputs; None where there are none, as most operators have none in models of very many. */
static PyObject *constants_read(const facts *f, const tq_vector *inputs)
{
    PyObject *out = NULL;
    for (uint32_t i = 0; i < inputs->count; i++) {
        const int32_t index = tq_vector_i32(inputs, i);
        PyObject *constant =
            index >= 0 && index < PyList_GET_SIZE(f->constants) ? PyList_GET_ITEM(f->constants, index) : Py_None;
        if (constant == Py_None)
            continue;
        if ((!out && !(out = PyList_New(0))) || PyList_Append(out, constant) < 0) {
            Py_XDECREF(out);
            return NULL;
        }
    }
    return out ? out : Py_NewRef(Py_None);
}

static PyObject *operator_name(const facts *f, const tq_operator *op)
{
    PyObject *code = PyLong_FromLongLong(tq_get_int(&op->table, TQ_Operator_opcode_index));
    PyObject *name = code ? Py_XNewRef(PyDict_GetItemWithError(f->names, code)) : NULL;
    if (code && !name && !PyErr_Occurred()) {
        name = tq_py_operator_name(op);
        if (name && PyDict_SetItem(f->names, code, name) < 0)
            Py_CLEAR(name);
    }
    Py_XDECREF(code);
    return name;
}

/* (name, inputs, outputs, constants or None, multiply-adds or None) */
static PyObject *operator_facts(const facts *f, size_t index)
{
    const tq_operator op = tq_model_operator(f->model, &f->graph, index);
    const tq_vector inputs = tq_get_vector(&op.table, TQ_Operator_inputs);
    const tq_vector outputs = tq_get_vector(&op.table, TQ_Operator_outputs);
    uint64_t count;
    const bool known = tq_multiply_adds_in_file(&f->graph, &op, &count) == TQ_COUNT_KNOWN;
    PyObject *fields[] = {
        operator_name(f, &op),
        items_at(f->tensors, &inputs),
        items_at(f->tensors, &outputs),
        constants_read(f, &inputs),
        known ? PyLong_FromUnsignedLongLong(count) : Py_NewRef(Py_None),
    };
    const size_t fields_count = sizeof fields / sizeof *fields;
    PyObject *row = PyTuple_New((Py_ssize_t)fields_count);
    for (size_t i = 0; i < fields_count; i++) {
        if (!fields[i])
            Py_CLEAR(row);
        if (row)
            PyTuple_SET_ITEM(row, (Py_ssize_t)i, fields[i]);
        else
            Py_XDECREF(fields[i]);
    }
    return row;
}

PyObject *tq_py_subgraph_facts(PyObject *self, PyObject *args)
{
    facts f = {.model = &((ItemObject *)self)->model->model, .graph = tq_py_subgraph_of((ItemObject *)self)};
    if (!PyArg_ParseTuple(args, "O!O!:_facts", &PyType_Type, &f.tensor_type, &PyType_Type, &f.constant_type))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)f.tensor_type, &PyTuple_Type) ||
        !PyType_IsSubtype((PyTypeObject *)f.constant_type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "_facts needs two subtypes of tuple");
        return NULL;
    }
    f.tensors = PyList_New(0);
    f.constants = PyList_New(0);
    f.names = PyDict_New();
    PyObject *operators = PyList_New(0);
    bool failed = !f.tensors || !f.constants || !f.names || !operators || add_tensors(&f) < 0;
    for (uint32_t i = 0; !failed && i < f.graph.operators.count; i++)
        failed = tq_py_append(operators, operator_facts(&f, i)) < 0 || tq_py_hears(i) < 0;
    Py_XDECREF(f.names);
    Py_XDECREF(f.tensors);
    if (!failed)
        return Py_BuildValue("(NN)", f.constants, operators);
    Py_XDECREF(f.constants);
    Py_XDECREF(operators);
    return NULL;
}
