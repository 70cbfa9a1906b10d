/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/code_line.h"

#include <math.h>

#include "kernels/kernels.h"

/* 2^exponent, -1022 <= exponent <= 1023; ldexp takes long for so little. */
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

double tq_multiplier_real(const tq_multiplier *m, tq_requantize_rule rule)
{
    if (rule == TQ_REQUANTIZE_FLOAT64_AWAY)
        return m->f64;
    if (rule == TQ_REQUANTIZE_FLOAT32_EVEN)
        return m->f32;
    return m->fixed * power_of_two(m->shift - 31); /* exact; |shift| <= 1024 */
}

void tq_multiplier_tie_shift(const tq_multiplier *m, tq_requantize_rule rule, double shift[2])
{
    double unit = m->shift < 0 ? power_of_two(m->shift - 1) : 0;
    shift[0] = rule == TQ_REQUANTIZE_DOUBLE || rule == TQ_REQUANTIZE_UP ? unit : 0;
    shift[1] = rule == TQ_REQUANTIZE_DOUBLE ? -shift[0] : shift[0];
}

/* How far behind a tie, code - 1/2, sums begin to come to the code where they are rounded to float32 and then to even:
   half the distance to the next float, and before the tie if that goes to the code. */
static float border_of(int32_t code)
{
    float tie = (float)code - 0.5f;
    uint32_t bits;
    memcpy(&bits, &tie, sizeof bits);
    bits = (bits & 0x7F800000) - (24u << 23) + ((uint32_t)~code << 31);
    memcpy(&tie, &bits, sizeof tie);
    return tie;
}

#define BORDERS_FROM (-256) /* a code less a zero point, at least */
struct borders {
    float at[544];
};

static void make_borders(struct borders *borders)
{
    const int32_t count = sizeof borders->at / sizeof *borders->at;
    for (int32_t i = 0; i < count; i++)
        borders->at[i] = border_of(i + BORDERS_FROM);
}

static const float *borders_from(const struct borders *borders, int32_t code)
{
    return borders->at + code - BORDERS_FROM;
}

typedef void (*limits_fn)(const tq_line_steps *, tq_line_limits *);

/* What is being drawn. */
struct drawing {
    const struct borders *borders;
    limits_fn limits;
    double real, step, offset[2]; /* the multiplier, 1 / real, and the rule's offsets for acc >= 0 and acc < 0 */
    int32_t zero_point;
    bool rounds; /* the rule rounds its product to float32 */
};

/* The steps of a side: acc >= 0 has those to codes above the zero point, acc < 0 the others. */
struct side {
    int which;
    int32_t from, count;
};

static uint32_t units_of(double x)
{
    return (uint32_t)(int64_t)(x / TQ_LINE_UNIT); /* |x| < 2^20 */
}

static tq_line_steps steps_of(const struct drawing *d, const struct side *side, double slope)
{
    const double step = d->step, at = (side->from - 0.5 - d->offset[side->which]) * step;
    const double lean = (slope - d->real) * step;
    tq_line_steps s = {.fraction = units_of(at), .stride = units_of(step), .leaning = units_of(at - at * lean),
                       .leaning_stride = units_of(step - step * lean), .units = (float)(step / TQ_LINE_UNIT),
                       .border = borders_from(d->borders, side->from), .count = side->count};
    if (d->rounds)
        s.rule_border = borders_from(d->borders, side->from - d->zero_point);
    return s;
}

/* NULL: no kernel draws lines here. */
static limits_fn limits_body(void)
{
#if TQ_ARM64
    return tq_line_limits__neon;
#elif TQ_X86
    uint32_t features = tq_kernels_features();
    return features & TQ_CPU_AVX512 ? tq_line_limits__avx512 : features & TQ_CPU_AVX2 ? tq_line_limits__avx2 : NULL;
#else
    return NULL;
#endif
}

