/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/elementwise/code_line.h"

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
#define HALF_PLACE(twice) /* of a float twice / 2 */                                                              \
    ((twice) < 2 ? 0x1p-25f : (twice) < 4 ? 0x1p-24f : (twice) < 8 ? 0x1p-23f : (twice) < 16 ? 0x1p-22f           \
     : (twice) < 32 ? 0x1p-21f : (twice) < 64 ? 0x1p-20f : (twice) < 128 ? 0x1p-19f : (twice) < 256 ? 0x1p-18f    \
     : (twice) < 512 ? 0x1p-17f : 0x1p-16f)
#define BORDER(code) (((code) & 1 ? 1 : -1) * HALF_PLACE((code) > 0 ? 2 * (code) - 1 : 1 - 2 * (code)))
#define BORDERS_4(code) BORDER(code), BORDER((code) + 1), BORDER((code) + 2), BORDER((code) + 3)
#define BORDERS_16(code) BORDERS_4(code), BORDERS_4((code) + 4), BORDERS_4((code) + 8), BORDERS_4((code) + 12)
#define BORDERS_64(code) BORDERS_16(code), BORDERS_16((code) + 16), BORDERS_16((code) + 32), BORDERS_16((code) + 48)
#define BORDERS_FROM (-256) /* a code less a zero point, at least */
static const float borders[] = {BORDERS_64(-256), BORDERS_64(-192), BORDERS_64(-128), BORDERS_64(-64), BORDERS_64(0),
                                BORDERS_64(64),   BORDERS_64(128),  BORDERS_64(192),  BORDERS_16(256)};

static const float *borders_from(int32_t code)
{
    return borders + (code - BORDERS_FROM);
}

typedef void (*limits_fn)(const tq_line_steps *, tq_line_limits *);

/* What is being drawn. */
struct drawing {
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
                       .border = borders_from(side->from), .count = side->count};
    if (d->rounds)
        s.rule_border = borders_from(side->from - d->zero_point);
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
static bool choose(const struct drawing *d, int side, double above, double below, float *offset)
{
    double unit = d->real * TQ_LINE_UNIT, middle = (above + below) / 2;
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
        int32_t limit = (int32_t)(s->leaning + (uint32_t)n * s->leaning_stride +
                                  (uint32_t)(int32_t)(s->border[n] * s->units));
        if (limit > TQ_LINE_WIDEST || limit < -TQ_LINE_WIDEST) /* or wrapped */
            continue;
        if (fraction <= TQ_LINE_UNSURE && limit > t.above[1]) {
            t.above[1] = limit > t.above[0] ? t.above[0] : limit;
            t.above_at = limit > t.above[0] ? n : t.above_at;
            t.above[0] = limit > t.above[0] ? limit : t.above[0];
        }
        if (fraction >= -TQ_LINE_UNSURE && limit < t.below[1]) {
            t.below[1] = limit < t.below[0] ? t.below[0] : limit;
            t.below_at = limit < t.below[0] ? n : t.below_at;
            t.below[0] = limit < t.below[0] ? limit : t.below[0];
        }
    }
    return t;
}

/* The distance from 0 of the acc next to step n. */
static int32_t distance_of(const struct drawing *d, const struct side *side, int32_t n)
{
    return (int32_t)floor(fabs((side->from + n - 0.5 - d->offset[side->which]) * d->step) + 0.5);
}

/* Notes an exception; false: there are two others. */
static bool except(int32_t exception[2], int32_t distance)
{
    int k = exception[0] == distance || exception[0] == TQ_NO_EXCEPTION ? 0 : 1;
    if (k == 1 && exception[1] != distance && exception[1] != TQ_NO_EXCEPTION)
        return false;
    exception[k] = distance;
    return true;
}

/* With the strictest limits left out that it takes, as exceptions. */
static bool choose_but_few(const struct drawing *d, const struct side *side, const tq_line_steps *steps, float *offset,
                           int32_t exception[2])
{
    const struct strictest t = strictest_of(steps);
    for (int but = 0; but < 4; but++) {
        int32_t found[2] = {exception[0], exception[1]};
        bool above = but & 1, below = but & 2;
        if (choose(d, side->which, t.above[above], t.below[below], offset) &&
            (!above || except(found, distance_of(d, side, t.above_at))) &&
            (!below || except(found, distance_of(d, side, t.below_at)))) {
            memcpy(exception, found, sizeof found);
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

/* A line with this slope, which may have exceptions. */
static bool draw(const struct drawing *d, float slope, bool exceptions, tq_code_line *line)
{
    tq_code_line found = {slope, 0, 0, {TQ_NO_EXCEPTION, TQ_NO_EXCEPTION}};
    struct side sides[2];
    int count = sides_of(d, sides);
    for (int k = 0; k < count; k++) {
        const tq_line_steps steps = steps_of(d, &sides[k], slope);
        float offset;
        tq_line_limits limits;
        if (exceptions) {
            if (!choose_but_few(d, &sides[k], &steps, &offset, found.exception))
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

/* Slopes that may be tried on each side of the nearest: so that (slope - real) acc / real, where acc is below
   256 / real, is below 0.2 of an acc. */
#define MOST_SLOPES 4
static int count_slopes(double real)
{
    int count = (int)(0.2 * 0x1p15 * real - 0.5);
    return count < MOST_SLOPES ? count : MOST_SLOPES;
}

/* With other slopes than the nearest; then with exceptions, which kernels have to look for. */
static bool draw_otherwise(const struct drawing *d, tq_code_line *line)
{
    const float slope = (float)d->real;
    for (int exceptions = 0; exceptions < 2; exceptions++) {
        float up = slope, down = slope;
        if (exceptions && draw(d, slope, true, line))
            return true;
        for (int k = count_slopes(d->real); k > 0; k--) {
            up = nextafterf(up, 1), down = nextafterf(down, 0);
            if (draw(d, up, exceptions, line) || draw(d, down, exceptions, line))
                return true;
        }
    }
    return false;
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
        lines[i] = (tq_code_line){(float)d[i].real, 0, 0, {TQ_NO_EXCEPTION, TQ_NO_EXCEPTION}};
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
                        struct drawing *d)
{
    double shift[2], real = tq_multiplier_real(m, rule);
    if (!(real >= 0x1p-11 && real < 0x1p-3))
        return false;
    tq_multiplier_tie_shift(m, rule, shift);
    *d = (struct drawing){limits, real, 1 / real, {zero_point + shift[0], zero_point + shift[1]}, zero_point,
                          rule == TQ_REQUANTIZE_FLOAT32_EVEN};
    return true;
}

void tq_code_lines_of(const tq_multiplier *m, const int32_t *zero_point, size_t n, tq_requantize_rule rule,
                      tq_code_line *lines)
{
    struct drawing drawings[TQ_LINES_AT_ONCE];
    tq_code_line drawn[TQ_LINES_AT_ONCE];
    size_t to[TQ_LINES_AT_ONCE], count = 0;
    limits_fn limits = limits_body();
    for (size_t i = 0; i < n; i++) {
        lines[i] = (tq_code_line){NAN, 0, 0, {TQ_NO_EXCEPTION, TQ_NO_EXCEPTION}};
        if (limits && has_drawing(&m[i], rule, zero_point[i], limits, &drawings[count]))
            to[count++] = i;
    }
    draw_some(drawings, count, drawn);
    for (size_t i = 0; i < count; i++)
        lines[to[i]] = drawn[i];
}
