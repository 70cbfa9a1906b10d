/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of bytes that someone else owns, and little-endian loads from any alignment.
 */
#ifndef TQ_BASE_BYTES_H
#define TQ_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tq_bytes {
    const uint8_t *data;
    size_t size;
} tq_bytes;

/* Whether [offset, offset + length) lies inside.  The subtraction cannot wrap: offset <= size. */
static inline bool tq_bytes_hold(tq_bytes bytes, uint64_t offset, uint64_t length)
{
    return offset <= bytes.size && length <= bytes.size - offset;
}

/* Compilers turn these into one load where the machine is little-endian and allows it. */
static inline uint16_t tq_load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t tq_load_u32(const uint8_t *p)
{
    return (uint32_t)tq_load_u16(p) | (uint32_t)tq_load_u16(p + 2) << 16;
}

static inline uint64_t tq_load_u64(const uint8_t *p)
{
    return (uint64_t)tq_load_u32(p) | (uint64_t)tq_load_u32(p + 4) << 32;
}

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
