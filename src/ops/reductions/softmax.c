/* SPDX-License-Identifier: Apache-2.0
 *
 * SOFTMAX and LOG_SOFTMAX along the last dimension.
 *
 *     float          e^((x - max) beta) / sum, and x - max - ln(sum), summed in order in float32
 *       XNNPACK      SOFTMAX with a beta of 1: in the order and with the exponential of xnnpack_functions.h, times
 *                    f32(1 / sum)
 *     8 bits         d = q - max has 256 values, whose exponentials prepare computes in fixed point (Q0); their sum is
 *                    in Q12, its reciprocal or logarithm in fixed point too
 *       optimized    T[-d] = e^f32(-f32(s_i beta) -d), and their sum in order in float32
 *                    SOFTMAX: f32(T f32(1 / f32(sum s_o))), ties away, + z_o; to UINT8: + 1/2, truncated
 *                    LOG_SOFTMAX: even(f32(f32(k q) - f32(f32(f32(s_i max) + ln(sum)) / s_o))) + z_o,
 *                    k = f32(s_i / s_o)
 *     INT16          e^x and 1 / (1 + x) by tables of points, the sum in Q15
 *
 * The runtime's sums overflow from 512 (8 bits: it aborts), 4096 or 2^16 equal values on.  Here they have 64 bits.
 * Source: LiteRT f6745779, tflite/kernels/activations.cc, internal/reference/softmax.h, log_softmax.h,
 * integer_ops/log_softmax.h, internal/optimized/optimized_ops.h.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "kernels/arrays/lookup.h"
#include "kernels/float_arrays.h"
#include "kernels/float_math.h"
#include "kernels/half.h"
#include "ops/elementwise/fixed_point_lanes.h"
#include "ops/elementwise/lookup_table.h"
#include "ops/elementwise/xnnpack_functions.h"
#include "ops/parallel.h"
#include "ops/quantized.h"
#include "ops/reductions/byte_runs.h"
#include "ops/reductions/float_runs.h"
#include "quant/fixed_math.h"

#define COST 400 /* picoseconds an element */
#define CHUNK 256         /* elements between which Ctrl-C is heard */
#define TOGETHER 1024     /* elements of short rows that are computed at once */

typedef struct state state;
/* One row of n elements. */
typedef void (*row_fn)(const state *s, const void *in, void *out, size_t n);
/* Rows of n elements, one behind the other. */
typedef void (*rows_fn)(const state *s, const void *in, void *out, size_t n, size_t rows);

/* e^x and 1 / (1 + x) for INT16, prepacked. */
typedef struct points {
    int16_t exponential[TQ_LOOKUP_STEPS + 1], inverse[TQ_LOOKUP_STEPS + 1];
} points;

struct state {
    row_fn row;
    rows_fn rows;  /* several at once; NULL: one by one */
    bool together; /* rows takes rows of fewer than 256 elements, at most TOGETHER of these at once */
    float beta;
    /* 8 bits, indexed by -d */
    bool counts[256];            /* d >= diff_min: the exponential is not taken as 0 */
    int32_t exponential[256];    /* Q0 */
    int32_t rounded[256];        /* the same in Q12; 0 where counts is false */
    int32_t scaled[256];         /* d in Q5 */
    int32_t diff_min;
    tq_fixed back;               /* LOG_SOFTMAX: Q5 to d */
    int32_t in_bias;             /* added to a quantized input, gives 0 to 255 in order */
    int32_t out_low, out_high, out_bits;
    float table[256];            /* optimized: the exponentials */
    float in_scale, out_scale;
    int32_t out_zero;
    bool truncates;              /* UINT8: rounds by truncation, without a zero point */
    /* INT16 */
    tq_fixed rescale;
    const points *points;
};

/* ---- rows of floats ---- */

/* y[i] = (x[i] - max) beta */
TQ_BODY void subtract(const float *x, float max, float beta, float *y, size_t n)
{
    TQ_EACH (i, n)
        y[i] = (x[i] - max) * beta;
}

static void exponentiate(float *y, size_t n)
{
    for (size_t i = 0; i < n && !tq_stop_after(CHUNK); i += CHUNK)
        tq_exponentials(y + i, y + i, tq_min_size(n - i, CHUNK));
}

TQ_BODY void divide(float *y, float sum, size_t n)
{
    TQ_EACH (i, n)
        y[i] /= sum;
}

/* Rows, one behind the other, at most TQ_SUM_RUNS.  The exponentials are vectorized; their sums stay in order. */
TQ_BODY void softmax_floats(const state *s, const float *x, float *y, size_t n, size_t rows)
{
    float sums[TQ_SUM_RUNS] = {0};
    for (size_t at = 0; at < rows * n; at += n)
        subtract(x + at, tq_greatest_float(-FLT_MAX, x + at, n), s->beta, y + at, n);
    exponentiate(y, rows * n);
    for (size_t i = 0; rows == 1 && i < n && !tq_stop_after(TQ_CHUNK); i += TQ_CHUNK)
        tq_sum_runs(sums, y + i, tq_min_size(n - i, TQ_CHUNK), 1);
    if (rows > 1)
        tq_sum_runs(sums, y, n, rows);
    for (size_t i = 0; i < rows; i++)
        divide(y + i * n, sums[i], n);
}

