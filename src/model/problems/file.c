/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the whole file: identifier, operator codes, buffers, external buffers, metadata.
 */
#include "base/checked.h"
#include "model/problems/checks.h"

enum { SCHEMA_VERSION = 3, OLD_CODE_LIMIT = 127 };

static void check_operator_code(tq_checker *checker, uint32_t index)
{
    tq_location location = tq_location_of(TQ_LOCATION_OPERATOR_CODE, index);
    tq_table code = tq_vector_table(&checker->model->operator_codes, index);
    int64_t old = tq_get_int(&code, TQ_OperatorCode_deprecated_builtin_code);
    int64_t new = tq_get_int(&code, TQ_OperatorCode_builtin_code);
    int64_t builtin = tq_operator_code_builtin(&code);
    int64_t version = tq_get_int(&code, TQ_OperatorCode_version);
    tq_bytes name = tq_get_string(&code, TQ_OperatorCode_custom_code);
    if (!tq_builtin(builtin) || builtin == TQ_BuiltinOperator_PLACEHOLDER_FOR_GREATER_OP_CODES)
        tq_report(checker, TQ_PROBLEM_OPCODE_UNKNOWN, location, "the number is %lld, which this schema does not know",
                  (long long)builtin);
    if (old > 0 && new > 0 && old != new && !(old == OLD_CODE_LIMIT && new > OLD_CODE_LIMIT))
        tq_report(checker, TQ_PROBLEM_OPCODE_CONFLICT, location,
                  "deprecated_builtin_code is %lld and builtin_code is %lld; the larger counts", (long long)old,
                  (long long)new);
    if (builtin == TQ_BuiltinOperator_CUSTOM && !name.size)
        tq_report(checker, TQ_PROBLEM_OPCODE_NAME, location,
                  "the code is CUSTOM; it needs a custom_code that names the operator");
    if (version < 1)
        tq_report(checker, TQ_PROBLEM_OPCODE_VERSION, location, "the version is %lld; versions start at 1",
                  (long long)version);
}

static void check_buffer(tq_checker *checker, uint32_t index)
{
    tq_location location = tq_location_of(TQ_LOCATION_BUFFER, index);
    tq_bytes bytes;
    tq_error error;
    if (tq_model_buffer(checker->model, index, &bytes, &error) != TQ_OK)
        tq_report(checker, TQ_PROBLEM_BUFFER_RANGE, location, "at offset %llu, %s", (unsigned long long)error.offset,
                  error.text);
    else if (index == 0 && bytes.size)
        tq_report(checker, TQ_PROBLEM_BUFFER_ZERO, location,
                  "it has %llu bytes; tensors that name it are taken to have none", (unsigned long long)bytes.size);
}

void tq_check_file(tq_checker *checker)
{
    const tq_model *model = checker->model;
    tq_location location = tq_location_of(TQ_LOCATION_MODEL, 0);
    int64_t version = tq_get_int(&model->root, TQ_Model_version);
    if (!tq_model_has_identifier(model)) {
        char found[TQ_NAME_SIZE];
        tq_printable((tq_bytes){model->file.data + 4, 4}, found);
        tq_report(checker, TQ_PROBLEM_IDENTIFIER, location, "bytes 4 to 7 are '%s'; TFLite needs 'TFL3'", found);
    }
    if (version != SCHEMA_VERSION)
        tq_report(checker, TQ_PROBLEM_VERSION, location, "the schema version is %lld; TFLite reads %d",
                  (long long)version, SCHEMA_VERSION);
    if (!model->subgraphs.count)
        tq_report(checker, TQ_PROBLEM_NO_SUBGRAPHS, location, "the model has no subgraph; it needs at least one");
    if (!model->buffers.at)
        tq_report(checker, TQ_PROBLEM_NO_BUFFERS, location,
                  "there is no list of buffers; it may be empty, but not missing");
    for (uint32_t i = 0; i < model->operator_codes.count; i++)
        check_operator_code(checker, i);
    for (uint32_t i = 0; i < model->buffers.count; i++)
        check_buffer(checker, i);
}

/* ---- external buffers ---- */

/* The reason why a file of this name must not be opened beside the model; NULL: none. */
static const char *unsafe_name(tq_bytes name)
{
    if (!name.size)
        return "is missing or empty";
    if (memchr(name.data, 0, name.size))
        return "holds a NUL";
    if (name.data[0] == '/' || name.data[0] == '\\' || (name.size > 1 && name.data[1] == ':'))
        return "is absolute";
    for (size_t i = 0; i + 1 < name.size; i++) {
        bool starts = i == 0 || name.data[i - 1] == '/' || name.data[i - 1] == '\\';
        bool ends = i + 2 == name.size || name.data[i + 2] == '/' || name.data[i + 2] == '\\';
        if (starts && ends && name.data[i] == '.' && name.data[i + 1] == '.')
            return "has a part that is '..'";
    }
    return NULL;
}

