/* SPDX-License-Identifier: Apache-2.0
 *
 * Planes: the two innermost dimensions of a strided copy.
 */
#ifndef TQ_OPS_MOVEMENT_PLANE_H
#define TQ_OPS_MOVEMENT_PLANE_H

#include <stdbool.h>
#include <stddef.h>

/* rows x columns runs of `run` bytes, and the steps in bytes between them. */
typedef struct tq_plane {
    size_t rows, columns, run;
    ptrdiff_t row_from, row_to, column_from, column_to;
} tq_plane;

/* Copies a transposition, whose row_from and column_to are `run`, by vectors.  false: nothing was copied, since there
   are no vectors for runs of this size or the plane is too small. */
bool tq_plane_transpose(const tq_plane *p, const void *from, void *to);

#endif
