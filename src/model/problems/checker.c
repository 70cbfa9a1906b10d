/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports of checks: locations in English, the limit of reports, the budget of constant data, and the check that names
 * differ.
 */
#include "model/problems/checker.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/sort.h"

enum { REPORTS_PER_CODE = 1000 };

/* ---- locations in English ---- */

void tq_printable(tq_bytes name, char out[TQ_NAME_SIZE])
{
    size_t length = name.size < TQ_NAME_SIZE - 4 ? name.size : TQ_NAME_SIZE - 4;
    while (length && length < name.size && (name.data[length] & 0xc0) == 0x80)
        length--; /* at the start of a UTF-8 character */
    for (size_t i = 0; i < length; i++)
        out[i] = (char)(name.data[i] >= 0x20 && name.data[i] != 0x7f ? name.data[i] : '?');
    memcpy(out + length, length < name.size ? "..." : "", length < name.size ? 4 : 1);
}

/* "CONV_2D", a custom operator's name, or a value unknown to the schema; cut to fit and printable. */
static void label_operator(const tq_operator *op, char out[TQ_NAME_SIZE])
{
    const tq_builtin_row *row = tq_builtin(op->code);
    if (op->custom_name.data && op->custom_name.size)
        tq_printable(op->custom_name, out);
    else if (row)
        snprintf(out, TQ_NAME_SIZE, "%s", row->name);
    else
        snprintf(out, TQ_NAME_SIZE, "of unknown code");
}

static int write_tensor(const tq_checker *checker, const tq_location *location, char *out, size_t size)
{
    tq_subgraph subgraph = tq_model_subgraph(checker->model, location->subgraph);
    tq_table tensor = tq_vector_table(&subgraph.tensors, location->index);
    char name[TQ_NAME_SIZE];
    tq_printable(tq_get_string(&tensor, TQ_Tensor_name), name);
    return snprintf(out, size, "subgraph %u, tensor %u%s%s%s", location->subgraph, location->index, *name ? " '" : "",
                    name, *name ? "'" : "");
}

static int write_operator(const tq_checker *checker, const tq_location *location, const char *role, char *out,
                          size_t size)
{
    tq_subgraph subgraph = tq_model_subgraph(checker->model, location->subgraph);
    tq_operator op = tq_model_operator(checker->model, &subgraph, location->index);
    char name[TQ_NAME_SIZE];
    label_operator(&op, name);
    if (!role)
        return snprintf(out, size, "subgraph %u, operator %u %s", location->subgraph, location->index, name);
    return snprintf(out, size, "subgraph %u, operator %u %s, %s %u", location->subgraph, location->index, name, role,
                    location->slot);
}

static void write_location(const tq_checker *checker, const tq_location *p, char *out, size_t size)
{
    switch (p->kind) {
    case TQ_LOCATION_MODEL: snprintf(out, size, "model"); break;
    case TQ_LOCATION_OPERATOR_CODE: snprintf(out, size, "operator code %u", p->index); break;
    case TQ_LOCATION_BUFFER: snprintf(out, size, "buffer %u", p->index); break;
    case TQ_LOCATION_EXTERNAL_GROUP: snprintf(out, size, "external buffer group %u", p->index); break;
    case TQ_LOCATION_EXTERNAL_BUFFER: snprintf(out, size, "external buffer %u", p->index); break;
    case TQ_LOCATION_METADATA: snprintf(out, size, "metadata %u", p->index); break;
    case TQ_LOCATION_SIGNATURE: snprintf(out, size, "signature %u", p->index); break;
    case TQ_LOCATION_SIGNATURE_INPUT: snprintf(out, size, "signature %u, input %u", p->index, p->slot); break;
    case TQ_LOCATION_SIGNATURE_OUTPUT: snprintf(out, size, "signature %u, output %u", p->index, p->slot); break;
    case TQ_LOCATION_SUBGRAPH: snprintf(out, size, "subgraph %u", p->subgraph); break;
    case TQ_LOCATION_SUBGRAPH_INPUT: snprintf(out, size, "subgraph %u, input %u", p->subgraph, p->slot); break;
    case TQ_LOCATION_SUBGRAPH_OUTPUT: snprintf(out, size, "subgraph %u, output %u", p->subgraph, p->slot); break;
    case TQ_LOCATION_TENSOR: write_tensor(checker, p, out, size); break;
    case TQ_LOCATION_OPERATOR: write_operator(checker, p, NULL, out, size); break;
    case TQ_LOCATION_OPERATOR_INPUT: write_operator(checker, p, "input", out, size); break;
    case TQ_LOCATION_OPERATOR_OUTPUT: write_operator(checker, p, "output", out, size); break;
    case TQ_LOCATION_OPERATOR_INTERMEDIATE: write_operator(checker, p, "intermediate", out, size); break;
    }
}

