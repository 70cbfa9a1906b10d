/* SPDX-License-Identifier: Apache-2.0
 *
 * Hybrid operators: rows of activations are quantized, by several threads where a row is a whole image.  A rule reads a
 * row twice: for its range, and to quantize it.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "kernels/isa.h"
#include "ops/check.h"
#include "ops/elementwise/fixed_point_lanes.h"
#include "ops/parallel.h"
#include "ops/products/hybrid.h"

/* Elements of a SIMD block of TFLite's.  Elements after the last whole block are rounded differently. */
enum { BLOCK = 8 };

/* A row whose greatest magnitude is smaller is quantized as zeros: 1 / scale would overflow. */
#define SMALLEST_BOUND 1e-35f

typedef struct range {
    float low, high;
    bool finite; /* all values are finite */
} range;

/* The greatest bits as int32 and as uint32, from 0 on: those of the greatest value and of the least.  Bits of floats
   have the floats' order among values of 0 and more, and the opposite one among those below; compilers vectorize maxima
   of integers alone.  NaN and infinities have the greatest bits of their sign. */
TQ_BODY void bits_of(const float *values, size_t n, uint32_t *most, uint32_t *least)
{
    int32_t high = 0;
    uint32_t low = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, values + i, sizeof bits);
        high = (int32_t)bits > high ? (int32_t)bits : high;
        low = bits > low ? bits : low;
    }
    *most = (uint32_t)high, *least = low;
}

#define BITS_OF(isa, target)                                                                      \
    target static void bits_##isa(const float *values, size_t n, uint32_t *most, uint32_t *least) \
    {                                                                                             \
        bits_of(values, n, most, least);                                                          \
    }
TQ_EVERY_ISA(BITS_OF)

/* The range of the values and 0. */
TQ_BODY range range_from(uint32_t most, uint32_t least)
{
    const uint32_t sign = 0x80000000, infinite = 0x7F800000;
    range r;
    least = least > sign ? least : 0; /* no value is below 0 */
    memcpy(&r.high, &most, sizeof most);
    memcpy(&r.low, &least, sizeof least);
    r.finite = (most < infinite) & ((least & ~sign) < infinite);
    return r;
}

typedef struct row {
    const float *values;
    size_t n;
    int8_t *quantized;
    int threads;
    float inverse; /* of the scale */
    int32_t zero_point;
    int32_t low; /* the least quantized value */
} row;

static row row_of(const float *values, size_t n, int threads, int8_t *quantized)
{
    enum { COST = 60 };
    return (row){.values = values, .n = n, .quantized = quantized, .threads = tq_paying_threads(n, COST, threads)};
}

/* The bits of a row's parts, of `each` values. */
typedef struct parts_of_row {
    const row *of;
    size_t each;
    uint32_t most[TQ_MAX_THREADS], least[TQ_MAX_THREADS];
} parts_of_row;

static void find_bits(const float *values, size_t n, uint32_t *most, uint32_t *least)
{
    static void (*const bodies[TQ_ISAS])(const float *, size_t, uint32_t *, uint32_t *) = TQ_ISA_FUNCTIONS(bits);
    bodies[tq_isa()](values, n, most, least);
}

static void find_bits_of_parts(void *context, size_t begin, size_t end)
{
    parts_of_row *p = context;
    for (size_t i = begin; i < end; i++) {
        const size_t first = i * p->each;
        find_bits(p->of->values + first, tq_min_size(p->of->n - first, p->each), &p->most[i], &p->least[i]);
    }
}

/* find_bits by a part a thread. */
static void find_bits_by_threads(const row *x, uint32_t *most, uint32_t *least)
{
    parts_of_row p = {.of = x, .each = tq_part(x->n, x->threads)};
    tq_parallel_for((size_t)x->threads, 1, x->threads, find_bits_of_parts, &p);
    *most = *least = 0;
    for (int i = 0; i < x->threads; i++) {
        *most = p.most[i] > *most ? p.most[i] : *most;
        *least = p.least[i] > *least ? p.least[i] : *least;
    }
}

static range range_of(const row *x)
{
    uint32_t most, least;
    if (x->threads > 1)
        find_bits_by_threads(x, &most, &least);
    else
        find_bits(x->values, x->n, &most, &least);
    return range_from(most, least);
}

/* ---- parameters of a range ----

   Without branches, so that compilers find vectors; *inverse: of the scale, or 0 where all quantized values are 0. */

