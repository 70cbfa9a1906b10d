/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of one tensor: type, shape, data.  It sets the tensor's flags for later checks.
 */
#include "model/problems/checks.h"
#include "model/sparsity.h"
#include "model/tensor.h"

static void check_type(tq_checker *checker, const tq_table *tensor, tq_location location)
{
    int64_t type = tq_get_int(tensor, TQ_Tensor_type);
    if (!tq_type(type))
        tq_report(checker, TQ_PROBLEM_TYPE_UNKNOWN, location, "the type is %lld, which this schema does not know",
                  (long long)type);
    tq_vector variants = tq_get_vector(tensor, TQ_Tensor_variant_tensors);
    for (uint32_t i = 0; i < variants.count; i++) {
        tq_table variant = tq_vector_table(&variants, i);
        type = tq_get_int(&variant, TQ_VariantSubType_type);
        if (!tq_type(type))
            tq_report(checker, TQ_PROBLEM_TYPE_UNKNOWN, location,
                      "the type of variant tensor %u is %lld, which this schema does not know", i, (long long)type);
    }
}

static void check_signature(tq_checker *checker, const tq_vector *shape, const tq_vector *signature,
                            tq_location location)
{
    if (!signature->count)
        return;
    if (signature->count != shape->count) {
        tq_report(checker, TQ_PROBLEM_SIGNATURE_RANK, location, "shape_signature has %u dimensions, shape has %u",
                  signature->count, shape->count);
        return;
    }
    for (uint32_t i = 0; i < shape->count; i++) {
        int32_t fixed = tq_vector_i32(shape, i), signed_as = tq_vector_i32(signature, i);
        if (signed_as == fixed || signed_as == -1)
            continue;
        tq_report(checker, TQ_PROBLEM_SIGNATURE_SHAPE, location,
                  "dimension %u is %d in shape_signature and %d in shape; it needs to be equal or -1", i, signed_as,
                  fixed);
        return;
    }
}

/* Checks the shape, and returns whether its size is valid. */
static bool check_shape(tq_checker *checker, const tq_table *tensor, tq_location location)
{
    tq_vector shape = tq_get_vector(tensor, TQ_Tensor_shape);
    tq_vector signature = tq_get_vector(tensor, TQ_Tensor_shape_signature);
    check_signature(checker, &shape, &signature, location);
    for (uint32_t i = 0; i < shape.count; i++) {
        int32_t dimension = tq_vector_i32(&shape, i);
        if (dimension < 0) {
            tq_report(checker, TQ_PROBLEM_DIMENSION_NEGATIVE, location, "dimension %u is %d; it needs to be 0 or more",
                      i, dimension);
            return false;
        }
    }
    uint64_t count, size;
    tq_error error;
    tq_status status = tq_shape_count(&shape, &count, &error);
    if (status == TQ_OK && tq_tensor_size(tensor, &size, &error) == TQ_BAD_SHAPE)
        status = TQ_BAD_SHAPE;
    if (status != TQ_OK)
        tq_report(checker, TQ_PROBLEM_SHAPE_OVERFLOW, location, "%s", error.text);
    return status == TQ_OK;
}

/* ---- data ---- */

static void check_external(tq_checker *checker, const tq_table *tensor, bool has_data, tq_location location)
{
    int64_t id = tq_get_int(tensor, TQ_Tensor_external_buffer);
    tq_table buffer = tq_model_external_buffer(checker->model, id);
    if (!buffer.at) {
        tq_report(checker, TQ_PROBLEM_EXTERNAL_ID, location, "no external buffer has the id %lld", (long long)id);
        return;
    }
    if (has_data)
        tq_report(checker, TQ_PROBLEM_EXTERNAL_TWICE, location, "buffer %lld has data, and so has external buffer %lld",
                  (long long)tq_get_int(tensor, TQ_Tensor_buffer), (long long)id);
    uint64_t length = tq_get_u64(&buffer, TQ_ExternalBuffer_length), needed;
    bool packed = tq_get_string(&buffer, TQ_ExternalBuffer_packing).size > 0;
    if (!packed && tq_tensor_size(tensor, &needed, NULL) == TQ_OK && length < needed)
        tq_report(checker, TQ_PROBLEM_EXTERNAL_LENGTH, location,
                  "external buffer %lld has %llu bytes; shape and type need %llu", (long long)id,
                  (unsigned long long)length, (unsigned long long)needed);
}

static void check_strings(tq_checker *checker, const tq_table *tensor, tq_bytes bytes, tq_location location)
{
    tq_vector shape = tq_get_vector(tensor, TQ_Tensor_shape);
    tq_strings strings;
    uint64_t count;
    tq_error error;
    if (!tq_checker_spend(checker, bytes.size, location))
        return;
    if (tq_strings_open(bytes, &strings, &error) != TQ_OK)
        tq_report(checker, TQ_PROBLEM_STRINGS, location, "%s", error.text);
    else if (tq_shape_count(&shape, &count, NULL) == TQ_OK && count != strings.count)
        tq_report(checker, TQ_PROBLEM_STRING_COUNT, location, "the buffer holds %u strings; the shape says %llu",
                  strings.count, (unsigned long long)count);
}

