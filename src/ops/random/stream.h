/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream of random 32-bit values: Philox with key = seed, counter = seed2 * 2^64.
 *
 * The stream continues from one invoke to the next, and starts again when its operator is prepared.  Only the lower 32
 * bits of a seed count.  If both seeds are 0, each start takes other seeds.
 * Source: LiteRT f6745779,
 * tflite/kernels/random_ops.cc, and XLA, xla/tsl/lib/random/{philox_random,random_distributions_utils}.h.
 */
#ifndef TQ_OPS_RANDOM_STREAM_H
#define TQ_OPS_RANDOM_STREAM_H

#include "ops/op.h"

typedef struct tq_random_stream {
    uint32_t key[2], counter[4]; /* of Philox; the lower 32 bits come first */
} tq_random_stream;

/* Starts the stream of a node whose options are RandomOptions. */
void tq_random_stream_start(const tq_node *node, tq_random_stream *s);

/* The next four values. */
void tq_random_stream_draw(tq_random_stream *s, uint32_t out[4]);

/* Skips 4 * count values; the counter wraps at 2^128. */
void tq_random_stream_skip(tq_random_stream *s, uint64_t count);

#endif
