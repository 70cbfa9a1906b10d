/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the functions of float_math.h over arrays, for one instruction set.
 *
 * Compilers look up float_math.h's table of 32 entries one by one, and finish one lane's polynomial before they begin
 * the next.  Here PARTS vectors advance together.
 *
 * Some steps are fused, and e^r' is summed by Horner's rule.  Over all 2^32 arguments each result is that of the
 * steps of float_math.h: steps that would give another one for some argument are left as they are there.
 *
 * The includer defines PARTS, 2 or 4, BODY, ISA, vf (as many floats as a vd has doubles), vd, lanes (of a comparison),
 * F and D (operations by name), FMADD, TO_DOUBLES, TO_FLOATS, FLOATS, DOUBLES, COMPARE, CHOOSE and SIGNS, table,
 * load_table, look_up, exponential_of and subtract_where, LOAD and STORE of up to STEP floats.
 */
#include "base/names.h"
#include "kernels/float_math.h"

enum { LANES = sizeof(vf) / sizeof(float), STEP = LANES * PARTS };
#define EACH_PART _Pragma("GCC unroll 4") for (int i = 0; i < PARTS; i++)

typedef struct floats {
    vf part[PARTS];
} floats;

typedef struct doubles {
    vd part[PARTS];
} doubles;

BODY doubles widen(floats x)
{
    doubles y;
    EACH_PART y.part[i] = TO_DOUBLES(x.part[i]);
    return y;
}

BODY floats narrow(doubles x)
{
    floats y;
    EACH_PART y.part[i] = TO_FLOATS(x.part[i]);
    return y;
}

/* |x|, at most the bound; NaN for NaN. */
BODY floats size_to(floats x, float bound)
{
    EACH_PART x.part[i] = F(min)(FLOATS(bound), F(andnot)(FLOATS(-0.0f), x.part[i]));
    return x;
}

/* The value where x is below the bound, else y. */
BODY vf below(vf x, float bound, float value, vf y)
{
    return CHOOSE(y, COMPARE(x, FLOATS(bound), _CMP_LT_OQ), FLOATS(value));
}

/* 2^(k/32), of x 32 / ln 2 = k + rest. */
BODY doubles powers_of_two(doubles x, doubles *rest, const table *t)
{
    const vd round = DOUBLES(0x1.8p52);
    doubles shifted, y;
    EACH_PART
    {
        const vd z = D(mul)(x.part[i], DOUBLES(TQ_EXP_PER_LN2));
        shifted.part[i] = D(add)(z, round);
        rest->part[i] = D(sub)(z, D(sub)(shifted.part[i], round));
    }
    for (int i = 0; i < PARTS; i += 2)
        look_up(t, shifted.part + i, y.part + i);
    return y;
}

/* Each as the function of float_math.h that it is named after. */

/* The bounds come first: they are bounds of the result, too. */
BODY floats expf_parts(floats x, const table *t)
{
    EACH_PART x.part[i] = F(max)(FLOATS(-105), F(min)(FLOATS(89), x.part[i]));
    doubles r, sum, y = powers_of_two(widen(x), &r, t);
    EACH_PART sum.part[i] = FMADD(DOUBLES(TQ_EXP_C0), r.part[i], DOUBLES(TQ_EXP_C1));
    EACH_PART sum.part[i] = FMADD(sum.part[i], r.part[i], DOUBLES(TQ_EXP_C2));
    EACH_PART sum.part[i] = FMADD(sum.part[i], r.part[i], DOUBLES(1));
    EACH_PART y.part[i] = D(mul)(sum.part[i], y.part[i]);
    return narrow(y);
}

BODY floats logistic_parts(floats x, const table *t)
{
    floats y;
    lanes low[PARTS];
    EACH_PART low[i] = COMPARE(x.part[i], FLOATS(-9), _CMP_LT_OQ);
    EACH_PART y.part[i] = CHOOSE(F(xor)(x.part[i], FLOATS(-0.0f)), low[i], x.part[i]);
    y = expf_parts(y, t);
    EACH_PART
    {
        const vf of_power = F(div)(FLOATS(1), F(add)(FLOATS(1), y.part[i]));
        const lanes high = COMPARE(x.part[i], FLOATS(TQ_LOGISTIC_IS_1), _CMP_GT_OQ);
        y.part[i] = CHOOSE(CHOOSE(of_power, low[i], y.part[i]), high, FLOATS(1));
    }
    return y;
}