/* Exponentials of short rows are computed as those of one row, without the ends of each. */
TQ_BODY void softmax_by_xnnpack(const state *s, const float *x, float *y, size_t n, size_t rows)
{
    const bool is_long = n > CHUNK;
    (void)s;
    for (size_t at = 0; at < rows * n; at += n) {
        const float max = tq_greatest_float(-FLT_MAX, x + at, n);
        if (is_long)
            tq_xnnpack_exp_row(x + at, max, y + at, n);
        else
            subtract(x + at, max, 1, y + at, n);
    }
    if (!is_long)
        tq_xnnpack_exp_row(y, 0, y, rows * n);
    for (size_t at = 0; at < rows * n; at += n) {
        const float inverse = 1 / tq_xnnpack_sum_row(y + at, n);
        for (size_t i = at; i < at + n; i++)
            y[i] *= inverse;
    }
}

TQ_BODY void log_softmax_floats(const state *s, const float *x, float *y, size_t n)
{
    (void)s;
    const float max = tq_greatest_float(-FLT_MAX, x, n);
    float sum = 0, exponentials[CHUNK];
    for (size_t i = 0; i < n && !tq_stop_after(CHUNK); i += CHUNK) {
        size_t count = n - i < CHUNK ? n - i : CHUNK;
        for (size_t k = 0; k < count; k++)
            exponentials[k] = x[i + k] - max;
        tq_exponentials(exponentials, exponentials, count);
        for (size_t k = 0; k < count; k++)
            sum += exponentials[k];
    }
    const float log_sum = logf(sum);
    TQ_EACH (i, n)
        y[i] = x[i] - max - log_sum;
}

/* The same of rows of fewer than 256 elements, at most TOGETHER of them. */
TQ_BODY void log_softmax_short(const state *s, const float *x, float *y, size_t n, size_t rows)
{
    float exponentials[TOGETHER], sums[TOGETHER];
    (void)s;
    for (size_t r = 0; r < rows; r++) {
        sums[r] = 0;
        subtract(x + r * n, tq_greatest_float(-FLT_MAX, x + r * n, n), 1, y + r * n, n);
    }
    tq_exponentials(y, exponentials, rows * n);
    tq_sum_runs(sums, exponentials, n, rows);
    for (size_t r = 0; r < rows; r++) {
        const float log_sum = logf(sums[r]);
        for (size_t i = r * n; i < (r + 1) * n; i++)
            y[i] -= log_sum;
    }
}

#define FLOAT_ROW(target, name, body)                                            \
    target static void name(const state *s, const void *in, void *out, size_t n) \
    {                                                                            \
        body(s, in, out, n);                                                     \
    }
#define FLOATS(target, name, body)                                                            \
    target static void name(const state *s, const void *in, void *out, size_t n, size_t rows) \
    {                                                                                         \
        body(s, in, out, n, rows);                                                            \
    }
