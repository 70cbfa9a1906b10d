/* SPDX-License-Identifier: Apache-2.0
 *
 * FarmHash's Fingerprint64.  All arithmetic is modulo 2^64; each range of lengths has its own function.
 */
#include "ops/search/fingerprint.h"

#include <string.h>

#define K0 UINT64_C(0xc3a5c85c97cb3127)
#define K1 UINT64_C(0xb492b66fbe98f273)
#define K2 UINT64_C(0x9ae16a3b2f90404f)

typedef struct pair {
    uint64_t first, second;
} pair;

static uint64_t load_64(const unsigned char *s)
{
    uint64_t x;
    memcpy(&x, s, sizeof x);
    return x;
}

static uint64_t load_32(const unsigned char *s)
{
    uint32_t x;
    memcpy(&x, s, sizeof x);
    return x;
}

/* x rotated right by 0 < bits < 64. */
static uint64_t rotate(uint64_t x, int bits)
{
    return x >> bits | x << (64 - bits);
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
        uint64_t a = load_64(s) + K2, b = load_64(s + n - 8);
        return mix(rotate(b, 37) * by + a, (rotate(a, 25) + b) * by, by);
    }
    if (n >= 4)
        return mix(n + (load_32(s) << 3), load_32(s + n - 4), by);
    if (n == 0)
        return K2;
    uint64_t y = s[0] + ((uint64_t)s[n / 2] << 8), z = n + ((uint64_t)s[n - 1] << 2);
    return fold_high(y * K2 ^ z * K0) * K2;
}

static uint64_t up_to_32(const unsigned char *s, size_t n)
{
    uint64_t by = K2 + 2 * n, a = load_64(s) * K1, b = load_64(s + 8), c = load_64(s + n - 8) * by,
             d = load_64(s + n - 16) * K2;
    return mix(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + K2, 18) + c, by);
}

static uint64_t up_to_64(const unsigned char *s, size_t n)
{
    uint64_t by = K2 + 2 * n, a = load_64(s) * K2, b = load_64(s + 8), c = load_64(s + n - 8) * by,
             d = load_64(s + n - 16) * K2;
    uint64_t y = rotate(a + b, 43) + rotate(c, 30) + d, z = mix(y, a + rotate(b + K2, 18) + c, by);
    uint64_t e = load_64(s + 16) * by, f = load_64(s + 24);
    uint64_t g = (y + load_64(s + n - 32)) * by, h = (z + load_64(s + n - 24)) * by;
    return mix(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, by);
}

/* Mixes 32 bytes into a pair of seeds. */
static pair stir(const unsigned char *s, uint64_t a, uint64_t b)
{
    uint64_t last = load_64(s + 24);
    a += load_64(s);
    b = rotate(b + a + last, 21);
    uint64_t c = a;
    a += load_64(s + 8) + load_64(s + 16);
    b += rotate(a, 44);
    return (pair){a + last, b + c};
}

typedef struct state {
    uint64_t x, y, z;
    pair v, w;
} state;

/* Mixes 64 bytes into the state, with w.second and v.first times `weight`: 1, or 9 for the last block. */
static void stir_block(state *t, const unsigned char *s, uint64_t by, uint64_t weight)
{
    uint64_t x = rotate(t->x + t->y + t->v.first + load_64(s + 8), 37) * by;
    uint64_t y = rotate(t->y + t->v.second + load_64(s + 48), 42) * by;
    x ^= t->w.second * weight;
    y += t->v.first * weight + load_64(s + 40);
    uint64_t z = rotate(t->z + t->w.first, 33) * by;
    t->v = stir(s, t->v.second * by, x + t->w.first);
    t->w = stir(s + 32, z + t->w.second, y + load_64(s + 16));
    t->x = z;
    t->y = y;
    t->z = x;
}

static uint64_t over_64(const unsigned char *s, size_t n)
{
    const uint64_t seed = 81;
    const unsigned char *end = s + (n - 1) / 64 * 64, *last = end + ((n - 1) & 63) - 63;
    state t = {seed * K2 + load_64(s), seed * K1 + 113, 0, {0, 0}, {0, 0}};
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
