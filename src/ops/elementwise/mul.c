/* SPDX-License-Identifier: Apache-2.0
 *
 * MUL of quantized values: MBQM((a - z1)(b - z2), f32(f32(s1 s2) / so)) + zo; INT16 to 8 bits: the high product in Q15.
 *
 * XNNPACK's, of 8 bits: even(f32((a - z1)(b - z2) f32(f32(s1 s2) / so))) + zo; for a tensor with itself a table
 * (lookup_table.h).
 *
 * Source: LiteRT f6745779, tflite/kernels/mul.cc; XNNPACK 75db3c09, src/microparams-init.c, src/qs8-vmul.
 */
#include <math.h>

#include "ops/elementwise/lookup_table.h"
#include "ops/elementwise/binary_quantized.h"
#include "quant/fixed_math.h"

#if TQ_X86
#include <immintrin.h>
#endif

TQ_BODY int32_t multiply(int32_t x, int32_t y, const tq_pair *p)
{
    return tq_pair_output((x - p->zero_first) * (y - p->zero_second), p);
}

TQ_BODY int32_t lane_mul(int32_t x, int32_t y, const tq_pair *p)
{
    return tq_pair_lane_output((x - p->zero_first) * (y - p->zero_second), p);
}

/* INT16 in Q15 to 8 bits: of the quantization, only the output's zero point and the activation's bounds are read. */
TQ_BODY int32_t multiply_q15(int32_t x, int32_t y, const tq_pair *p)
{
    int32_t high = x == INT16_MIN && y == INT16_MIN ? INT16_MAX : (x * y + (1 << 14)) >> 15;
    return tq_lane_quantized(tq_rounding_divide_by_pot(high, 8), p->least, p->most, p->zero_output);
}

TQ_PAIR_DEFINE(multiply, lane_mul)
TQ_BROADCAST_2_SMALL(multiply_q15_int8, int16_t, int16_t, int8_t, tq_pair, multiply_q15(x, y, &p))
TQ_BROADCAST_2_SMALL(multiply_q15_uint8, int16_t, int16_t, uint8_t, tq_pair, multiply_q15(x, y, &p))

/* ---- the reference's rule for 8 bits, by one float ----
   With P = (a - z1)(b - z2) and MBQM's multiplier m 2^-(31 + right), right >= 1, the rule rounds P m / 2^31, ties up,
   and then its quotient by 2^right, ties away from zero.  Nested floors are one: the result is

       floor((P m + 2^30 + 2^31 (2^(right - 1) - [P < 0])) / 2^(31 + right)) = floor(w / 2^16) with
       w = P r + 2^15 + 2^(15 - right) - [P < 0] 2^(16 - right),     r = m 2^-(15 + right)

   (where P m / 2^31 rounds to 0, P < 0 may count or not: neither reaches a step).  |P| < 2^16 and r < 2^15, so that
   float32 and its integer hold P r.  Where the result does not saturate, |P r| < 2^24 + 2^16: r rounded to float32 is
   off by 1.1, the product by 1, the conversion by 1.  So u, off by less than `margin` 4, decides unless a step is that
   near: 1 chunk in 64 of uniform data.  Multipliers of 8 bits, as of scales that are powers of two, are computed
   exactly. */
TQ_BODY int32_t quick_product(int32_t x, int32_t y, const tq_pair *p)
{
    const int16_t first = (int16_t)(x - p->zero_first), second = (int16_t)(y - p->zero_second);
    const int32_t product = first * second;
    return (int32_t)((float)product * p->by) + (product < 0 ? p->below : p->offset);
}

enum { CHUNK = 128 };

/* The outputs of a chunk; whether all are right: their numbers keep away from the steps.  The halves of 16 bits are
   bounded after the numbers, in half as many vectors. */