/* The products of a row with NaN or an infinity become NaN, as in floating point. */
TQ_BODY tq_hybrid_row parameters(bool finite, bool quantizes, float scale, int32_t zero_point)
{
    scale = quantizes ? scale : 1;
    scale = finite ? scale : NAN;
    return (tq_hybrid_row){scale, quantizes ? zero_point : 0};
}

TQ_BODY float bound_of(range r)
{
    return -r.low > r.high ? -r.low : r.high;
}

TQ_BODY tq_hybrid_row symmetric_of(range r, float *inverse)
{
    const float bound = bound_of(r);
    const bool quantizes = r.finite & (bound >= SMALLEST_BOUND);
    *inverse = quantizes ? 127 / bound : 0;
    return parameters(r.finite, quantizes, bound / 127, 0);
}

static tq_hybrid_row away_of(range r, float *inverse)
{
    const double bound = bound_of(r);
    const bool quantizes = r.finite && bound >= SMALLEST_BOUND;
    *inverse = quantizes ? (float)(127.0 / bound) : 0;
    return parameters(r.finite, quantizes, (float)(bound / 127.0), 0);
}

/* The zero point, from the end of the range with the smaller rounding error. */
TQ_BODY int32_t nudged_zero_point(double low, double high, double scale)
{
    double from_low = -128 - low / scale, from_high = 127 - high / scale;
    double error_low = 128 + fabs(low / scale), error_high = 127 + fabs(high / scale);
    double zero_point = error_low < error_high ? from_low : from_high;
    zero_point = zero_point > -128 ? zero_point : -128;
    zero_point = zero_point < 127 ? zero_point : 127;
    return (int32_t)tq_round_f64(zero_point);
}

TQ_BODY tq_hybrid_row asymmetric_of(range r, float *inverse)
{
    const bool quantizes = r.finite & ((-r.low >= SMALLEST_BOUND) | (r.high >= SMALLEST_BOUND));
    const double low = quantizes ? (double)r.low : 0, high = quantizes ? (double)r.high : 1;
    const float difference = (float)high - (float)low; /* in float32, as the reference on x86 */
    const double scale = (difference <= FLT_MAX ? (double)difference : high - low) / 255;
    *inverse = quantizes ? 1 / (float)scale : 0;
    return parameters(r.finite, quantizes, (float)scale, nudged_zero_point(low, high, scale));
}

/* The zero point in float32, rounded to nearest, ties to even. */
TQ_BODY int32_t even_zero_point(float low, float high)
{
    return tq_lane_round_even((-128 + low) + (127 + high) > 0 ? -128 - low : 127 - high, -128, 127);
}

TQ_BODY tq_hybrid_row even_of(range r, float *inverse)
{
    const float width = r.high - r.low, by = width > 0 ? 255 / width : 1;
    const bool finite = r.finite & (width <= FLT_MAX), quantizes = finite & (by <= FLT_MAX);
    *inverse = quantizes ? by : 0;
    return parameters(finite, quantizes, 1 / by, even_zero_point(r.low * by, r.high * by));
}

/* ---- quantized values ---- */

static inline int32_t clamp(int32_t x, int32_t low, int32_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Compilers find no vectors in an unrolled comparison. */
#define EACH(i, n) _Pragma("GCC unroll 1") for (size_t i = 0; i < (n); i++)

/* `inverse` comes from the values' range, so |value * inverse| is at most 255 and a rounding error.  Whole blocks: adds
   0.5 in float32 and drops the fraction, which rounds 0.49999997 to 1.  Remainder: nearest, ties away from zero. */
TQ_BODY void block_values(const float *values, size_t n, float inverse, int32_t zero_point, int32_t low,
                          int8_t *quantized)
{
    EACH (i, n) {
        const float x = values[i] * inverse;
        const int32_t rounded = (int32_t)(x + (x < 0 ? -0.5f : 0.5f));
        quantized[i] = (int8_t)clamp(rounded + zero_point, low, 127);
    }
}

TQ_BODY void remainder_values(const float *values, size_t n, float inverse, int32_t zero_point, int32_t low,
                              int8_t *quantized)
{
    for (size_t i = 0; i < n; i++)
        quantized[i] = (int8_t)clamp((int32_t)tq_round_f32(values[i] * inverse) + zero_point, low, 127);
}

/* All values in [-128, 127], ties to even. */
TQ_BODY void even_values(const float *values, size_t n, float inverse, int32_t zero_point, int32_t low,
                         int8_t *quantized)
{
    const float least = (float)(low - zero_point), most = (float)(127 - zero_point);
    EACH (i, n)
        quantized[i] = (int8_t)(tq_lane_round_even(values[i] * inverse, least, most) + zero_point);
}

#define VALUES(isa, target)                                                                                    \
    target static void quantize_blocks_##isa(const float *values, size_t n, float inverse, int32_t zero_point, \
                                             int32_t low, int8_t *quantized)                                   \
    {                                                                                                          \
        block_values(values, n, inverse, zero_point, low, quantized);                                          \
    }                                                                                                          \
    target static void quantize_even_##isa(const float *values, size_t n, float inverse, int32_t zero_point,   \
                                           int32_t low, int8_t *quantized)                                     \
    {                                                                                                          \
        even_values(values, n, inverse, zero_point, low, quantized);                                           \
    }
