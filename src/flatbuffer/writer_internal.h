/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions between the files of the writer: writer.c, which walks the tree, vtables.c and runs.c.
 */
#ifndef TQ_FLATBUFFER_WRITER_INTERNAL_H
#define TQ_FLATBUFFER_WRITER_INTERNAL_H

#include "flatbuffer/writer.h"

/* ---- vtables.c ---- */

typedef struct tq_vtable {
    uint64_t hash, at;
    uint16_t size;
    uint8_t bytes[];
} tq_vtable;

uint64_t tq_hash_bytes(const uint8_t *bytes, size_t size);

/* The plan's one vtable of these bytes; a new one has at == 0. */
tq_status tq_vtable_intern(tq_plan *plan, const uint8_t *bytes, uint16_t size, tq_vtable **out, tq_error *error);

/* ---- runs.c: lists of cells whose bytes stand behind all tables ---- */

/* Gives the cells their places from *end on, each after the last, and *end the end of all.  Cells of equal runs get the
   place of the first of them.  ahead: bytes before a run (a vector's count); align: the least alignment of a run. */
tq_status tq_place_runs(tq_plan *plan, tq_cell **cells, size_t count, unsigned ahead, unsigned align, uint64_t *end,
                        tq_error *error);

/* Copies or makes the placed runs of a list in `whole`, memory that holds the whole file, several at a time.  Fails as
   the first in the list that does. */
tq_status tq_make_runs(tq_plan *plan, tq_cell **cells, size_t count, unsigned ahead, uint8_t *whole, tq_error *error);

#endif