TQ_BODY bool quick_chunk(const uint8_t *x, const uint8_t *y, uint8_t *restrict out, const tq_pair *p)
{
    const int32_t step = ((int32_t)1 << p->right) - 1;
    const int16_t zero = (int16_t)p->zero_output, least = (int16_t)p->least, most = (int16_t)p->most;
    int16_t steps[CHUNK];
    int32_t nearest = INT32_MAX;
    for (size_t i = 0; i < CHUNK; i++) {
        const int32_t u = quick_product(TQ_PAIR_VALUE(x[i], p->flip), TQ_PAIR_VALUE(y[i], p->flip), p);
        const int32_t past = (u + p->margin) & step;
        nearest = past < nearest ? past : nearest;
        steps[i] = (int16_t)(u >> p->right);
    }
    for (size_t i = 0; i < CHUNK; i++) {
        const int16_t raised = steps[i] < least ? least : steps[i];
        out[i] = TQ_PAIR_BYTE((raised > most ? most : raised) + zero, p->flip);
    }
    return nearest >= 2 * p->margin;
}

TQ_BODY void multiply_quickly(const tq_broadcast_run *run)
{
    const tq_pair p = *(const tq_pair *)run->params;
    const size_t x_step = !run->scalar[0], y_step = !run->scalar[1];
    uint8_t repeated[2][CHUNK];
    tq_broadcast_run part = *run;
    size_t at = 0;
    for (int i = 0; i < 2; i++)
        if (run->scalar[i] && run->n >= CHUNK)
            memset(repeated[i], *(const uint8_t *)run->in[i], CHUNK);
    for (; at + CHUNK <= run->n; at += CHUNK) {
        const uint8_t *x = x_step ? (const uint8_t *)run->in[0] + at : repeated[0];
        const uint8_t *y = y_step ? (const uint8_t *)run->in[1] + at : repeated[1];
        uint8_t out[CHUNK]; /* the output may lie where an input does */
        const bool decided = quick_chunk(x, y, out, &p);
        part.in[0] = x, part.in[1] = y, part.out = (uint8_t *)run->out + at, part.n = CHUNK;
        if (decided)
            memcpy(part.out, out, sizeof out);
        else
            p.exact(&part);
    }
    part.in[0] = (const uint8_t *)run->in[0] + at * x_step;
    part.in[1] = (const uint8_t *)run->in[1] + at * y_step;
    part.out = (uint8_t *)run->out + at, part.n = run->n - at;
    if (part.n > 0)
        p.exact(&part);
}

#define QUICK_LOOP(loop, target, multiply)               \
    target static void loop(const tq_broadcast_run *run) \
    {                                                    \
        multiply(run);                                   \
    }
QUICK_LOOP(quick_product_scalar, , multiply_quickly)
#if TQ_X86
QUICK_LOOP(quick_product_avx512, TQ_TARGET_AVX512, multiply_quickly)

/* ---- both rules for 8 bits with AVX2, whose compiled conversions between 8 and 32 bits take twice the time ---- */

enum { BLOCK = 32 };
typedef struct vectors {
    __m256i zero_first, zero_second, zero_output, low, high; /* of 16 bits, 8 bits */
    __m256 by, offset, below; /* with the output's zero point */
    __m128i flip;
    uint8_t undecided; /* where the low 16 bits are less */
} vectors;

TQ_TARGET_AVX2 static vectors vectors_of(const tq_pair *p)
{
    const int32_t raised = p->zero_output * (1 << 16) + p->margin;
    return (vectors){
        .zero_first = _mm256_set1_epi16((int16_t)p->zero_first),
        .zero_second = _mm256_set1_epi16((int16_t)p->zero_second),
        .zero_output = _mm256_set1_epi16((int16_t)p->zero_output),
        .low = _mm256_set1_epi8((int8_t)p->low),
        .high = _mm256_set1_epi8((int8_t)p->high),
        .by = _mm256_set1_ps(p->by),
        .offset = _mm256_set1_ps((float)(p->offset + raised)),
        .below = _mm256_set1_ps((float)(p->below + raised)),
        .flip = _mm_set1_epi8((char)p->flip),
        .undecided = (uint8_t)(2 * p->margin),
    };
}

