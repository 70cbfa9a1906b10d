/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and names of a custom operator's options, by their keys.
 */
#include "ops/custom_options.h"

#include <string.h>

#include "flatbuffer/flexbuffer.h"
#include "ops/check.h"

/* *found: whether the map has `key`; *out: its value. */
static tq_status find_key(const tq_node *node, const char *key, tq_flex_reader *reader, tq_flex *out, bool *found,
                          tq_error *error)
{
    tq_bytes bytes = {NULL, 0}, name = {NULL, 0};
    tq_flex root;
    *found = false;
    TQ_TRY(tq_operator_custom_options(&node->row, &bytes, error));
    TQ_TRY(tq_flex_open(bytes, reader, &root, error));
    for (uint64_t i = 0; root.kind == TQ_FLEX_MAP && i < root.count; i++) {
        TQ_TRY(tq_flex_map_key(reader, &root, i, &name));
        if (name.size != strlen(key) || memcmp(name.data, key, name.size) != 0)
            continue;
        *found = true;
        return tq_flex_item(reader, &root, i, out);
    }
    return TQ_OK;
}

/* *found is false where the map has no such key or a null. */
static tq_status read_value(const tq_node *node, const char *key, tq_flex_reader *reader, tq_flex *out, bool *found,
                            tq_error *error)
{
    tq_error inner;
    tq_status status = find_key(node, key, reader, out, found, &inner);
    if (status != TQ_OK)
        return tq_op_fail(node, error, status, "has options that cannot be read: %s", inner.text);
    *found = *found && out->kind != TQ_FLEX_NULL;
    return TQ_OK;
}

/* *found is false, and *out unchanged, where the map has no such key or a null. */
static tq_status read_number(const tq_node *node, const char *key, tq_value *out, bool *found, tq_error *error)
{
    tq_flex_reader reader;
    tq_flex value;
    TQ_TRY(read_value(node, key, &reader, &value, found, error));
    if (!*found)
        return TQ_OK;
    if (value.kind < TQ_FLEX_BOOL || value.kind > TQ_FLEX_FLOAT)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has an option %s that is no number", key);
    *out = tq_flex_scalar(&reader, &value);
    return TQ_OK;
}

tq_status tq_option_int(const tq_node *node, const char *key, int64_t absent, int64_t *out, tq_error *error)
{
    tq_value value = {0};
    bool found = false;
    TQ_TRY(read_number(node, key, &value, &found, error));
    if (!found)
        *out = absent;
    else if (value.kind == TQ_VALUE_FLOAT)
        *out = value.f > -1e9 && value.f < 1e9 ? (int64_t)value.f : INT64_MAX;
    else
        *out = value.kind == TQ_VALUE_INT || value.u < INT64_MAX ? value.i : INT64_MAX;
    return TQ_OK;
}

tq_status tq_option_within(const tq_node *node, const char *key, int64_t low, int64_t high, int64_t *out,
                           tq_error *error)
{
    tq_value value = {0};
    bool found = false;
    int64_t number = 0;
    TQ_TRY(read_number(node, key, &value, &found, error));
    if (!found)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has no option %s; it needs one from %lld to %lld", key,
                          (long long)low, (long long)high);
    TQ_TRY(tq_option_int(node, key, 0, &number, error));
    if (number < low || number > high)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has option %s %lld; it needs one from %lld to %lld", key,
                          (long long)number, (long long)low, (long long)high);
    *out = number;
    return TQ_OK;
}

tq_status tq_option_float(const tq_node *node, const char *key, float *out, tq_error *error)
{
    tq_value value = {0};
    bool found = false;
    TQ_TRY(read_number(node, key, &value, &found, error));
    if (!found)
        *out = 0;
    else if (value.kind == TQ_VALUE_FLOAT)
        *out = (float)value.f;
    else
        *out = value.kind == TQ_VALUE_INT ? (float)value.i : (float)value.u;
    return TQ_OK;
}

tq_status tq_option_name(const tq_node *node, const char *key, const char *const *names, int absent, int *out,
                         tq_error *error)
{
    tq_flex_reader reader;
    tq_flex value;
    bool found = false;
    tq_bytes text = {NULL, 0};
    TQ_TRY(read_value(node, key, &reader, &value, &found, error));
    *out = absent;
    if (!found && absent >= 0)
        return TQ_OK;
    if (found && value.kind != TQ_FLEX_STRING)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has an option %s that is no string", key);
    if (found)
        text = tq_flex_bytes(&reader, &value);
    for (int i = 0; found && names[i]; i++)
        if (text.size == strlen(names[i]) && !memcmp(text.data, names[i], text.size)) {
            *out = i;
            return TQ_OK;
        }
    return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %s option %s%s%.*s; it needs %s", found ? "the" : "no", key,
                      found ? " " : "", (int)(text.size < 40 ? text.size : 40),
                      text.size ? (const char *)text.data : "", names[0]);
}
