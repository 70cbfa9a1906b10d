/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of float_math.h with AVX-512, by sums of two floats: sixteen lanes instead of the eight of float64.
 *
 * A sum has an error against the value that the steps of float_math.h have before they round: 2^-37 of it for e^x, up
 * to 2^-31.4 for erfc(x).  Where sums that are greater and less by a bound of the error round to the same float, that
 * is the result.  Other elements, 1 of 10000 to 1 of 100, wait in a queue for the body in float64.  Over all 2^32
 * arguments each result is that of float_math.h.
 *
 * Processors wait for results longer than for a place to compute, so VECTORS vectors advance together.
 */
#include "kernels/float_arrays.h"

#if TQ_X86

#include <immintrin.h>

#include "kernels/float_cells.h"
#include "kernels/float_math.h"

#define BODY TQ_TARGET_AVX512 TQ_BODY
#define F(operation) _mm512_##operation##_ps
#define I(operation) _mm512_##operation##_epi32
#define FLOATS _mm512_set1_ps
#define BITS _mm512_castps_si512
#define OF_BITS _mm512_castsi512_ps
#define COMPARE _mm512_cmp_ps_mask
#define SIGN FLOATS(-0.0f)

enum { VECTORS = 4, STEP = 16 * VECTORS, QUEUE = 4 * STEP, BLOCK = 1 << 16 };
#define EACH_PART _Pragma("GCC unroll 4") for (int i = 0; i < VECTORS; i++)

typedef struct floats {
    __m512 part[VECTORS];
} floats;

/* Sums of two floats.  `high` need not be the rounded sum. */
typedef struct pairs {
    floats high, low;
} pairs;

/* Lanes whose result is certain. */
typedef struct lanes {
    __mmask16 part[VECTORS];
} lanes;

/* Entries of a table, by the low 5 bits of `at`.  Behind the barrier registers hold the table: compilers would read it
   for each vector. */
BODY floats entries(const void *table, floats at)
{
    __m512 first = F(loadu)(table), last = F(loadu)((const float *)table + 16);
    __asm__("" : "+v"(first), "+v"(last));
    EACH_PART at.part[i] = F(permutex2var)(first, BITS(at.part[i]), last);
    return at;
}

/* Rounds sums whose error is below PART of `low`.  certain: those that round to one float whatever the error is. */
#define PART 0x1p-22f
BODY floats rounded(pairs x, lanes *certain)
{
    floats y, other;
    EACH_PART y.part[i] = F(fmadd)(x.low.part[i], FLOATS(1 + PART), x.high.part[i]);
    EACH_PART other.part[i] = F(fmadd)(x.low.part[i], FLOATS(1 - PART), x.high.part[i]);
    EACH_PART certain->part[i] = COMPARE(y.part[i], other.part[i], _CMP_EQ_OQ);
    return y;
}

/* The same where the error is below `error` of `value`. */
BODY floats rounded_within(pairs x, floats value, float error, lanes *certain)
{
    floats y, other;
    EACH_PART y.part[i] = F(fmadd)(value.part[i], FLOATS(error), x.low.part[i]);
    EACH_PART other.part[i] = F(fnmadd)(value.part[i], FLOATS(error), x.low.part[i]);
    EACH_PART y.part[i] = F(add)(x.high.part[i], y.part[i]);
    EACH_PART certain->part[i] = COMPARE(y.part[i], F(add)(x.high.part[i], other.part[i]), _CMP_EQ_OQ);
    return y;
}

/* ---- exponentials ---- */

/* e^x = power (1 + r + rest): power is 2^(k/32) rounded to a float, r = x - k f32(ln 2 / 32) is exact, |r| < 0.011. */
typedef struct reduced {
    floats power, r, rest;
} reduced;