/* 16 bytes less the zero point. */
TQ_TARGET_AVX2 TQ_BODY __m256i differences(const uint8_t *x, const vectors *v, __m256i zero)
{
    const __m128i bytes = _mm_xor_si128(_mm_loadu_si128((const __m128i *)x), v->flip);
    return _mm256_sub_epi16(_mm256_cvtepi8_epi16(bytes), zero);
}

/* The products of 16 elements as float32, in the order that unpacking gives and packing takes. */
TQ_TARGET_AVX2 TQ_BODY void products(const uint8_t *x, const uint8_t *y, const vectors *v, __m256 out[2])
{
    const __m256i a = differences(x, v, v->zero_first), b = differences(y, v, v->zero_second);
    const __m256i low = _mm256_mullo_epi16(a, b), high = _mm256_mulhi_epi16(a, b);
    out[0] = _mm256_cvtepi32_ps(_mm256_unpacklo_epi16(low, high));
    out[1] = _mm256_cvtepi32_ps(_mm256_unpackhi_epi16(low, high));
}

/* XNNPACK's rule: 16 values of 16 bits; every step saturates. */
TQ_TARGET_AVX2 TQ_BODY __m256i even_16(const uint8_t *x, const uint8_t *y, const vectors *v)
{
    __m256 f[2];
    products(x, y, v, f);
    const __m256i low = _mm256_cvtps_epi32(_mm256_mul_ps(f[0], v->by));
    const __m256i high = _mm256_cvtps_epi32(_mm256_mul_ps(f[1], v->by));
    return _mm256_adds_epi16(_mm256_packs_epi32(low, high), v->zero_output);
}

/* The reference's rule: 16 numbers in 16.16 fixed point, narrowed as fixed_simd.h says: the upper bytes are values. */
TQ_TARGET_AVX2 TQ_BODY __m256i fixed_16(const uint8_t *x, const uint8_t *y, const vectors *v)
{
    __m256 f[2];
    __m256i w[2];
    products(x, y, v, f);
    for (int i = 0; i < 2; i++)
        w[i] = _mm256_cvtps_epi32(_mm256_fmadd_ps(f[i], v->by, _mm256_blendv_ps(v->offset, v->below, f[i])));
    return _mm256_packs_epi16(w[0], w[1]);
}

/* The outputs of a block; false where one is undecided. */
TQ_TARGET_AVX2 TQ_BODY bool multiply_block(const uint8_t *x, const uint8_t *y, const vectors *v, bool even,
                                           uint8_t *out)
{
    __m256i bytes;
    if (even) {
        bytes = _mm256_packs_epi16(even_16(x, y, v), even_16(x + 16, y + 16, v));
    } else {
        const __m256i first = fixed_16(x, y, v), last = fixed_16(x + 16, y + 16, v);
        const __m256i limit = _mm256_set1_epi16(v->undecided);
        const __m256i near_step = _mm256_subs_epu8(limit, _mm256_min_epu8(first, last));
        if (__builtin_expect(!_mm256_testz_si256(near_step, near_step), 0))
            return false;
        bytes = _mm256_packus_epi16(_mm256_srli_epi16(first, 8), _mm256_srli_epi16(last, 8));
    }
    bytes = _mm256_max_epi8(_mm256_permute4x64_epi64(bytes, 0xD8), v->low);
    bytes = _mm256_xor_si256(_mm256_min_epi8(bytes, v->high), _mm256_broadcastsi128_si256(v->flip));
    _mm256_storeu_si256((__m256i *)out, bytes);
    return true;
}

