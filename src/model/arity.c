/* SPDX-License-Identifier: Apache-2.0 */
#include "model/arity.h"

#include <stdio.h>
#include <string.h>

#define ANY UINT16_MAX

typedef struct counts {
    uint16_t code;
    const char *custom; /* the name of a custom operator; NULL: a builtin one */
    uint16_t min_inputs, max_inputs, min_outputs, max_outputs;
} counts;

static const counts rows[] = {
#define ARITY(op, ...) {TQ_BuiltinOperator_##op, NULL, __VA_ARGS__},
#define CUSTOM_ARITY(name, ...) {TQ_BuiltinOperator_CUSTOM, name, __VA_ARGS__},
#include "model/arity.def"
};

typedef struct range {
    uint16_t code, first, last;
} range;

static const range optionals[] = {
#define OPTIONAL(op, first, last) {TQ_BuiltinOperator_##op, first, last},
#include "model/arity.def"
};

static const range states[] = {
#define STATE(op, input) {TQ_BuiltinOperator_##op, input, input},
#include "model/arity.def"
};

static const uint16_t optional_outputs[] = {
#define OPTIONAL_OUTPUTS(op) TQ_BuiltinOperator_##op,
#include "model/arity.def"
};

enum { ROWS = sizeof rows / sizeof *rows };

static bool is_of(const counts *row, const tq_operator *op)
{
    if (row->code != op->code || !row->custom)
        return row->code == op->code;
    tq_bytes name = op->custom_name;
    return name.data && name.size == strlen(row->custom) && memcmp(name.data, row->custom, name.size) == 0;
}

static bool has_row(const tq_operator *op)
{
    for (size_t i = 0; i < ROWS; i++)
        if (is_of(&rows[i], op))
            return true;
    return false;
}

static bool fits(uint32_t count, uint16_t low, uint16_t high)
{
    return count >= low && (count <= high || high == ANY);
}

/* Appends a range: "2", "2 to 3", "1 or more"; a second range after " or ". */
static void say_count(char out[TQ_ARITY_TEXT], unsigned low, unsigned high)
{
    const size_t length = strlen(out), size = TQ_ARITY_TEXT - length;
    const char *or = length ? " or " : "";
    if (high == ANY)
        snprintf(out + length, size, "%s%u or more", or, low);
    else if (low == high)
        snprintf(out + length, size, "%s%u", or, low);
    else
        snprintf(out + length, size, "%s%u to %u", or, low, high);
}

/* The rows of an operator whose inputs fit give the number of outputs. */
tq_arity_fit tq_arity_check(const tq_operator *op, uint32_t inputs, uint32_t outputs, char needed[TQ_ARITY_TEXT])
{
    char gives[TQ_ARITY_TEXT] = "";
    bool any_row = false, takes = false;
    needed[0] = 0;
    for (size_t i = 0; i < ROWS; i++) {
        const counts *row = &rows[i];
        if (!is_of(row, op))
            continue;
        any_row = true;
        say_count(needed, row->min_inputs, row->max_inputs);
        if (!fits(inputs, row->min_inputs, row->max_inputs))
            continue;
        takes = true;
        say_count(gives, row->min_outputs, row->max_outputs);
        if (fits(outputs, row->min_outputs, row->max_outputs)) {
            needed[0] = 0;
            return TQ_ARITY_FITS;
        }
    }
    if (takes)
        memcpy(needed, gives, sizeof gives);
    return !any_row ? TQ_ARITY_FITS : takes ? TQ_ARITY_OUTPUTS : TQ_ARITY_INPUTS;
}

static bool is_in(const range *ranges, size_t count, int64_t code, uint32_t input)
{
    for (size_t i = 0; i < count; i++)
        if (ranges[i].code == code && fits(input, ranges[i].first, ranges[i].last))
            return true;
    return false;
}

bool tq_arity_optional_input(const tq_operator *op, uint32_t input)
{
    return is_in(optionals, sizeof optionals / sizeof *optionals, op->code, input) || !has_row(op);
}

bool tq_arity_optional_output(const tq_operator *op)
{
    for (size_t i = 0; i < sizeof optional_outputs / sizeof *optional_outputs; i++)
        if (optional_outputs[i] == op->code)
            return true;
    return !has_row(op);
}

bool tq_arity_is_state(const tq_operator *op, uint32_t input)
{
    return is_in(states, sizeof states / sizeof *states, op->code, input);
}
