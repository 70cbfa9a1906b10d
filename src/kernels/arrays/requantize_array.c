/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/arrays/array_walk.h"

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
    R_COLUMNS
};

/* Exact: |exponent| < 1022. */
static double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* The real multiplier of a rule: exactly its fixed-point or floating-point form. */
static double real_of(const tq_multiplier *m, tq_requantize_rule rule)
{
    if (rule == TQ_REQUANTIZE_FLOAT64_AWAY)
        return m->f64;
    if (rule == TQ_REQUANTIZE_FLOAT32_EVEN)
        return m->f32;
    return m->fixed * power_of_two(m->shift - 31);
}

/* d of kernels/elementwise/requantize_simd.h, the shift of ties, for acc >= 0 and for acc < 0. */
static void tie_shift_of(const tq_multiplier *m, tq_requantize_rule rule, double shift[2])
{
    const double unit = m->shift < 0 ? power_of_two(m->shift - 1) : 0;
    shift[0] = rule == TQ_REQUANTIZE_DOUBLE || rule == TQ_REQUANTIZE_UP ? unit : 0;
    shift[1] = rule == TQ_REQUANTIZE_DOUBLE ? -shift[0] : shift[0];
}

/* 2^16 (real + 1/2) + E: an offset of fixed_simd.h. */
static float fixed_offset(double real, double error)
{
    return (float)((real + 0.5) * 65536 + error);
}

bool tq_fixed_point_of(const tq_multiplier *m, tq_requantize_rule rule, tq_element out, int32_t zero_point,
                       uint8_t undecided, float *slope, float *offset, float *offset_negative)
{
    const double error = 0.5 * undecided;
    double shift[2], real = real_of(m, rule);
    int32_t center = tq_integer_center(out);
    tie_shift_of(m, rule, shift);
    *slope = (float)(real * 65536);
    *offset = fixed_offset(zero_point - center + shift[0], error);
    *offset_negative = fixed_offset(zero_point - center + shift[1], error);
    return isnormal(*slope) || real == 0; /* real 0: every value is the zero point */
}

/* 2 E of fixed_simd.h that is enough for these sets. */
static uint8_t undecided_of(const tq_walk_source *from, size_t first, size_t sets)
{
    const double *multiplier = from->multiplier.data + (from->multiplier.many ? first : 0);
    bool exact = true;
    for (size_t i = 0; i < (from->multiplier.many ? sets : 1); i++)
        exact &= tq_fixed_is_exact(multiplier[i]);
    return exact ? TQ_FIXED_EXACT_DOUBLED : 2 * TQ_FIXED_ERROR;
}

static void fill_set(tq_requantize_params *p, char *const *data, size_t i, const tq_multiplier *m,
                     const tq_walk_source *from, int32_t zero_point, int32_t input_zero_point)
{
    tq_fixed_point_of(m, from->rule, from->out, zero_point, p->undecided, (float *)data[R_SLOPE] + i,
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

static const tq_columns all_columns = {.size = {8, 4, 4, 4, 4, 4, 4, 4, 4, 4}, .count = R_COLUMNS};

/* Copies the columns of sets that were computed before. */
static void fill_made(tq_requantize_params *p, char *const *data, const tq_walk_source *from, size_t first, size_t sets)
{
    const tq_requantize_sets *made = from->sets;
    char *columns[R_COLUMNS];
    tq_columns_lay_out(&all_columns, made->columns, made->count, columns);
    for (int i = 0; i < R_COLUMNS; i++)
        memcpy(data[i], columns[i] + first * all_columns.size[i], sets * all_columns.size[i]);
    p->shifts_left = made->shifts_left;
    p->undecided = made->undecided;
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
    p->undecided = undecided_of(from, first, sets);
    for (size_t i = 0; i < sets; i++) {
        const size_t set = first + i;
        const tq_multiplier m = tq_multiplier_of(from->multiplier.data[from->multiplier.many ? set : 0], from->rule);
        const int32_t zero = from->zero_point.data[from->zero_point.many ? set : 0];
        const int32_t input_zero = from->input_zero_point.data[from->input_zero_point.many ? set : 0];
        fill_set(p, data, i, &m, from, zero, input_zero);
        p->wide |= (from->in == TQ_i32 && input_zero != 0) || (from->out == TQ_i32 && zero != 0);
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
}

/* The columns that a rule's bodies read. */
static unsigned columns_of(tq_requantize_rule rule)
{
    unsigned all = 1u << R_ZERO | 1u << R_INPUT_ZERO | 1u << R_SLOPE | 1u << R_OFFSET | 1u << R_OFFSET_NEGATIVE;
    if (rule == TQ_REQUANTIZE_FLOAT64_AWAY)
        return all | 1u << R_REAL;
    if (rule == TQ_REQUANTIZE_FLOAT32_EVEN)
        return all | 1u << R_REAL_F32;
    return all | 1u << R_MULTIPLIER | 1u << R_LEFT | 1u << R_RIGHT;
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
    tq_requantize_sets made = {.count = count,
                               .has_zero_points = any_zero_point(zero_point, count),
                               .has_input_zero_points = any_zero_point(input_zero_point, count)};
    tq_status status = tq_allocate(&tq_default_allocator, count, TQ_SET_BYTES, &made.columns, error);
    if (status != TQ_OK)
        return status;
    char *data[R_COLUMNS];
    tq_columns_lay_out(&all_columns, made.columns, count, data);
    tq_walk_params p = {0};
    const tq_walk_source source = {.multiplier = multiplier,
                                   .zero_point = zero_point,
                                   .input_zero_point = input_zero_point,
                                   .rule = rule,
                                   .out = out};
    fill_requantize(&p, data, 0, &source, 0, count);
    made.shifts_left = p.requantize.shifts_left;
    made.undecided = p.requantize.undecided;
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
        [TQ_REQUANTIZE_DOUBLE] = TQ_KERNEL_requantize_double,
        [TQ_REQUANTIZE_SINGLE] = TQ_KERNEL_requantize_single,
        [TQ_REQUANTIZE_UP] = TQ_KERNEL_requantize_up,
        [TQ_REQUANTIZE_FLOAT64_AWAY] = TQ_KERNEL_requantize_float64_away,
        [TQ_REQUANTIZE_FLOAT32_EVEN] = TQ_KERNEL_requantize_float32_even,
    };
    if (tq_layout_elements(&job->layout) == 0)
        return TQ_OK;
    tq_walk_params p = {.requantize = {.flip_bytes = tq_four_bytes(tq_integer_center(job->out_type)),
                                       .low = tq_element_low(job->out_type),
                                       .high = (int32_t)tq_element_high(job->out_type),
                                       .stream = tq_job_is_large(job)}};
    tq_walk_source source = {.multiplier = multiplier,
                             .zero_point = zero_point,
                             .input_zero_point = input_zero_point,
                             .rule = rule,
                             .in = job->in_type,
                             .out = job->out_type};
    bool many = multiplier.many || zero_point.many || input_zero_point.many;
    tq_walk w = {.params = &p,
                 .source = &source,
                 .fill = fill_requantize,
                 .point = point_requantize,
                 .layout = tq_layout_joined(job->layout, many)};
    if (sets && sets->count == w.layout.groups * w.layout.channels)
        source.sets = sets;
    tq_columns c = all_columns;
    c.needed = columns_of(rule);
    c.constant = zero_point.many ? 0 : 1u << R_ZERO;
    return tq_walk_run(&w, job, operations[rule], &c, error);
}
