/* SPDX-License-Identifier: Apache-2.0
 *
 * HASHTABLE, HASHTABLE_IMPORT, HASHTABLE_FIND and HASHTABLE_SIZE: tables that are filled once.  The lookup of a missing
 * key gives the first element of the default.  Source: LiteRT f6745779,
 * tflite/kernels/hashtable{,_import,_find,_size}.cc, experimental/resource/static_hashtable.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "runtime/prepare_functions.h"
#include "runtime/resources.h"
#include "runtime/run.h"

static tq_resources *resources_of(const tq_node *node)
{
    return tq_graph_of(node)->run->resources;
}

/* The types must be INT64 to STRING, or STRING to INT64. */
static tq_status check_pair(const tq_node *node, int64_t key, int64_t value, tq_error *error)
{
    if ((key == TQ_TensorType_INT64 && value == TQ_TensorType_STRING) ||
        (key == TQ_TensorType_STRING && value == TQ_TensorType_INT64))
        return TQ_OK;
    return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                      "has keys of %s and values of %s; it needs INT64 and STRING or STRING "
                      "and INT64",
                      tq_type_name(key), tq_type_name(value));
}

static tq_status check_handle(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(RESOURCE), error));
    return tq_tensor_count(node->in[0]) == 1 ? TQ_OK : tq_input_fail(node, 0, error, "is not one handle");
}

/* The table with the id in input 0, which must have these types. */
static tq_status table_of(const tq_node *node, int64_t key, int64_t value, tq_hashtable **out, tq_error *error)
{
    int32_t table_id = *(const int32_t *)node->in[0]->data;
    tq_hashtable *table = tq_hashtable_of(resources_of(node), table_id);
    if (!table)
        return tq_op_fail(node, error, TQ_BAD_DATA, "there is no table %d", (int)table_id);
    if (table->key_type != key || table->value_type != value)
        return tq_op_fail(node, error, TQ_BAD_DATA, "table %d is of %s to %s, not of %s to %s", (int)table_id,
                          tq_type_name(table->key_type), tq_type_name(table->value_type), tq_type_name(key),
                          tq_type_name(value));
    *out = table;
    return TQ_OK;
}

/* The strings of input i, checked: a caller may have set invalid ones. */
static tq_status open_strings(const tq_node *node, int i, tq_strings *out, tq_error *error)
{
    const tq_tensor *in = node->in[i];
    if (tq_strings_open((tq_bytes){in->data, in->bytes}, out, NULL) != TQ_OK || out->count < tq_tensor_count(in))
        return tq_op_fail(node, error, TQ_BAD_STRINGS, "input %d is no tensor of %zu strings", i, tq_tensor_count(in));
    return TQ_OK;
}

/* ---- HASHTABLE ---- */

static tq_status eval_handle(tq_node *node, tq_error *error)
{
    (void)error;
    memcpy(node->out[0]->data, node->state, sizeof(int32_t));
    return TQ_OK;
}

tq_status tq_prepare_hashtable(tq_node *node, tq_error *error)
{
    int32_t *table_id = NULL;
    tq_shape one = {1, {1}};
    int64_t key = tq_get_int(&node->options.table, TQ_HashtableOptions_key_dtype);
    int64_t value = tq_get_int(&node->options.table, TQ_HashtableOptions_value_dtype);
    TQ_TRY(tq_check_output(node, 0, TQ_T(RESOURCE), error));
    TQ_TRY(check_pair(node, key, value, error));
    TQ_TRY(tq_node_state(node, sizeof *table_id, &table_id, error));
    *table_id = tq_hashtable_id(node);
    tq_hashtable_declare(resources_of(node), *table_id, (int32_t)key, (int32_t)value);
    node->eval = eval_handle;
    node->foldable = true;
    return tq_output_shape(node, 0, &one, error);
}

/* ---- HASHTABLE_IMPORT ---- */

static tq_status eval_import(tq_node *node, tq_error *error)
{
    tq_hashtable *table = NULL;
    tq_error inner;
    TQ_TRY(table_of(node, node->in[1]->type, node->in[2]->type, &table, error));
    if (table->filled)
        return TQ_OK;
    tq_status status = tq_hashtable_fill(resources_of(node), table, node->in[1], node->in[2], &inner);
    return status == TQ_OK ? TQ_OK : tq_op_fail(node, error, status, "%s", inner.text);
}

tq_status tq_prepare_hashtable_import(tq_node *node, tq_error *error)
{
    TQ_TRY(check_handle(node, error));
    TQ_TRY(check_pair(node, node->in[1]->type, node->in[2]->type, error));
    if (!tq_shape_equal(&node->in[1]->shape, &node->in[2]->shape))
        return tq_input_fail(node, 2, error, "has another shape than the keys");
    if (tq_tensor_count(node->in[1]) > UINT32_MAX)
        return tq_input_fail(node, 1, error, "has more than 2^32 keys");
    node->eval = eval_import;
    return TQ_OK;
}

