/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of one operator's options: enums and floats of any table, and the rows of option_checks.def.  Absent options
 * have their defaults, which a row may refuse: a stride of 0.
 */
#include <math.h>

#include "model/problems/checks.h"

/* ---- any table ---- */

static void check_field(tq_checker *checker, tq_location location, const tq_options *options, tq_field_id id)
{
    const tq_field *field = &tq_fields[id];
    const char *table = tq_tables[options->id].name;
    if (field->shape == TQ_SHAPE_ENUM) {
        int64_t value = tq_get_int(&options->table, id);
        if (!tq_enum_name((tq_enum_id)field->detail, value))
            tq_report(checker, TQ_PROBLEM_ENUM_UNKNOWN, location, "%s.%s is %lld, which %s does not know", table,
                      field->name, (long long)value, tq_enums[field->detail].name);
    } else if (field->shape == TQ_SHAPE_SCALAR && field->scalar == TQ_F32) {
        double value = tq_get_scalar(&options->table, id).f;
        if (!isfinite(value))
            tq_report(checker, TQ_PROBLEM_OPTION_NOT_FINITE, location, "%s.%s is %g", table, field->name, value);
    }
}

/* ---- rows ---- */

typedef struct range_row {
    uint16_t table, field;
    int64_t low, high;
} range_row;

static const range_row ranges[] = {
#define OPTION_RANGE(table, field, low, high) {TQ_TABLE_##table, TQ_##table##_##field, low, high},
#include "model/problems/option_checks.def"
};

typedef enum axis_low { FROM_END, FROM_START, LAST } axis_low;

typedef struct axis_row {
    uint16_t op, table, field;
    uint8_t of, extra, low;
} axis_row;

static const axis_row axes[] = {
#define OPTION_AXIS(op, table, field, of, extra, low) \
    {TQ_BuiltinOperator_##op, TQ_TABLE_##table, TQ_##table##_##field, of, extra, low},
#include "model/problems/option_checks.def"
};

/* The values of an option: a scalar, or the elements of a vector. */
typedef struct values {
    const tq_table *table;
    tq_field_id field;
    bool is_vector;
    tq_vector vector;
    uint32_t count;
} values;

static values values_of(const tq_table *table, tq_field_id field)
{
    values v = {.table = table, .field = field, .is_vector = tq_fields[field].shape == TQ_SHAPE_VEC_SCALAR, .count = 1};
    if (v.is_vector) {
        v.vector = tq_get_vector(table, field);
        v.count = v.vector.count;
    }
    return v;
}

static int64_t value_at(const values *v, uint32_t i)
{
    if (!v->is_vector)
        return tq_get_int(v->table, v->field);
    return tq_fields[v->field].scalar == TQ_I64 ? tq_vector_i64(&v->vector, i) : tq_vector_i32(&v->vector, i);
}

/* Reports the first value outside [low, high]. */
static void check_values(tq_checker *checker, tq_problem_code code, tq_location location, const tq_options *options,
                         tq_field_id field, int64_t low, int64_t high)
{
    values v = values_of(&options->table, field);
    for (uint32_t i = 0; i < v.count; i++) {
        int64_t value = value_at(&v, i);
        if (value >= low && value <= high)
            continue;
        tq_report(checker, code, location, "%s.%s is %lld; it needs to be from %lld to %lld",
                  tq_tables[options->id].name, tq_fields[field].name, (long long)value, (long long)low,
                  (long long)high);
        return;
    }
}

static void check_axis(tq_checker *checker, const tq_checked_node *node, const axis_row *row)
{
    tq_known_shape shape = tq_known_shape_of(checker, &node->inputs, row->of);
    int64_t rank = (int64_t)shape.shape.count + row->extra;
    if (!shape.known || !rank)
        return;
    int64_t low = row->low == FROM_END ? -rank : row->low == LAST ? -1 : 0;
    check_values(checker, TQ_PROBLEM_AXIS_RANGE, tq_checked_operator(checker, node), &node->options,
                 (tq_field_id)row->field, low, rank - 1);
}

void tq_check_options(tq_checker *checker, const tq_checked_node *node)
{
    const tq_options *options = &node->options;
    tq_location location = tq_checked_operator(checker, node);
    if (options->id == TQ_TABLE_NONE)
        return;
    if (options->table.at)
        for (unsigned i = tq_tables[options->id].first; i < tq_tables[options->id + 1].first; i++)
            check_field(checker, location, options, (tq_field_id)i);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].table == options->id)
            check_values(checker, TQ_PROBLEM_OPTION_RANGE, location, options, (tq_field_id)ranges[i].field,
                         ranges[i].low, ranges[i].high);
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        if (axes[i].op == node->op.code)
            check_axis(checker, node, &axes[i]);
}
