/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of bytes, owned elsewhere, and little-endian loads and stores at any alignment.
 */
#ifndef TQ_BASE_BYTES_H
#define TQ_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/machine.h"

typedef struct tq_bytes {
    const uint8_t *data;
    size_t size;
} tq_bytes;

/* Whether [offset, offset + length) lies inside; any offset and length.  The subtraction cannot wrap: offset <= size.
 */
static inline bool tq_bytes_hold(tq_bytes bytes, uint64_t offset, uint64_t length)
{
    return offset <= bytes.size && length <= bytes.size - offset;
}

#if TQ_IS_BIG_ENDIAN
#define TQ_FROM_LITTLE(value, bits) __builtin_bswap##bits(value)
#else
#define TQ_FROM_LITTLE(value, bits) (value)
#endif

/* tq_load_u16, _u32, _u64: the value of 2, 4, 8 bytes at p. */
#define TQ_LOADER(bits)                                            \
    static inline uint##bits##_t tq_load_u##bits(const uint8_t *p) \
    {                                                              \
        uint##bits##_t value;                                      \
        memcpy(&value, p, sizeof value);                           \
        return TQ_FROM_LITTLE(value, bits);                        \
    }
TQ_LOADER(16)
TQ_LOADER(32)
TQ_LOADER(64)
#undef TQ_LOADER

/* tq_store_u16, _u32, _u64: writes 2, 4, 8 bytes at p. */
#define TQ_STORER(bits)                                                     \
    static inline void tq_store_u##bits(uint8_t *p, uint##bits##_t value)   \
    {                                                                       \
        value = TQ_FROM_LITTLE(value, bits); /* the same swap leads back */ \
        memcpy(p, &value, sizeof value);                                    \
    }
TQ_STORER(16)
TQ_STORER(32)
TQ_STORER(64)
#undef TQ_STORER

static inline float tq_load_f32(const uint8_t *p)
{
    uint32_t bits = tq_load_u32(p);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double tq_load_f64(const uint8_t *p)
{
    uint64_t bits = tq_load_u64(p);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