/* A float between the limits, which are not exact themselves. */
static bool choose(const struct drawing *d, int side, int32_t above, int32_t below, float *offset)
{
    double unit = d->real * TQ_LINE_UNIT, middle = ((double)above + below) / 2;
    *offset = (float)(d->offset[side] + middle * unit);
    double moved = (*offset - d->offset[side]) * (d->step / TQ_LINE_UNIT);
    return moved > above + TQ_LINE_UNSURE && moved < below - TQ_LINE_UNSURE;
}

/* The steps whose limits are the strictest, and the limits without them. */
struct strictest {
    int32_t above[2], below[2], above_at, below_at;
};

static struct strictest strictest_of(const tq_line_steps *s)
{
    struct strictest t = {{-TQ_LINE_WIDEST, -TQ_LINE_WIDEST}, {TQ_LINE_WIDEST, TQ_LINE_WIDEST}, 0, 0};
    for (int32_t n = 0; n < s->count; n++) {
        uint32_t rounded = s->rule_border ? (uint32_t)(int32_t)(s->rule_border[n] * s->units) : 0;
        int32_t fraction = (int32_t)(s->fraction + (uint32_t)n * s->stride + rounded);
        uint32_t leaning = s->leaning + (uint32_t)n * s->leaning_stride + (uint32_t)(int32_t)(s->border[n] * s->units);
        int32_t differ = (int32_t)(leaning - (uint32_t)fraction), least = tq_saturate_i32((int64_t)fraction + differ);
        if (fraction <= TQ_LINE_UNSURE && least > t.above[1]) {
            t.above[1] = least > t.above[0] ? t.above[0] : least;
            t.above_at = least > t.above[0] ? n : t.above_at;
            t.above[0] = least > t.above[0] ? least : t.above[0];
        }
        if (fraction >= -TQ_LINE_UNSURE && least < t.below[1]) {
            t.below[1] = least < t.below[0] ? t.below[0] : least;
            t.below_at = least < t.below[0] ? n : t.below_at;
            t.below[0] = least < t.below[0] ? least : t.below[0];
        }
    }
    return t;
}

/* The distance from 0 of the acc next to step n. */
static int32_t distance_of(const struct drawing *d, const struct side *side, int32_t n)
{
    return (int32_t)floor(fabs((side->from + n - 0.5 - d->offset[side->which]) * d->step) + 0.5);
}

/* With one acc left out, if it is needed: at *exception from 0, if one is left out already. */
static bool choose_but_one(const struct drawing *d, const struct side *side, const tq_line_steps *steps, float *offset,
                           int32_t *exception)
{
    const struct strictest t = strictest_of(steps);
    if (choose(d, side->which, t.above[0], t.below[0], offset))
        return true;
    for (int k = 0; k < 2; k++) {
        int32_t distance = distance_of(d, side, k ? t.below_at : t.above_at);
        if ((*exception == TQ_NO_EXCEPTION || *exception == distance) &&
            choose(d, side->which, t.above[!k], t.below[k], offset)) {
            *exception = distance;
            return true;
        }
    }
    return false;
}

/* The sides of a line: one, of all steps, where offsets are the same. */
static int sides_of(const struct drawing *d, struct side sides[2])
{
    const int32_t zero = d->zero_point;
    if (d->offset[0] == d->offset[1]) {
        sides[0] = (struct side){0, -127, 255};
        return 1;
    }
    sides[0] = (struct side){0, zero + 1, 127 - zero};
    sides[1] = (struct side){1, -127, 128 + zero};
    return 2;
}

static void set_offset(tq_code_line *line, int side, int sides, float offset)
{
    if (side == 0)
        line->offset = offset;
    if (side == 1 || sides == 1)
        line->offset_negative = offset;
}