/* For -87 < x < 88.  rest has what k f32(ln 2 / 32) and power lack, and not yet the series of e^r from r^2 on. */
BODY reduced reduce(floats x)
{
    const __m512 round = FLOATS(0x1.8p23f);
    reduced p;
    floats k;
    EACH_PART k.part[i] = F(fmadd)(x.part[i], FLOATS((float)TQ_EXP_PER_LN2), round);
    p.power = entries(power_bits, k);
    p.rest = entries(power_rest, k);
    EACH_PART p.power.part[i] = OF_BITS(I(add)(BITS(p.power.part[i]), I(slli)(BITS(k.part[i]), 18)));
    EACH_PART k.part[i] = F(sub)(k.part[i], round);
    EACH_PART p.r.part[i] = F(fnmadd)(k.part[i], FLOATS((float)TQ_EXP_LN2), x.part[i]);
    EACH_PART p.rest.part[i] = F(fmadd)(k.part[i], FLOATS((float)((float)TQ_EXP_LN2 - TQ_EXP_LN2)), p.rest.part[i]);
    return p;
}

/* With e^r = 1 + r + r^2 q: (1 + r + r^2 q) (1 + rest), without r^2 q rest. */
BODY void complete(reduced *p, floats q)
{
    EACH_PART p->rest.part[i] = F(fmadd)(p->rest.part[i], p->r.part[i], p->rest.part[i]);
    EACH_PART q.part[i] = F(mul)(q.part[i], p->r.part[i]);
    EACH_PART p->rest.part[i] = F(fmadd)(q.part[i], p->r.part[i], p->rest.part[i]);
}

/* By the polynomial of tq_expf, in r instead of 32 r / ln 2. */
#define PER_LN2 (1 / TQ_EXP_LN2)
BODY void complete_exponential(reduced *p)
{
    const __m512 c0 = FLOATS((float)(TQ_EXP_C0 * PER_LN2 * PER_LN2 * PER_LN2));
    floats q;
    EACH_PART q.part[i] = F(fmadd)(p->r.part[i], c0, FLOATS((float)(TQ_EXP_C1 * PER_LN2 * PER_LN2)));
    complete(p, q);
}

/* start + power (r + rest); |start| is 0 or at least |power r|. */
BODY pairs grown(const reduced *p, floats start)
{
    pairs y;
    EACH_PART y.high.part[i] = F(fmadd)(p->power.part[i], p->r.part[i], start.part[i]);
    EACH_PART y.low.part[i] = F(fmadd)(p->power.part[i], p->r.part[i], F(sub)(start.part[i], y.high.part[i]));
    EACH_PART y.low.part[i] = F(fmadd)(p->power.part[i], p->rest.part[i], y.low.part[i]);
    return y;
}

/* The polynomial's term in r has a coefficient that is not quite 1.  Farther than 56 the error is greater: 4 arguments
   down to -60 would give other results, and then parts of sums become subnormal. */
BODY floats exponential(floats x, lanes *certain)
{
    reduced p = reduce(x);
    EACH_PART p.rest.part[i] = F(fmadd)(p.r.part[i], FLOATS((float)(TQ_EXP_C2 / TQ_EXP_LN2 - 1)), p.rest.part[i]);
    complete_exponential(&p);
    floats y = rounded(grown(&p, p.power), certain);
    EACH_PART
    {
        const __mmask16 inside = COMPARE(F(andnot)(SIGN, x.part[i]), FLOATS(56), _CMP_LE_OQ);
        certain->part[i] &= inside;
        if (__builtin_expect(certain->part[i] != 0xffff, 0)) /* masked elements of a SOFTMAX are 0 */
            certain->part[i] |= COMPARE(x.part[i], FLOATS(-105), _CMP_LT_OQ);
        y.part[i] = F(maskz_mov)(inside, y.part[i]);
    }
    return y;
}

