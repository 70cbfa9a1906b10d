/* SPDX-License-Identifier: Apache-2.0
 *
 * The transforms of real_fft.h in one arithmetic.  real_fft.c includes this file once for each, and defines before
 *   NAME(x), SCALAR
 *   ADD(a, b), SUB(a, b), NEG(a)        sums that wrap
 *   MUL(a, b)                           a product
 *   MUL_SUB(a, b, c, d), MUL_ADD(...)   a b - c d and a b + c d, rounded once
 *   SHARE(a, p)                         a / p in fixed point, a in float32
 *   HALF(a), HALF_ADD(a, b), HALF_SUB(a, b)
 *   COSINE(x)                           a value in [-1, 1]
 * The end of this file undefines them.
 */
typedef struct NAME(complex) {
    SCALAR re, im;
} NAME(complex);

static NAME(complex) NAME(sum)(NAME(complex) a, NAME(complex) b)
{
    return (NAME(complex)){ADD(a.re, b.re), ADD(a.im, b.im)};
}

static NAME(complex) NAME(difference)(NAME(complex) a, NAME(complex) b)
{
    return (NAME(complex)){SUB(a.re, b.re), SUB(a.im, b.im)};
}

static NAME(complex) NAME(product)(NAME(complex) a, NAME(complex) b)
{
    return (NAME(complex)){MUL_SUB(a.re, b.re, a.im, b.im), MUL_ADD(a.re, b.im, a.im, b.re)};
}

static NAME(complex) NAME(share)(NAME(complex) a, int32_t parts)
{
    (void)parts;
    return (NAME(complex)){SHARE(a.re, parts), SHARE(a.im, parts)};
}

/* a + b i and a - b i. */
static NAME(complex) NAME(plus_turned)(NAME(complex) a, NAME(complex) b)
{
    return (NAME(complex)){SUB(a.re, b.im), ADD(a.im, b.re)};
}

static NAME(complex) NAME(minus_turned)(NAME(complex) a, NAME(complex) b)
{
    return (NAME(complex)){ADD(a.re, b.im), SUB(a.im, b.re)};
}

static void NAME(by_2)(NAME(complex) * x, size_t m, NAME(complex) w)
{
    NAME(complex) a = NAME(share)(x[0], 2), b = NAME(product)(NAME(share)(x[m], 2), w);
    x[m] = NAME(difference)(a, b);
    x[0] = NAME(sum)(a, b);
}

static void NAME(by_3)(NAME(complex) * x, size_t m, NAME(complex) w1, NAME(complex) w2, SCALAR sine)
{
    NAME(complex) a = NAME(share)(x[0], 3);
    NAME(complex) b = NAME(product)(NAME(share)(x[m], 3), w1), c = NAME(product)(NAME(share)(x[2 * m], 3), w2);
    NAME(complex) both = NAME(sum)(b, c), apart = NAME(difference)(b, c);
    NAME(complex) rest = {SUB(a.re, HALF(both.re)), SUB(a.im, HALF(both.im))};
    apart = (NAME(complex)){MUL(apart.re, sine), MUL(apart.im, sine)};
    x[0] = NAME(sum)(a, both);
    x[2 * m] = NAME(minus_turned)(rest, apart);
    x[m] = NAME(plus_turned)(rest, apart);
}

static void NAME(by_4)(NAME(complex) * x, size_t m, const NAME(complex) * w, size_t step, bool inverse)
{
    NAME(complex) a = NAME(share)(x[0], 4), b = NAME(product)(NAME(share)(x[m], 4), w[step]);
    NAME(complex) c = NAME(product)(NAME(share)(x[2 * m], 4), w[2 * step]);
    NAME(complex) d = NAME(product)(NAME(share)(x[3 * m], 4), w[3 * step]);
    NAME(complex) even = NAME(sum)(a, c), odd = NAME(difference)(a, c);
    NAME(complex) both = NAME(sum)(b, d), apart = NAME(difference)(b, d);
    NAME(complex) plus = NAME(plus_turned)(odd, apart), minus = NAME(minus_turned)(odd, apart);
    x[2 * m] = NAME(difference)(even, both);
    x[0] = NAME(sum)(even, both);
    x[m] = inverse ? plus : minus;
    x[3 * m] = inverse ? minus : plus;
}

static void NAME(by_5)(NAME(complex) * x, size_t m, const NAME(complex) * w, size_t step, NAME(complex) y,
                       NAME(complex) z)
{
    NAME(complex) a = NAME(share)(x[0], 5), p[5];
    for (size_t q = 1; q < 5; q++)
        p[q] = NAME(product)(NAME(share)(x[q * m], 5), w[q * step]);
    NAME(complex) outer = NAME(sum)(p[1], p[4]), outer_apart = NAME(difference)(p[1], p[4]);
    NAME(complex) inner = NAME(sum)(p[2], p[3]), inner_apart = NAME(difference)(p[2], p[3]);
    NAME(complex)
    near = {ADD(ADD(a.re, MUL(outer.re, y.re)), MUL(inner.re, z.re)),
            ADD(ADD(a.im, MUL(outer.im, y.re)), MUL(inner.im, z.re))};
    NAME(complex)
    near_turn = {ADD(MUL(outer_apart.im, y.im), MUL(inner_apart.im, z.im)),
                 SUB(NEG(MUL(outer_apart.re, y.im)), MUL(inner_apart.re, z.im))};
    NAME(complex)
    far = {ADD(ADD(a.re, MUL(outer.re, z.re)), MUL(inner.re, y.re)),
           ADD(ADD(a.im, MUL(outer.im, z.re)), MUL(inner.im, y.re))};
    NAME(complex)
    far_turn = {ADD(NEG(MUL(outer_apart.im, z.im)), MUL(inner_apart.im, y.im)),
                SUB(MUL(outer_apart.re, z.im), MUL(inner_apart.re, y.im))};
    x[0] = NAME(sum)(a, NAME(sum)(outer, inner));
    x[m] = NAME(difference)(near, near_turn);
    x[4 * m] = NAME(sum)(near, near_turn);
    x[2 * m] = NAME(sum)(far, far_turn);
    x[3 * m] = NAME(difference)(far, far_turn);
}

