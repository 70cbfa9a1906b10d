/* SPDX-License-Identifier: Apache-2.0
 *
 * See fingerprint.h.  All arithmetic is modulo 2^64; each length has its own way.
 */
#include "ops/search/fingerprint.h"

#include <string.h>

#define K0 UINT64_C(0xc3a5c85c97cb3127)
#define K1 UINT64_C(0xb492b66fbe98f273)
#define K2 UINT64_C(0x9ae16a3b2f90404f)

typedef struct pair {
    uint64_t first, second;
} pair;

static uint64_t word(const unsigned char *s)
{
    uint64_t x;
    memcpy(&x, s, sizeof x);
    return x;
}

static uint64_t half_word(const unsigned char *s)
{
    uint32_t x;
    memcpy(&x, s, sizeof x);
    return x;
}

/* 0 < places < 64 */
static uint64_t turn(uint64_t x, int places)
{
    return x >> places | x << (64 - places);
}

static uint64_t fold_high(uint64_t x)
{
    return x ^ x >> 47;
}

static uint64_t mix(uint64_t u, uint64_t v, uint64_t by)
{
    uint64_t a = fold_high((u ^ v) * by);
    return fold_high((v ^ a) * by) * by;
}

static uint64_t up_to_16(const unsigned char *s, size_t n)
{
    uint64_t by = K2 + 2 * n;
    if (n >= 8) {
        uint64_t a = word(s) + K2, b = word(s + n - 8);
        return mix(turn(b, 37) * by + a, (turn(a, 25) + b) * by, by);
    }
    if (n >= 4)
        return mix(n + (half_word(s) << 3), half_word(s + n - 4), by);
    if (n == 0)
        return K2;
    uint64_t y = s[0] + ((uint64_t)s[n / 2] << 8), z = n + ((uint64_t)s[n - 1] << 2);
    return fold_high(y * K2 ^ z * K0) * K2;
}

static uint64_t up_to_32(const unsigned char *s, size_t n)
{
    uint64_t by = K2 + 2 * n, a = word(s) * K1, b = word(s + 8), c = word(s + n - 8) * by, d = word(s + n - 16) * K2;
    return mix(turn(a + b, 43) + turn(c, 30) + d, a + turn(b + K2, 18) + c, by);
}

static uint64_t up_to_64(const unsigned char *s, size_t n)
{
    uint64_t by = K2 + 2 * n, a = word(s) * K2, b = word(s + 8), c = word(s + n - 8) * by, d = word(s + n - 16) * K2;
    uint64_t y = turn(a + b, 43) + turn(c, 30) + d, z = mix(y, a + turn(b + K2, 18) + c, by);
    uint64_t e = word(s + 16) * by, f = word(s + 24);
    uint64_t g = (y + word(s + n - 32)) * by, h = (z + word(s + n - 24)) * by;
    return mix(turn(e + f, 43) + turn(g, 30) + h, e + turn(f + a, 18) + g, by);
}

/* Four words into a pair of seeds. */
static pair stir(const unsigned char *s, uint64_t a, uint64_t b)
{
    uint64_t last = word(s + 24);
    a += word(s);
    b = turn(b + a + last, 21);
    uint64_t c = a;
    a += word(s + 8) + word(s + 16);
    b += turn(a, 44);
    return (pair){a + last, b + c};
}

typedef struct state {
    uint64_t x, y, z;
    pair v, w;
} state;

/* 64 bytes; the last ones weigh w.second and v.first `weight` times. */
static void stir_block(state *t, const unsigned char *s, uint64_t by, uint64_t weight)
{
    uint64_t x = turn(t->x + t->y + t->v.first + word(s + 8), 37) * by;
    uint64_t y = turn(t->y + t->v.second + word(s + 48), 42) * by;
    x ^= t->w.second * weight;
    y += t->v.first * weight + word(s + 40);
    uint64_t z = turn(t->z + t->w.first, 33) * by;
    t->v = stir(s, t->v.second * by, x + t->w.first);
    t->w = stir(s + 32, z + t->w.second, y + word(s + 16));
    t->x = z;
    t->y = y;
    t->z = x;
}

static uint64_t over_64(const unsigned char *s, size_t n)
{
    const uint64_t seed = 81;
    const unsigned char *end = s + (n - 1) / 64 * 64, *last = end + ((n - 1) & 63) - 63;
    state t = {seed * K2 + word(s), seed * K1 + 113, 0, {0, 0}, {0, 0}};
    t.z = fold_high(t.y * K2 + 113) * K2;
    for (; s != end; s += 64)
        stir_block(&t, s, K1, 1);
    uint64_t by = K1 + ((t.z & 0xff) << 1);
    t.w.first += (n - 1) & 63;
    t.v.first += t.w.first;
    t.w.first += t.v.first;
    stir_block(&t, last, by, 9);
    return mix(mix(t.v.first, t.w.first, by) + fold_high(t.y) * K0 + t.z, mix(t.v.second, t.w.second, by) + t.x, by);
}

uint64_t tq_fingerprint64(const void *bytes, size_t size)
{
    return size <= 16   ? up_to_16(bytes, size)
           : size <= 32 ? up_to_32(bytes, size)
           : size <= 64 ? up_to_64(bytes, size)
                        : over_64(bytes, size);
}