/* ---- reporting ---- */

static void hand_over(tq_checker *checker, const tq_problem *problem)
{
    if (!checker->stopped)
        checker->stopped = !checker->sink(checker->context, problem);
}

void tq_report(tq_checker *checker, tq_problem_code code, tq_location location, const char *format, ...)
{
    if (checker->counts[code]++ >= REPORTS_PER_CODE || checker->stopped)
        return;
    tq_problem problem = {.code = code, .location = location};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem.text, sizeof problem.text, format, arguments);
    va_end(arguments);
    write_location(checker, &location, problem.location_text, sizeof problem.location_text);
    hand_over(checker, &problem);
}

void tq_report_the_rest(tq_checker *checker)
{
    for (int code = 0; code < TQ_PROBLEM_COUNT; code++) {
        if (checker->counts[code] <= REPORTS_PER_CODE)
            continue;
        tq_problem problem = {.code = (tq_problem_code)code, .location = tq_location_of(TQ_LOCATION_MODEL, 0)};
        write_location(checker, &problem.location, problem.location_text, sizeof problem.location_text);
        snprintf(problem.text, sizeof problem.text, "and %llu more: %s",
                 (unsigned long long)(checker->counts[code] - REPORTS_PER_CODE), tq_problem_kinds[code].text);
        hand_over(checker, &problem);
    }
}

bool tq_checker_spend(tq_checker *checker, uint64_t bytes, tq_location location)
{
    if (bytes <= checker->data_left) {
        checker->data_left -= bytes;
        return true;
    }
    if (!checker->counts[TQ_PROBLEM_UNCHECKED])
        tq_report(checker, TQ_PROBLEM_UNCHECKED, location,
                  "from here on some constants stay unchecked: the file shares them so often that checking reads more "
                  "than 4 times its size");
    return false;
}

/* ---- names that must differ ---- */

typedef struct named {
    const tq_vector *items;
    tq_field_id field;
} named;

static tq_bytes name_of(const named *n, uint32_t location)
{
    tq_table item = tq_vector_table(n->items, location);
    return tq_get_string(&item, n->field);
}

static int compare_names(tq_bytes a, tq_bytes b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common ? memcmp(a.data, b.data, common) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* Equal names keep the file's order, so that the first of them is not reported. */
static bool name_before(const void *context, uint32_t a, uint32_t b)
{
    int order = compare_names(name_of(context, a), name_of(context, b));
    return order ? order < 0 : a < b;
}

tq_status tq_check_names(tq_checker *checker, const tq_vector *items, tq_field_id field, tq_problem_code code,
                         tq_location location, bool in_slots, tq_error *error)
{
    if (items->count < 2)
        return TQ_OK;
    named n = {items, field};
    uint32_t *order;
    tq_status status = tq_allocate(checker->allocator, items->count, sizeof *order, &order, error);
    if (status != TQ_OK)
        return status;
    for (uint32_t i = 0; i < items->count; i++)
        order[i] = i;
    tq_sort_indices(order, items->count, name_before, &n);
    for (uint32_t i = 1; i < items->count; i++) {
        tq_bytes name = name_of(&n, order[i]);
        if (!name.data || !name.size || compare_names(name_of(&n, order[i - 1]), name) != 0)
            continue;
        char printable[TQ_NAME_SIZE];
        tq_printable(name, printable);
        *(in_slots ? &location.slot : &location.index) = order[i];
        tq_report(checker, code, location, "the name '%s' is that of number %u; names need to differ", printable,
                  order[i - 1]);
    }
    tq_release(checker->allocator, order);
    return TQ_OK;
}
