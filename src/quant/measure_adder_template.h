/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the adder NAME of measure.c in float64, and wide_NAME in long double.  The includer defines, and this file
 * undefines at its end:
 *
 *   NAME                    begins with add_
 *   TERMS(x, y, A, B, C)    adds the terms of x and y to the sums A, B and C
 */
#include "base/names.h"

static void NAME(const double *x, const double *y, size_t n, bool apart, void *memory)
{
    sums *s = memory;
    double a[LANES] = {0}, b[LANES] = {0}, c[LANES] = {0};
    size_t i = 0;
    for (; apart && i < n; i++)
        TERMS(x[i], y[i], s[i].a, s[i].b, s[i].c);
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            TERMS(x[i + k], y[i + k], a[k], b[k], c[k]);
    for (int k = 0; i < n; i++, k++)
        TERMS(x[i], y[i], a[k], b[k], c[k]);
    if (apart)
        return;
    s->a += sum_of_lanes(a);
    s->b += sum_of_lanes(b);
    s->c += sum_of_lanes(c);
}

static void TQ_GLUE(wide_, NAME)(const double *x, const double *y, size_t n, bool apart, void *memory)
{
    for (size_t i = 0; i < n; i++) {
        wide_sums *s = (wide_sums *)memory + (apart ? i : 0);
        const long double u = x[i], v = y[i];
        TERMS(u, v, s->a, s->b, s->c);
    }
}

#undef NAME
#undef TERMS
