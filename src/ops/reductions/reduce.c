/* SPDX-License-Identifier: Apache-2.0
 *
 * MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL.
 *
 * With n inputs q for an output, and (m, e) the fixed-point form of s_i / s_o:
 *     MEAN  t = min(floor(log2 n), 32, 31 + e),  clamp(MBQM(sum(q) - n * z_i, tdiv(m * 2^t, n), e - t) + z_o)
 *     SUM   clamp(MBQM(sum(q) - n * z_i, m, e) + z_o)
 *     XNNPACK's MEAN and SUM of 8 bits: k = f32(s_i / s_o), of MEAN f32(k * f32(1 / n));
 *           clamp(even(f32(f32(sum(q) * k) + f32(z_o - f32(f32(n * z_i) * k)))))
 *     optimized SUM: clamp(away(f32(f32(sum(q) * k) + f32(f32(-z_i * k) * n))) + z_o)
 *     optimized MEAN of 8 bits over height and width, with keep_dims: (m, e) of f32(s_i / f32(n * s_o)),
 *           clamp(MBQM(sum(q), m, e) + z_o - away(f32(f32(z_i * s_i) / s_o))), in whole blocks of 16 channels by the
 *           rule "up" in place of MBQM's "double"
 *     XNNPACK's MEAN and SUM of floats: k = f32(1 / n), of SUM 1; each sum over the innermost reduced dimension times
 *           k, and these products added
 *     PROD  (m, e) of s_i / s_o^(1/n); p = q0 - z_i, p = MBQM64(p * (q - z_i), m, e) ..., clamp(MBQM64(p, m, e) + z_o)
 *     MAX and MIN compare quantized values.
 * INT32 means add in 64 bits; other integer sums and products wrap.
 *
 * Source: LiteRT f6745779, tflite/kernels/reduce.cc, internal/reference/reduce.h and internal/optimized/{reduce.h,
 * integer_ops/mean.h}.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/elementwise/fixed_point_lanes.h"
#include "ops/quantized.h"
#include "ops/reductions/float_runs.h"
#include "ops/reductions/reduce_walk.h"

#define QUANTIZED (TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16))

/* ---- the folds: of `in` (an in_t) into `acc` (an acc_t), by an expression of both ---- */

/* acc[i] = expression for n accumulators */
#define FOLD_ROW(target, name, in_t, acc_t, expression)                                                    \
    target static void name(const tq_reduction *r, void *restrict to, const void *restrict from, size_t n) \
    {                                                                                                      \
        (void)r;                                                                                           \
        acc_t *restrict accs = to;                                                                         \
        const in_t *restrict ins = from;                                                                   \
        for (size_t i = 0; i < n; i++) {                                                                   \
            const acc_t acc = accs[i];                                                                     \
            const in_t in = ins[i];                                                                        \
            accs[i] = (acc_t)(expression);                                                                 \
        }                                                                                                  \
    }
/* one accumulator for n inputs */
#define FOLD_RUN(target, name, in_t, acc_t, expression)                                                    \
    target static void name(const tq_reduction *r, void *restrict to, const void *restrict from, size_t n) \
    {                                                                                                      \
        (void)r;                                                                                           \
        acc_t acc = *(acc_t *)to;                                                                          \
        const in_t *restrict ins = from;                                                                   \
        for (size_t i = 0; i < n; i++) {                                                                   \
            const in_t in = ins[i];                                                                        \
            acc = (acc_t)(expression);                                                                     \
        }                                                                                                  \
        *(acc_t *)to = acc;                                                                                \
    }
