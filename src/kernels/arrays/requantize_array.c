/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/arrays/array_walk.h"
#include "kernels/elementwise/code_line.h"

#define LINES_PAY 4096 /* elements a set: what a line saves on fewer is less than looking for it */
#define FOUND_LINES_PAY 64 /* of lines that are there */

enum {
    R_REAL,
    R_REAL_F32,
    R_MULTIPLIER,
    R_LEFT,
    R_RIGHT,
    R_SLOPE,
    R_OFFSET,
    R_OFFSET_NEGATIVE,
    R_ZERO,
    R_INPUT_ZERO,
    R_LINE_SLOPE,
    R_LINE_OFFSET,
    R_LINE_OFFSET_NEGATIVE,
    R_LINE_EXCEPTION,
    R_LINE_EXCEPTION_2,
    R_COLUMNS
};

/* 2^16 (real + 1/2) + E, for kernels' 16.16 fixed point. */
static float fixed_offset(double real, double error)
{
    return (float)((real + 0.5) * 65536 + error);
}

/* As tq_fixed_point_of; error: E of kernels/fixed_simd.h. */
static bool fixed_point_of(const tq_multiplier *m, tq_requantize_rule rule, tq_element out, int32_t zero_point,
                           double error, float *slope, float *offset, float *offset_negative)
{
    double shift[2], real = tq_multiplier_real(m, rule);
    int32_t center = tq_code_center(out);
    tq_multiplier_tie_shift(m, rule, shift);
    *slope = (float)(real * 65536);
    *offset = fixed_offset(zero_point - center + shift[0], error);
    *offset_negative = fixed_offset(zero_point - center + shift[1], error);
    return isnormal(*slope) || real == 0; /* of which every sum is the zero point */
}

bool tq_fixed_point_of(const tq_multiplier *m, tq_requantize_rule rule, tq_element out, int32_t zero_point,
                       float *slope, float *offset, float *offset_negative)
{
    return fixed_point_of(m, rule, out, zero_point, TQ_FIXED_ERROR, slope, offset, offset_negative);
}

/* Twice the error of fixed point that is enough for these sets (fixed_simd.h). */
static uint8_t doubtful_of(const tq_walk_source *from, size_t first, size_t sets)
{
    const double *multiplier = from->multiplier.data + (from->multiplier.many ? first : 0);
    bool exact = true;
    for (size_t i = 0; i < (from->multiplier.many ? sets : 1); i++)
        exact &= multiplier[i] >= 0x1p-15 || multiplier[i] == 0;
    return exact ? TQ_FIXED_EXACT_DOUBLED : 2 * TQ_FIXED_ERROR;
}

static void fill_set(tq_requantize_params *p, char *const *data, size_t i, const tq_multiplier *m,
                     const tq_walk_source *from, int32_t zero_point, int32_t input_zero_point)
{
    fixed_point_of(m, from->rule, from->out, zero_point, p->doubtful * 0.5, (float *)data[R_SLOPE] + i,
                   (float *)data[R_OFFSET] + i, (float *)data[R_OFFSET_NEGATIVE] + i);
    ((double *)data[R_REAL])[i] = m->f64;
    ((float *)data[R_REAL_F32])[i] = m->f32;
    ((int32_t *)data[R_MULTIPLIER])[i] = m->fixed;
    ((int32_t *)data[R_LEFT])[i] = m->shift > 0 ? m->shift : 0;
    ((int32_t *)data[R_RIGHT])[i] = m->shift < 0 ? -m->shift : 0;
    ((int32_t *)data[R_ZERO])[i] = zero_point;
    ((int32_t *)data[R_INPUT_ZERO])[i] = input_zero_point;
    p->shifts_left |= m->shift > 0;
}

/* The lines of `count` sets from i on: how many have none. */
static size_t fill_lines(char *const *data, size_t i, size_t count, const tq_multiplier *m, const int32_t *zero_points,
                         tq_requantize_rule rule)
{
    tq_code_line lines[TQ_LINES_AT_ONCE];
    size_t misses = 0;
    tq_code_lines_of(m, zero_points, count, rule, lines);
    for (size_t k = 0; k < count; k++, i++) {
        ((float *)data[R_LINE_SLOPE])[i] = lines[k].slope;
        ((float *)data[R_LINE_OFFSET])[i] = lines[k].offset;
        ((float *)data[R_LINE_OFFSET_NEGATIVE])[i] = lines[k].offset_negative;
        ((int32_t *)data[R_LINE_EXCEPTION])[i] = lines[k].exception[0];
        ((int32_t *)data[R_LINE_EXCEPTION_2])[i] = lines[k].exception[1];
        misses += lines[k].slope != lines[k].slope;
    }
    return misses;
}

/* With no line of these sets. */
static void fill_no_lines(char *const *data, size_t i, size_t count)
{
    for (; count > 0; count--)
        ((float *)data[R_LINE_SLOPE])[i++] = NAN;
}

