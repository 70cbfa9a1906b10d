/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/arrays/parameter_checks.h"

#include <string.h>

#include "kernels/isa.h"

/* These loops have no early exit, so that compilers vectorize them; faults are gathered in bits. */

/* Positive normal floats have bits from `least` to `most`.  For all other bits one of the two differences, modulo 2^32,
   has the sign bit: the first below `least`; the second from most + 1 to most + 2^31; the first from least + 2^31 on.
 */
TQ_BODY bool scales_fit(const float *scale, size_t count)
{
    const uint32_t least = 0x00800000, most = 0x7F7FFFFF;
    uint32_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, scale + i, sizeof bits);
        bad |= (bits - least) | (most - bits);
    }
    return bad >> 31 == 0;
}

/* For v < low the first difference has the sign bit, unless it wraps; then the second is 2^63 or slightly more.  For
   v > high the second has the sign bit: it does not wrap, since high >= 0. */
TQ_BODY bool fit_i64(const int64_t *restrict from, size_t count, int32_t low, int32_t high, int32_t *restrict to,
                     bool *differ)
{
    uint64_t bad = 0, first = count ? (uint64_t)from[0] : 0, differing = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t v = (uint64_t)from[i];
        bad |= (v - (uint64_t)(int64_t)low) | ((uint64_t)(int64_t)high - v);
        differing |= v ^ first;
        to[i] = (int32_t)from[i];
    }
    *differ = differing != 0;
    return bad >> 63 == 0;
}

TQ_BODY bool fit_i32(const int32_t *restrict from, size_t count, int32_t low, int32_t high, int32_t *restrict to,
                     bool *differ)
{
    uint32_t first = count ? (uint32_t)from[0] : 0, differing = 0, range = (uint32_t)high - (uint32_t)low, bad = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t v = (uint32_t)from[i];
        bad |= v - (uint32_t)low > range;
        differing |= v ^ first;
        to[i] = from[i];
    }
    *differ = differing != 0;
    return bad == 0;
}

typedef bool (*scales_fn)(const float *, size_t);
typedef bool (*i64_fn)(const int64_t *, size_t, int32_t, int32_t, int32_t *, bool *);
typedef bool (*i32_fn)(const int32_t *, size_t, int32_t, int32_t, int32_t *, bool *);
#define BODIES(isa, target)                                                                                     \
    target static bool scales_fit_##isa(const float *scale, size_t count)                                       \
    {                                                                                                           \
        return scales_fit(scale, count);                                                                        \
    }                                                                                                           \
    target static bool fit_i64_##isa(const int64_t *from, size_t count, int32_t low, int32_t high, int32_t *to, \
                                     bool *differ)                                                              \
    {                                                                                                           \
        return fit_i64(from, count, low, high, to, differ);                                                     \
    }                                                                                                           \
    target static bool fit_i32_##isa(const int32_t *from, size_t count, int32_t low, int32_t high, int32_t *to, \
                                     bool *differ)                                                              \
    {                                                                                                           \
        return fit_i32(from, count, low, high, to, differ);                                                     \
    }
TQ_EVERY_ISA(BODIES)

bool tq_scales_fit(const float *scale, size_t count)
{
    static const scales_fn bodies[TQ_ISAS] = TQ_ISA_FUNCTIONS(scales_fit);
    return bodies[tq_isa()](scale, count);
}

bool tq_zero_points_fit_i64(const int64_t *from, size_t count, int32_t low, int32_t high, int32_t *to, bool *differ)
{
    static const i64_fn bodies[TQ_ISAS] = TQ_ISA_FUNCTIONS(fit_i64);
    return bodies[tq_isa()](from, count, low, high, to, differ);
}

bool tq_zero_points_fit_i32(const int32_t *from, size_t count, int32_t low, int32_t high, int32_t *to, bool *differ)
{
    static const i32_fn bodies[TQ_ISAS] = TQ_ISA_FUNCTIONS(fit_i32);
    return bodies[tq_isa()](from, count, low, high, to, differ);
}
