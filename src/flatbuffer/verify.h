/* SPDX-License-Identifier: Apache-2.0
 *
 * The verifier: walks everything that the schema's rows can reach from a root table, once, and
 * allocates nothing.
 *
 * One vector it leaves to its readers: Model.buffers, of which it sees that every offset leads into the
 * file and no more.  A buffer's table stands beside its data, so that looking at each would touch as many
 * pages as a model has constants, scattered over all of the file, and opening would take most of its time
 * there.  tq_model_buffer() checks a buffer when it is asked for.
 *
 * It demands what reading needs: every table, vtable, field, vector and string lies inside the
 * file.  It does not demand what reading does not need: alignment, a NUL behind strings, a file
 * identifier, known union types, fields inside the table's declared size.
 *
 * Tables and vectors may be shared, so a small file can describe a walk without end.  Three budgets
 * bound it, and with it everything that later walks the same way:
 *   depth    tables inside tables.  The schema itself nests 6 deep.
 *   tables   visits.  A table that is reached once costs its 4-byte soffset, so a file without
 *            sharing needs at most size / 4.
 *   bytes    of vectors and strings, again per visit.
 */
#ifndef TQ_FLATBUFFER_VERIFY_H
#define TQ_FLATBUFFER_VERIFY_H

#include "flatbuffer/table.h"

typedef struct tq_budget {
    uint32_t depth;
    uint64_t tables;
    uint64_t bytes;
} tq_budget;

/* 32 deep, size / 4 + 1024 tables, 4 * size + 16 MiB. */
tq_budget tq_budget_for(size_t file_size);

/* Verifies `file` as a flatbuffer whose root is of table `root`, and returns that table.
   `budget` may be NULL for tq_budget_for(file.size).  Fails with the statuses that status.def lists
   under "not a flatbuffer"; `error` names the byte and the field. */
tq_status tq_verify(tq_bytes file, tq_table_id root, const tq_budget *budget, tq_table *out, tq_error *error);

#endif