#define FLOAT_ROWS(isa, target)                         \
    FLOATS(target, softmax_float_##isa, softmax_floats) \
    FLOATS(target, softmax_xnnpack_##isa, softmax_by_xnnpack)
#define FLOAT_LOGARITHMS(isa, target)                          \
    FLOATS(target, short_log_softmax_##isa, log_softmax_short) \
    FLOAT_ROW(target, log_softmax_float_##isa, log_softmax_floats)
TQ_EVERY_ISA(FLOAT_ROWS)
TQ_EVERY_ISA_TO_AVX2(FLOAT_LOGARITHMS)
static const rows_fn softmax_float[TQ_ISAS] = TQ_ISA_FUNCTIONS(softmax_float);
static const rows_fn softmax_xnnpack[TQ_ISAS] = TQ_ISA_FUNCTIONS(softmax_xnnpack);
static const rows_fn short_log_softmax[TQ_ISAS] = TQ_ISA_FUNCTIONS_TO_AVX2(short_log_softmax);
static const row_fn log_softmax_float[TQ_ISAS] = TQ_ISA_FUNCTIONS_TO_AVX2(log_softmax_float);

/* The sum is of the exponentials before they are rounded to float16. */
static void softmax_half(const state *s, const void *in, void *out, size_t n)
{
    const uint16_t *x = in;
    uint16_t *y = out;
    float max = -65504.0f, sum = 0;
    TQ_EACH (i, n)
        max = max < tq_half_to_float_scalar(x[i]) ? tq_half_to_float_scalar(x[i]) : max;
    TQ_EACH (i, n) {
        float exponential = expf((tq_half_to_float_scalar(x[i]) - max) * s->beta);
        y[i] = tq_float_to_half(exponential);
        sum += exponential;
    }
    TQ_EACH (i, n)
        y[i] = tq_float_to_half(tq_half_to_float_scalar(y[i]) / sum);
}

/* ---- rows of 8 bits ---- */

/* An INT8 or UINT8 value's bits as 0 to 255, in the values' order. */
static inline uint8_t ordered(uint8_t bits, const state *s)
{
    return (uint8_t)(bits + s->in_bias);
}

/* The greatest value, as 0 to 255. */
TQ_BODY uint8_t max_of(const state *s, const uint8_t *in, size_t n)
{
    return (uint8_t)(tq_greatest_byte(in, s->in_bias ? 0 : 128, n) + 128);
}

/* The sum of the exponentials, in Q12. */
static uint64_t sum_of(const state *s, const uint8_t *in, size_t n, uint8_t max)
{
    uint64_t sum = 0;
    TQ_EACH (i, n)
        sum += (uint64_t)s->rounded[(uint8_t)(max - ordered(in[i], s))];
    return sum;
}

/* Computed once for each row, from its sum. */
typedef struct row_sum {
    int32_t inverse, right, out_low, out_high; /* SOFTMAX */
    int32_t log_q5, least;  /* LOG_SOFTMAX: differences up to `least` give the least quantized value */
    float share;            /* optimized SOFTMAX: f32(1 / f32(sum s_o)) */
} row_sum;

/* The greatest value's exponential is 1, so that over >= 0 and right >= 15. */
static row_sum softmax_sum(const state *s, uint64_t sum)
{
    row_sum r = {.out_low = s->out_low, .out_high = s->out_high};
    int over;
    r.inverse = tq_reciprocal(sum, 12, &over);
    r.right = over + 31 - s->out_bits < 62 ? over + 31 - s->out_bits : 62;
    return r;
}

/* tq_rounding_divide_by_pot(tq_q_mul(inverse, exponential), right), of factors from 0 to 2^31 - 1, which saturate
   nowhere, and of a right from 1 on; the exponential is 0 where `counts` is false.  The product is less than 2^31, so
   that 32 bits to the right leave 0. */
TQ_BODY int32_t softmax_share(int32_t inverse, int32_t right, int32_t low, int32_t high, int32_t exponential)
{
    const uint32_t product = (uint32_t)(((int64_t)inverse * exponential + ((int64_t)1 << 30)) >> 31);
    const uint32_t half = (uint32_t)1 << ((right - 1) & 31), share = (product + half) >> (right & 31);
    const int32_t y = low + (int32_t)(right < 32 ? share : 0);
    return y < high ? y : high;
}

static inline int32_t softmax_value(const state *s, const row_sum *r, int below)
{
    return softmax_share(r->inverse, r->right, r->out_low, r->out_high, s->exponential[below]);
}

static row_sum log_softmax_sum(const state *s, uint64_t sum)
{
    const int32_t ln2 = 46516320; /* in Q5 */
    row_sum r = {0};
    int64_t log_sum = 0;
    for (; sum > INT32_MAX; sum /= 2)
        log_sum += ln2;
    r.log_q5 = tq_saturate_i32(log_sum + tq_q_log((int32_t)sum));
    r.least = tq_multiply_fixed(tq_saturate_i32((int64_t)r.log_q5 + INT32_MIN), s->back);
    r.least = r.least < s->diff_min - 1 ? s->diff_min - 1 : r.least;
    return r;
}

static inline int32_t log_softmax_value(const state *s, const row_sum *r, int below)
{
    int32_t y = tq_rounding_divide_by_pot(tq_saturate_i32((int64_t)s->scaled[below] - r->log_q5), 31 - 5 - 4);
    return -below > r->least ? tq_clamp_i64((int64_t)y + s->out_high, s->out_low, s->out_high) : s->out_low;
}

static inline void put(void *out, bool wide, size_t i, int32_t y)
{
    if (wide)
        ((int16_t *)out)[i] = (int16_t)y;
    else
        ((uint8_t *)out)[i] = (uint8_t)y;
}

/* Writes a row, whose greatest input is max, from the outputs at 0 to 255 below it.  wide: to INT16. */
static void write_row(const state *s, const uint8_t *in, uint8_t max, size_t n, const int32_t *values, bool wide,
                      void *out)
{
    const uint8_t top = (uint8_t)(max - s->in_bias);
    uint8_t table[256];
    for (int below = 0; below < 256; below++)
        table[(uint8_t)(top - below)] = (uint8_t)values[below];
    if (!wide)
        tq_lookup_bytes(table, in, out, n);
    else
        TQ_EACH (i, n)
            put(out, true, i, values[(uint8_t)(top - in[i])]);
}

/* ---- rows of fewer than 256 elements ---- */

typedef uint32_t __attribute__((may_alias)) word; /* an int32 or a float */

/* BODY(..., n) for rows of n elements: for few of them, the classes of a segmentation, without loops along a row. */
enum { FEW = 8 };
#define BY_LENGTH(n, BODY, ...)               \
    do {                                      \
        switch (n) {                          \
        case 3: BODY(__VA_ARGS__, 3); break;  \
        case 4: BODY(__VA_ARGS__, 4); break;  \
        case 5: BODY(__VA_ARGS__, 5); break;  \
        case 6: BODY(__VA_ARGS__, 6); break;  \
        case 8: BODY(__VA_ARGS__, 8); break;  \
        default: BODY(__VA_ARGS__, n); break; \
        }                                     \
    } while (0)

/* rows: at least 1. */
TQ_BODY void look_up_rows(const state *s, const uint8_t *in, size_t rows, const word *table, word *entries,
                          uint8_t *max, size_t n)
{
    size_t r = 0;
    do {
        max[r] = max_of(s, in, n);
        const uint8_t top = (uint8_t)(max[r] - s->in_bias);
        for (size_t i = 0; i < n; i++)
            entries[i] = table[(uint8_t)(top - in[i])];
        in += n, entries += n;
    } while (++r < rows);
}

static void look_up_few(const state *s, const uint8_t *in, size_t n, size_t rows, const word *table, word *entries,
                        uint8_t *max)
{
    BY_LENGTH(n, look_up_rows, s, in, rows, table, entries, max);
}

/* max: the greatest element of each row, as 0 to 255; entries: the table's, by the elements' distances from it. */
TQ_BODY void look_up(const state *s, const uint8_t *in, size_t n, size_t rows, const void *table, void *entries,
                     uint8_t *max)
{
    (n <= FEW ? look_up_few(s, in, n, rows, table, entries, max) : look_up_rows(s, in, rows, table, entries, max, n));
}

TQ_BODY void sum_rows(const int32_t *exponentials, size_t rows, uint32_t *sums, size_t n)
{
    for (size_t r = 0; r < rows; r++, exponentials += n) {
        uint32_t sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += ((uint32_t)exponentials[i] + (1 << 11)) >> 12;
        sums[r] = sum;
    }
}

static void sum_few(const int32_t *exponentials, size_t n, size_t rows, uint32_t *sums)
{
    BY_LENGTH(n, sum_rows, exponentials, rows, sums);
}

TQ_BODY void spread_rows(const word *from, size_t rows, word *to, size_t n)
{
    for (size_t r = 0; r < rows; r++, to += n)
        for (size_t i = 0; i < n; i++)
            to[i] = from[r];
}

static void spread_few(const word *from, size_t n, size_t rows, word *to)
{
    BY_LENGTH(n, spread_rows, from, rows, to);
}

/* A row's value to each of its elements. */
TQ_BODY void spread(const void *from, size_t n, size_t rows, void *to)
{
    (n <= FEW ? spread_few(from, n, rows, to) : spread_rows(from, rows, to, n));
}

/* The sum of a row's exponentials rounded to Q12 is less than 2^27.  rows: at least 1. */
TQ_BODY void softmax_short(const state *s, const uint8_t *in, size_t n, size_t rows, bool wide, void *out)
{
    uint8_t max[TOGETHER];
    uint32_t sums[TOGETHER];
    int32_t exponentials[TOGETHER], inverses[TOGETHER], rights[TOGETHER], of_rows[TOGETHER];
    const int32_t low = s->out_low, high = s->out_high;
    look_up(s, in, n, rows, s->exponential, exponentials, max);
    (n <= FEW ? sum_few(exponentials, n, rows, sums) : sum_rows(exponentials, rows, sums, n));
    size_t row = 0;
    do {
        int over;
        inverses[row] = tq_mantissa(sums[row], 12, &over);
        of_rows[row] = over + 31 - s->out_bits;
    } while (++row < rows);
    spread(of_rows, n, rows, rights);
    for (size_t r = 0; r < rows; r++)
        of_rows[r] = tq_q_inverse_of_one_plus(inverses[r]);
    spread(of_rows, n, rows, inverses);
    for (size_t i = 0; i < rows * n; i++)
        put(out, wide, i, softmax_share(inverses[i], rights[i], low, high, exponentials[i]));
}

/* A longer row: each of the 256 outputs is computed once. */
TQ_BODY void softmax_long(const state *s, const uint8_t *in, size_t n, bool wide, void *out)
{
    int32_t values[256];
    const uint8_t max = max_of(s, in, n);
    const row_sum r = softmax_sum(s, sum_of(s, in, n, max));
    for (int below = 0; below < 256; below++)
        values[below] = softmax_value(s, &r, below);
    write_row(s, in, max, n, values, wide, out);
}

TQ_BODY void log_softmax_bytes(const state *s, const uint8_t *in, uint8_t *out, size_t n)
{
    int32_t values[256];
    const uint8_t max = max_of(s, in, n);
    const row_sum r = log_softmax_sum(s, sum_of(s, in, n, max));
    if (n < 256)
        for (size_t i = 0; i < n; i++)
            out[i] = (uint8_t)log_softmax_value(s, &r, (uint8_t)(max - ordered(in[i], s)));
    if (n < 256)
        return;
    for (int below = 0; below < 256; below++)
        values[below] = log_softmax_value(s, &r, below);
    write_row(s, in, max, n, values, false, out);
}

/* ---- rows of 8 bits by the optimized kernels' formulas ---- */

/* The sum of the exponentials, in the elements' order. */
static float sum_of_table(const state *s, const uint8_t *in, size_t n, uint8_t max)
{
    float sum = 0;
    TQ_EACH (i, n)
        sum += s->table[(uint8_t)(max - ordered(in[i], s))];
    return sum;
}

/* The parameters of a share's quantized value. */
typedef struct share_rule {
    int32_t zero, low, high;
    int32_t truncates; /* all bits or none: compilers find no vectors in a choice by a bool */
} share_rule;

enum { SATURATES = 1 << 20 }; /* a share that saturates every type */

/* A zero point beyond the bounds cannot bring a share back between them. */
static inline share_rule share_rule_of(const state *s)
{
    const int32_t zero = tq_clamp_i64(s->out_zero, -2 * SATURATES, 2 * SATURATES);
    return (share_rule){zero, s->out_low, s->out_high, -(int32_t)s->truncates};
}

/* NaN saturates.  A sum with the float below 1/2 is truncated to the nearest integer, of ties the greater. */
TQ_BODY int32_t quantized_share(share_rule r, float share)
{
    const float enough = SATURATES, capped = share < enough ? share : enough;
    const float bounded = capped > -enough ? capped : -enough, half = bounded > 0 ? 0x1.fffffep-2f : 0;
    const int32_t rounded = (int32_t)(bounded + half) + r.zero, truncated = (int32_t)(bounded + 0.5f);
    const int32_t y = rounded ^ ((rounded ^ truncated) & r.truncates), raised = y < r.low ? r.low : y;
    return raised < r.high ? raised : r.high;
}

static inline int32_t share_value(const state *s, const row_sum *r, int below)
{
    return quantized_share(share_rule_of(s), s->table[below] * r->share);
}

/* The quantized value for 0 to 255: the inverse of `ordered`. */
static int32_t quantized_of(const state *s, int32_t rank)
{
    return s->in_bias ? rank - 128 : rank;
}

/* rows: at least 1. */
TQ_BODY void shares_short(const state *s, const uint8_t *in, size_t n, size_t rows, uint8_t *out)
{
    const share_rule rule = share_rule_of(s);
    uint8_t max[TOGETHER];
    float exponentials[TOGETHER], shares[TOGETHER], sums[TOGETHER];
    memset(sums, 0, rows * sizeof *sums);
    look_up(s, in, n, rows, s->table, exponentials, max);
    tq_sum_runs(sums, exponentials, n, rows);
    for (size_t r = 0; r < rows; r++)
        sums[r] = 1.0f / (sums[r] * s->out_scale);
    spread(sums, n, rows, shares);
    for (size_t i = 0; i < rows * n; i++)
        put(out, false, i, quantized_share(rule, exponentials[i] * shares[i]));
}

TQ_BODY void shares_long(const state *s, const uint8_t *in, size_t n, bool wide, void *out)
{
    int32_t values[256];
    const uint8_t max = max_of(s, in, n);
    const row_sum r = {.share = 1.0f / (sum_of_table(s, in, n, max) * s->out_scale)};
    for (int below = 0; below < 256; below++)
        values[below] = share_value(s, &r, below);
    write_row(s, in, max, n, values, wide, out);
}

static float log_offset(const state *s, uint8_t max, float sum)
{
    return (s->in_scale * (float)quantized_of(s, max) + logf(sum)) / s->out_scale;
}

/* The logarithms of n elements, one behind the other in memory as their offsets are; stride 0: of one offset.  NaN, of
   absurd scales, gives the zero point. */
TQ_BODY void write_logs(const state *s, const uint8_t *in, uint8_t *out, size_t n, const float *offsets, size_t stride)
{
    const float scale = s->in_scale / s->out_scale;
    const int32_t zero = s->out_zero, bias = s->in_bias;
    const float low = (float)(s->out_low - zero), high = (float)(s->out_high - zero);
    TQ_EACH (i, n) {
        const int32_t q = (uint8_t)(in[i] + bias) - bias;
        const float log = scale * (float)q - offsets[i * stride];
        out[i] = (uint8_t)(tq_lane_round_even(log != log ? 0 : log, low, high) + zero);
    }
}

TQ_BODY void logs_long(const state *s, const uint8_t *in, uint8_t *out, size_t n)
{
    const uint8_t max = max_of(s, in, n);
    const float offset = log_offset(s, max, sum_of_table(s, in, n, max));
    write_logs(s, in, out, n, &offset, 0);
}

/* rows: at least 1. */
TQ_BODY void logs_short(const state *s, const uint8_t *in, uint8_t *out, size_t n, size_t rows)
{
    uint8_t max[TOGETHER];
    float exponentials[TOGETHER], sums[TOGETHER];
    memset(sums, 0, rows * sizeof *sums);
    look_up(s, in, n, rows, s->table, exponentials, max);
    tq_sum_runs(sums, exponentials, n, rows);
    for (size_t r = 0; r < rows; r++)
        sums[r] = log_offset(s, max[r], sums[r]);
    spread(sums, n, rows, exponentials);
    write_logs(s, in, out, rows * n, exponentials, 1);
}

#define ROW(target, name, call)                                                  \
    target static void name(const state *s, const void *in, void *out, size_t n) \
    {                                                                            \
        call;                                                                    \
    }
#define ROWS(target, name, call)                                                              \
    target static void name(const state *s, const void *in, void *out, size_t n, size_t rows) \
    {                                                                                         \
        call;                                                                                 \
    }
#define BYTES(isa, target)                                                \
    ROW(target, softmax_long_8_##isa, softmax_long(s, in, n, false, out)) \
    ROWS(target, softmax_short_8_##isa, softmax_short(s, in, n, rows, false, out))
TQ_EVERY_ISA(BYTES)
/* Outputs of 16 bits, the optimized rule and logarithms are rare. */
#define RARE(isa, target)                                                          \
    ROW(target, softmax_long_16_##isa, softmax_long(s, in, n, true, out))          \
    ROWS(target, softmax_short_16_##isa, softmax_short(s, in, n, rows, true, out)) \
    ROW(target, shares_long_8_##isa, shares_long(s, in, n, false, out))            \
    ROW(target, shares_long_16_##isa, shares_long(s, in, n, true, out))            \
    ROWS(target, shares_short_8_##isa, shares_short(s, in, n, rows, out))          \
    ROW(target, log_softmax_8_##isa, log_softmax_bytes(s, in, out, n))             \
    ROW(target, logs_8_##isa, logs_long(s, in, out, n))                            \
    ROWS(target, short_logs_8_##isa, logs_short(s, in, out, n, rows))
TQ_EVERY_ISA_TO_AVX2(RARE)

/* By rule, the reference's or the optimized, and by output, of 8 bits or 16. */
static const row_fn long_rows[2][2][TQ_ISAS] = {
    {TQ_ISA_FUNCTIONS(softmax_long_8), TQ_ISA_FUNCTIONS_TO_AVX2(softmax_long_16)},
    {TQ_ISA_FUNCTIONS_TO_AVX2(shares_long_8), TQ_ISA_FUNCTIONS_TO_AVX2(shares_long_16)},
};
/* The optimized rule has none for 16 bits: no model is known to ask for them. */
static const rows_fn short_rows[2][2][TQ_ISAS] = {
    {TQ_ISA_FUNCTIONS(softmax_short_8), TQ_ISA_FUNCTIONS_TO_AVX2(softmax_short_16)},
    {TQ_ISA_FUNCTIONS_TO_AVX2(shares_short_8)},
};
static const rows_fn short_logs_8[TQ_ISAS] = TQ_ISA_FUNCTIONS_TO_AVX2(short_logs_8);
static const row_fn log_rows[2][TQ_ISAS] = {TQ_ISA_FUNCTIONS_TO_AVX2(log_softmax_8), TQ_ISA_FUNCTIONS_TO_AVX2(logs_8)};

/* ---- rows of INT16 ---- */

static inline int16_t exponential_16(const state *s, int32_t difference)
{
    int32_t at = tq_multiply_fixed(difference, s->rescale);
    return tq_lookup_point((int16_t)tq_clamp_i64((int64_t)at + INT16_MAX, INT16_MIN, INT16_MAX),
                           s->points->exponential);
}

static void softmax_16(const state *s, const void *in, void *out, size_t n)
{
    const int16_t *x = in;
    int16_t *y = out, max = INT16_MIN;
    int64_t sum = 0; /* Q15 */
    TQ_EACH (i, n)
        max = x[i] > max ? x[i] : max;
    TQ_EACH (i, n) {
        y[i] = exponential_16(s, x[i] - max);
        sum += y[i];
    }
    int zeros = tq_leading_zeros_u64((uint64_t)sum) - 32; /* below 0: the sum has more than 32 bits */
    int64_t leading = zeros >= 1 ? sum << (zeros - 1) : sum >> (1 - zeros);
    int64_t at = ((leading + (1 << 13)) >> 14) - ((1 << 15) + (1 << 16));
    int16_t inverse = tq_lookup_point((int16_t)tq_clamp_i64(at, INT16_MIN, INT16_MAX), s->points->inverse);
    int right = 31 - zeros;
    TQ_EACH (i, n) {
        int64_t share = ((int64_t)y[i] * inverse + ((int64_t)1 << (right - 1))) >> right;
        y[i] = (int16_t)tq_clamp_i64(share, 0, INT16_MAX);
    }
}

/* ---- rows of two bytes ---- */

/* Rows of two are a table of 256 differences, of the outputs of the greater value and of the other. */
typedef struct pairs {
    uint8_t greater[256], other[256];
} pairs;

static void fill_pairs(const state *s, pairs *p)
{
    uint8_t in[2 * 256], out[2 * 256];
    for (int below = 0; below < 256; below++) {
        in[2 * below] = (uint8_t)(255 - s->in_bias);
        in[2 * below + 1] = (uint8_t)(255 - below - s->in_bias);
    }
    s->rows(s, in, out, 2, 256);
    for (int below = 0; below < 256; below++) {
        p->greater[below] = out[2 * below];
        p->other[below] = out[2 * below + 1];
    }
}

static void look_up_pairs(const state *s, const pairs *p, const uint8_t *in, uint8_t *out, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        const int a = ordered(in[2 * i], s), b = ordered(in[2 * i + 1], s), below = a < b ? b - a : a - b;
        const uint8_t greater = p->greater[below], other = p->other[below];
        out[2 * i] = a < b ? other : greater;
        out[2 * i + 1] = a < b ? greater : other;
    }
}

/* ---- eval ---- */

typedef struct walk {
    const state *s;
    const char *in;
    char *out;
    size_t depth, in_bytes, out_bytes; /* of a row */
    rows_fn rows; /* NULL: one by one */
    size_t at_once; /* rows */
    const pairs *pairs; /* NULL: rows are not two bytes, or few */
} walk;

/* Rows that the nearest caches hold, and between which Ctrl-C is heard. */
static size_t rows_at_once(const state *s, size_t depth)
{
    if (s->together)
        return TOGETHER / depth;
    return depth > TQ_CHUNK ? 1 : depth > TQ_CHUNK / TQ_SUM_RUNS ? 4 : TQ_SUM_RUNS;
}

static void run_rows(void *context, size_t begin, size_t end)
{
    size_t work = 0;
    const walk *w = context;
    if (w->pairs) {
        look_up_pairs(w->s, w->pairs, (const uint8_t *)w->in + 2 * begin, (uint8_t *)w->out + 2 * begin, end - begin);
        return;
    }
    for (size_t i = begin, rows; i < end && !tq_stop_count(&work, w->at_once * w->depth); i += rows) {
        const void *in = w->in + i * w->in_bytes;
        void *out = w->out + i * w->out_bytes;
        rows = tq_min_size(end - i, w->at_once);
        if (w->rows)
            w->rows(w->s, in, out, w->depth, rows);
        else
            w->s->row(w->s, in, out, w->depth);
    }
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_tensor *in = node->in[0], *out = node->out[0];
    state *s = node->state;
    s->points = node->prepacked;
    size_t count = tq_tensor_count(in), depth = (size_t)in->shape.dims[in->shape.rank - 1];
    if (count == 0)
        return TQ_OK;
    const size_t bytes = tq_element_bytes(in->type);
    walk w = {.s = s, .in = in->data, .out = out->data, .depth = depth, .in_bytes = depth * bytes};
    w.out_bytes = depth * tq_element_bytes(out->type);
    w.rows = s->together && depth >= 256 ? NULL : s->rows;
    w.at_once = w.rows ? rows_at_once(s, depth) : 1;
    pairs pairs;
    const bool is_softmax = node->row.code == TQ_BuiltinOperator_SOFTMAX;
    if (is_softmax && depth == 2 && w.in_bytes == 2 && w.out_bytes == 2 && count >= 4 * 256) {
        fill_pairs(s, &pairs);
        w.pairs = &pairs;
    }
    tq_parallel_work(count / depth, 1, depth * COST, node->threads, run_rows, &w);
    return TQ_OK;
}

/* ---- prepare ---- */

static double exp_f64(double x)
{
    return exp(x);
}

static double inverse_of_one_plus_f64(double x)
{
    return 1.0 / (1.0 + x);
}

/* d in Q5 by a multiplier, which is at least 1 but for absurdly small scales. */
static tq_status prepare_bytes(tq_node *node, state *s, double beta, tq_error *error)
{
    tq_fixed to_q5;
    double real = beta * (double)tq_scale_of(node->in[0]) * (double)(1 << 26);
    TQ_TRY(tq_check_input_scale(node, 0, error));
    const double most = tq_rounds_once(node) ? 1073741823.0 : 2147483647.0; /* the runtime's cap */
    TQ_TRY(tq_fixed_find(node, real < most ? real : most, &to_q5, error));
    double radius = floor(ldexp(31.0 * (1 << 26), -to_q5.shift));
    s->diff_min = radius < 256 ? -(int32_t)radius : -256;
    for (int below = 0; below < 256; below++) {
        s->scaled[below] = tq_multiply_fixed(-below, to_q5);
        s->counts[below] = -below >= s->diff_min;
        s->exponential[below] = s->counts[below] ? tq_q_exp_negative(s->scaled[below], 5) : 0;
        s->rounded[below] = tq_rounding_divide_by_pot(s->exponential[below], 12);
    }
    double back = to_q5.multiplier > 0 ? ldexp(1.0, 31 - to_q5.shift) / to_q5.multiplier : 0;
    s->back = tq_fixed_of(node, back);
    s->in_bias = node->in[0]->type == TQ_TensorType_INT8 ? 128 : 0;
    tq_quantized_range(node->out[0]->type, &s->out_low, &s->out_high);
    s->out_bits = node->out[0]->type == TQ_TensorType_INT16 ? 16 : 8;
    return TQ_OK;
}

static void prepare_table(const tq_node *node, state *s, float beta)
{
    s->in_scale = tq_scale_of(node->in[0]);
    s->out_scale = tq_scale_of(node->out[0]);
    s->out_zero = tq_zero_point_of(node->out[0]);
    s->truncates = node->out[0]->type == TQ_TensorType_UINT8;
    const float scale = -s->in_scale * beta;
    for (int below = 0; below < 256; below++)
        s->table[below] = tq_expf(scale * (float)below);
}

/* The runtime's condition on the output of INT8 and INT16; for other types it has none. */
static tq_status check_softmax_output(const tq_node *node, float scale, int32_t zero_point, tq_error *error)
{
    float found = tq_scale_of(node->out[0]);
    if (tq_zero_point_of(node->out[0]) == zero_point && fabsf(found - scale) <= 0.001f * scale)
        return TQ_OK;
    return tq_output_fail(node, 0, error, "has scale %.9g and zero point %d; SOFTMAX needs %.9g and %d", found,
                          tq_zero_point_of(node->out[0]), scale, zero_point);
}

#define POINT_STEP (10.0 / 65535)

static void make_points(tq_node *node)
{
    points *p = node->prepacked;
    tq_lookup_points_f64(exp_f64, POINT_STEP * (INT16_MIN - INT16_MAX), POINT_STEP * 0, 2.0 / 65535, p->exponential);
    tq_lookup_points_f64(inverse_of_one_plus_f64, 1.0 / 65535 * 0, 1.0 / 65535 * 65535, 2.0 / 65535, p->inverse);
}

static tq_status prepare_int16(tq_node *node, state *s, float beta, tq_error *error)
{
    TQ_TRY(tq_check_input_scale(node, 0, error));
    TQ_TRY(check_softmax_output(node, 1.0f / 32768, 0, error));
    if (tq_zero_point_of(node->in[0]) != 0)
        return tq_input_fail(node, 0, error, "has zero point %d; INT16 needs 0", tq_zero_point_of(node->in[0]));
    float scaled = tq_scale_of(node->in[0]) * beta;
    TQ_TRY(tq_fixed_find(node, scaled / POINT_STEP, &s->rescale, error));
    s->row = softmax_16;
    return tq_node_prepack(node, sizeof(points), make_points, NULL, 0, error);
}

static tq_status begin(tq_node *node, unsigned types, state **out, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, types, error));
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS, error));
    TQ_TRY(tq_output_shape(node, 0, &node->in[0]->shape, error));
    node->eval = eval;
    return tq_node_state(node, sizeof **out, out, error);
}

tq_status tq_prepare_softmax(tq_node *node, tq_error *error)
{
    state *s;
    TQ_TRY(begin(node, TQ_T(FLOAT32) | TQ_T(FLOAT16) | TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16), &s, error));
    int32_t type = node->in[0]->type;
    bool is_bytes = type == TQ_TensorType_INT8 || type == TQ_TensorType_UINT8;
    TQ_TRY(tq_check_output(node, 0, tq_type_set(type) | (is_bytes ? TQ_T(INT16) : 0), error));
    s->beta = (float)tq_get_scalar(&node->options.table, TQ_SoftmaxOptions_beta).f;
    if (type == TQ_TensorType_FLOAT32 || type == TQ_TensorType_FLOAT16) {
        const bool by_xnnpack = node->numerics == TQ_NUMERICS_XNNPACK;
        s->row = softmax_half;
        s->rows = type == TQ_TensorType_FLOAT16 ? NULL : (by_xnnpack ? softmax_xnnpack : softmax_float)[tq_isa()];
        return TQ_OK;
    }
    if (!is_bytes)
        return prepare_int16(node, s, s->beta, error);
    if (type == TQ_TensorType_INT8 && node->out[0]->type == TQ_TensorType_INT8)
        TQ_TRY(check_softmax_output(node, 1.0f / 256, -128, error));
    const bool optimized = node->numerics == TQ_NUMERICS_OPTIMIZED, wide = node->out[0]->type == TQ_TensorType_INT16;
    s->row = long_rows[optimized][wide][tq_isa()];
    s->rows = short_rows[optimized][wide][tq_isa()];
    s->together = true;
    if (optimized) {
        TQ_TRY(tq_check_output_divisor(node, error));
        prepare_table(node, s, s->beta);
    }
    return prepare_bytes(node, s, s->beta, error);
}

tq_status tq_prepare_log_softmax(tq_node *node, tq_error *error)
{
    state *s;
    TQ_TRY(begin(node, TQ_T(FLOAT32) | TQ_T(INT8) | TQ_T(UINT8), &s, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    int32_t type = node->in[0]->type, zero_point = type == TQ_TensorType_INT8 ? 127 : 255;
    if (type == TQ_TensorType_FLOAT32) {
        s->row = log_softmax_float[tq_isa()];
        s->rows = short_log_softmax[tq_isa()];
        s->together = true;
        return TQ_OK;
    }
    if (tq_scale_of(node->out[0]) != 16.0f / 256 || tq_zero_point_of(node->out[0]) != zero_point)
        return tq_output_fail(node, 0, error, "has scale %.9g and zero point %d; LOG_SOFTMAX needs 16/256 and %d",
                              tq_scale_of(node->out[0]), tq_zero_point_of(node->out[0]), zero_point);
    const bool optimized = node->numerics == TQ_NUMERICS_OPTIMIZED;
    s->row = log_rows[optimized][tq_isa()];
    s->rows = optimized ? short_logs_8[tq_isa()] : NULL;
    s->together = true;
    if (optimized)
        prepare_table(node, s, 1);
    return prepare_bytes(node, s, 1.0, error);
}