static void check_sparsity(tq_checker *checker, const tq_table *tensor, tq_bytes bytes, tq_location location)
{
    tq_sparsity sparsity;
    tq_error error;
    const tq_type_row *type = tq_type(tq_get_int(tensor, TQ_Tensor_type));
    tq_status status = tq_sparsity_open(tensor, &sparsity, &error);
    if (status != TQ_OK) {
        tq_report(checker, TQ_PROBLEM_SPARSITY, location, "%s", error.text);
        return;
    }
    unsigned size = type ? type->bits / 8 : 0;
    if (size && bytes.size / size < sparsity.stored_count)
        tq_report(checker, TQ_PROBLEM_SPARSITY, location,
                  "the parameters describe %llu values of %u bytes; the buffer has %llu bytes",
                  (unsigned long long)sparsity.stored_count, size, (unsigned long long)bytes.size);
}

static void check_size(tq_checker *checker, const tq_table *tensor, tq_bytes bytes, tq_location location)
{
    uint64_t needed;
    if (tq_tensor_size(tensor, &needed, NULL) != TQ_OK || bytes.size == needed)
        return;
    tq_report(checker, bytes.size < needed ? TQ_PROBLEM_DATA_SHORT : TQ_PROBLEM_DATA_LONG, location,
              "buffer %lld has %llu bytes; shape and type need %llu", (long long)tq_get_int(tensor, TQ_Tensor_buffer),
              (unsigned long long)bytes.size, (unsigned long long)needed);
}

/* 64-bit elements need multiples of 4 only: converters have written these for years. */
static void check_alignment(tq_checker *checker, const tq_table *tensor, tq_bytes bytes, tq_location location)
{
    const tq_type_row *type = tq_type(tq_get_int(tensor, TQ_Tensor_type));
    size_t at = (size_t)(bytes.data - checker->model->file.data);
    unsigned size = !type ? 1 : type->kind == TQ_KIND_STRING ? 4 : type->bits / 8;
    size = size > 4 ? 4 : size;
    if (bytes.size && size && at % size)
        tq_report(checker, TQ_PROBLEM_DATA_MISALIGNED, location,
                  "the data starts at byte %llu, which is no multiple of %u", (unsigned long long)at, size);
}

static void check_bytes(tq_checker *checker, const tq_table *tensor, tq_bytes bytes, bool sound, tq_location location)
{
    if (tq_get_int(tensor, TQ_Tensor_is_variable))
        tq_report(checker, TQ_PROBLEM_VARIABLE_DATA, location, "buffer %lld has %llu bytes; a variable starts without",
                  (long long)tq_get_int(tensor, TQ_Tensor_buffer), (unsigned long long)bytes.size);
    check_alignment(checker, tensor, bytes, location);
    if (tq_get_table(tensor, TQ_Tensor_sparsity).at)
        check_sparsity(checker, tensor, bytes, location);
    else if (tq_get_int(tensor, TQ_Tensor_type) == TQ_TensorType_STRING)
        check_strings(checker, tensor, bytes, location);
    else if (sound)
        check_size(checker, tensor, bytes, location);
}

void tq_check_tensor(tq_checker *checker, uint32_t index)
{
    tq_location location = tq_location_in(checker, TQ_LOCATION_TENSOR, index, 0);
    tq_table tensor = tq_vector_table(&checker->subgraph.tensors, index);
    tq_bytes bytes = {NULL, 0};
    check_type(checker, &tensor, location);
    bool sound = check_shape(checker, &tensor, location);
    tq_status status = tq_tensor_bytes(checker->model, &tensor, &bytes, NULL);
    if (status == TQ_BAD_INDEX) /* TQ_DATA_RANGE is a problem of the buffer */
        tq_report(checker, TQ_PROBLEM_BUFFER_INDEX, location, "the buffer is %lld of %u",
                  (long long)tq_get_int(&tensor, TQ_Tensor_buffer), checker->model->buffers.count);
    bool external = tq_get_int(&tensor, TQ_Tensor_external_buffer) != 0,
         variable = tq_get_int(&tensor, TQ_Tensor_is_variable);
    if (external)
        check_external(checker, &tensor, bytes.size > 0, location);
    if (bytes.data && !(external && !bytes.size))
        check_bytes(checker, &tensor, bytes, sound, location);
    tq_check_quantization(checker, index, &tensor);
    uint64_t size;
    bool empty = tq_tensor_size(&tensor, &size, NULL) == TQ_OK && size == 0;
    checker->flags[index] |= bytes.data ? TQ_TENSOR_CONSTANT : 0;
    checker->flags[index] |= variable ? TQ_TENSOR_VARIABLE : 0;
    checker->flags[index] |= bytes.data || variable || external || empty || status != TQ_OK ? TQ_TENSOR_GIVEN : 0;
}