BODY doubles expm1_unrounded_parts(doubles x, const table *t)
{
    doubles r, grown, y = powers_of_two(x, &r, t);
    EACH_PART r.part[i] = D(mul)(r.part[i], DOUBLES(TQ_EXP_LN2));
    EACH_PART grown.part[i] = FMADD(r.part[i], DOUBLES(1.0 / 24), DOUBLES(1.0 / 6));
    EACH_PART grown.part[i] = FMADD(r.part[i], grown.part[i], DOUBLES(1.0 / 2));
    EACH_PART grown.part[i] = FMADD(r.part[i], grown.part[i], DOUBLES(1));
    EACH_PART grown.part[i] = D(mul)(r.part[i], grown.part[i]);
    EACH_PART y.part[i] = FMADD(y.part[i], grown.part[i], D(sub)(y.part[i], DOUBLES(1)));
    return y;
}

/* x + 0: NaN becomes quiet, and subnormal numbers 0 where the processor flushes them. */
BODY floats elu_parts(floats x, const table *t)
{
    floats y = narrow(expm1_unrounded_parts(widen(x), t));
    EACH_PART
    {
        const lanes negative = SIGNS(x.part[i]);
        const vf power = below(x.part[i], -18, -1, F(or)(y.part[i], FLOATS(-0.0f)));
        y.part[i] = CHOOSE(F(add)(x.part[i], FLOATS(0)), negative, power);
    }
    return y;
}

/* tanh of the bound rounds to 1. */
BODY floats tanhf_parts(floats x, const table *t)
{
    doubles e = widen(size_to(x, 10));
    EACH_PART e.part[i] = D(add)(e.part[i], e.part[i]);
    e = expm1_unrounded_parts(e, t);
    EACH_PART e.part[i] = D(div)(e.part[i], D(add)(e.part[i], DOUBLES(2)));
    floats y = narrow(e);
    EACH_PART
    {
        y.part[i] = F(or)(F(andnot)(FLOATS(-0.0f), y.part[i]), F (and)(FLOATS(-0.0f), x.part[i]));
    }
    return y;
}

/* Sums of a polynomial's leading terms, from the second coefficient to the one before `end`. */
#define HORNER(sum, x, coefficients, end) \
    for (int k = 1; k < (end); k++)       \
    EACH_PART sum.part[i] = FMADD(sum.part[i], x.part[i], DOUBLES((coefficients)[k]))

BODY floats erfcf_parts(floats x)
{
    static const double of_sum[] = {TQ_ERFC_SUM}, of_power[] = {TQ_ERFC_POWER};
    enum { LAST = sizeof of_sum / sizeof *of_sum - 1, POWERS = sizeof of_power / sizeof *of_power };
    const vd round = DOUBLES(0x1.8p52);
    const doubles a = widen(size_to(x, 10.5f));
    doubles u, shifted, f, sum, power;
    EACH_PART
    {
        u.part[i] = D(div)(DOUBLES(3), D(add)(a.part[i], DOUBLES(3)));
        const vd z = D(mul)(D(mul)(a.part[i], a.part[i]), DOUBLES(TQ_ERFC_PER_SQUARE));
        shifted.part[i] = D(add)(z, round);
        f.part[i] = D(sub)(z, D(sub)(shifted.part[i], round));
        power.part[i] = DOUBLES(of_power[0]);
        sum.part[i] = DOUBLES(of_sum[0]);
    }
    HORNER(power, f, of_power, POWERS);
    HORNER(sum, u, of_sum, LAST);
    EACH_PART
    {
        const vd last = D(add)(D(mul)(sum.part[i], u.part[i]), DOUBLES(of_sum[LAST]));
        const vd whole = exponential_of(shifted.part[i]);
        const vd product = D(mul)(D(mul)(u.part[i], last), D(mul)(power.part[i], whole));
        const lanes negative = COMPARE(x.part[i], FLOATS(0), _CMP_LT_OQ);
        u.part[i] = subtract_where(negative, DOUBLES(2), product);
    }
    return narrow(u);
}

BODY floats gelu_parts(floats x, const table *t)
{
    (void)t;
    floats y;
    EACH_PART y.part[i] = F(mul)(x.part[i], FLOATS(-TQ_SQRT_HALF));
    y = erfcf_parts(y);
    EACH_PART y.part[i] = F(mul)(F(mul)(FLOATS(0.5f), x.part[i]), y.part[i]);
    return y;
}

#define OF_PARTS(name, of_parts)                                                \
    TARGET void TQ_GLUE(tq_##name##__, ISA)(const float *x, float *y, size_t n) \
    {                                                                           \
        const table t = load_table();                                           \
        for (size_t count; n; n -= count, x += count, y += count) {             \
            floats v;                                                           \
            count = n < STEP ? n : STEP;                                        \
            LOAD(v, x, count);                                                  \
            v = of_parts(v, &t);                                                \
            STORE(v, y, count);                                                 \
        }                                                                       \
    }
OF_PARTS(exponentials, expf_parts)
OF_PARTS(logistics, logistic_parts)
OF_PARTS(elus, elu_parts)
OF_PARTS(hyperbolic_tangents, tanhf_parts)
OF_PARTS(gelus, gelu_parts)
