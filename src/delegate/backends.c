/* SPDX-License-Identifier: Apache-2.0 */
#include "delegate/backends.h"

#include <string.h>

#include "delegate/needs.h"

const char tq_backend_unwritten[] = "LiteRT does not write the output of the graph: its delegate keeps what it computed "
                                    "to itself, and raises where nothing else is to be done";

typedef struct need {
    bool (*holds)(const tq_node *node);
    const char *text;
} need;

/* Arrays of one, so that rows name them as they are. */
#define NEED(name, text) static const need name[] = {{tq_need_##name, "XNNPACK needs " text}};
#include "delegate/backends.def"

#define TAKES(operator, ...) static const need *const needs_of_##operator[] = {__VA_ARGS__, NULL};
#include "delegate/backends.def"

static const struct {
    int64_t code;
    const need *const *needs;
} builtins[] = {
#define TAKES(operator, ...) {TQ_BuiltinOperator_##operator, needs_of_##operator},
#include "delegate/backends.def"
};

static const struct {
    const char *name;
    const need *needs[2];
} customs[] = {
#define TAKES_CUSTOM(name, only) {name, {only, NULL}},
#include "delegate/backends.def"
};

static const need *const *needs_of(const tq_node *node)
{
    if (node->row.code == TQ_BuiltinOperator_CUSTOM) {
        tq_bytes name = node->row.custom_name;
        for (size_t i = 0; i < sizeof customs / sizeof *customs; i++)
            if (name.data && name.size == strlen(customs[i].name) && !memcmp(name.data, customs[i].name, name.size))
                return customs[i].needs;
        return NULL;
    }
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (builtins[i].code == node->row.code)
            return builtins[i].needs;
    return NULL;
}

bool tq_backend_unpacks(const tq_node *node)
{
    const tq_tensor *x = input(node, 0), *y = output(node, 0);
    if (node->misfit || !tq_need_one_input(node) || !is_static(x) || !y)
        return false;
    bool sparse = tq_get_table(&x->table, TQ_Tensor_sparsity).at != 0;
    if (node->row.code == TQ_BuiltinOperator_DEQUANTIZE)
        return !sparse && type_of(y) == TQ_TensorType_FLOAT32 &&
               (type_of(x) == TQ_TensorType_FLOAT16 || type_of(x) == TQ_TensorType_INT8);
    return node->row.code == TQ_BuiltinOperator_DENSIFY && sparse && is_in_file(x) && type_of(x) == type_of(y) &&
           (is_float(x) || type_of(x) == TQ_TensorType_INT8);
}

/* The text of what keeps XNNPACK from taking the node, or NULL. */
static const char *refusal(const tq_node *node)
{
    if (node->misfit)
        return "its inputs or outputs are not those that the operator takes";
    if (tq_backend_unpacks(node))
        return "computed once, by the delegate with the optimized kernel: its input is constant";
    const need *const *needs = needs_of(node);
    if (!needs)
        return "XNNPACK does not have the operator";
    for (; *needs; needs++)
        if (!(*needs)->holds(node))
            return (*needs)->text;
    return NULL;
}

typedef struct fault {
    bool (*has)(const tq_node *node);
    const char *text;
} fault;

#define FAULT(name, text) static const fault name[] = {{tq_fault_##name, text}};
#include "delegate/backends.def"

enum { EVERY_OPERATOR = -1 };

static const struct {
    int64_t code;
    tq_numerics numerics;
    const fault *fault;
} failures[] = {
#define FAILS(operator, numerics, fault) {TQ_BuiltinOperator_##operator, TQ_NUMERICS_##numerics, fault},
#define FAILS_ALL(numerics, fault) {EVERY_OPERATOR, TQ_NUMERICS_##numerics, fault},
#include "delegate/backends.def"
};

const char *tq_backend_fault(const tq_node *node, tq_numerics numerics)
{
    if (node->misfit)
        return "neither LiteRT nor tq prepares it";
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if ((failures[i].code == node->row.code || failures[i].code == EVERY_OPERATOR) &&
            failures[i].numerics == numerics && failures[i].fault->has(node))
            return failures[i].fault->text;
    return NULL;
}

tq_backend tq_backend_choose(const tq_node *node, tq_numerics asked)
{
    tq_backend backend = {asked, "reference kernels were asked for"};
    if (asked == TQ_NUMERICS_OPTIMIZED)
        backend.rule = "optimized kernels were asked for";
    if (asked == TQ_NUMERICS_XNNPACK) {
        const char *why = refusal(node);
        backend.numerics = why ? TQ_NUMERICS_OPTIMIZED : TQ_NUMERICS_XNNPACK;
        backend.rule = why ? why : "XNNPACK takes it";
    }
    return backend;
}