/* Transforms every step-th value from `in`, from stage `stage` on; recursion depth: the number of stages. */
static void NAME(transform)(const tq_real_fft *fft, NAME(complex) * out, const NAME(complex) * in, size_t step,
                            int stage)
{
    const NAME(complex) *roots = fft->roots;
    size_t p = (size_t)fft->radix[stage], m = (size_t)fft->span[stage];
    for (size_t q = 0; q < p; q++)
        if (m == 1)
            out[q] = in[q * step];
        else
            NAME(transform)(fft, out + q * m, in + q * step, step * p, stage + 1);
    for (size_t k = 0; k < m && (k % 1024 || !tq_stop_after(1024)); k++)
        switch (p) {
        case 2: NAME(by_2)(out + k, m, roots[k * step]); break;
        case 3: NAME(by_3)(out + k, m, roots[k * step], roots[2 * k * step], roots[step * m].im); break;
        case 4: NAME(by_4)(out + k, m, roots, k * step, fft->inverse); break;
        default: NAME(by_5)(out + k, m, roots, k * step, roots[step * m], roots[2 * step * m]); break;
        }
}

static void NAME(forward)(const tq_real_fft *fft, const SCALAR *signal, NAME(complex) * out, NAME(complex) * scratch)
{
    const NAME(complex) *super_twiddles = fft->super_twiddles;
    size_t n = (size_t)fft->half;
    NAME(transform)(fft, scratch, (const NAME(complex) *)(const void *)signal, 1, 0);
    NAME(complex) first = NAME(share)(scratch[0], 2);
    out[0] = (NAME(complex)){ADD(first.re, first.im), 0};
    out[n] = (NAME(complex)){SUB(first.re, first.im), 0};
    for (size_t k = 1; k <= n / 2; k++) {
        NAME(complex) a = NAME(share)(scratch[k], 2);
        NAME(complex) b = NAME(share)((NAME(complex)){scratch[n - k].re, NEG(scratch[n - k].im)}, 2);
        NAME(complex) even = NAME(sum)(a, b), odd = NAME(product)(NAME(difference)(a, b), super_twiddles[k - 1]);
        out[k] = (NAME(complex)){HALF_ADD(even.re, odd.re), HALF_ADD(even.im, odd.im)};
        out[n - k] = (NAME(complex)){HALF_SUB(even.re, odd.re), HALF_SUB(odd.im, even.im)};
    }
}

static void NAME(backward)(const tq_real_fft *fft, const NAME(complex) * in, SCALAR *signal, NAME(complex) * scratch)
{
    const NAME(complex) *super_twiddles = fft->super_twiddles;
    size_t n = (size_t)fft->half;
    scratch[0] = NAME(share)((NAME(complex)){ADD(in[0].re, in[n].re), SUB(in[0].re, in[n].re)}, 2);
    for (size_t k = 1; k <= n / 2; k++) {
        NAME(complex) a = NAME(share)(in[k], 2);
        NAME(complex) b = NAME(share)((NAME(complex)){in[n - k].re, NEG(in[n - k].im)}, 2);
        NAME(complex) even = NAME(sum)(a, b), odd = NAME(product)(NAME(difference)(a, b), super_twiddles[k - 1]);
        scratch[k] = NAME(sum)(even, odd);
        scratch[n - k] = NAME(difference)(even, odd);
        scratch[n - k].im = NEG(scratch[n - k].im);
    }
    NAME(transform)(fft, (NAME(complex) *)(void *)signal, scratch, 1, 0);
}

static void NAME(fill)(tq_real_fft *fft)
{
    const double pi = 3.14159265358979323846;
    NAME(complex) *roots = fft->roots, *super_twiddles = fft->super_twiddles;
    for (int32_t k = 0; k < fft->half && !tq_stop_after(16); k++) {
        double phase = -2 * pi * k / fft->half;
        phase = fft->inverse ? -phase : phase;
        roots[k] = (NAME(complex)){COSINE(cos(phase)), COSINE(sin(phase))};
    }
    for (int32_t k = 0; k < fft->half / 2 && !tq_stop_after(16); k++) {
        double phase = -pi * ((double)(k + 1) / fft->half + 0.5);
        phase = fft->inverse ? -phase : phase;
        super_twiddles[k] = (NAME(complex)){COSINE(cos(phase)), COSINE(sin(phase))};
    }
}

void NAME(tq_real_fft)(const tq_real_fft *fft, const SCALAR *in, SCALAR *out, SCALAR *scratch)
{
    void *values = scratch, *spectrum = out;
    if (fft->inverse)
        NAME(backward)(fft, (const NAME(complex) *)(const void *)in, out, values);
    else
        NAME(forward)(fft, in, spectrum, values);
}

#undef NAME
#undef SCALAR
#undef ADD
#undef SUB
#undef NEG
#undef MUL
#undef MUL_SUB
#undef MUL_ADD
#undef SHARE
#undef HALF
#undef HALF_ADD
#undef HALF_SUB
#undef COSINE
