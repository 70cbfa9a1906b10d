/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions between the files of the writer: writer.c (the walk over the tree), vtables.c and trailing.c.
 */
#ifndef TQ_FLATBUFFER_WRITER_INTERNAL_H
#define TQ_FLATBUFFER_WRITER_INTERNAL_H

#include "flatbuffer/writer.h"

/* ---- vtables.c ---- */

typedef struct tq_vtable {
    uint64_t hash;
    uint64_t at;   /* offset in the new file; 0: not assigned yet */
    uint16_t size; /* bytes */
    uint8_t bytes[];
} tq_vtable;

/* A hash of `size` bytes, of no use outside of this process. */
uint64_t tq_hash_bytes(const uint8_t *bytes, size_t size);

/* The plan's one vtable of these bytes; a new one has at == 0. */
tq_status tq_vtable_intern(tq_plan *plan, const uint8_t *bytes, uint16_t size, tq_vtable **out, tq_error *error);

/* ---- trailing.c: lists of cells whose bytes stand behind all tables ---- */

/* Gives the cells ascending offsets (cell->at) from *end on, and sets *end to the end of the last.  Cells with equal
   bytes share the offset of the first.  ahead: bytes before the data (4 for a vector's count, or 0); align: the least
   alignment of the data, a power of 2.  TQ_NO_MEMORY; TQ_TOO_LARGE: the file passes 2^64 bytes. */
tq_status tq_trailing_assign(tq_plan *plan, tq_cell **cells, size_t count, unsigned ahead, unsigned align,
                             uint64_t *end, tq_error *error);

/* Copies the bytes of the cells of a list to their offsets in `whole`, the memory of the whole file, or calls their
   makers, on several threads.  The error is that of the first cell in the list that fails. */
tq_status tq_trailing_write(tq_plan *plan, tq_cell **cells, size_t count, unsigned ahead, uint8_t *whole,
                            tq_error *error);

#endif
