/* SPDX-License-Identifier: Apache-2.0
 *
 * tq.Model: an open file or buffer.  It owns the bytes; all items refer to it.
 */
#include "python/model/model.h"

#include "model/filetypes.h"
#include "python/convert.h"
#include "python/model/data.h"
#include "python/model/details_list.h"
#include "python/errors.h"
#include "python/model/file.h"
#include "python/model/item.h"
#include "python/model/model_object.h"
#include "python/model/problems.h"
#include "python/model/records.h"
#include "python/model/sequence.h"

/* ---- opening and closing ---- */

static int is_path(PyObject *source)
{
    return PyUnicode_Check(source) || PyObject_HasAttrString(source, "__fspath__");
}

/* The rest of an open file, as an object with a buffer. */
static PyObject *read_all(PyObject *file)
{
    PyObject *read = PyObject_CallMethod(file, "read", NULL);
    if (read && !PyObject_CheckBuffer(read)) {
        PyErr_Format(PyExc_TypeError, "source.read() gives %.100s; open the file for bytes, as open(path, 'rb')",
                     Py_TYPE(read)->tp_name);
        Py_CLEAR(read);
    }
    return read;
}

static int take_path(ModelObject *self, tq_state *state, PyObject *source, tq_bytes *bytes)
{
    PyObject *path = PyOS_FSPath(source);
    if (!path)
        return -1;
    self->path = PyUnicode_Check(path) ? Py_NewRef(path) : PyUnicode_DecodeFSDefault(PyBytes_AsString(path));
    Py_DECREF(path);
    self->file = self->path ? tq_py_file(state, self->path) : NULL;
    if (!self->file)
        return -1;
    *bytes = ((FileObject *)self->file)->file.bytes;
    tq_file_expect(&((FileObject *)self->file)->file, 0);
    return 0;
}