TQ_EVERY_ISA(VALUES)

typedef void (*values_fn)(const float *, size_t, float, int32_t, int32_t, int8_t *);

static void quantize_blocks(void *context, size_t begin, size_t end)
{
    static const values_fn bodies[TQ_ISAS] = TQ_ISA_FUNCTIONS(quantize_blocks);
    const row *x = context;
    const size_t whole = end - (end - begin) % BLOCK;
    bodies[tq_isa()](x->values + begin, whole - begin, x->inverse, x->zero_point, x->low, x->quantized + begin);
    remainder_values(x->values + whole, end - whole, x->inverse, x->zero_point, x->low, x->quantized + whole);
}

static void quantize_away(void *context, size_t begin, size_t end)
{
    const row *x = context;
    remainder_values(x->values + begin, end - begin, x->inverse, 0, x->low, x->quantized + begin);
}

static void quantize_even(void *context, size_t begin, size_t end)
{
    static const values_fn bodies[TQ_ISAS] = TQ_ISA_FUNCTIONS(quantize_even);
    const row *x = context;
    bodies[tq_isa()](x->values + begin, end - begin, x->inverse, x->zero_point, x->low, x->quantized + begin);
}

/* ---- one row ---- */

/* Quantizes parts of whole blocks. */
static tq_hybrid_row quantize(row *x, tq_range_fn body, tq_hybrid_row made, float inverse, int32_t low)
{
    x->inverse = inverse, x->zero_point = made.zero_point, x->low = low;
    if (inverse == 0)
        memset(x->quantized, 0, x->n);
    else if (x->threads > 1)
        tq_parallel_for(x->n, tq_part(x->n / BLOCK, x->threads) * BLOCK, x->threads, body, x);
    else
        body(x, 0, x->n);
    return made;
}

/* The rules: a name, its function of values, and the least quantized value. */
#define RULE(name, values_of, low)                                                                \
    tq_hybrid_row tq_hybrid_##name(const float *values, size_t n, int threads, int8_t *quantized) \
    {                                                                                             \
        row x = row_of(values, n, threads, quantized);                                            \
        float inverse;                                                                            \
        const tq_hybrid_row made = name##_of(range_of(&x), &inverse);                             \
        return quantize(&x, values_of, made, inverse, low);                                       \
    }
RULE(symmetric, quantize_blocks, -127)
RULE(asymmetric, quantize_blocks, -128)
RULE(away, quantize_away, -127)
RULE(even, quantize_even, -128)

/* ---- many rows, of which sixteen have their parameters side by side ---- */

enum { VECTOR = 16, LONG = 64 };

/* values_of: of fewer than LONG values by whole vectors, of which the last may overlap the one before. */
#define BY_VECTORS(values_of, count)                                                      \
    for (size_t i = 0; (count) >= VECTOR && (count) < LONG && i < (count); i += VECTOR) { \
        const size_t at = tq_min_size(i, (count) - VECTOR);                               \
        int8_t part[VECTOR]; /* overlaps no values, as far as compilers know */           \
        values_of(values + at, VECTOR, inverse, zero_point, low, part);                   \
        memcpy(quantized + at, part, VECTOR);                                             \
    }                                                                                     \
    if ((count) < VECTOR || (count) >= LONG)                                              \
        values_of(values, count, inverse, zero_point, low, quantized);

TQ_BODY void block_row(const float *values, size_t n, float inverse, int32_t zero_point, int32_t low, int8_t *quantized)
{
    const size_t whole = n - n % BLOCK;
    BY_VECTORS(block_values, whole)
    remainder_values(values + whole, n - whole, inverse, zero_point, low, quantized + whole);
}

TQ_BODY void even_row(const float *values, size_t n, float inverse, int32_t zero_point, int32_t low,
                      int8_t *quantized){BY_VECTORS(even_values, n)}

