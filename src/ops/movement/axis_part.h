/* SPDX-License-Identifier: Apache-2.0
 *
 * A part of a tensor along one axis: CONCATENATION and PACK write it, SPLIT and UNPACK read it.
 */
#ifndef TQ_OPS_MOVEMENT_AXIS_PART_H
#define TQ_OPS_MOVEMENT_AXIS_PART_H

#include "ops/movement/movement.h"

/* The joined tensor holds `outer` contiguous runs of `whole` bytes; the part is `span` bytes of each run, from byte
   `at` on. */
typedef struct tq_axis_part {
    size_t outer, whole, span, at;
} tq_axis_part;

/* Elements [begin, begin + count) of dimension `axis` of `joined`: 0 <= axis < rank, 0 <= begin, begin + count at most
   that dimension; `bytes` of an element.  All fields are 0 for a tensor without elements. */
static inline tq_axis_part tq_axis_part_of(const tq_shape *joined, int axis, size_t bytes, int64_t begin, int64_t count)
{
    size_t inner = tq_shape_span(joined, axis + 1, joined->rank) * bytes;
    tq_axis_part p = {tq_shape_span(joined, 0, axis), (size_t)joined->dims[axis] * inner, (size_t)count * inner,
                      (size_t)begin * inner};
    if (tq_shape_size(joined) == 0)
        p.outer = p.whole = p.span = p.at = 0;
    return p;
}

#endif
