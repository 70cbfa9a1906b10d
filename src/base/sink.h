/* SPDX-License-Identifier: Apache-2.0
 *
 * Where bytes go, one run after the other: to memory or to an open file.
 */
#ifndef TQ_BASE_SINK_H
#define TQ_BASE_SINK_H

#include "base/bytes.h"
#include "base/status.h"

typedef struct tq_sink {
    tq_status (*put)(void *context, tq_bytes bytes, tq_error *error);
    void *context;
    uint8_t *(*reserve)(void *context, size_t size); /* room for the next `size` bytes, which the caller fills; NULL, as
                                                        the member may be: put them */
} tq_sink;

/* Into `data`; TQ_BAD_ARGUMENT for more than `left` bytes. */
typedef struct tq_memory_sink {
    uint8_t *data;
    size_t left;
} tq_memory_sink;
tq_sink tq_sink_to_memory(tq_memory_sink *memory);

/* Into a file descriptor, in pieces of at least this size but for the last, which tq_file_sink_end
   writes.  TQ_IO. */
enum { TQ_SINK_PIECE = 1 << 16 };
typedef struct tq_file_sink {
    int descriptor;
    size_t used;
    uint8_t piece[TQ_SINK_PIECE];
} tq_file_sink;
tq_sink tq_sink_to_file(tq_file_sink *file);
tq_status tq_file_sink_end(tq_file_sink *file, tq_error *error);

#endif