/* name_some: VECTOR rows and less. */
#define SOME_ROWS(name, row_of_values, low)                                                                       \
    TQ_BODY void name##_some(const float *values, size_t count, size_t n, int8_t *quantized, tq_hybrid_row *rows) \
    {                                                                                                             \
        uint32_t most[VECTOR] = {0}, least[VECTOR] = {0};                                                         \
        float inverse[VECTOR], scale[VECTOR];                                                                     \
        int32_t zero_point[VECTOR];                                                                               \
        for (size_t r = 0; r < count; r++)                                                                        \
            bits_of(values + r * n, n, &most[r], &least[r]);                                                      \
        EACH (r, VECTOR) {                                                                                        \
            const tq_hybrid_row made = name##_of(range_from(most[r], least[r]), &inverse[r]);                     \
            scale[r] = made.scale, zero_point[r] = made.zero_point;                                               \
        }                                                                                                         \
        for (size_t r = 0; r < count; r++) {                                                                      \
            rows[r] = (tq_hybrid_row){scale[r], zero_point[r]};                                                   \
            if (inverse[r] == 0)                                                                                  \
                memset(quantized + r * n, 0, n);                                                                  \
            else                                                                                                  \
                row_of_values(values + r * n, n, inverse[r], zero_point[r], low, quantized + r * n);              \
        }                                                                                                         \
    }
SOME_ROWS(symmetric, block_row, -127) SOME_ROWS(asymmetric, block_row, -128) SOME_ROWS(even, even_row, -128)

#define ROWS(target, name, some)                                                                                 \
    target static void name(const float *values, size_t count, size_t n, int8_t *quantized, tq_hybrid_row *rows) \
    {                                                                                                            \
        for (size_t r = 0; r < count && !tq_stop_after(VECTOR * n); r += VECTOR)                                 \
            some(values + r * n, tq_min_size(VECTOR, count - r), n, quantized + r * n, rows + r);                \
    }
#define ALL_ROWS(isa, target)                            \
    ROWS(target, symmetric_rows_##isa, symmetric_some)   \
    ROWS(target, asymmetric_rows_##isa, asymmetric_some) \
    ROWS(target, even_rows_##isa, even_some)
    TQ_EVERY_ISA(ALL_ROWS)

        typedef void (*rows_fn)(const float *, size_t, size_t, int8_t *, tq_hybrid_row *);

/* The function of many rows; NULL: there is none. */
static rows_fn rows_of(tq_hybrid_rule rule)
{
    static const struct {
        tq_hybrid_rule rule;
        rows_fn run[TQ_ISAS];
    } all[] = {{tq_hybrid_symmetric, TQ_ISA_FUNCTIONS(symmetric_rows)},
               {tq_hybrid_asymmetric, TQ_ISA_FUNCTIONS(asymmetric_rows)},
               {tq_hybrid_even, TQ_ISA_FUNCTIONS(even_rows)}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].rule == rule)
            return all[i].run[tq_isa()];
    return NULL;
}

typedef struct many_rows {
    tq_hybrid_rule rule;
    const float *values;
    size_t n;
    int8_t *quantized;
    tq_hybrid_row *rows;
} many_rows;

static void quantize_rows(void *context, size_t begin, size_t end)
{
    enum { MOST = 4096, MANY = 4 };
    const many_rows *x = context;
    const rows_fn run = x->n <= MOST && end - begin >= MANY ? rows_of(x->rule) : NULL;
    if (run) {
        run(x->values + begin * x->n, end - begin, x->n, x->quantized + begin * x->n, x->rows + begin);
        return;
    }
    for (size_t r = begin; r < end && !tq_stop_after(x->n); r++)
        x->rows[r] = x->rule(x->values + r * x->n, x->n, 1, x->quantized + r * x->n);
}

void tq_hybrid_quantize(tq_hybrid_rule rule, const float *values, size_t count, size_t n, int threads,
                        int8_t *quantized, tq_hybrid_row *rows)
{
    many_rows x = {rule, values, n, quantized, rows};
    tq_parallel_for(count, tq_grain(n), threads, quantize_rows, &x);
}

tq_hybrid_rule tq_hybrid_rule_of(const tq_node *node, bool asymmetric)
{
    if (node->numerics == TQ_NUMERICS_XNNPACK)
        return tq_hybrid_even;
    return asymmetric ? tq_hybrid_asymmetric : tq_hybrid_symmetric;
}
