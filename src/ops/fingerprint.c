/* SPDX-License-Identifier: Apache-2.0
 *
 * FarmHash's fingerprint: by sizes of up to 16, 32 and 64 bytes, and by blocks of 64.  All sums and products wrap.
 * Source: https://github.com/google/farmhash, farmhash.cc, namespace farmhashna.
 */
#include "ops/fingerprint.h"

#define K0 UINT64_C(0xC3A5C85C97CB3127)
#define K1 UINT64_C(0xB492B66FBE98F273)
#define K2 UINT64_C(0x9AE16A3B2F90404F)

typedef struct pair {
    uint64_t first, second;
} pair;

static uint64_t word(const uint8_t *p, int bytes)
{
    uint64_t x = 0;
    for (int i = bytes; i-- > 0;)
        x = x << 8 | p[i];
    return x;
}

static uint64_t at(const uint8_t *p)
{
    return word(p, 8);
}

static uint64_t right(uint64_t x, int bits)
{
    return x >> bits | x << (64 - bits);
}

static uint64_t fold(uint64_t x)
{
    return x ^ x >> 47;
}

static uint64_t mix(uint64_t u, uint64_t v, uint64_t by)
{
    uint64_t a = fold((u ^ v) * by);
    return fold((v ^ a) * by) * by;
}

static uint64_t up_to_16(const uint8_t *p, size_t n)
{
    uint64_t by = K2 + 2 * n;
    if (n >= 8) {
        uint64_t a = at(p) + K2, b = at(p + n - 8);
        return mix(right(b, 37) * by + a, (right(a, 25) + b) * by, by);
    }
    if (n >= 4)
        return mix(n + (word(p, 4) << 3), word(p + n - 4, 4), by);
    if (n == 0)
        return K2;
    uint64_t y = p[0] + ((uint64_t)p[n / 2] << 8), z = n + ((uint64_t)p[n - 1] << 2);
    return fold((y * K2) ^ (z * K0)) * K2;
}

static uint64_t up_to_32(const uint8_t *p, size_t n)
{
    uint64_t by = K2 + 2 * n;
    uint64_t a = at(p) * K1, b = at(p + 8), c = at(p + n - 8) * by, d = at(p + n - 16) * K2;
    return mix(right(a + b, 43) + right(c, 30) + d, a + right(b + K2, 18) + c, by);
}

static uint64_t up_to_64(const uint8_t *p, size_t n)
{
    uint64_t by = K2 + 2 * n;
    uint64_t a = at(p) * K2, b = at(p + 8), c = at(p + n - 8) * by, d = at(p + n - 16) * K2;
    uint64_t y = right(a + b, 43) + right(c, 30) + d, z = mix(y, a + right(b + K2, 18) + c, by);
    uint64_t e = at(p + 16) * by, f = at(p + 24), g = (y + at(p + n - 32)) * by, h = (z + at(p + n - 24)) * by;
    return mix(right(e + f, 43) + right(g, 30) + h, e + right(f + a, 18) + g, by);
}

/* 32 bytes into two words. */
static pair take_32(const uint8_t *p, uint64_t a, uint64_t b)
{
    uint64_t last = at(p + 24);
    a += at(p);
    b = right(b + a + last, 21);
    uint64_t c = a;
    a += at(p + 8) + at(p + 16);
    b += right(a, 44);
    return (pair){a + last, b + c};
}

static uint64_t long_one(const uint8_t *p, size_t n)
{
    uint64_t x = 81, y = x * K1 + 113, z = fold(y * K2 + 113) * K2, swap;
    pair v = {0, 0}, w = {0, 0};
    const uint8_t *end = p + (n - 1) / 64 * 64, *last = p + n - 64;
    x = x * K2 + at(p);
    for (; p != end; p += 64) {
        x = right(x + y + v.first + at(p + 8), 37) * K1;
        y = right(y + v.second + at(p + 48), 42) * K1;
        x ^= w.second;
        y += v.first + at(p + 40);
        z = right(z + w.first, 33) * K1;
        v = take_32(p, v.second * K1, x + w.first);
        w = take_32(p + 32, z + w.second, y + at(p + 16));
        swap = z, z = x, x = swap;
    }
    uint64_t by = K1 + ((z & 0xFF) << 1);
    w.first += (n - 1) & 63;
    v.first += w.first;
    w.first += v.first;
    x = right(x + y + v.first + at(last + 8), 37) * by;
    y = right(y + v.second + at(last + 48), 42) * by;
    x ^= w.second * 9;
    y += v.first * 9 + at(last + 40);
    z = right(z + w.first, 33) * by;
    v = take_32(last, v.second * by, x + w.first);
    w = take_32(last + 32, z + w.second, y + at(last + 16));
    return mix(mix(v.first, w.first, by) + fold(y) * K0 + x, mix(v.second, w.second, by) + z, by);
}

uint64_t tq_fingerprint(const uint8_t *bytes, size_t size)
{
    if (size <= 16)
        return up_to_16(bytes, size);
    return size <= 32 ? up_to_32(bytes, size) : size <= 64 ? up_to_64(bytes, size) : long_one(bytes, size);
}
