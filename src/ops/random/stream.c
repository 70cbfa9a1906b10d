/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/random/stream.h"

#include "base/clock.h"
#include "ops/random/philox.h"

void tq_random_stream_skip(tq_random_stream *s, uint64_t count)
{
    uint64_t low = s->counter[0] | (uint64_t)s->counter[1] << 32;
    uint64_t high = s->counter[2] | (uint64_t)s->counter[3] << 32;
    low += count;
    high += low < count;
    s->counter[0] = (uint32_t)low;
    s->counter[1] = (uint32_t)(low >> 32);
    s->counter[2] = (uint32_t)high;
    s->counter[3] = (uint32_t)(high >> 32);
}

void tq_random_stream_draw(tq_random_stream *s, uint32_t out[4])
{
    tq_philox(s->counter, s->key, out);
    tq_random_stream_skip(s, 1);
}

/* A seed from the time and an address, mixed by the finalizer of MurmurHash3. */
static uint64_t random_seed(const void *address, uint64_t salt)
{
    uint64_t x = tq_nanoseconds() ^ (uint64_t)(uintptr_t)address ^ salt;
    x = (x ^ x >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
    x = (x ^ x >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return x ^ x >> 33;
}

/* The lower 32 bits, sign-extended, as in LiteRT's record of options. */
static uint64_t seed_of(const tq_node *node, tq_field_id field)
{
    return (uint64_t)(int64_t)(int32_t)(uint32_t)(uint64_t)tq_get_int(&node->options.table, field);
}

void tq_random_stream_start(const tq_node *node, tq_random_stream *s)
{
    uint64_t seed = seed_of(node, TQ_RandomOptions_seed), seed2 = seed_of(node, TQ_RandomOptions_seed2);
    if (seed == 0 && seed2 == 0) {
        seed = random_seed(s, 0);
        seed2 = random_seed(node, seed);
    }
    *s = (tq_random_stream){{(uint32_t)seed, (uint32_t)(seed >> 32)}, {0, 0, (uint32_t)seed2, (uint32_t)(seed2 >> 32)}};
}