TQ_TARGET_AVX2 TQ_BODY void multiply_blocks(const tq_broadcast_run *run, bool even)
{
    const tq_pair *p = run->params;
    const vectors v = vectors_of(p);
    uint8_t copies[2][BLOCK] = {{0}}, last[BLOCK];
    const uint8_t *in[2] = {run->in[0], run->in[1]};
    const size_t steps[2] = {!run->scalar[0], !run->scalar[1]};
    tq_broadcast_run part = *run;
    for (int i = 0; i < 2; i++)
        if (run->scalar[i])
            in[i] = memset(copies[i], *in[i], BLOCK);
    for (size_t left = run->n; left > 0; left -= part.n) {
        uint8_t *out = (uint8_t *)run->out + (run->n - left), *to = out;
        part.n = left < BLOCK ? left : BLOCK;
        if (part.n < BLOCK) {
            for (int i = 0; i < 2; i++)
                if (!run->scalar[i])
                    in[i] = memcpy(copies[i], in[i], part.n);
            to = last;
        }
        if (!multiply_block(in[0], in[1], &v, even, to)) {
            part.in[0] = in[0], part.in[1] = in[1], part.out = out;
            p->exact(&part);
        } else if (to == last) {
            memcpy(out, last, part.n);
        }
        in[0] += steps[0] * BLOCK;
        in[1] += steps[1] * BLOCK;
    }
}
#define multiply_evenly(run) multiply_blocks(run, true)
#define multiply_nearly(run) multiply_blocks(run, false)
QUICK_LOOP(even_product_avx2, TQ_TARGET_AVX2, multiply_evenly)
QUICK_LOOP(quick_product_avx2, TQ_TARGET_AVX2, multiply_nearly)
#endif
static const tq_broadcast_fn quick_loops[TQ_ISAS] = TQ_ISA_FUNCTIONS(quick_product);

static bool is_byte(int32_t value)
{
    return value == (int8_t)value;
}

static bool are_bytes(const tq_pair *p)
{
    return is_byte(p->zero_first) && is_byte(p->zero_second) && is_byte(p->zero_output) && is_byte(p->low) &&
           is_byte(p->high);
}

/* Sets the numbers of quick_product; false beyond its bounds. */
static bool find_quick(tq_pair *p)
{
    const int32_t right = p->lane_output.right, multiplier = p->lane_output.multiplier;
    if (!are_bytes(p) || right < 1 || right > 15)
        return false;
    p->by = (float)ldexp(multiplier, -(15 + right));
    p->offset = (1 << 15) + (1 << (15 - right));
    p->below = p->offset - (1 << (16 - right));
    p->right = 16;
    p->margin = (multiplier & 0x7FFFFF) == 0 && right <= 8 ? 0 : 4;
    return true;
}

/* XNNPACK's */
TQ_BODY int32_t lane_even_mul(int32_t x, int32_t y, const tq_pair *p)
{
    const int16_t first = (int16_t)(x - p->zero_first), second = (int16_t)(y - p->zero_second);
    const float product = (float)(first * second) * p->by;
    return tq_lane_round_even(product, (float)p->least, (float)p->most) + p->zero_output;
}

TQ_PAIR_8BIT(even_product_scalar, , lane_even_mul)
#if TQ_X86
TQ_PAIR_8BIT(even_product_avx512, TQ_TARGET_AVX512, lane_even_mul)
#endif
static const tq_broadcast_fn even_loops[TQ_ISAS] = TQ_ISA_FUNCTIONS(even_product);

static tq_broadcast_fn even_loop(const tq_pair *p)
{
    const tq_broadcast_fn loop = even_loops[tq_isa()];
    (void)p;
#if TQ_X86
    const bool fits = are_bytes(p) && fabsf(p->by) < 0x1p14f; /* products fit int32 */
    if (loop == even_product_avx2 && !fits)
        return even_product_scalar;
#endif
    return loop;
}

static float real_square(float x, const void *params)
{
    (void)params;
    return x * x;
}