static void check_group(tq_checker *checker, uint32_t index)
{
    tq_table group = tq_vector_table(&checker->model->external_groups, index);
    tq_bytes name = tq_get_string(&group, TQ_ExternalBufferGroup_name);
    const char *why = unsafe_name(name);
    if (!why)
        return;
    char printable[TQ_NAME_SIZE];
    tq_printable(name, printable);
    tq_report(checker, TQ_PROBLEM_EXTERNAL_NAME, tq_location_of(TQ_LOCATION_EXTERNAL_GROUP, index),
              "the file name '%s' %s; it needs to name a file below the model's folder", printable, why);
}

static void check_external_buffer(tq_checker *checker, uint32_t index)
{
    tq_location location = tq_location_of(TQ_LOCATION_EXTERNAL_BUFFER, index);
    tq_table buffer = tq_vector_table(&checker->model->external_buffers, index);
    int64_t group = tq_get_int(&buffer, TQ_ExternalBuffer_group);
    uint64_t offset = tq_get_u64(&buffer, TQ_ExternalBuffer_offset);
    uint64_t length = tq_get_u64(&buffer, TQ_ExternalBuffer_length), end;
    if (group >= checker->model->external_groups.count)
        tq_report(checker, TQ_PROBLEM_EXTERNAL_GROUP, location, "the group is %lld of %u", (long long)group,
                  checker->model->external_groups.count);
    if (!tq_add_u64(offset, length, &end) || end > INT64_MAX)
        tq_report(checker, TQ_PROBLEM_EXTERNAL_RANGE, location, "offset %llu and length %llu pass the end of any file",
                  (unsigned long long)offset, (unsigned long long)length);
}

void tq_check_external(tq_checker *checker)
{
    const tq_model *model = checker->model;
    for (uint32_t i = 0; i < model->external_groups.count; i++)
        check_group(checker, i);
    for (uint32_t i = 0; i < model->external_buffers.count; i++)
        check_external_buffer(checker, i);
    for (uint32_t i = 1; i < model->external_buffers.count; i++) {
        uint64_t id = model->external_index[i] >> 32;
        if (id == model->external_index[i - 1] >> 32)
            tq_report(checker, TQ_PROBLEM_EXTERNAL_DUPLICATE,
                      tq_location_of(TQ_LOCATION_EXTERNAL_BUFFER, (uint32_t)model->external_index[i]),
                      "the id %llu is that of number %u; ids need to differ", (unsigned long long)id,
                      (uint32_t)model->external_index[i - 1]);
    }
}

/* ---- metadata ---- */

static void check_metadata_entry(tq_checker *checker, uint32_t index)
{
    tq_location location = tq_location_of(TQ_LOCATION_METADATA, index);
    tq_table entry = tq_vector_table(&checker->model->metadata, index);
    int64_t buffer = tq_get_int(&entry, TQ_Metadata_buffer);
    if (buffer >= checker->model->buffers.count)
        tq_report(checker, TQ_PROBLEM_BUFFER_INDEX, location, "the buffer is %lld of %u", (long long)buffer,
                  checker->model->buffers.count);
    if (!tq_get_string(&entry, TQ_Metadata_name).size)
        tq_report(checker, TQ_PROBLEM_METADATA_NAME, location, "the entry needs a name to be found by");
}

tq_status tq_check_metadata(tq_checker *checker, tq_error *error)
{
    const tq_vector *metadata = &checker->model->metadata;
    for (uint32_t i = 0; i < metadata->count; i++)
        check_metadata_entry(checker, i);
    tq_vector old = tq_get_vector(&checker->model->root, TQ_Model_metadata_buffer);
    for (uint32_t i = 0; i < old.count; i++) {
        int32_t buffer = tq_vector_i32(&old, i);
        if (buffer < 0 || (uint32_t)buffer >= checker->model->buffers.count)
            tq_report(checker, TQ_PROBLEM_BUFFER_INDEX, tq_location_of(TQ_LOCATION_MODEL, 0),
                      "metadata_buffer %u is buffer %d of %u", i, buffer, checker->model->buffers.count);
    }
    return tq_check_names(checker, metadata, TQ_Metadata_name, TQ_PROBLEM_METADATA_DUPLICATE,
                          tq_location_of(TQ_LOCATION_METADATA, 0), false, error);
}