/* Sets the bytes of `self`: a mapped file, an object with a buffer, or the bytes that an open file reads. */
static int take_source(ModelObject *self, tq_state *state, PyObject *source, tq_bytes *bytes)
{
    if (is_path(source))
        return take_path(self, state, source, bytes);
    PyObject *holder;
    if (PyObject_CheckBuffer(source)) {
        holder = Py_NewRef(source);
    } else if (PyObject_HasAttrString(source, "read")) {
        holder = read_all(source);
    } else {
        PyErr_Format(PyExc_TypeError, "source must be a path, hold bytes or be an open file, not %.100s",
                     Py_TYPE(source)->tp_name);
        return -1;
    }
    self->path = Py_NewRef(Py_None);
    int failed = holder ? PyObject_GetBuffer(holder, &self->view, PyBUF_SIMPLE) : -1;
    Py_XDECREF(holder);
    *bytes = (tq_bytes){self->view.buf, (size_t)self->view.len};
    return failed;
}

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"source", NULL};
    PyObject *source;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Model", names, &source))
        return NULL;
    ModelObject *self = (ModelObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->model.allocator = tq_default_allocator;
    tq_state *state = tq_state_of((PyObject *)self);
    tq_bytes bytes;
    tq_error error;
    tq_status status;
    if (take_source(self, state, source, &bytes) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tq_model_open(bytes, &tq_default_allocator, &self->model, &error);
    Py_END_ALLOW_THREADS
    if (status != TQ_OK) {
        tq_py_raise(state, &error, self->path);
        Py_DECREF(self);
        return NULL;
    }
    if (self->file)
        tq_file_expect(&((FileObject *)self->file)->file, 1);
    return (PyObject *)self;
}

static void dealloc(ModelObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    for (size_t i = 0; self->graphs && i < self->model.subgraphs.count; i++)
        if (self->graphs[i].producers)
            tq_graph_free(&self->graphs[i]);
    tq_release(&tq_default_allocator, self->graphs);
    tq_model_close(&self->model);
    tq_py_retract(&self->external_files);
    Py_XDECREF(self->file);
    Py_XDECREF(self->path);
    PyBuffer_Release(&self->view);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- properties ---- */

static PyObject *get_path(ModelObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self->path);
}

static PyObject *get_identity(ModelObject *self, void *closure)
{
    (void)closure;
    const tq_file *file = self->file ? &((FileObject *)self->file)->file : NULL;
    if (!file || !file->inode)
        Py_RETURN_NONE;
    return Py_BuildValue("KK", (unsigned long long)file->device, (unsigned long long)file->inode);
}

static PyObject *get_nbytes(ModelObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(self->model.file.size);
}

static PyObject *get_has_identifier(ModelObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(tq_model_has_identifier(&self->model));
}

static PyObject *get_version(ModelObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLongLong(tq_get_int(&self->model.root, TQ_Model_version));
}

static PyObject *get_description(ModelObject *self, void *closure)
{
    (void)closure;
    return tq_py_text(tq_get_string(&self->model.root, TQ_Model_description));
}

static PyObject *make_operator_code(PyObject *owner, size_t index)
{
    tq_table code = tq_vector_table(&((ModelObject *)owner)->model.operator_codes, index);
    return tq_py_operator_code(tq_state_of(owner), &code);
}

static PyObject *operator_code_name(PyObject *owner, size_t index)
{
    PyObject *code = make_operator_code(owner, index);
    PyObject *name = code ? Py_NewRef(PyStructSequence_GetItem(code, 0)) : NULL;
    Py_XDECREF(code);
    return name;
}

static PyObject *get_operator_codes(ModelObject *self, void *closure)
{
    static const tq_py_items items = {"operator codes", make_operator_code, operator_code_name};
    (void)closure;
    return tq_py_sequence(tq_state_of((PyObject *)self), (PyObject *)self, &items, self->model.operator_codes.count);
}

static PyObject *make_subgraph(PyObject *owner, size_t index)
{
    return tq_py_item(tq_state_of(owner)->Subgraph, (ModelObject *)owner, index, index);
}

static PyObject *subgraph_name(PyObject *owner, size_t index)
{
    tq_table table = tq_vector_table(&((ModelObject *)owner)->model.subgraphs, index);
    return tq_py_text_or_none(tq_get_string(&table, TQ_SubGraph_name));
}

static PyObject *get_subgraphs(ModelObject *self, void *closure)
{
    static const tq_py_items items = {"subgraphs", make_subgraph, subgraph_name};
    (void)closure;
    return tq_py_sequence(tq_state_of((PyObject *)self), (PyObject *)self, &items, self->model.subgraphs.count);
}

/* tensors, operators, inputs and outputs of subgraph 0; closure: the attribute's name.  Empty without subgraphs. */
static PyObject *get_of_main(ModelObject *self, void *closure)
{
    PyObject *main = make_subgraph((PyObject *)self, 0);
    PyObject *value = main ? PyObject_GetAttrString(main, closure) : NULL;
    Py_XDECREF(main);
    return value;
}

static PyObject *make_signature(PyObject *owner, size_t index)
{
    tq_table table = tq_vector_table(&((ModelObject *)owner)->model.signatures, index);
    return tq_py_signature(tq_state_of(owner), &table);
}

static PyObject *signature_name(PyObject *owner, size_t index)
{
    tq_table table = tq_vector_table(&((ModelObject *)owner)->model.signatures, index);
    return tq_py_text(tq_get_string(&table, TQ_SignatureDef_signature_key));
}

static PyObject *get_signatures(ModelObject *self, void *closure)
{
    static const tq_py_items items = {"signatures", make_signature, signature_name};
    (void)closure;
    return tq_py_sequence(tq_state_of((PyObject *)self), (PyObject *)self, &items, self->model.signatures.count);
}

static PyObject *make_buffer(PyObject *owner, size_t index)
{
    return tq_py_item(tq_state_of(owner)->Buffer, (ModelObject *)owner, 0, index);
}

static PyObject *get_buffers(ModelObject *self, void *closure)
{
    static const tq_py_items items = {"buffers", make_buffer, NULL};
    (void)closure;
    return tq_py_sequence(tq_state_of((PyObject *)self), (PyObject *)self, &items, self->model.buffers.count);
}

static PyObject *make_external_buffer(PyObject *owner, size_t index)
{
    ModelObject *self = (ModelObject *)owner;
    tq_table table = tq_vector_table(&self->model.external_buffers, index);
    return tq_py_external_buffer(tq_state_of(owner), &self->model, &table);
}

static PyObject *get_external_buffers(ModelObject *self, void *closure)
{
    static const tq_py_items items = {"external buffers", make_external_buffer, NULL};
    (void)closure;
    return tq_py_sequence(tq_state_of((PyObject *)self), (PyObject *)self, &items, self->model.external_buffers.count);
}

/* The bytes of a metadata entry's buffer; empty where the file has none.  copies: a dict by buffer, so that entries
   with the same large buffer share one copy. */
static PyObject *metadata_bytes(ModelObject *self, const tq_table *entry, PyObject *copies)
{
    int64_t index = tq_get_int(entry, TQ_Metadata_buffer);
    PyObject *key = PyLong_FromLongLong(index);
    PyObject *data = key ? Py_XNewRef(PyDict_GetItemWithError(copies, key)) : NULL;
    if (key && !data && !PyErr_Occurred()) {
        tq_bytes bytes = {NULL, 0};
        tq_model_buffer(&self->model, (uint64_t)index, &bytes, NULL);
        data = PyBytes_FromStringAndSize((const char *)bytes.data, bytes.data ? (Py_ssize_t)bytes.size : 0);
        if (data && PyDict_SetItem(copies, key, data) < 0)
            Py_CLEAR(data);
    }
    Py_XDECREF(key);
    return data;
}

/* {name: bytes}; of two entries with equal names the last. */
static PyObject *get_metadata(ModelObject *self, void *closure)
{
    (void)closure;
    PyObject *dict = PyDict_New(), *copies = PyDict_New();
    if (!copies)
        Py_CLEAR(dict);
    for (size_t i = 0; dict && i < self->model.metadata.count; i++) {
        tq_table entry = tq_vector_table(&self->model.metadata, i);
        PyObject *name = tq_py_text(tq_get_string(&entry, TQ_Metadata_name));
        if (!name || tq_py_set(dict, name, metadata_bytes(self, &entry, copies)) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(name);
    }
    Py_XDECREF(copies);
    return dict;
}

/* A metadata entry, which the converter pads with NULs to 16 bytes. */
static PyObject *get_min_runtime_version(ModelObject *self, void *closure)
{
    static const char wanted[] = "min_runtime_version";
    (void)closure;
    for (size_t i = 0; i < self->model.metadata.count; i++) {
        tq_table entry = tq_vector_table(&self->model.metadata, i);
        tq_bytes name = tq_get_string(&entry, TQ_Metadata_name), text = {NULL, 0};
        if (name.size != sizeof wanted - 1 || memcmp(name.data, wanted, name.size) != 0)
            continue;
        tq_model_buffer(&self->model, (uint64_t)tq_get_int(&entry, TQ_Metadata_buffer), &text, NULL);
        while (text.size && text.data[text.size - 1] == 0)
            text.size--;
        return tq_py_text_or_none(text);
    }
    Py_RETURN_NONE;
}

static PyObject *get_problems(ModelObject *self, void *closure)
{
    (void)closure;
    return tq_py_problems(tq_state_of((PyObject *)self), &self->model);
}

static PyObject *get_file(ModelObject *self, void *closure)
{
    (void)closure;
    PyArray_Descr *dtype = PyArray_DescrFromType(NPY_UINT8);
    npy_intp size = (npy_intp)self->model.file.size;
    PyObject *view = tq_py_view(self->model.file, dtype, 1, &size, Py_NewRef(self));
    Py_DECREF(dtype);
    return view;
}

static PyGetSetDef properties[] = {
    {"path", (getter)get_path, NULL, "The file's path as given, or None for a model opened from bytes.", NULL},
    {"_identity", (getter)get_identity, NULL, "The mapped file's (device, inode); None where there is none.", NULL},
    {"nbytes", (getter)get_nbytes, NULL, "Size of the whole file in bytes.", NULL},
    {"has_identifier", (getter)get_has_identifier, NULL, "Whether bytes 4 to 7 are 'TFL3'.", NULL},
    {"version", (getter)get_version, NULL, "Version of the schema; 3 for every file of the last years.", NULL},
    {"description", (getter)get_description, NULL, "The model's description, '' if it has none.", NULL},
    {"min_runtime_version", (getter)get_min_runtime_version, NULL,
     "The oldest TFLite release that can run the model, as its metadata says, or None.", NULL},
    {"operator_codes", (getter)get_operator_codes, NULL, "Sequence of OperatorCode: the operators that the model uses.",
     NULL},
    {"subgraphs", (getter)get_subgraphs, NULL, "Sequence of Subgraph; the first is the main one.", NULL},
    {"tensors", (getter)get_of_main, NULL, "Sequence of Tensor of the main subgraph.", "tensors"},
    {"operators", (getter)get_of_main, NULL, "Sequence of Operator of the main subgraph, in execution order.",
     "operators"},
    {"inputs", (getter)get_of_main, NULL, "The main subgraph's input tensors.", "inputs"},
    {"outputs", (getter)get_of_main, NULL, "The main subgraph's output tensors.", "outputs"},
    {"signatures", (getter)get_signatures, NULL, "Sequence of Signature, by index or by key.", NULL},
    {"metadata", (getter)get_metadata, NULL, "dict from name to bytes.", NULL},
    {"buffers", (getter)get_buffers, NULL, "Sequence of Buffer; the first is empty by convention.", NULL},
    {"external_buffers", (getter)get_external_buffers, NULL,
     "Sequence of ExternalBuffer: constants in files beside the model.", NULL},
    {"_file", (getter)get_file, NULL, "All bytes of the file, a read-only view.", NULL},
    {"problems", (getter)get_problems, NULL,
     "list of Problem: what is invalid or suspicious though it can be read.  Walks the model each time.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- methods ---- */

static PyObject *details_of(ModelObject *self, PyObject *args, PyObject *kwargs, tq_py_details_of which)
{
    static char *names[] = {"subgraph_index", NULL};
    Py_ssize_t index = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|n", names, &index))
        return NULL;
    uint32_t count = self->model.subgraphs.count;
    if (index < 0 || (size_t)index >= count)
        return PyErr_Format(PyExc_ValueError,
                            "subgraph_index is out of range: %zd for the model, which has %u subgraphs.", index, count);
    return tq_py_details_list(self, (size_t)index, which);
}

static PyObject *get_tensor_details(ModelObject *self, PyObject *args, PyObject *kwargs)
{
    return details_of(self, args, kwargs, TQ_PY_ALL_TENSORS);
}

static PyObject *get_input_details(ModelObject *self, PyObject *args, PyObject *kwargs)
{
    return details_of(self, args, kwargs, TQ_PY_INPUTS);
}

static PyObject *get_output_details(ModelObject *self, PyObject *args, PyObject *kwargs)
{
    return details_of(self, args, kwargs, TQ_PY_OUTPUTS);
}

static PyObject *summary(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tq_py_call("tq.inspection.summary", "summary", self);
}

static PyObject *view(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return tq_py_call_with("tq.view.view", "view", self, args, kwargs);
}

static PyObject *repr_html(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tq_py_call("tq.inspection.notebook", "model_html", self);
}

static PyObject *str(PyObject *self)
{
    return tq_py_call("tq.inspection.listing", "listing", self);
}

static PyObject *repr(ModelObject *self)
{
    tq_subgraph main = tq_model_subgraph(&self->model, 0);
    return PyUnicode_FromFormat("<tq.Model %R: %u subgraphs, %u tensors, %u operators, %zu bytes>", self->path,
                                self->model.subgraphs.count, main.tensors.count, main.operators.count,
                                self->model.file.size);
}

#define DETAILS_DOC                                                                                              \
    "\n\nEach dict has LiteRT's keys with values of equal types: name (str), index (int), shape and\n"           \
    "shape_signature (int32 arrays), dtype (a NumPy class), quantization ((scale, zero_point), or (0.0, 0)\n"    \
    "for anything but one scale), quantization_parameters and sparsity_parameters (dicts).\n"                    \
    "quantization_parameters holds scales (float32; blockwise: float16), zero_points (int32),\n"                 \
    "quantized_dimension and block_size, and what LiteRT drops: min and max as the file stores them\n"           \
    "(float32, empty where it stores none), range_min and range_max, which the quantized values can represent\n" \
    "(scale * (lowest or highest value - zero_point), one a scale).\n\n"                                         \
    "ValueError: there is no such subgraph."

static PyMethodDef methods[] = {
    {"get_tensor_details", (PyCFunction)(void (*)(void))get_tensor_details, METH_VARARGS | METH_KEYWORDS,
     "get_tensor_details($self, /, subgraph_index=0)\n--\n\n"
     "A dict for each tensor of a subgraph, as LiteRT's Interpreter gives them." DETAILS_DOC},
    {"get_input_details", (PyCFunction)(void (*)(void))get_input_details, METH_VARARGS | METH_KEYWORDS,
     "get_input_details($self, /, subgraph_index=0)\n--\n\n"
     "A dict for each input of a subgraph, as LiteRT's Interpreter gives them." DETAILS_DOC},
    {"get_output_details", (PyCFunction)(void (*)(void))get_output_details, METH_VARARGS | METH_KEYWORDS,
     "get_output_details($self, /, subgraph_index=0)\n--\n\n"
     "A dict for each output of a subgraph, as LiteRT's Interpreter gives them." DETAILS_DOC},
    {"summary", summary, METH_NOARGS,
     "summary($self, /)\n--\n\nOperators with their types, shapes, bytes, parameters and multiply-adds, and the "
     "totals."},
    {"view", (PyCFunction)(void (*)(void))view, METH_VARARGS | METH_KEYWORDS,
     "view($self, /, other=None, *, samples=None, profile=False, output=None, num_threads=None, max_memory=None,\n"
     "     max_multiply_adds=None)\n--\n\n"
     "The graph of the model, as a page: a notebook shows it, .open() opens it in a browser, .save(path) writes it.\n\n"
     "other: a second model, beside which operators show the SQNR of their outputs, over `samples`.\n"
     "profile: whether to run the model and show the time of each operator.\n"
     "output: a path to write the page to.  tq.view.view has the other arguments and the errors."},
    {"_repr_html_", repr_html, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(doc,
             "Model(source)\n--\n\n"
             "A .tflite file, open: everything in it, read in place.\n\n"
             "source: a path (str or path-like), whose file is mapped into memory; bytes or any object with a\n"
             "buffer, which is not copied; or an open file, such as io.BytesIO, which is read to its end.  Replace\n"
             "a mapped file rather than write into it.\n\n"
             "print(model) lists operators and tensors; model.problems says what is wrong with a file that opens\n"
             "all the same.  A model never changes, and may be used from several threads.\n\n"
             "ModelError (a ValueError): not a TensorFlow Lite flatbuffer; .offset and the text say where.\n"
             "OSError: the path cannot be opened, or is not a regular file.");

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)doc}, {Py_tp_new, new},           {Py_tp_dealloc, dealloc}, {Py_tp_repr, repr},
    {Py_tp_str, str},         {Py_tp_getset, properties}, {Py_tp_methods, methods}, {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core.Model",
    .basicsize = sizeof(ModelObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

/* filetype(first bytes of a file) */
static PyObject *filetype(PyObject *module, PyObject *source)
{
    (void)module;
    Py_buffer view;
    if (PyObject_GetBuffer(source, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const char *found = tq_filetype((tq_bytes){view.buf, (size_t)view.len});
    PyBuffer_Release(&view);
    return found ? PyUnicode_FromString(found) : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"filetype", filetype, METH_O,
     "filetype(head, /)\n--\n\nWhat a file is that is no model, by its first bytes; None: not known."},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_model(PyObject *module, tq_state *state)
{
    return PyModule_AddFunctions(module, functions) < 0 ? -1 : tq_py_add_type(module, &spec, &state->Model);
}