/* XNNPACK's MUL of a tensor with itself.  (Where a table computes several operators at once, MUL is computed as for two
   tensors.) */
static tq_status prepare_square(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input_scale(node, 0, error));
    TQ_TRY(tq_check_output_scale(node, 0, error));
    TQ_TRY(tq_lookup_prepare_real(node, real_square, NULL, error));
    int32_t low, high;
    tq_activation_range(node, tq_binary_activation(node), &low, &high);
    tq_lookup_clamp(node, low, high);
    return TQ_OK;
}

/* The kernel from INT16 to 8 bits takes the lesser of the upper bound first: where the zero point lies outside the
   type, every value becomes the lower bound, and is cut to the type. */
static void bound_narrow(const tq_node *node, tq_pair *p)
{
    const tq_tensor *out = node->out[0];
    int32_t low, high;
    float least, most;
    tq_quantized_range(out->type, &low, &high);
    tq_activation_range_f32(node, tq_binary_activation(node), &least, &most);
    low = tq_quantize_away(least, tq_scale_of(out), p->zero_output, low, INT32_MAX);
    high = tq_quantize_away(most, tq_scale_of(out), p->zero_output, INT32_MIN, high);
    p->low = low <= high ? low : tq_value_cut(out->type, low);
    p->high = low <= high ? high : p->low;
    p->least = p->low - p->zero_output;
    p->most = p->high - p->zero_output;
}

tq_status tq_prepare_mul(tq_node *node, tq_error *error)
{
    const unsigned eight_bits = TQ_T(INT8) | TQ_T(UINT8);
    if (!tq_pair_is_quantized(node))
        return tq_binary_prepare(node, error);
    TQ_TRY(tq_pair_check_types(node, error));
    int32_t type = node->in[0]->type;
    TQ_TRY(tq_check_output(node, 0, type == TQ_TensorType_INT16 ? TQ_T(INT16) | eight_bits : tq_type_set(type), error));
    if (tq_pair_is_xnnpack(node) && node->in[0] == node->in[1] && !node->tabulated)
        return prepare_square(node, error);
    TQ_TRY(tq_pair_prepare(node, sizeof(tq_pair_state), error));
    tq_pair_state *s = node->state;
    if (node->out[0]->type == TQ_TensorType_INT16)
        TQ_TRY(tq_pair_check_symmetric(node, error));
    if (type != node->out[0]->type) {
        bound_narrow(node, &s->p);
        s->walk.run = node->out[0]->type == TQ_TensorType_INT8 ? multiply_q15_int8 : multiply_q15_uint8;
        return TQ_OK;
    }
    if (tq_pair_is_xnnpack(node)) {
        const float first = tq_scale_of(node->in[0]), second = tq_scale_of(node->in[1]);
        s->p.by = tq_even_multiplier(first, second, tq_scale_of(node->out[0]));
        s->walk.run = even_loop(&s->p);
        if (!isfinite(s->p.by))
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "its scales' ratio is %g; it needs to be finite", s->p.by);
        return tq_pair_note_map(node, error);
    }
    TQ_TRY(tq_check_output_divisor(node, error));
    float product = tq_scale_of(node->in[0]) * tq_scale_of(node->in[1]);
    TQ_TRY(tq_fixed_find(node, product / tq_scale_of(node->out[0]), &s->p.output, error));
    s->p.lane_output = tq_lane_fixed_of(s->p.output);
    int64_t most = type == TQ_TensorType_INT16 ? (int64_t)1 << 30 : 2047 * 2047;
    const bool fits = tq_lane_fits(s->p.output, most);
    s->walk.run = tq_pair_choose(&multiply_loops, type, fits);
    if (fits && type != TQ_TensorType_INT16 && find_quick(&s->p)) {
        s->p.exact = s->walk.run;
        s->walk.run = quick_loops[tq_isa()];
    }
    return tq_pair_note_map(node, error);
}
