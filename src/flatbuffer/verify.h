/* SPDX-License-Identifier: Apache-2.0
 *
 * The verifier: one walk over everything that the schema's rows reach from a root table.  It allocates nothing.
 *
 * Of Model.buffers the verifier checks only that every offset leads into the file.  A buffer's table stands beside its
 * data, so checking each would touch as many pages as a model has constants, all over the file, and would take most of
 * the time of opening.  tq_model_buffer() checks a buffer when a caller asks for it.
 *
 * Every table, vtable, field, vector and string must lie inside the file.  The verifier does not require alignment, a
 * NUL behind strings, a file identifier, known union types, or fields inside the table's declared size: reading does
 * not need them.
 *
 * Tables and vectors may be shared, so a small file can describe an endless walk.  Three budgets bound it, and every
 * later walk over the same tables:
 *   depth    tables inside tables.  The schema itself nests 6 deep.
 *   tables   visits.  A table takes at least its 4-byte soffset, so a file without sharing needs at most size / 4.
 *   bytes    of vectors and strings, counted at each visit.
 */
#ifndef TQ_FLATBUFFER_VERIFY_H
#define TQ_FLATBUFFER_VERIFY_H

#include "flatbuffer/table.h"

typedef struct tq_budget {
    uint32_t depth;  /* levels */
    uint64_t tables; /* visits */
    uint64_t bytes;
} tq_budget;

/* The default budget: 32 levels, size / 4 + 1024 tables, 4 * size + 16 MiB. */
tq_budget tq_budget_for(size_t file_size);

/* Verifies `file`, of any size, as a flatbuffer with a root of table `root`; *out is that root.  budget: NULL for
   tq_budget_for(file.size).  Fails with the statuses that status.def lists under "not a flatbuffer"; `error` names the
   byte and the field. */
tq_status tq_verify(tq_bytes file, tq_table_id root, const tq_budget *budget, tq_table *out, tq_error *error);

#endif
