/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of ops/ops.def and operators.def as a table.
 */
#include "runtime/operators.h"
#include "runtime/prepare_functions.h"

#include <string.h>

static const struct {
    int64_t code;
    tq_op op;
} builtins[] = {
#define OP(name, prepare, flags) {TQ_BuiltinOperator_##name, {#name, tq_prepare_##prepare, flags, NULL}},
#include "ops/ops.def"
#define OP(name, prepare, flags) {TQ_BuiltinOperator_##name, {#name, tq_prepare_##prepare, flags, NULL}},
#include "runtime/operators.def"
};

static const tq_op customs[] = {
#define CUSTOM_OP(name, prepare, flags) {name, tq_prepare_##prepare, flags, NULL},
#include "ops/ops.def"
    {NULL, NULL, 0, NULL},
};

enum { BUILTINS = sizeof builtins / sizeof *builtins };

const tq_op *tq_op_find(int64_t code)
{
    for (size_t i = 0; i < BUILTINS; i++)
        if (builtins[i].code == code)
            return &builtins[i].op;
    return NULL;
}

const tq_op *tq_custom_op_find(tq_bytes name)
{
    for (const tq_op *op = customs; op->name; op++)
        if (strlen(op->name) == name.size && memcmp(op->name, name.data, name.size) == 0)
            return op;
    return NULL;
}

const tq_op *tq_op_row(size_t i, bool *is_custom)
{
    size_t count = sizeof customs / sizeof *customs - 1;
    *is_custom = i >= BUILTINS;
    return i < BUILTINS ? &builtins[i].op : i - BUILTINS < count ? &customs[i - BUILTINS] : NULL;
}