BODY floats logistic(floats x, lanes *certain)
{
    floats y;
    __mmask16 low[VECTORS];
    EACH_PART low[i] = COMPARE(x.part[i], FLOATS(-9), _CMP_LT_OQ);
    EACH_PART y.part[i] = F(mask_xor)(x.part[i], ~low[i], x.part[i], SIGN);
    y = exponential(y, certain);
    EACH_PART
    {
        const __mmask16 high = COMPARE(x.part[i], FLOATS(TQ_LOGISTIC_IS_1), _CMP_GT_OQ);
        y.part[i] = F(mask_div)(y.part[i], ~low[i], FLOATS(1), F(add)(FLOATS(1), y.part[i]));
        y.part[i] = F(mask_mov)(y.part[i], high, FLOATS(1));
        certain->part[i] |= high;
    }
    return y;
}

/* e^x - 1 of negative numbers, by the series of tq_expm1_unrounded.  power - 1 = start + rest. */
BODY floats elu(floats x, lanes *certain)
{
    floats q, start, rest;
    EACH_PART q.part[i] = F(max)(FLOATS(-18), x.part[i]);
    reduced p = reduce(q);
    EACH_PART q.part[i] = F(fmadd)(p.r.part[i], FLOATS(1.0f / 24), FLOATS(1.0f / 6));
    EACH_PART q.part[i] = F(fmadd)(p.r.part[i], q.part[i], FLOATS(1.0f / 2));
    complete(&p, q);
    EACH_PART start.part[i] = F(sub)(p.power.part[i], FLOATS(1));
    EACH_PART rest.part[i] = F(sub)(p.power.part[i], F(add)(start.part[i], FLOATS(1)));
    pairs y = grown(&p, start);
    EACH_PART y.low.part[i] = F(add)(y.low.part[i], rest.part[i]);
    q = rounded(y, certain);
    EACH_PART
    {
        const __mmask16 negative = _mm512_movepi32_mask(BITS(x.part[i]));
        certain->part[i] |= COMPARE(x.part[i], FLOATS(0), _CMP_GE_OQ);
        q.part[i] = F(mask_or)(F(add)(x.part[i], FLOATS(0)), negative, q.part[i], SIGN);
    }
    return q;
}

/* ---- functions in cells ---- */

/* Bounds of the errors, as parts of the value: of tables and sums, and for tanh what tq_tanhf differs from it. */
#define TANH_ERROR 0x1.4p-32f
#define ERFC_ERROR 0x1.8p-32f

/* b + sum is the factor of d; for a up to 9.375. */
BODY pairs in_cells(const float table[CELL_ROWS][32], floats a)
{
    pairs y;
    floats cell, sum, c0, c1, b;
    EACH_PART cell.part[i] = OF_BITS(I(srli)(BITS(F(add)(a.part[i], FLOATS(0.625f))), 20));
    const floats centre = entries(table[0], cell);
    sum = entries(table[CELL_COEFFICIENTS], cell);
    EACH_PART a.part[i] = F(sub)(a.part[i], centre.part[i]);
    for (int k = CELL_COEFFICIENTS - 1; k > 2; k--) {
        const floats c = entries(table[k], cell);
        EACH_PART sum.part[i] = F(fmadd)(sum.part[i], a.part[i], c.part[i]);
    }
    c1 = entries(table[2], cell);
    c0 = entries(table[1], cell);
    EACH_PART b.part[i] = F(fmadd)(sum.part[i], a.part[i], c1.part[i]);
    EACH_PART sum.part[i] = F(fmadd)(sum.part[i], a.part[i], F(sub)(c1.part[i], b.part[i]));
    EACH_PART y.high.part[i] = F(fmadd)(b.part[i], a.part[i], c0.part[i]);
    EACH_PART y.low.part[i] = F(fmadd)(b.part[i], a.part[i], F(sub)(c0.part[i], y.high.part[i]));
    EACH_PART y.low.part[i] = F(fmadd)(sum.part[i], a.part[i], y.low.part[i]);
    return y;
}

