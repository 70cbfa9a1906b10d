/* SPDX-License-Identifier: Apache-2.0 */
#include "model/same.h"

#include <string.h>

#include "model/tensor.h"

enum { DEPTH = 8 }; /* of tables in tables; the schema has 3 */

static bool same_bytes(tq_bytes a, tq_bytes b)
{
    if (!a.data || !b.data)
        return !a.data && !b.data;
    return a.size == b.size && (a.data == b.data || memcmp(a.data, b.data, a.size) == 0);
}

static bool same_table(tq_table_id id, const tq_table *a, const tq_table *b, int depth);

static bool same_union(tq_union_id which, const tq_union *a, const tq_union *b, int depth)
{
    if (a->type != b->type)
        return false;
    const tq_table_id id = tq_union_member(which, a->type);
    return a->type == 0 || (id != TQ_TABLE_NONE && same_table(id, &a->value, &b->value, depth));
}

static bool same_items(const tq_field *field, const tq_vector *a, const tq_vector *b, int depth)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (field->shape == TQ_SHAPE_VEC_STRING) {
            if (!same_bytes(tq_vector_string(a, i), tq_vector_string(b, i)))
                return false;
        } else {
            const tq_table x = tq_vector_table(a, i), y = tq_vector_table(b, i);
            if (!same_table((tq_table_id)field->detail, &x, &y, depth))
                return false;
        }
    return true;
}

static bool same_vector(const tq_field *field, const tq_vector *a, const tq_vector *b, int depth)
{
    if (!a->at != !b->at || a->count != b->count)
        return false;
    if (field->shape == TQ_SHAPE_VEC_STRING || field->shape == TQ_SHAPE_VEC_TABLE)
        return same_items(field, a, b, depth);
    const size_t size = tq_scalar_size[field->scalar];
    return same_bytes(tq_vector_bytes(a, size), tq_vector_bytes(b, size));
}

static bool same_field(tq_field_id id, const tq_table *a, const tq_table *b, int depth)
{
    const tq_field *field = &tq_fields[id];
    switch (field->shape) {
    case TQ_SHAPE_SCALAR:
    case TQ_SHAPE_ENUM: return tq_get_scalar(a, id).u == tq_get_scalar(b, id).u; /* of floats the bits */
    case TQ_SHAPE_STRING: return same_bytes(tq_get_string(a, id), tq_get_string(b, id));
    case TQ_SHAPE_TABLE: {
        const tq_table x = tq_get_table(a, id), y = tq_get_table(b, id);
        return same_table((tq_table_id)field->detail, &x, &y, depth);
    }
    case TQ_SHAPE_UNION: {
        const tq_union x = tq_get_union(a, id), y = tq_get_union(b, id);
        return same_union((tq_union_id)field->detail, &x, &y, depth);
    }
    default: {
        const tq_vector x = tq_get_vector(a, id), y = tq_get_vector(b, id);
        return same_vector(field, &x, &y, depth);
    }
    }
}

static bool same_fields(const tq_field_id *ids, size_t count, const tq_table *a, const tq_table *b)
{
    for (size_t i = 0; i < count; i++)
        if (!same_field(ids[i], a, b, DEPTH))
            return false;
    return true;
}

static bool same_table(tq_table_id id, const tq_table *a, const tq_table *b, int depth)
{
    if (!a->at || !b->at)
        return !a->at && !b->at;
    if (a->file.data == b->file.data && a->at == b->at)
        return true;
    for (unsigned field = tq_tables[id].first; field < tq_tables[id + 1].first; field++)
        if (depth == 0 || !same_field((tq_field_id)field, a, b, depth - 1))
            return false;
    return true;
}

/* ---- parts ---- */

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static bool same_constant(const tq_model *a, const tq_table *x, const tq_model *b, const tq_table *y)
{
    tq_bytes p, q;
    return tq_tensor_bytes(a, x, &p, NULL) == TQ_OK && tq_tensor_bytes(b, y, &q, NULL) == TQ_OK && same_bytes(p, q);
}

static bool reaches_out(const tq_table *tensor)
{
    const tq_table quantization = tq_get_table(tensor, TQ_Tensor_quantization);
    return tq_get_int(tensor, TQ_Tensor_external_buffer) != 0 ||
           tq_get_union(&quantization, TQ_QuantizationParameters_details).type != 0;
}

bool tq_tensor_is_same(const tq_model *a, const tq_table *x, const tq_model *b, const tq_table *y)
{
    static const tq_field_id fields[] = {
        TQ_Tensor_name,     TQ_Tensor_type,         TQ_Tensor_shape,       TQ_Tensor_shape_signature,
        TQ_Tensor_sparsity, TQ_Tensor_quantization, TQ_Tensor_is_variable, TQ_Tensor_variant_tensors,
    };
    return !reaches_out(x) && !reaches_out(y) && same_fields(fields, COUNT_OF(fields), x, y) &&
           same_constant(a, x, b, y);
}

bool tq_operator_is_same(const tq_operator *a, const tq_operator *b)
{
    static const tq_field_id fields[] = {
        TQ_Operator_inputs,          TQ_Operator_outputs,           TQ_Operator_intermediates,
        TQ_Operator_builtin_options, TQ_Operator_builtin_options_2, TQ_Operator_mutating_variable_inputs,
    };
    tq_bytes x, y;
    return a->code == b->code && a->version == b->version && same_bytes(a->custom_name, b->custom_name) &&
           same_fields(fields, COUNT_OF(fields), &a->table, &b->table) &&
           tq_operator_custom_options(a, &x, NULL) == TQ_OK && tq_operator_custom_options(b, &y, NULL) == TQ_OK &&
           same_bytes(x, y);
}
