/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/code_line.h"

#include <math.h>

#include "kernels/isa.h"

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

#define RISKS 16          /* integers near a side's steps, at most: with more, no line is likely to be right at all */
#define NUDGE 0x1p-20     /* what an offset is moved by */
#define CODES_SPAN 257    /* no step's acc times the multiplier is farther from 0 */
#define FRACTION 4294967296.0 /* 2^32: fractions of steps are counted in 32 bits, which wrap */
#define FRACTION_ERROR 1024 /* of 256 sums of a step, each less than 1 off, and of the doubles before; plenty */
#define AT_ONCE 32 /* steps: as many as a mask has bits */

static int lowest_bit(uint32_t x)
{
#if defined(__GNUC__)
    return __builtin_ctz(x);
#else
    int k = 0;
    while (!(x >> k & 1))
        k++;
    return k;
#endif
}

/* The integers near steps of one sign, and the rule's codes there. */
struct risks {
    int count;
    int32_t acc[RISKS];
    int8_t code[RISKS];
};

/* What is being drawn. */
struct drawing {
    const tq_multiplier *m;
    tq_requantize_rule rule;
    int32_t zero_point;
    double real, offset[2]; /* the multiplier, and the real offsets for acc >= 0 and acc < 0 */
};

/* The steps to codes [from, to] lie at (code - 1/2 - offset) / real; `error` is how far, in codes, a line or the rule
   may be off there.  false: too many integers are that near. */
TQ_BODY bool find_risks(const struct drawing *d, int side, int from, int to, double error, struct risks *risks)
{
    double step = 1 / d->real, reach = error * step, at = (from - 0.5 - d->offset[side]) * step;
    risks->count = 0;
    if (reach >= 0.125)
        return false;
    uint32_t near = (uint32_t)(reach * FRACTION) + FRACTION_ERROR, stride = (uint32_t)((step - floor(step)) * FRACTION);
    uint32_t fraction = (uint32_t)((at - floor(at)) * FRACTION) + near, lane[AT_ONCE];
    for (uint32_t k = 0; k < AT_ONCE; k++)
        lane[k] = fraction + k * stride;
    for (int c = from; c <= to; c += AT_ONCE) {
        uint32_t found = 0;
        for (int k = 0; k < AT_ONCE; k++)
            found |= (uint32_t)(lane[k] <= 2 * near) << k;
        for (; found; found &= found - 1) {
            int code = c + lowest_bit(found);
            if (code > to)
                break;
            if (risks->count == RISKS)
                return false;
            int32_t acc = (int32_t)floor(at + (code - from) * step + 0.5);
            risks->acc[risks->count] = acc;
            risks->code[risks->count++] = (int8_t)tq_requantize(acc, d->m, d->rule, d->zero_point, -128, 127);
        }
        for (int k = 0; k < AT_ONCE; k++)
            lane[k] += AT_ONCE * stride;
    }
    return true;
}

TQ_BODY bool is_right(const struct risks *risks, float slope, float offset)
{
    for (int i = 0; i < risks->count; i++) {
        float code = rintf(fmaf((float)risks->acc[i], slope, offset));
        if ((code < -128 ? -128 : code > 127 ? 127 : code) != risks->code[i])
            return false;
    }
    return true;
}

/* An offset that is right at the risks of one side, or of both: NULL for none. */
TQ_BODY bool find_offset(double real, int nudges, float slope, const struct risks *one, const struct risks *other,
                        float *offset)
{
    for (int k = 0; k <= 2 * nudges; k++) {
        float moved = (float)(real + (k % 2 ? (k + 1) / 2 : -(k / 2)) * NUDGE);
        if (is_right(one, slope, moved) && (!other || is_right(other, slope, moved))) {
            *offset = moved;
            return true;
        }
    }
    return false;
}

/* How far from its step, in codes, the line and the rule may decide otherwise than real numbers do.
     |slope - real| |acc|    for the slope, where |acc real| <= CODES_SPAN
     nudges, and 2^-24 of it for rounding the offset
     2^-18                   for rounding the sum, which is between -128 and 128 at a step
     2^-17                   for rounding the product, in a rule that does: it is below 256
   and 2^-30 for what is left out, such as products of these and "float64-away"'s 2^-45. */
TQ_BODY double error_of(const struct drawing *d, double slope, int nudges)
{
    double widest = fmax(fabs(d->offset[0]), fabs(d->offset[1])) + 1;
    double error = fabs(slope - d->real) / d->real * CODES_SPAN + nudges * NUDGE + widest * 0x1p-24 + 0x1p-18 + 0x1p-30;
    return d->rule == TQ_REQUANTIZE_FLOAT32_EVEN ? error + 0x1p-17 : error;
}

/* acc >= 0 has the steps to codes above the zero point, acc < 0 the others. */
TQ_BODY bool draw(const struct drawing *d, float slope, int nudges, tq_code_line *line)
{
    struct risks above, below;
    double error = error_of(d, slope, nudges);
    if (!find_risks(d, 0, d->zero_point + 1, 127, error, &above) ||
        !find_risks(d, 1, -127, d->zero_point, error, &below))
        return false;
    tq_code_line found = {slope, 0, 0};
    bool apart = d->offset[0] != d->offset[1];
    if (!find_offset(d->offset[0], nudges, slope, &above, apart ? NULL : &below, &found.offset))
        return false;
    found.offset_negative = found.offset;
    if (apart && !find_offset(d->offset[1], nudges, slope, &below, NULL, &found.offset_negative))
        return false;
    *line = found;
    return true;
}

TQ_BODY bool code_line_of(const tq_multiplier *m, tq_requantize_rule rule, int32_t zero_point, tq_code_line *line)
{
    double shift[2], real = tq_multiplier_real(m, rule);
    if (!(real >= 0x1p-11 && real < 0x1p-3))
        return false;
    tq_multiplier_tie_shift(m, rule, shift);
    struct drawing d = {m, rule, zero_point, real, {zero_point + shift[0], zero_point + shift[1]}};
    const float slope = (float)real;
    const struct {
        float slope;
        int nudges;
    } tries[] = {{slope, 4}, {slope, 16}, {nextafterf(slope, 1), 8}, {nextafterf(slope, 0), 8}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        if (draw(&d, tries[i].slope, tries[i].nudges, line))
            return true;
    return false;
}

#define CODE_LINE_OF(isa, target)                                                                                \
    target static bool code_line_of_##isa(const tq_multiplier *m, tq_requantize_rule rule, int32_t zero_point,   \
                                          tq_code_line *line)                                                    \
    {                                                                                                            \
        return code_line_of(m, rule, zero_point, line);                                                          \
    }
TQ_EVERY_ISA(CODE_LINE_OF)

bool tq_code_line_of(const tq_multiplier *m, tq_requantize_rule rule, int32_t zero_point, tq_code_line *line)
{
    static bool (*const bodies[TQ_ISAS])(const tq_multiplier *, tq_requantize_rule, int32_t, tq_code_line *) =
        TQ_ISA_FUNCTIONS(code_line_of);
    return bodies[tq_isa()](m, rule, zero_point, line);
}