BODY floats hyperbolic_tangent(floats x, lanes *certain)
{
    floats a;
    EACH_PART a.part[i] = F(min)(FLOATS(9.1f), F(andnot)(SIGN, x.part[i]));
    const pairs y = in_cells(tanh_cells, a);
    a = rounded_within(y, y.high, TANH_ERROR, certain);
    EACH_PART x.part[i] = F(or)(a.part[i], F(and)(SIGN, x.part[i]));
    return x;
}

/* x / 2 erfc(t), by erfc(a) = e^(-a^2) f(a) of a = |t|; for a negative t it has the other sign, and 2 is added, from
   -8 on to almost nothing.  To t = 8: low parts of smaller powers become subnormal. */
BODY floats gelu(floats x, lanes *certain)
{
    floats t, a, square;
    EACH_PART t.part[i] = F(mul)(x.part[i], FLOATS(-TQ_SQRT_HALF));
    EACH_PART a.part[i] = F(min)(FLOATS(8), F(andnot)(SIGN, t.part[i]));
    EACH_PART square.part[i] = F(fnmadd)(a.part[i], a.part[i], FLOATS(0));
    reduced p = reduce(square);
    EACH_PART p.rest.part[i] = F(add)(p.rest.part[i], F(fnmsub)(a.part[i], a.part[i], square.part[i]));
    complete_exponential(&p);
    EACH_PART p.power.part[i] = F(xor)(p.power.part[i], F(and)(SIGN, t.part[i]));
    const pairs e = grown(&p, p.power), g = in_cells(erfc_cells, a);
    pairs y;
    floats product;
    EACH_PART
    {
        const __mmask16 negative = _mm512_movepi32_mask(BITS(t.part[i]));
        const __m512 v = F(mul)(g.high.part[i], e.high.part[i]), high = F(mask_add)(v, negative, v, FLOATS(2));
        __m512 low = F(fmsub)(g.high.part[i], e.high.part[i], v);
        low = F(fmadd)(g.high.part[i], e.low.part[i], low);
        low = F(fmadd)(g.low.part[i], e.high.part[i], low);
        y.high.part[i] = high;
        y.low.part[i] = F(add)(low, F(sub)(v, F(mask_sub)(high, negative, high, FLOATS(2))));
        product.part[i] = v;
    }
    y.high = rounded_within(y, product, ERFC_ERROR, certain);
    EACH_PART certain->part[i] &= COMPARE(t.part[i], FLOATS(8), _CMP_LE_OQ);
    EACH_PART x.part[i] = F(mul)(F(mul)(FLOATS(0.5f), x.part[i]), y.high.part[i]);
    return x;
}

/* ---- arrays ---- */

typedef void (*array_fn)(const float *x, float *y, size_t n);

/* Arguments that wait, and the places of their results. */
typedef struct queue {
    float x[QUEUE];
    uint32_t at[QUEUE];
    size_t count;
} queue;

BODY void put(queue *q, __mmask16 lanes, __m512 x, size_t at)
{
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    F(storeu)(q->x + q->count, F(maskz_compress)(lanes, x));
    _mm512_storeu_si512(q->at + q->count, I(maskz_compress)(lanes, I(add)(first, I(set1)((int)at))));
    q->count += (size_t)__builtin_popcount(lanes);
}

static void serve(queue *q, array_fn in_float64, float *y)
{
    in_float64(q->x, q->x, q->count);
    for (size_t i = 0; i < q->count; i++)
        y[q->at[i]] = q->x[i];
    q->count = 0;
}

/* Up to BLOCK elements, a multiple of STEP. */
BODY void of_block(floats (*f)(floats, lanes *), array_fn in_float64, const float *x, float *y, size_t n)
{
    queue q;
    q.count = 0;
    for (size_t at = 0; at < n; at += STEP) {
        floats v, of_v;
        lanes certain;
        __mmask16 all = 0xffff;
        EACH_PART v.part[i] = F(loadu)(x + at + 16 * i);
        of_v = f(v, &certain);
        EACH_PART all &= certain.part[i];
        if (__builtin_expect(__builtin_popcount(all) < 8, 0)) { /* arguments out of range */
            in_float64(x + at, y + at, STEP);
            continue;
        }
        if (__builtin_expect(all != 0xffff, 0))
            EACH_PART if (certain.part[i] != 0xffff) put(&q, ~certain.part[i], F(loadu)(x + at + 16 * i), at + 16 * i);
        EACH_PART F(storeu)(y + at + 16 * i, of_v.part[i]);
        if (__builtin_expect(q.count > QUEUE - STEP, 0))
            serve(&q, in_float64, y);
    }
    if (q.count)
        serve(&q, in_float64, y);
}

