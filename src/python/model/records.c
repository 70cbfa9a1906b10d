/* SPDX-License-Identifier: Apache-2.0
 *
 * OperatorCode, Signature, ExternalBuffer: tables that are a few values, as named tuples.
 */
#include "python/model/records.h"

#include "python/convert.h"

static PyStructSequence_Desc operator_code_desc = {
    "tq.OperatorCode",
    "An operator that the model uses.",
    (PyStructSequence_Field[]){
        {"name", "the builtin's name, or a custom operator's own"},
        {"code", "BuiltinOperator; the number where the schema does not know it"},
        {"custom_code", "a custom operator's name, or None"},
        {"version", "which revision of the operator's semantics"},
        {NULL, NULL},
    },
    4,
};

static PyStructSequence_Desc signature_desc = {
    "tq.Signature",
    "Names for a subgraph's inputs and outputs.",
    (PyStructSequence_Field[]){
        {"key", "the signature's own name"},
        {"subgraph_index", "which subgraph it calls"},
        {"inputs", "dict from name to tensor index in that subgraph"},
        {"outputs", "dict from name to tensor index in that subgraph"},
        {NULL, NULL},
    },
    4,
};

static PyStructSequence_Desc external_buffer_desc = {
    "tq.ExternalBuffer",
    "A constant's bytes in a file beside the model.",
    (PyStructSequence_Field[]){
        {"id", "what Tensor.external_buffer refers to"},
        {"group", "the side file's name, or None where the model does not give it"},
        {"offset", "of the first byte in the side file"},
        {"length", "in bytes"},
        {"packing", "how the bytes are packed, or None"},
        {NULL, NULL},
    },
    5,
};

PyObject *tq_py_record(PyObject *type, PyObject *const *items, Py_ssize_t count)
{
    PyObject *made = PyStructSequence_New((PyTypeObject *)type);
    int failed = !made;
    for (Py_ssize_t i = 0; i < count; i++) {
        failed |= !items[i];
        if (made)
            PyStructSequence_SetItem(made, i, items[i]);
        else
            Py_XDECREF(items[i]);
    }
    if (failed)
        Py_CLEAR(made);
    return made;
}

static PyObject *operator_name(int64_t code, tq_bytes custom)
{
    const tq_builtin_row *row = tq_builtin(code);
    if (code == TQ_BuiltinOperator_CUSTOM && custom.data)
        return tq_py_text(custom);
    return row ? PyUnicode_FromString(row->name) : PyUnicode_FromFormat("BUILTIN_%lld", (long long)code);
}

PyObject *tq_py_operator_name(const tq_operator *op)
{
    return op->code < 0 ? PyUnicode_FromString("?") : operator_name(op->code, op->custom_name);
}

PyObject *tq_py_operator_code(tq_state *state, const tq_table *operator_code)
{
    int64_t code = tq_operator_code_builtin(operator_code);
    tq_bytes custom = tq_get_string(operator_code, TQ_OperatorCode_custom_code);
    PyObject *items[] = {
        operator_name(code, custom),
        tq_py_enum_member(state, TQ_ENUM_BuiltinOperator, code),
        tq_py_text_or_none(custom),
        PyLong_FromLongLong(tq_get_int(operator_code, TQ_OperatorCode_version)),
    };
    return tq_py_record(state->OperatorCode, items, 4);
}

/* {name: tensor index} of a vector of TensorMap; of two with one name the last wins, as in LiteRT. */
static PyObject *tensor_map(const tq_vector *vector)
{
    PyObject *dict = PyDict_New();
    for (uint32_t i = 0; dict && i < vector->count; i++) {
        tq_table map = tq_vector_table(vector, i);
        PyObject *name = tq_py_text(tq_get_string(&map, TQ_TensorMap_name));
        if (!name || tq_py_set(dict, name, PyLong_FromLongLong(tq_get_int(&map, TQ_TensorMap_tensor_index))) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(name);
    }
    return dict;
}

PyObject *tq_py_signature(tq_state *state, const tq_table *signature)
{
    tq_vector inputs = tq_get_vector(signature, TQ_SignatureDef_inputs);
    tq_vector outputs = tq_get_vector(signature, TQ_SignatureDef_outputs);
    PyObject *items[] = {
        tq_py_text(tq_get_string(signature, TQ_SignatureDef_signature_key)),
        PyLong_FromLongLong(tq_get_int(signature, TQ_SignatureDef_subgraph_index)),
        tensor_map(&inputs),
        tensor_map(&outputs),
    };
    return tq_py_record(state->Signature, items, 4);
}

PyObject *tq_py_external_buffer(tq_state *state, const tq_model *model, const tq_table *buffer)
{
    tq_table group = tq_vector_table(&model->external_groups, (size_t)tq_get_int(buffer, TQ_ExternalBuffer_group));
    PyObject *items[] = {
        PyLong_FromLongLong(tq_get_int(buffer, TQ_ExternalBuffer_id)),
        tq_py_text_or_none(tq_get_string(&group, TQ_ExternalBufferGroup_name)),
        PyLong_FromUnsignedLongLong(tq_get_u64(buffer, TQ_ExternalBuffer_offset)),
        PyLong_FromUnsignedLongLong(tq_get_u64(buffer, TQ_ExternalBuffer_length)),
        tq_py_text_or_none(tq_get_string(buffer, TQ_ExternalBuffer_packing)),
    };
    return tq_py_record(state->ExternalBuffer, items, 5);
}

int tq_py_add_records(PyObject *module, tq_state *state)
{
    struct {
        PyStructSequence_Desc *desc;
        PyObject **slot;
    } rows[] = {
        {&operator_code_desc, &state->OperatorCode},
        {&signature_desc, &state->Signature},
        {&external_buffer_desc, &state->ExternalBuffer},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i].slot = (PyObject *)PyStructSequence_NewType(rows[i].desc);
        if (!*rows[i].slot || PyModule_AddObjectRef(module, rows[i].desc->name + 3, *rows[i].slot) < 0)
            return -1;
    }
    return 0;
}
