/* SPDX-License-Identifier: Apache-2.0
 *
 * Stages and roots of real Fourier transforms, and the three arithmetics.
 *
 * Fixed point: MAX = 2^b - 1 stands for 1.  |a b -+ c d| of a value (a, c) and a root (b, d) is at most sqrt(2) 2^2b,
 * so that the wider type holds it.
 */
#include "ops/signal/real_fft.h"

#include <math.h>

#include "ops/check.h"

#define NAME(x) x##_f32
#define SCALAR float
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define NEG(a) (-(a))
#define MUL(a, b) ((a) * (b))
#define MUL_SUB(a, b, c, d) ((a) * (b) - (c) * (d))
#define MUL_ADD(a, b, c, d) ((a) * (b) + (c) * (d))
#define SHARE(a, p) (a)
#define HALF(a) ((a) * 0.5f)
#define HALF_ADD(a, b) (((a) + (b)) * 0.5f)
#define HALF_SUB(a, b) (((a) - (b)) * 0.5f)
#define COSINE(x) ((float)(x))
#include "ops/signal/real_fft_template.h"

/* 16-bit values are added in 32 bits; the sum wraps when it is stored. */
static int16_t wrap_16(int32_t x)
{
    return (int16_t)(uint16_t)(uint32_t)x;
}

static int16_t round_15(int32_t x)
{
    return wrap_16((x + (1 << 14)) >> 15);
}

#define NAME(x) x##_i16
#define SCALAR int16_t
#define ADD(a, b) wrap_16((a) + (b))
#define SUB(a, b) wrap_16((a) - (b))
#define NEG(a) wrap_16(-(a))
#define MUL(a, b) round_15((a) * (b))
#define MUL_SUB(a, b, c, d) round_15((a) * (b) - (c) * (d))
#define MUL_ADD(a, b, c, d) round_15((a) * (b) + (c) * (d))
#define SHARE(a, p) round_15((a) * (INT16_MAX / (p)))
#define HALF(a) wrap_16((a) >> 1)
#define HALF_ADD(a, b) wrap_16(((a) + (b)) >> 1)
#define HALF_SUB(a, b) wrap_16(((a) - (b)) >> 1)
#define COSINE(x) (int16_t)floor(0.5 + INT16_MAX * (x))
#include "ops/signal/real_fft_template.h"

static int32_t wrap_32(int64_t x)
{
    return (int32_t)(uint32_t)(uint64_t)x;
}

static int32_t round_31(int64_t x)
{
    return wrap_32((x + (1 << 30)) >> 31);
}

#define NAME(x) x##_i32
#define SCALAR int32_t
#define ADD(a, b) wrap_32((int64_t)(a) + (b))
#define SUB(a, b) wrap_32((int64_t)(a) - (b))
#define NEG(a) wrap_32(-(int64_t)(a))
#define MUL(a, b) round_31((int64_t)(a) * (b))
#define MUL_SUB(a, b, c, d) round_31((int64_t)(a) * (b) - (int64_t)(c) * (d))
#define MUL_ADD(a, b, c, d) round_31((int64_t)(a) * (b) + (int64_t)(c) * (d))
#define SHARE(a, p) round_31((int64_t)(a) * (INT32_MAX / (p)))
#define HALF(a) ((a) >> 1)
#define HALF_ADD(a, b) (wrap_32((int64_t)(a) + (b)) >> 1)
#define HALF_SUB(a, b) (wrap_32((int64_t)(a) - (b)) >> 1)
#define COSINE(x) (int32_t)floor(0.5 + INT32_MAX * (x))
#include "ops/signal/real_fft_template.h"

/* Finds the stages of n complex values; false: n has a prime factor above 5. */
static bool find_stages(tq_real_fft *fft, int32_t n)
{
    static const int32_t radixes[] = {4, 2, 3, 5};
    int stage = 0;
    for (size_t i = 0; i < sizeof radixes / sizeof *radixes; i++)
        while (n % radixes[i] == 0) {
            n /= radixes[i];
            fft->radix[stage] = radixes[i];
            fft->span[stage++] = n;
        }
    return n == 1;
}

tq_status tq_real_fft_make(tq_node *node, int32_t type, int64_t length, bool inverse, tq_real_fft *out, tq_error *error)
{
    if (length < 4 || length > 1 << 24 || length % 2)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has fft_length %lld; it needs an even one from 4 to 2^24",
                          (long long)length);
    tq_real_fft fft = {.half = (int32_t)(length / 2), .inverse = inverse};
    if (!find_stages(&fft, fft.half))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "has fft_length %lld; half of it needs to be a product of 2, 3 and 5", (long long)length);
    size_t complex_bytes = 2 * tq_element_bytes(type);
    TQ_TRY(tq_node_memory(node, (uint64_t)fft.half, complex_bytes, &fft.roots, error));
    TQ_TRY(tq_node_memory(node, (uint64_t)fft.half / 2, complex_bytes, &fft.super_twiddles, error));
    if (type == TQ_TensorType_FLOAT32)
        fill_f32(&fft);
    else if (type == TQ_TensorType_INT16)
        fill_i16(&fft);
    else
        fill_i32(&fft);
    *out = fft;
    return TQ_OK;
}