/* ---- HASHTABLE_FIND ---- */

/* indices[i]: the index of the value of key i; -1: the default. */
static void find_all(const tq_hashtable *table, const tq_tensor *keys, const tq_strings *strings, int64_t *indices)
{
    size_t work = 0;
    tq_bytes none = {NULL, 0};
    const size_t count = tq_tensor_count(keys);
    for (size_t i = 0; i < count && !tq_stop_count(&work, 32); i++)
        indices[i] = keys->type == TQ_TensorType_STRING
                         ? tq_hashtable_find(table, tq_strings_item(strings, (uint32_t)i), 0)
                         : tq_hashtable_find(table, none, ((const int64_t *)keys->data)[i]);
}

static tq_status put_strings(tq_node *node, const tq_hashtable *table, const int64_t *indices, tq_error *error)
{
    tq_strings defaults;
    TQ_TRY(open_strings(node, 2, &defaults, error));
    size_t count = tq_tensor_count(node->in[1]);
    uint64_t header = 4 * ((uint64_t)count + 2), total = header;
    tq_bytes other = tq_strings_item(&defaults, 0);
    TQ_EACH (i, count)
        total += indices[i] < 0 ? other.size : tq_strings_item(&table->strings, (uint32_t)indices[i]).size;
    if (tq_stop_now())
        return TQ_INTERRUPTED; /* the sum is incomplete */
    if (total > INT32_MAX)
        return tq_output_fail(node, 0, error, "would take more than 2 GB of strings");
    TQ_TRY(tq_output_bytes(node, 0, &node->in[1]->shape, total, error));
    unsigned char *to = node->out[0]->data;
    int32_t at = (int32_t)header, n = (int32_t)count;
    memcpy(to, &n, 4);
    memcpy(to + 4, &at, 4);
    TQ_EACH (i, count) {
        tq_bytes item = indices[i] < 0 ? other : tq_strings_item(&table->strings, (uint32_t)indices[i]);
        if (item.size)
            memcpy(to + at, item.data, item.size);
        at += (int32_t)item.size;
        memcpy(to + 4 * (i + 2), &at, 4);
    }
    return TQ_OK;
}

static tq_status eval_find(tq_node *node, tq_error *error)
{
    const tq_tensor *keys = node->in[1];
    tq_hashtable *table = NULL;
    tq_strings strings = {{NULL, 0}, 0};
    int64_t *indices = node->scratch;
    TQ_TRY(table_of(node, keys->type, node->out[0]->type, &table, error));
    if (!table->filled)
        return tq_op_fail(node, error, TQ_BAD_DATA, "table %d is looked up before it is filled", (int)table->table_id);
    if (keys->type == TQ_TensorType_STRING)
        TQ_TRY(open_strings(node, 1, &strings, error));
    find_all(table, keys, &strings, indices);
    if (tq_stop_now())
        return TQ_INTERRUPTED; /* some indices are missing */
    if (node->out[0]->type == TQ_TensorType_STRING)
        return put_strings(node, table, indices, error);
    const size_t count = tq_tensor_count(keys);
    TQ_EACH (i, count) {
        const int64_t *from = indices[i] < 0 ? node->in[2]->data : table->value_block->data;
        ((int64_t *)node->out[0]->data)[i] = from[indices[i] < 0 ? 0 : indices[i]];
    }
    return TQ_OK;
}

tq_status tq_prepare_hashtable_find(tq_node *node, tq_error *error)
{
    TQ_TRY(check_handle(node, error));
    TQ_TRY(tq_check_output_like(node, 0, 2, error));
    TQ_TRY(check_pair(node, node->in[1]->type, node->in[2]->type, error));
    if (tq_tensor_count(node->in[2]) < 1)
        return tq_input_fail(node, 2, error, "has no elements; it needs a default");
    TQ_TRY(tq_node_scratch(node, (uint64_t)tq_tensor_count(node->in[1]) * sizeof(int64_t), error));
    node->eval = eval_find;
    return tq_output_shape(node, 0, &node->in[1]->shape, error);
}

/* ---- HASHTABLE_SIZE ---- */

static tq_status eval_size(tq_node *node, tq_error *error)
{
    int32_t table_id = *(const int32_t *)node->in[0]->data;
    const tq_hashtable *table = tq_hashtable_of(resources_of(node), table_id);
    if (!table)
        return tq_op_fail(node, error, TQ_BAD_DATA, "there is no table %d", (int)table_id);
    *(int64_t *)node->out[0]->data = table->count;
    return TQ_OK;
}

tq_status tq_prepare_hashtable_size(tq_node *node, tq_error *error)
{
    tq_shape one = {1, {1}};
    TQ_TRY(check_handle(node, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT64), error));
    node->eval = eval_size;
    return tq_output_shape(node, 0, &one, error);
}
