/* SPDX-License-Identifier: Apache-2.0 */
#include "delegate/backends.h"

#include <string.h>

#include "delegate/conditions.h"

const char tq_backend_unwritten[] = "LiteRT does not write the output of the graph: its delegate does not return the "
                                    "computed value, and raises where nothing else is to be done";

typedef struct condition {
    bool (*holds)(const tq_node *node);
    const char *text;
} condition;

/* Arrays of one element decay to pointers, so that rows need no "&". */
#define CONDITION(name, text) static const condition name[] = {{tq_condition_##name, "XNNPACK needs " text}};
#include "delegate/backends.def"

#define TAKES(operator, ...) static const condition *const conditions_of_##operator[] = {__VA_ARGS__, NULL};
#include "delegate/backends.def"

static const struct {
    int64_t code;
    const condition *const *conditions;
} builtins[] = {
#define TAKES(operator, ...) {TQ_BuiltinOperator_##operator, conditions_of_##operator},
#include "delegate/backends.def"
};

static const struct {
    const char *name;
    const condition *conditions[2];
} customs[] = {
#define TAKES_CUSTOM(name, only) {name, {only, NULL}},
#include "delegate/backends.def"
};

static const condition *const *conditions_of(const tq_node *node)
{
    if (node->row.code == TQ_BuiltinOperator_CUSTOM) {
        tq_bytes name = node->row.custom_name;
        for (size_t i = 0; i < sizeof customs / sizeof *customs; i++)
            if (name.data && name.size == strlen(customs[i].name) && !memcmp(name.data, customs[i].name, name.size))
                return customs[i].conditions;
        return NULL;
    }
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (builtins[i].code == node->row.code)
            return builtins[i].conditions;
    return NULL;
}

bool tq_backend_unpacks(const tq_node *node)
{
    const tq_tensor *x = tq_view_input(node, 0), *y = tq_view_output(node, 0);
    if (node->wrong_operands || !tq_condition_one_input(node) || !tq_view_is_static(x) || !y)
        return false;
    bool sparse = tq_get_table(&x->table, TQ_Tensor_sparsity).at != 0;
    if (node->row.code == TQ_BuiltinOperator_DEQUANTIZE)
        return !sparse && tq_view_type(y) == TQ_TensorType_FLOAT32 &&
               (tq_view_type(x) == TQ_TensorType_FLOAT16 || tq_view_type(x) == TQ_TensorType_INT8);
    return node->row.code == TQ_BuiltinOperator_DENSIFY && sparse && tq_view_is_in_file(x) &&
           tq_view_type(x) == tq_view_type(y) && (tq_view_is_float(x) || tq_view_type(x) == TQ_TensorType_INT8);
}

/* The reason why XNNPACK does not take the node, or NULL. */
static const char *refusal(const tq_node *node)
{
    if (node->wrong_operands)
        return "its inputs or outputs do not fit the operator";
    if (tq_backend_unpacks(node))
        return "computed once, by the delegate with the optimized kernel: its input is constant";
    const condition *const *conditions = conditions_of(node);
    if (!conditions)
        return "XNNPACK does not have the operator";
    for (; *conditions; conditions++)
        if (!(*conditions)->holds(node))
            return (*conditions)->text;
    return NULL;
}

typedef struct failure {
    bool (*has)(const tq_node *node);
    const char *text;
} failure;

#define FAILURE(name, text) static const failure name[] = {{tq_litert_failure_##name, text}};
#include "delegate/backends.def"

enum { EVERY_OPERATOR = -1 };

static const struct {
    int64_t code;
    tq_numerics numerics;
    bool when_asked; /* `numerics` are those that were asked for, not the chosen ones */
    const failure *failure;
} failing[] = {
#define FAILS(operator, numerics, failure) {TQ_BuiltinOperator_##operator, TQ_NUMERICS_##numerics, false, failure},
#define FAILS_ASKED(operator, failure) {TQ_BuiltinOperator_##operator, TQ_NUMERICS_XNNPACK, true, failure},
#define FAILS_ALL(numerics, failure) {EVERY_OPERATOR, TQ_NUMERICS_##numerics, false, failure},
#include "delegate/backends.def"
};

const char *tq_backend_litert_failure(const tq_node *node, tq_numerics numerics, tq_numerics asked)
{
    if (node->wrong_operands)
        return "neither LiteRT nor tq prepares it";
    numerics = numerics == TQ_NUMERICS_SINGLE ? TQ_NUMERICS_REFERENCE : numerics;
    for (size_t i = 0; i < sizeof failing / sizeof *failing; i++)
        if ((failing[i].code == node->row.code || failing[i].code == EVERY_OPERATOR) &&
            failing[i].numerics == (failing[i].when_asked ? asked : numerics) && failing[i].failure->has(node))
            return failing[i].failure->text;
    return NULL;
}

tq_backend tq_backend_choose(const tq_node *node, tq_numerics asked)
{
    tq_backend backend = {asked, "reference kernels were asked for"};
    if (asked == TQ_NUMERICS_SINGLE)
        backend.rule = "reference kernels built with TFLITE_SINGLE_ROUNDING were asked for";
    if (asked == TQ_NUMERICS_OPTIMIZED)
        backend.rule = "optimized kernels were asked for";
    if (asked == TQ_NUMERICS_XNNPACK) {
        const char *why = refusal(node);
        backend.numerics = why ? TQ_NUMERICS_OPTIMIZED : TQ_NUMERICS_XNNPACK;
        backend.rule = why ? why : "XNNPACK takes it";
    }
    return backend;
}