static const tq_columns all_columns = {.size = {8, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, .count = R_COLUMNS};

/* Those of sets that are made before. */
static void fill_made(tq_requantize_params *p, char *const *data, const tq_walk_source *from, size_t first, size_t sets)
{
    const tq_requantize_sets *made = from->sets;
    char *columns[R_COLUMNS];
    tq_columns_place(&all_columns, made->columns, made->count, columns);
    for (int i = 0; i < (p->lines ? R_COLUMNS : R_LINE_SLOPE); i++)
        memcpy(data[i], columns[i] + first * all_columns.size[i], sets * all_columns.size[i]);
    p->shifts_left = made->shifts_left;
    p->doubtful = made->doubtful;
    p->wide = (from->in == TQ_i32 && made->has_input_zero_points) || (from->out == TQ_i32 && made->has_zero_points);
}

static void fill_requantize(tq_walk_params *params, char *const *data, unsigned columns, const tq_walk_source *from,
                            size_t first, size_t sets)
{
    (void)columns; /* all */
    tq_requantize_params *p = &params->requantize;
    if (from->sets) {
        fill_made(p, data, from, first, sets);
        return;
    }
    p->wide = p->shifts_left = false;
    p->doubtful = doubtful_of(from, first, sets);
    size_t misses = 0;
    for (size_t i = 0, some; i < sets; i += some) {
        tq_multiplier m[TQ_LINES_AT_ONCE];
        int32_t zero_points[TQ_LINES_AT_ONCE];
        some = sets - i < TQ_LINES_AT_ONCE ? sets - i : TQ_LINES_AT_ONCE;
        for (size_t k = 0; k < some; k++) {
            size_t set = first + i + k;
            m[k] = tq_multiplier_of(from->multiplier.data[from->multiplier.many ? set : 0], from->rule);
            int32_t zero = from->zero_point.data[from->zero_point.many ? set : 0];
            int32_t input_zero = from->input_zero_point.data[from->input_zero_point.many ? set : 0];
            fill_set(p, data, i + k, &m[k], from, zero, input_zero);
            p->wide |= (from->in == TQ_i32 && input_zero != 0) || (from->out == TQ_i32 && zero != 0);
            zero_points[k] = zero - tq_code_center(from->out);
        }
        if (p->lines && misses < from->misses)
            misses += fill_lines(data, i, some, m, zero_points, from->rule);
        else if (p->lines)
            fill_no_lines(data, i, some);
    }
}

static void point_requantize(tq_walk_params *params, char *const *data)
{
    tq_requantize_params *p = &params->requantize;
    p->real = (double *)data[R_REAL], p->real_f32 = (float *)data[R_REAL_F32];
    p->multiplier = (int32_t *)data[R_MULTIPLIER];
    p->left = (int32_t *)data[R_LEFT], p->right = (int32_t *)data[R_RIGHT];
    p->slope = (float *)data[R_SLOPE], p->offset = (float *)data[R_OFFSET];
    p->offset_negative = (float *)data[R_OFFSET_NEGATIVE];
    p->zero_point = (int32_t *)data[R_ZERO], p->input_zero_point = (int32_t *)data[R_INPUT_ZERO];
    if (!p->lines)
        return;
    p->line_slope = (float *)data[R_LINE_SLOPE], p->line_offset = (float *)data[R_LINE_OFFSET];
    p->line_offset_negative = (float *)data[R_LINE_OFFSET_NEGATIVE];
    p->line_exception[0] = (int32_t *)data[R_LINE_EXCEPTION];
    p->line_exception[1] = (int32_t *)data[R_LINE_EXCEPTION_2];
}

/* The columns that a rule's bodies read. */
static unsigned columns_of(tq_requantize_rule rule)
{
    unsigned all = 1u << R_ZERO | 1u << R_INPUT_ZERO | 1u << R_SLOPE | 1u << R_OFFSET;
    if (rule == TQ_REQUANTIZE_FLOAT64_AWAY)
        return all | 1u << R_REAL;
    if (rule == TQ_REQUANTIZE_FLOAT32_EVEN)
        return all | 1u << R_REAL_F32;
    all |= 1u << R_MULTIPLIER | 1u << R_LEFT | 1u << R_RIGHT;
    return rule == TQ_REQUANTIZE_DOUBLE ? all | 1u << R_OFFSET_NEGATIVE : all;
}

/* How many sets are likely to have no line.  That is by trial: one in M^3 / 6e-13 by "double", whose steps are alike on
   both sides of 0, where the zero point is the middle of the codes; more where it is their end; and more by other
   rules. */
static double expected_misses(const tq_walk_source *from, size_t sets)
{
    const bool rounds = from->rule == TQ_REQUANTIZE_FLOAT32_EVEN; /* as its line does, for a zero point of 0 */
    double misses = 0, middle = from->rule == TQ_REQUANTIZE_DOUBLE ? 6e-13 : 3e-11;
    for (size_t i = 0; i < sets; i++) {
        double real = from->multiplier.data[from->multiplier.many ? i : 0];
        double zero = from->zero_point.data[from->zero_point.many ? i : 0] - tq_code_center(from->out);
        if (!rounds || zero)
            misses += (middle + 1e-14 * zero * zero) / (real * real * real + 1e-15);
    }
    return rounds ? 3 * misses : misses;
}

/* Whether lines pay, and if they are not there, looking for them.  Along rows they are of use if all sets have one, and
   kernels do several rows at a time. */
static bool lines_pay(tq_walk_source *from, const tq_layout *layout)
{
    size_t sets = layout->groups * layout->channels;
    size_t pattern = tq_layout_needs(layout, false).pattern;
    bool grouped = pattern > 0 && pattern <= TQ_GROUPED && pattern % TQ_COLUMN_PADDING == 0;
    bool rows = tq_layout_way(layout, false) == TQ_WAY_ROWS;
    if (!(rows || grouped) || from->in != TQ_i32 || tq_element_size(from->out) != 1)
        return false;
    const size_t each = tq_layout_elements(layout) / sets;
    from->misses = rows ? sets : 1;
    if (from->sets)
        return from->sets->unlined < from->misses && each >= FOUND_LINES_PAY;
    return each >= LINES_PAY && expected_misses(from, sets) < (rows ? sets * 0.5 : 0.7);
}

static bool any_zero_point(tq_column_i32 zero_point, size_t count)
{
    int32_t any = 0;
    for (size_t i = 0; i < (zero_point.many ? count : 1); i++)
        any |= zero_point.data[i];
    return any != 0;
}

tq_status tq_requantize_sets_make(tq_column_f64 multiplier, tq_column_i32 input_zero_point, tq_column_i32 zero_point,
                                  size_t count, tq_element out, tq_requantize_rule rule, tq_requantize_sets *sets,
                                  tq_error *error)
{
    tq_requantize_sets made = {.count = count, .has_zero_points = any_zero_point(zero_point, count),
                               .has_input_zero_points = any_zero_point(input_zero_point, count)};
    tq_status status = tq_allocate(&tq_default_allocator, count, TQ_SET_BYTES, &made.columns, error);
    if (status != TQ_OK)
        return status;
    char *data[R_COLUMNS];
    tq_columns_place(&all_columns, made.columns, count, data);
    tq_walk_params p = {.requantize = {.lines = tq_element_size(out) == 1}};
    const tq_walk_source source = {.multiplier = multiplier, .zero_point = zero_point,
                                   .input_zero_point = input_zero_point, .rule = rule, .out = out, .misses = SIZE_MAX};
    if (!p.requantize.lines)
        fill_no_lines(data, 0, count);
    fill_requantize(&p, data, 0, &source, 0, count);
    for (size_t i = 0; i < count; i++)
        made.unlined += isnan(((float *)data[R_LINE_SLOPE])[i]);
    made.shifts_left = p.requantize.shifts_left;
    made.doubtful = p.requantize.doubtful;
    *sets = made;
    return TQ_OK;
}

void tq_requantize_sets_free(tq_requantize_sets *sets)
{
    tq_release(&tq_default_allocator, sets->columns);
    *sets = (tq_requantize_sets){0};
}

tq_status tq_requantize_array(const tq_array_job *job, tq_column_f64 multiplier, tq_column_i32 input_zero_point,
                              tq_column_i32 zero_point, tq_requantize_rule rule, const tq_requantize_sets *sets,
                              tq_error *error)
{
    static const tq_operation operations[] = {
        [TQ_REQUANTIZE_DOUBLE] = TQ_OP_requantize_double,
        [TQ_REQUANTIZE_SINGLE] = TQ_OP_requantize_single,
        [TQ_REQUANTIZE_UP] = TQ_OP_requantize_up,
        [TQ_REQUANTIZE_FLOAT64_AWAY] = TQ_OP_requantize_float64_away,
        [TQ_REQUANTIZE_FLOAT32_EVEN] = TQ_OP_requantize_float32_even,
    };
    if (tq_layout_elements(&job->layout) == 0)
        return TQ_OK;
    tq_walk_params p = {.requantize = {.low = tq_element_low(job->out_type),
                                     .high = (int32_t)tq_element_high(job->out_type), .stream = tq_job_is_large(job)}};
    tq_walk_source source = {.multiplier = multiplier, .zero_point = zero_point, .input_zero_point = input_zero_point,
                            .rule = rule, .in = job->in_type, .out = job->out_type};
    bool many = multiplier.many || zero_point.many || input_zero_point.many;
    tq_walk w = {.params = &p, .source = &source, .fill = fill_requantize, .point = point_requantize,
                     .layout = tq_layout_joined(job->layout, many)};
    if (sets && sets->count == w.layout.groups * w.layout.channels)
        source.sets = sets;
    bool lined = lines_pay(&source, &w.layout);
    p.requantize.lines = lined;
    unsigned of_lines = lined ? 31u << R_LINE_SLOPE : 0;
    tq_columns c = all_columns;
    c.count = lined ? R_COLUMNS : R_LINE_SLOPE;
    c.needed = columns_of(rule) | of_lines;
    c.constant = zero_point.many ? 0 : 1u << R_ZERO;
    return tq_walk_run(&w, job, operations[rule], &c, error);
}
