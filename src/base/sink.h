/* SPDX-License-Identifier: Apache-2.0
 *
 * A destination of bytes, written in order: memory or an open file.
 */
#ifndef TQ_BASE_SINK_H
#define TQ_BASE_SINK_H

#include "base/bytes.h"
#include "base/status.h"

typedef struct tq_sink {
    tq_status (*put)(void *context, tq_bytes bytes, tq_error *error);
    void *context;
    uint8_t *(*reserve)(void *context, size_t size); /* room for the next `size` bytes, which the caller fills; NULL:
                                                        call put.  The member may be NULL */
} tq_sink;

/* Writes to `data`, which has room for `left` bytes.  TQ_BAD_ARGUMENT: more bytes. */
typedef struct tq_memory_sink {
    uint8_t *data;
    size_t left;
} tq_memory_sink;
tq_sink tq_sink_to_memory(tq_memory_sink *memory);

/* Writes to a file descriptor, in pieces of at least TQ_SINK_PIECE bytes; tq_file_sink_end writes the rest.  TQ_IO. */
enum { TQ_SINK_PIECE = 1 << 16 };
typedef struct tq_file_sink {
    int descriptor;
    size_t used;
    uint8_t piece[TQ_SINK_PIECE];
} tq_file_sink;
tq_sink tq_sink_to_file(tq_file_sink *file);
tq_status tq_file_sink_end(tq_file_sink *file, tq_error *error);

#endif