#define FOLD_BODY(target, isa, name, in_t, acc_t, expression)   \
    FOLD_ROW(target, name##_row_##isa, in_t, acc_t, expression) \
    FOLD_RUN(target, name##_run_##isa, in_t, acc_t, expression)

/* Whether any input, or every one, is not 0.  A run is vectorized, since its accumulator is 0 or 1 throughout. */
#define FOLD_BOOL(target, isa, name, op)                                                                               \
    FOLD_ROW(target, name##_row_##isa, uint8_t, uint8_t, (acc != 0) op(in != 0))                                       \
    target static void name##_run_##isa(const tq_reduction *r, void *restrict to, const void *restrict from, size_t n) \
    {                                                                                                                  \
        (void)r;                                                                                                       \
        uint8_t *restrict acc = to, found = acc[0] != 0;                                                               \
        const uint8_t *restrict ins = from;                                                                            \
        for (size_t i = 0; i < n; i++)                                                                                 \
            found = found op(ins[i] != 0);                                                                             \
        acc[0] = found;                                                                                                \
    }

/* The greatest or least float of a run, in lanes. */
#define FOLD_EXTREME(target, isa, name, extreme, expression)                                                           \
    FOLD_ROW(target, name##_row_##isa, float, float, expression)                                                       \
    target static void name##_run_##isa(const tq_reduction *r, void *restrict to, const void *restrict from, size_t n) \
    {                                                                                                                  \
        (void)r;                                                                                                       \
        *(float *)to = extreme(*(const float *)to, from, n);                                                           \
    }

static void sum_runs(const tq_reduction *r, void *sums, const void *x, size_t n, size_t runs)
{
    (void)r;
    tq_sum_runs(sums, x, n, runs);
}

/* Four rows, so that accumulators in memory are read and written a quarter as often: sums of floats in the same order;
   sums of four integers of 8 bits fit int16. */
#define FOLD_FOUR(target, name, in_t, acc_t, expression)                                                   \
    target static void name(const tq_reduction *r, void *restrict to, const void *restrict from, size_t n) \
    {                                                                                                      \
        acc_t *restrict accs = to;                                                                         \
        const size_t step = r->cut_step[0];                                                                \
        const in_t *a = from, *b = a + step, *c = b + step, *d = c + step;                                 \
        for (size_t i = 0; i < n; i++) {                                                                   \
            const acc_t acc = accs[i];                                                                     \
            accs[i] = (acc_t)(expression);                                                                 \
        }                                                                                                  \
    }
#define NEXT(x, op, acc) ((x)op(acc) ? (x) : (acc))
#define EXTREME_OF_FOUR(target, name, type, op)                           \
    TQ_BODY type name##_of(type acc, type a, type b, type c, type d)      \
    {                                                                     \
        const type first = NEXT(a, op, acc), second = NEXT(b, op, first); \
        const type third = NEXT(c, op, second);                           \
        return NEXT(d, op, third);                                        \
    }                                                                     \
    FOLD_FOUR(target, name, type, type, name##_of(acc, a[i], b[i], c[i], d[i]))
#define FOLDS_OF_FOUR(isa, target)                                                                            \
    FOLD_FOUR(target, rows_f32_##isa, float, float, acc + a[i] + b[i] + c[i] + d[i])                          \
    FOLD_FOUR(target, rows_i8_##isa, int8_t, uint32_t, acc + (uint32_t)(int16_t)(a[i] + b[i] + c[i] + d[i]))  \
    FOLD_FOUR(target, rows_u8_##isa, uint8_t, uint32_t, acc + (uint32_t)(int16_t)(a[i] + b[i] + c[i] + d[i])) \
    FOLD_FOUR(target, rows_i16_##isa, int16_t, uint32_t, acc + (uint32_t)(a[i] + b[i] + c[i] + d[i]))         \
    EXTREME_OF_FOUR(target, most_f32_##isa, float, >)                                                         \
    EXTREME_OF_FOUR(target, most_i8_##isa, int8_t, >)                                                         \
    EXTREME_OF_FOUR(target, most_u8_##isa, uint8_t, >)                                                        \
    EXTREME_OF_FOUR(target, least_f32_##isa, float, <)                                                        \
    EXTREME_OF_FOUR(target, least_i8_##isa, int8_t, <)                                                        \
    EXTREME_OF_FOUR(target, least_u8_##isa, uint8_t, <)
TQ_EVERY_ISA_TO_AVX2(FOLDS_OF_FOUR)

/* The fold of several rows at once; NULL: there is none.  For the operators and types that most models have. */
static tq_fold_fn fold_of_rows(int32_t code, int32_t type)
{
    static const struct {
        int32_t code, type;
        tq_fold_fn run[TQ_ISAS];
    } all[] = {
        {TQ_BuiltinOperator_SUM, TQ_TensorType_FLOAT32, TQ_ISA_FUNCTIONS_TO_AVX2(rows_f32)},
        {TQ_BuiltinOperator_SUM, TQ_TensorType_INT8, TQ_ISA_FUNCTIONS_TO_AVX2(rows_i8)},
        {TQ_BuiltinOperator_SUM, TQ_TensorType_UINT8, TQ_ISA_FUNCTIONS_TO_AVX2(rows_u8)},
        {TQ_BuiltinOperator_SUM, TQ_TensorType_INT16, TQ_ISA_FUNCTIONS_TO_AVX2(rows_i16)},
        {TQ_BuiltinOperator_REDUCE_MAX, TQ_TensorType_FLOAT32, TQ_ISA_FUNCTIONS_TO_AVX2(most_f32)},
        {TQ_BuiltinOperator_REDUCE_MAX, TQ_TensorType_INT8, TQ_ISA_FUNCTIONS_TO_AVX2(most_i8)},
        {TQ_BuiltinOperator_REDUCE_MAX, TQ_TensorType_UINT8, TQ_ISA_FUNCTIONS_TO_AVX2(most_u8)},
        {TQ_BuiltinOperator_REDUCE_MIN, TQ_TensorType_FLOAT32, TQ_ISA_FUNCTIONS_TO_AVX2(least_f32)},
        {TQ_BuiltinOperator_REDUCE_MIN, TQ_TensorType_INT8, TQ_ISA_FUNCTIONS_TO_AVX2(least_i8)},
        {TQ_BuiltinOperator_REDUCE_MIN, TQ_TensorType_UINT8, TQ_ISA_FUNCTIONS_TO_AVX2(least_u8)},
    };
    code = code == TQ_BuiltinOperator_MEAN ? TQ_BuiltinOperator_SUM : code;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].code == code && all[i].type == type)
            return all[i].run[tq_isa()];
    return NULL;
}

#define WRAP32(a, op, b) (int32_t)((uint32_t)(a)op(uint32_t)(b))
#define WRAP64(a, op, b) (int64_t)((uint64_t)(a)op(uint64_t)(b))
#define LARGER in > acc ? in : acc
#define SMALLER in < acc ? in : acc

/* The accumulator of a product before its first factor.  Later it fits int32, to which MBQM64 saturates. */
#define NO_PRODUCT INT64_MIN

TQ_BODY int64_t times_quantized(const tq_reduction *r, int64_t acc, int32_t q)
{
    int64_t factor = (int64_t)q - r->in_zero_point;
    return acc == NO_PRODUCT ? factor : tq_multiply_i64(acc * factor, r->multiplier, r->shift);
}

/* FOLDS_SCALAR: products of small integers, which compilers do not vectorize, and what few models use. */
#define FOLDS(isa, target)                                                          \
    FOLD_BODY(target, isa, sum_i32, int32_t, int32_t, WRAP32(acc, +, in))           \
    FOLD_BODY(target, isa, wide_i32, int32_t, int64_t, WRAP64(acc, +, (int64_t)in)) \
    FOLD_ROW(target, wide_i8_row_##isa, int8_t, int32_t, WRAP32(acc, +, in))        \
    FOLD_ROW(target, wide_u8_row_##isa, uint8_t, int32_t, WRAP32(acc, +, in))       \
    FOLD_BODY(target, isa, wide_i16, int16_t, int32_t, WRAP32(acc, +, in))          \
    FOLD_BODY(target, isa, max_i32, int32_t, int32_t, LARGER)                       \
    FOLD_BODY(target, isa, max_i8, int8_t, int8_t, LARGER)                          \
    FOLD_BODY(target, isa, max_u8, uint8_t, uint8_t, LARGER)                        \
    FOLD_BODY(target, isa, max_i16, int16_t, int16_t, LARGER)                       \
    FOLD_BODY(target, isa, max_i64, int64_t, int64_t, LARGER)                       \
    FOLD_BODY(target, isa, min_i32, int32_t, int32_t, SMALLER)                      \
    FOLD_BODY(target, isa, min_i8, int8_t, int8_t, SMALLER)                         \
    FOLD_BODY(target, isa, min_u8, uint8_t, uint8_t, SMALLER)                       \
    FOLD_BODY(target, isa, min_i16, int16_t, int16_t, SMALLER)                      \
    FOLD_BODY(target, isa, min_i64, int64_t, int64_t, SMALLER)                      \
    FOLD_BODY(target, isa, prod_f32, float, float, acc *in)                         \
    FOLD_BODY(target, isa, prod_i32, int32_t, int32_t, WRAP32(acc, *, in))          \
    FOLD_BODY(target, isa, sum_f32, float, float, acc + in)                         \
    FOLD_EXTREME(target, isa, max_f32, tq_greatest_float, LARGER)                   \
    FOLD_EXTREME(target, isa, min_f32, tq_least_float, SMALLER)                     \
    FOLD_BOOL(target, isa, any, |)                                                  \
    FOLD_BOOL(target, isa, all, &)
FOLD_RUN(, wide_i8_run_scalar, int8_t, int32_t, WRAP32(acc, +, in))
FOLD_RUN(, wide_u8_run_scalar, uint8_t, int32_t, WRAP32(acc, +, in))
#if TQ_X86
#include <immintrin.h>

/* Bytes of INT8 are summed with their high bit flipped, 128 too much. */
#define BYTES_RUN(name, flip, rest)                                                                                \
    TQ_TARGET_AVX2 static void name(const tq_reduction *r, void *restrict to, const void *restrict from, size_t n) \
    {                                                                                                              \
        const uint8_t *x = from;                                                                                   \
        const size_t whole = n / 32 * 32;                                                                          \
        uint64_t sums[4];                                                                                          \
        __m256i sum = _mm256_setzero_si256();                                                                      \
        for (size_t i = 0; i < whole; i += 32) {                                                                   \
            const __m256i bytes = _mm256_loadu_si256((const __m256i *)(x + i));                                    \
            const __m256i raised = _mm256_xor_si256(bytes, _mm256_set1_epi8((char)(flip)));                        \
            sum = _mm256_add_epi64(sum, _mm256_sad_epu8(raised, _mm256_setzero_si256()));                          \
        }                                                                                                          \
        _mm256_storeu_si256((__m256i *)sums, sum);                                                                 \
        *(uint32_t *)to += (uint32_t)(sums[0] + sums[1] + sums[2] + sums[3] - (flip) * whole);                     \
        rest(r, to, x + whole, n - whole);                                                                         \
    }
BYTES_RUN(wide_i8_run_avx2, 128, wide_i8_run_scalar)
BYTES_RUN(wide_u8_run_avx2, 0, wide_u8_run_scalar)
#endif
#define FOLDS_SCALAR(isa, target)                                                     \
    FOLD_BODY(target, isa, sum_i64, int64_t, int64_t, WRAP64(acc, +, in))             \
    FOLD_BODY(target, isa, prod_i64, int64_t, int64_t, WRAP64(acc, *, in))            \
    FOLD_BODY(target, isa, prod_i8, int8_t, int8_t, acc *in)                          \
    FOLD_BODY(target, isa, prod_u8, uint8_t, uint8_t, acc *in)                        \
    FOLD_BODY(target, isa, prod_i16, int16_t, int16_t, acc *in)                       \
    FOLD_BODY(target, isa, product_i8, int8_t, int64_t, times_quantized(r, acc, in))  \
    FOLD_BODY(target, isa, product_u8, uint8_t, int64_t, times_quantized(r, acc, in)) \
    FOLD_BODY(target, isa, product_i16, int16_t, int64_t, times_quantized(r, acc, in))
TQ_EVERY_ISA_TO_AVX2(FOLDS)
FOLDS_SCALAR(scalar, )

/* ---- XNNPACK's sums of floats ---- */

/* Accumulators: n sums of the innermost reduced dimension, and behind them the n totals of these, scaled. */

static void scale_sums(const tq_reduction *r, void *acc, size_t n)
{
    float *restrict sums = acc, *restrict totals = sums + n;
    for (size_t i = 0; i < n; i++) {
        totals[i] += sums[i] * r->by;
        sums[i] = 0;
    }
}

static void scale_runs(const tq_reduction *r, void *acc, const void *x, size_t n, size_t runs)
{
    float *sums = acc;
    tq_sum_runs_in_lanes(sums, x, n, runs);
    scale_sums(r, sums, runs);
}

static void scale_run(const tq_reduction *r, void *restrict acc, const void *restrict x, size_t n)
{
    scale_runs(r, acc, x, n, 1);
}

/* ---- the stores ---- */

#define STORE_SAME(bits)                                                                                    \
    static void store_##bits(const tq_reduction *r, const void *restrict acc, void *restrict out, size_t n) \
    {                                                                                                       \
        (void)r;                                                                                            \
        if (n == 1)                                                                                         \
            memcpy(out, acc, bits / 8);                                                                     \
        else                                                                                                \
            memcpy(out, acc, n * (bits / 8));                                                               \
    }
STORE_SAME(8)
STORE_SAME(16)
STORE_SAME(32)
STORE_SAME(64)

/* The mean of no inputs is NaN, of integers 0. */
static void store_mean_f32(const tq_reduction *r, const void *acc, void *out, size_t n)
{
    const float each = r->each ? (float)r->each : NAN;
    for (size_t i = 0; i < n; i++)
        ((float *)out)[i] = ((const float *)acc)[i] / each;
}

static void store_scaled_f32(const tq_reduction *r, const void *acc, void *out, size_t n)
{
    const float *sums = acc, *totals = sums + n;
    for (size_t i = 0; i < n; i++)
        ((float *)out)[i] = totals[i] + sums[i] * r->by;
}

static void store_mean_i32(const tq_reduction *r, const void *acc, void *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((int32_t *)out)[i] = r->each ? (int32_t)(((const int64_t *)acc)[i] / (int64_t)r->each) : 0;
}

static void store_mean_i64(const tq_reduction *r, const void *acc, void *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((int64_t *)out)[i] = r->each ? ((const int64_t *)acc)[i] / (int64_t)r->each : 0;
}

/* For no inputs: 0, as in the reference. */
static int32_t sum_of(const tq_reduction *r, int32_t sum)
{
    int32_t bias = WRAP32(r->in_zero_point, *, r->each);
    const tq_fixed by = {r->multiplier, r->shift, r->single};
    int32_t real = tq_multiply_fixed(WRAP32(sum, -, bias), by);
    return r->each ? tq_requantize_fixed(real, r->out_zero_point, r->low, r->high) : 0;
}

/* The last scaling is MBQM64 again.  For no inputs: the zero point. */
static int32_t product_of(const tq_reduction *r, int64_t product)
{
    int32_t real = product == NO_PRODUCT ? 0 : tq_multiply_i64(product, r->multiplier, r->shift);
    return tq_requantize_fixed(real, r->out_zero_point, r->low, r->high);
}

/* ---- sums to quantized values, by loops that compilers vectorize ---- */

TQ_BODY int32_t sum_by_lanes(const tq_reduction *r, int32_t sum)
{
    const int32_t bias = (int32_t)(r->each * (size_t)r->in_zero_point), zero = r->out_zero_point;
    return tq_lane_quantized(tq_lane_multiply(sum - bias, r->lanes), r->low - zero, r->high - zero, zero);
}

/* XNNPACK's: the zero point is added before the rounding. */
TQ_BODY int32_t sum_even(const tq_reduction *r, int32_t sum)
{
    return tq_lane_round_even((float)sum * r->by + r->offset, (float)r->low, (float)r->high);
}

TQ_BODY int32_t sum_away(const tq_reduction *r, int32_t sum)
{
    const int32_t zero = r->out_zero_point;
    const float least = (float)(r->low - zero), most = (float)(r->high - zero), x = (float)sum * r->by + r->offset;
    const float rounded = tq_round_f32(x);
    const float raised = rounded > least ? rounded : least;
    return (int32_t)(raised > most ? most : raised) + zero;
}

TQ_BODY int32_t up_by_lanes(const tq_reduction *r, int32_t sum)
{
    const int32_t zero = r->out_zero_point;
    return tq_lane_quantized(tq_lane_multiply(sum, r->lanes), r->low - zero, r->high - zero, zero);
}

static int32_t mean_of(const tq_reduction *r, int32_t sum, bool up)
{
    int32_t real = (up ? tq_multiply_up : tq_multiply_double)(sum, r->multiplier, r->shift);
    return tq_requantize_fixed(real, r->out_zero_point, r->low, r->high);
}

/* Defines the function that computes quantized values of n sums by loops.  p is a copy of the record, which the values
   cannot change. */
#define RESCALE(name, target, loops)                                                                          \
    target static void name(const tq_reduction *r, const int32_t *restrict sums, int32_t *restrict quantized, \
                            size_t n)                                                                         \
    {                                                                                                         \
        const tq_reduction p = *r;                                                                            \
        loops                                                                                                 \
    }
#define LOOP(from, to, value)            \
    for (size_t i = from; i < (to); i++) \
        quantized[i] = value;
/* Blocks of 16 channels: chunks of TQ_REDUCE_ROW channels begin at whole blocks. */
#define BLOCKS                                     \
    const size_t whole = n - n % 16;               \
    if (p.fits) {                                  \
        LOOP(0, whole, up_by_lanes(&p, sums[i]))   \
    } else {                                       \
        LOOP(0, whole, mean_of(&p, sums[i], true)) \
    }                                              \
    LOOP(whole, n, mean_of(&p, sums[i], false))

#define RESCALES(isa, target)                                           \
    RESCALE(lanes_##isa, target, LOOP(0, n, sum_by_lanes(&p, sums[i]))) \
    RESCALE(even_##isa, target, LOOP(0, n, sum_even(&p, sums[i])))      \
    RESCALE(away_##isa, target, LOOP(0, n, sum_away(&p, sums[i])))      \
    RESCALE(blocks_##isa, target, BLOCKS)
TQ_EVERY_ISA_TO_AVX2(RESCALES)
RESCALE(exact, , LOOP(0, n, sum_of(&p, sums[i])))

static void rescale(const tq_reduction *r, const int32_t *sums, int32_t *quantized, size_t n)
{
    typedef void (*rescale_fn)(const tq_reduction *r, const int32_t *sums, int32_t *quantized, size_t n);
    static const rescale_fn rules[][TQ_ISAS] = {[TQ_REDUCE_EXACT] = TQ_ISA_SAME(exact),
                                                [TQ_REDUCE_LANES] = TQ_ISA_FUNCTIONS_TO_AVX2(lanes),
                                                [TQ_REDUCE_EVEN] = TQ_ISA_FUNCTIONS_TO_AVX2(even),
                                                [TQ_REDUCE_AWAY] = TQ_ISA_FUNCTIONS_TO_AVX2(away),
                                                [TQ_REDUCE_BLOCKS] = TQ_ISA_FUNCTIONS_TO_AVX2(blocks)};
    rules[r->each ? r->rule : TQ_REDUCE_EXACT][tq_isa()](r, sums, quantized, n);
}

/* Stores sums by the reduction's rule; n <= TQ_REDUCE_ROW. */
#define STORE_SUM(name, out_t)                                                                \
    static void store_sum_##name(const tq_reduction *r, const void *acc, void *out, size_t n) \
    {                                                                                         \
        int32_t quantized[TQ_REDUCE_ROW];                                                     \
        rescale(r, acc, quantized, n);                                                        \
        for (size_t i = 0; i < n; i++)                                                        \
            ((out_t *)out)[i] = (out_t)quantized[i];                                          \
    }
#define STORE_PRODUCT(name, out_t)                                                                \
    static void store_product_##name(const tq_reduction *r, const void *acc, void *out, size_t n) \
    {                                                                                             \
        for (size_t i = 0; i < n; i++)                                                            \
            ((out_t *)out)[i] = (out_t)product_of(r, ((const int64_t *)acc)[i]);                  \
    }
STORE_SUM(i8, int8_t)
STORE_SUM(u8, uint8_t)
STORE_SUM(i16, int16_t)
STORE_PRODUCT(i8, int8_t)
STORE_PRODUCT(u8, uint8_t)
STORE_PRODUCT(i16, int16_t)

/* ---- the table: a row for each operator and type ---- */

#define REDUCER(isas, name, in, acc, out, seeds, store) {in, acc, out, seeds, isas(name##_row), isas(name##_run), store}
#define EVERY TQ_ISA_FUNCTIONS_TO_AVX2
#define SCALAR(name) TQ_ISA_SAME(name##_scalar)

typedef struct row {
    int32_t code, type;
    tq_reducer how;
    bool quantized; /* the result is rescaled, by a multiplier */
    double init;    /* of the accumulator; 0x1p63: the greatest int64 */
} row;

static const row rows[] = {
#define ROW(op, type, isas, name, in, acc, out, seeds, store, quantized, init) \
    {TQ_BuiltinOperator_##op, TQ_TensorType_##type, REDUCER(isas, name, in, acc, out, seeds, store), quantized, init}
    ROW(MEAN, FLOAT32, EVERY, sum_f32, 4, 4, 4, false, store_mean_f32, false, 0),
    ROW(MEAN, INT32, EVERY, wide_i32, 4, 8, 4, false, store_mean_i32, false, 0),
    ROW(MEAN, INT64, SCALAR, sum_i64, 8, 8, 8, false, store_mean_i64, false, 0),
    ROW(MEAN, INT8, EVERY, wide_i8, 1, 4, 1, false, store_sum_i8, true, 0),
    ROW(MEAN, UINT8, EVERY, wide_u8, 1, 4, 1, false, store_sum_u8, true, 0),
    ROW(MEAN, INT16, EVERY, wide_i16, 2, 4, 2, false, store_sum_i16, true, 0),
    ROW(SUM, FLOAT32, EVERY, sum_f32, 4, 4, 4, true, store_32, false, 0),
    ROW(SUM, INT32, EVERY, sum_i32, 4, 4, 4, true, store_32, false, 0),
    ROW(SUM, INT64, SCALAR, sum_i64, 8, 8, 8, true, store_64, false, 0),
    ROW(SUM, INT8, EVERY, wide_i8, 1, 4, 1, false, store_sum_i8, true, 0),
    ROW(SUM, UINT8, EVERY, wide_u8, 1, 4, 1, false, store_sum_u8, true, 0),
    ROW(SUM, INT16, EVERY, wide_i16, 2, 4, 2, false, store_sum_i16, true, 0),
    ROW(SUM, BOOL, EVERY, any, 1, 1, 1, true, store_8, false, 0),
    ROW(REDUCE_PROD, FLOAT32, EVERY, prod_f32, 4, 4, 4, true, store_32, false, 1),
    ROW(REDUCE_PROD, INT32, EVERY, prod_i32, 4, 4, 4, true, store_32, false, 1),
    ROW(REDUCE_PROD, INT64, SCALAR, prod_i64, 8, 8, 8, true, store_64, false, 1),
    ROW(REDUCE_PROD, INT8, SCALAR, product_i8, 1, 8, 1, false, store_product_i8, true, -0x1p63),
    ROW(REDUCE_PROD, UINT8, SCALAR, product_u8, 1, 8, 1, false, store_product_u8, true, -0x1p63),
    ROW(REDUCE_PROD, INT16, SCALAR, product_i16, 2, 8, 2, false, store_product_i16, true, -0x1p63),
    ROW(REDUCE_PROD, BOOL, EVERY, all, 1, 1, 1, true, store_8, false, 1),
    ROW(REDUCE_MAX, FLOAT32, EVERY, max_f32, 4, 4, 4, true, store_32, false, -(double)FLT_MAX),
    ROW(REDUCE_MAX, INT32, EVERY, max_i32, 4, 4, 4, true, store_32, false, INT32_MIN),
    ROW(REDUCE_MAX, INT64, EVERY, max_i64, 8, 8, 8, true, store_64, false, -0x1p63),
    ROW(REDUCE_MAX, INT8, EVERY, max_i8, 1, 1, 1, true, store_8, false, INT8_MIN),
    ROW(REDUCE_MAX, UINT8, EVERY, max_u8, 1, 1, 1, true, store_8, false, 0),
    ROW(REDUCE_MAX, INT16, EVERY, max_i16, 2, 2, 2, true, store_16, false, INT16_MIN),
    ROW(REDUCE_MAX, BOOL, EVERY, any, 1, 1, 1, true, store_8, false, 0),
    ROW(REDUCE_MIN, FLOAT32, EVERY, min_f32, 4, 4, 4, true, store_32, false, FLT_MAX),
    ROW(REDUCE_MIN, INT32, EVERY, min_i32, 4, 4, 4, true, store_32, false, INT32_MAX),
    ROW(REDUCE_MIN, INT64, EVERY, min_i64, 8, 8, 8, true, store_64, false, 0x1p63),
    ROW(REDUCE_MIN, INT8, EVERY, min_i8, 1, 1, 1, true, store_8, false, INT8_MAX),
    ROW(REDUCE_MIN, UINT8, EVERY, min_u8, 1, 1, 1, true, store_8, false, UINT8_MAX),
    ROW(REDUCE_MIN, INT16, EVERY, min_i16, 2, 2, 2, true, store_16, false, INT16_MAX),
    ROW(REDUCE_MIN, BOOL, EVERY, all, 1, 1, 1, true, store_8, false, 1),
    ROW(REDUCE_ANY, BOOL, EVERY, any, 1, 1, 1, true, store_8, false, 0),
    ROW(REDUCE_ALL, BOOL, EVERY, all, 1, 1, 1, true, store_8, false, 1),
#undef ROW
};

/* REDUCE_PROD of 8 and 16 bits without a scale: products of integers. */
static const row integer_products[] = {
    {TQ_BuiltinOperator_REDUCE_PROD, TQ_TensorType_INT8, REDUCER(SCALAR, prod_i8, 1, 1, 1, true, store_8), false, 1},
    {TQ_BuiltinOperator_REDUCE_PROD, TQ_TensorType_UINT8, REDUCER(SCALAR, prod_u8, 1, 1, 1, true, store_8), false, 1},
    {TQ_BuiltinOperator_REDUCE_PROD, TQ_TensorType_INT16, REDUCER(SCALAR, prod_i16, 2, 2, 2, true, store_16), false, 1},
};

/* MEAN and SUM of floats in XNNPACK. */
static const row xnnpack_sum = {
    TQ_BuiltinOperator_SUM,
    TQ_TensorType_FLOAT32,
    {4, 8, 4, false, TQ_ISA_FUNCTIONS_TO_AVX2(sum_f32_row), TQ_ISA_SAME(scale_run), store_scaled_f32},
    false,
    0,
};

static const row *find_row(const row *table, size_t count, int64_t code, int32_t type)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].code == code && table[i].type == type)
            return &table[i];
    return NULL;
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool is_sum(const tq_node *node)
{
    return node->row.code == TQ_BuiltinOperator_MEAN || node->row.code == TQ_BuiltinOperator_SUM;
}

static const row *row_of(const tq_node *node)
{
    const tq_tensor *in = node->in[0];
    if (is_sum(node) && in->type == TQ_TensorType_FLOAT32 && node->numerics == TQ_NUMERICS_XNNPACK)
        return &xnnpack_sum;
    const row *plain = in->quantization.count == 0
                           ? find_row(integer_products, COUNT(integer_products), node->row.code, in->type)
                           : NULL;
    return plain ? plain : find_row(rows, COUNT(rows), node->row.code, in->type);
}

/* XNNPACK's maximum and minimum of no inputs are infinities. */
static uint64_t float_init(const tq_node *node, const row *how)
{
    uint64_t bits = 0;
    float real = (float)how->init;
    if (node->numerics == TQ_NUMERICS_XNNPACK && fabsf(real) == FLT_MAX)
        real = copysignf(INFINITY, real);
    memcpy(&bits, &real, sizeof real);
    return bits;
}

/* The bits of the accumulator with which a reduction begins. */
static uint64_t init_of(const tq_node *node, const row *how)
{
    if (how->type == TQ_TensorType_FLOAT32)
        return float_init(node, how);
    return how->init >= 0x1p63 ? (uint64_t)INT64_MAX : (uint64_t)(int64_t)how->init;
}

/* ---- preparing ---- */

typedef struct reduce_state {
    tq_reduction reduction;
    size_t batches, in_bytes, out_bytes; /* the number of reductions, and the bytes from each to the next */
    const row *row;
} reduce_state;

/* The multiplier of a mean of n: tdiv(m * 2^t, n), e - t. */
static void divide_multiplier(tq_reduction *r)
{
    uint64_t n = r->each;
    int shift = 0;
    while (shift < 32 && n >> (shift + 1))
        shift++;
    shift = shift < 31 + r->shift ? shift : 31 + r->shift;
    if (n == 0 || shift < 0)
        return;
    r->multiplier = (int32_t)(((int64_t)r->multiplier << shift) / (int64_t)n);
    r->shift -= shift;
}

static void find_even(const tq_node *node, tq_reduction *r)
{
    r->rule = TQ_REDUCE_EVEN;
    r->by = tq_scale_of(node->in[0]) / tq_scale_of(node->out[0]);
    if (node->row.code == TQ_BuiltinOperator_MEAN)
        r->by *= 1.0f / (float)r->each;
    r->offset = (float)r->out_zero_point - (float)WRAP32(r->each, *, r->in_zero_point) * r->by;
}

static void find_away(const tq_node *node, tq_reduction *r)
{
    r->rule = TQ_REDUCE_AWAY;
    r->by = tq_scale_of(node->in[0]) / tq_scale_of(node->out[0]);
    r->offset = (float)-r->in_zero_point * r->by * (float)r->each;
}

/* The optimized MEAN. */
static void find_blocks(const tq_node *node, tq_reduction *r)
{
    const float in = tq_scale_of(node->in[0]), out = tq_scale_of(node->out[0]);
    int shift = 0;
    tq_quantize_multiplier((double)(in / ((float)r->each * out)), &r->multiplier, &shift);
    r->shift = shift;
    tq_quantized_range(node->out[0]->type, &r->low, &r->high);
    float zero = (float)tq_zero_point_of(node->in[0]) * in / out;
    zero = zero > 0 ? zero + 0.5f : zero - 0.5f;
    int32_t rounded = tq_value_of_rounded(truncf(zero), 0, -(1 << 30), 1 << 30);
    r->out_zero_point = tq_zero_point_of(node->out[0]) - rounded;
    r->rule = TQ_REDUCE_BLOCKS;
    const tq_fixed by = {r->multiplier, r->shift, false};
    r->fits = r->each < 1 << 20 && tq_lane_fits(by, (int64_t)r->each << 8);
    r->lanes = tq_lane_fixed_of(by);
    r->lanes.fix = 0; /* ties go up */
}

static void find_multiplier(const tq_node *node, tq_reduction *r)
{
    double in = tq_scale_of(node->in[0]), out = tq_scale_of(node->out[0]);
    bool product = node->row.code == TQ_BuiltinOperator_REDUCE_PROD;
    double real = product ? (r->each ? in / pow(out, 1.0 / (double)r->each) : 0) : in / out;
    int shift = 0;
    r->single = tq_rounds_once(node);
    (r->single ? tq_quantize_multiplier_single : tq_quantize_multiplier)(real, &r->multiplier, &shift);
    r->shift = shift;
    r->in_zero_point = tq_zero_point_of(node->in[0]);
    r->out_zero_point = tq_zero_point_of(node->out[0]);
    tq_quantized_range(node->out[0]->type, &r->low, &r->high);
    if (node->row.code == TQ_BuiltinOperator_MEAN)
        divide_multiplier(r);
    /* |sum - n * zero point| < n * 2^16, for 16 bits and 8. */
    tq_fixed by = {r->multiplier, r->shift, r->single};
    r->rule = r->each < 1 << 14 && tq_lane_fits(by, (int64_t)r->each << 16) ? TQ_REDUCE_LANES : TQ_REDUCE_EXACT;
    r->lanes = tq_lane_fixed_of(by);
    if (!product && node->numerics == TQ_NUMERICS_XNNPACK)
        find_even(node, r);
    else if (node->row.code == TQ_BuiltinOperator_SUM && node->numerics == TQ_NUMERICS_OPTIMIZED)
        find_away(node, r);
}

/* *out: bit d is set where the axes name dimension d. */
static tq_status read_axes(const tq_node *node, uint32_t *out, tq_error *error)
{
    int rank = node->in[0]->shape.rank;
    uint32_t axes = 0;
    for (size_t i = 0; i < tq_tensor_count(node->in[1]) && rank > 0; i++) {
        int axis = 0;
        TQ_TRY(tq_check_axis(node, tq_integer_at(node->in[1], i), rank, "axis", &axis, error));
        axes |= 1u << axis;
    }
    *out = axes;
    return TQ_OK;
}

static bool is_optimized_mean(const tq_node *node, uint32_t axes)
{
    return node->numerics == TQ_NUMERICS_OPTIMIZED && node->row.code == TQ_BuiltinOperator_MEAN &&
           tq_element_bytes(node->in[0]->type) == 1 && node->in[0]->shape.rank == 4 && axes == 6 &&
           tq_get_int(&node->options.table, TQ_ReducerOptions_keep_dims) && tq_tensor_count(node->in[0]) > 0;
}

/* One reduction for each image: blocks of channels begin with each image. */
static void plan_images(reduce_state *state, const tq_shape *in)
{
    const tq_shape image = {3, {in->dims[1], in->dims[2], in->dims[3]}};
    tq_reduction_plan(&state->reduction, &state->row->how, &image, 3);
    state->batches = (size_t)in->dims[0];
    state->in_bytes = tq_shape_size(&image);
    state->out_bytes = (size_t)in->dims[3];
}

/* Of integers alone: sums of floats depend on their order.  `init` is 0, or the least or greatest value. */
static tq_fold_fn combine_of(const row *row)
{
    static const tq_fold_fn sums[TQ_ISAS] = TQ_ISA_FUNCTIONS_TO_AVX2(sum_i32_row);
    if (row->type == TQ_TensorType_FLOAT32)
        return NULL;
    return row->how.acc_bytes == row->how.in_bytes ? row->how.fold_row[tq_isa()] : sums[tq_isa()];
}

/* The folds of several rows or runs at once. */
static void find_folds(const tq_node *node, reduce_state *state)
{
    const row *row = state->row;
    tq_reduction *r = &state->reduction;
    r->fold_rows = fold_of_rows(row->code, row->type);
    r->combine = r->fold_rows ? combine_of(row) : NULL;
    r->fold_runs = is_sum(node) && row->type == TQ_TensorType_FLOAT32 ? sum_runs : NULL;
    if (row != &xnnpack_sum)
        return;
    r->fold_runs = scale_runs;
    r->close = scale_sums;
}

static tq_status reduce_shape(tq_node *node, tq_error *error)
{
    reduce_state *state = node->state;
    const tq_shape *in = &node->in[0]->shape;
    bool keep = tq_get_int(&node->options.table, TQ_ReducerOptions_keep_dims) != 0;
    uint32_t axes = 0;
    tq_shape shape = {0, {0}};
    TQ_TRY(read_axes(node, &axes, error));
    for (int d = 0; d < in->rank; d++)
        if (!(axes >> d & 1))
            shape.dims[shape.rank++] = in->dims[d];
        else if (keep)
            shape.dims[shape.rank++] = 1;
    state->reduction.init = init_of(node, state->row);
    find_folds(node, state);
    state->batches = 1;
    if (is_optimized_mean(node, axes)) {
        plan_images(state, in);
        find_blocks(node, &state->reduction);
        return tq_output_shape(node, 0, &shape, error);
    }
    tq_reduction_plan(&state->reduction, &state->row->how, in, axes);
    if (state->row->quantized)
        find_multiplier(node, &state->reduction);
    if (state->row == &xnnpack_sum)
        state->reduction.by = node->row.code == TQ_BuiltinOperator_MEAN ? 1 / (float)state->reduction.each : 1;
    return tq_output_shape(node, 0, &shape, error);
}

static tq_status eval_reduce(tq_node *node, tq_error *error)
{
    (void)error;
    const reduce_state *state = node->state;
    for (size_t b = 0; b < state->batches; b++)
        tq_reduction_run(&state->reduction, (const char *)node->in[0]->data + b * state->in_bytes,
                         (char *)node->out[0]->data + b * state->out_bytes, node->threads);
    return TQ_OK;
}

static unsigned types_of(int64_t code)
{
    unsigned types = 0;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].code == code)
            types |= tq_type_set(rows[i].type);
    return types;
}

tq_status tq_prepare_reduce(tq_node *node, tq_error *error)
{
    reduce_state *state = NULL;
    TQ_TRY(tq_check_input(node, 0, types_of(node->row.code), error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT32) | TQ_T(INT64), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    const row *how = row_of(node);
    if (how->quantized) {
        TQ_TRY(tq_check_input_scale(node, 0, error));
        TQ_TRY(tq_check_output_scale(node, 0, error));
        TQ_TRY(tq_check_output_divisor(node, error));
        if (node->row.code == TQ_BuiltinOperator_SUM)
            TQ_TRY(tq_check_input_divisor(node, 0, error));
    } else if (QUANTIZED >> node->in[0]->type & 1 && node->numerics != TQ_NUMERICS_XNNPACK) {
        TQ_TRY(tq_check_same_scale(node, 0, 0, error));
    }
    TQ_TRY(tq_node_state(node, sizeof *state, &state, error));
    state->row = how;
    node->eval = eval_reduce;
    return tq_shape_from_values(node, 1u << 1, reduce_shape, error);
}