#define OF_FLOATS(name, f)                                                       \
    TQ_TARGET_AVX512 void tq_##name##__pairs(const float *x, float *y, size_t n) \
    {                                                                            \
        for (size_t size; n >= STEP; n -= size, x += size, y += size) {          \
            size = (n < BLOCK ? n : BLOCK) / STEP * STEP;                        \
            of_block(f, tq_##name##__avx512, x, y, size);                        \
        }                                                                        \
        if (n)                                                                   \
            tq_##name##__avx512(x, y, n);                                        \
    }
OF_FLOATS(exponentials, exponential)
OF_FLOATS(logistics, logistic)
OF_FLOATS(elus, elu)
OF_FLOATS(hyperbolic_tangents, hyperbolic_tangent)
OF_FLOATS(gelus, gelu)

/* ---- GELU by tq_rational_tanh ---- */

/* The sum of float_math.h, next term: each step rounds. */
#define NEXT_TERM(sum, x, coefficient) \
    EACH_PART sum.part[i] = F(add)(F(mul)(sum.part[i], x.part[i]), FLOATS(coefficient))

BODY floats gelu_by_ratio(floats x)
{
    const float p[] = {TQ_TANH_P}, q[] = {TQ_TANH_Q};
    floats t, square, above, below;
    EACH_PART t.part[i] = F(mul)(F(mul)(x.part[i], x.part[i]), x.part[i]);
    EACH_PART t.part[i] = F(add)(x.part[i], F(mul)(FLOATS(0.044715f), t.part[i]));
    EACH_PART t.part[i] = F(min)(FLOATS(TQ_TANH_LIMIT), F(mul)(FLOATS(0.797884560802865f), t.part[i]));
    EACH_PART t.part[i] = F(max)(FLOATS(-TQ_TANH_LIMIT), t.part[i]);
    EACH_PART square.part[i] = F(mul)(t.part[i], t.part[i]);
    EACH_PART above.part[i] = FLOATS(p[0]);
    EACH_PART below.part[i] = FLOATS(q[0]);
    for (int k = 1; k < 4; k++) {
        NEXT_TERM(above, square, p[k]);
        NEXT_TERM(below, square, q[k]);
    }
    NEXT_TERM(below, square, 1);
    EACH_PART
    {
        const __m512 cube = F(mul)(square.part[i], t.part[i]);
        const __m512 ratio = F(div)(F(add)(F(mul)(cube, above.part[i]), t.part[i]), below.part[i]);
        x.part[i] = F(mul)(F(mul)(FLOATS(0.5f), x.part[i]), F(add)(FLOATS(1), ratio));
    }
    return x;
}

/* The last elements pass through `rest`. */
TQ_TARGET_AVX512 void tq_approximate_gelus__avx512(const float *x, float *y, size_t n)
{
    float rest[STEP] = {0};
    for (size_t count; n; n -= count, x += count, y += count) {
        const int is_rest = n < STEP;
        count = is_rest ? n : STEP;
        const float *from = is_rest ? memcpy(rest, x, count * sizeof *x) : x;
        float *to = is_rest ? rest : y;
        floats v;
        EACH_PART v.part[i] = F(loadu)(from + 16 * i);
        v = gelu_by_ratio(v);
        EACH_PART F(storeu)(to + 16 * i, v.part[i]);
        if (is_rest)
            memcpy(y, rest, count * sizeof *y);
    }
}

#endif
