/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/real_values.h"

#include <stdint.h>
#include <string.h>

static inline double from_bfloat16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Exponents move to float's bias, 112 higher; 31, of infinity and NaN, to 255; and 0 counts in 2^-24.  Without
   branches, so that compilers make vectors of it. */
static inline double from_float16(uint16_t bits)
{
    uint32_t exponent = bits >> 10 & 31, mantissa = bits & 1023u;
    uint32_t wide = (exponent + 112 + (exponent == 31 ? 112u : 0u)) << 23 | mantissa << 13, pattern;
    float small = (float)(int32_t)mantissa * 0x1p-24f, size;
    memcpy(&pattern, &small, sizeof pattern);
    pattern = (exponent == 0 ? pattern : wide) | (uint32_t)(bits & 0x8000u) << 16;
    memcpy(&size, &pattern, sizeof size);
    return size;
}

/* The stride is written out where elements are neighbours, so that compilers make vectors of it. */
#define LOADER(name, type, value_of)                                                         \
    static inline void walk_##name(const char *from, ptrdiff_t stride, size_t n, double *to) \
    {                                                                                        \
        for (size_t i = 0; i < n; i++) {                                                     \
            type element;                                                                    \
            memcpy(&element, from + (ptrdiff_t)i * stride, sizeof element);                  \
            to[i] = value_of(element);                                                       \
        }                                                                                    \
    }                                                                                        \
    static void load_##name(const char *from, ptrdiff_t stride, size_t n, double *to)        \
    {                                                                                        \
        if (stride == (ptrdiff_t)sizeof(type))                                               \
            walk_##name(from, sizeof(type), n, to);                                          \
        else                                                                                 \
            walk_##name(from, stride, n, to);                                                \
    }

LOADER(f32, float, (double))
LOADER(f64, double, )
LOADER(f16, uint16_t, from_float16)
LOADER(bf16, uint16_t, from_bfloat16)
LOADER(i8, int8_t, (double))
LOADER(u8, uint8_t, (double))
LOADER(i16, int16_t, (double))
LOADER(u16, uint16_t, (double))
LOADER(i32, int32_t, (double))
LOADER(u32, uint32_t, (double))
LOADER(i64, int64_t, (double))
LOADER(u64, uint64_t, (double))

tq_real_loader tq_real_loader_of(tq_real_type type)
{
    static const tq_real_loader loaders[TQ_REAL_TYPES] = {
        [TQ_REAL_F32] = load_f32, [TQ_REAL_F64] = load_f64, [TQ_REAL_F16] = load_f16, [TQ_REAL_BF16] = load_bf16,
        [TQ_REAL_I8] = load_i8,   [TQ_REAL_U8] = load_u8,   [TQ_REAL_I16] = load_i16, [TQ_REAL_U16] = load_u16,
        [TQ_REAL_I32] = load_i32, [TQ_REAL_U32] = load_u32, [TQ_REAL_I64] = load_i64, [TQ_REAL_U64] = load_u64,
    };
    return loaders[type];
}