/* A line with this slope, which may have an exception. */
static bool draw(const struct drawing *d, float slope, bool exceptions, tq_code_line *line)
{
    tq_code_line found = {slope, 0, 0, TQ_NO_EXCEPTION};
    struct side sides[2];
    int count = sides_of(d, sides);
    for (int k = 0; k < count; k++) {
        const tq_line_steps steps = steps_of(d, &sides[k], slope);
        float offset;
        tq_line_limits limits;
        if (exceptions) {
            if (!choose_but_one(d, &sides[k], &steps, &offset, &found.exception))
                return false;
        } else {
            d->limits(&steps, &limits);
            if (!choose(d, k, limits.above, limits.below, &offset))
                return false;
        }
        set_offset(&found, k, count, offset);
    }
    *line = found;
    return true;
}

/* With other slopes than the nearest, or an exception. */
static bool draw_otherwise(const struct drawing *d, tq_code_line *line)
{
    const float slope = (float)d->real, up = nextafterf(slope, 1), down = nextafterf(slope, 0);
    return draw(d, up, false, line) || draw(d, down, false, line) || draw(d, slope, true, line) ||
           draw(d, up, true, line) || draw(d, down, true, line);
}

/* First what most lines need, by stages for all of them: each waits for its own numbers longer than it works. */
static void draw_some(const struct drawing *d, size_t n, tq_code_line *lines)
{
    struct side sides[TQ_LINES_AT_ONCE][2];
    int count[TQ_LINES_AT_ONCE];
    tq_line_steps steps[TQ_LINES_AT_ONCE][2];
    tq_line_limits limits[TQ_LINES_AT_ONCE][2];
    for (size_t i = 0; i < n; i++) {
        count[i] = sides_of(&d[i], sides[i]);
        for (int k = 0; k < count[i]; k++)
            steps[i][k] = steps_of(&d[i], &sides[i][k], (float)d[i].real);
    }
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < count[i]; k++)
            d->limits(&steps[i][k], &limits[i][k]);
    for (size_t i = 0; i < n; i++) {
        bool drawn = true;
        lines[i] = (tq_code_line){(float)d[i].real, 0, 0, TQ_NO_EXCEPTION};
        for (int k = 0; k < count[i]; k++) {
            float offset;
            drawn &= choose(&d[i], k, limits[i][k].above, limits[i][k].below, &offset);
            set_offset(&lines[i], k, count[i], offset);
        }
        if (!drawn && !draw_otherwise(&d[i], &lines[i]))
            lines[i].slope = NAN;
    }
}

static bool has_drawing(const tq_multiplier *m, tq_requantize_rule rule, int32_t zero_point, limits_fn limits,
                        const struct borders *borders, struct drawing *d)
{
    double shift[2], real = tq_multiplier_real(m, rule);
    if (!(real >= 0x1p-11 && real < 0x1p-3))
        return false;
    tq_multiplier_tie_shift(m, rule, shift);
    *d = (struct drawing){borders, limits, real, 1 / real, {zero_point + shift[0], zero_point + shift[1]}, zero_point,
                          rule == TQ_REQUANTIZE_FLOAT32_EVEN};
    return true;
}

void tq_code_lines_of(const tq_multiplier *m, const int32_t *zero_point, size_t n, tq_requantize_rule rule,
                      tq_code_line *lines)
{
    struct drawing drawings[TQ_LINES_AT_ONCE];
    tq_code_line drawn[TQ_LINES_AT_ONCE];
    size_t to[TQ_LINES_AT_ONCE], count = 0;
    struct borders borders;
    limits_fn limits = limits_body();
    make_borders(&borders);
    for (size_t i = 0; i < n; i++) {
        lines[i] = (tq_code_line){NAN, 0, 0, TQ_NO_EXCEPTION};
        if (limits && has_drawing(&m[i], rule, zero_point[i], limits, &borders, &drawings[count]))
            to[count++] = i;
    }
    draw_some(drawings, count, drawn);
    for (size_t i = 0; i < count; i++)
        lines[to[i]] = drawn[i];
}
