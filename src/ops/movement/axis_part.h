/* SPDX-License-Identifier: Apache-2.0
 *
 * A part of a tensor along one axis: CONCATENATION and PACK write it, SPLIT and UNPACK read it.
 */
#ifndef TQ_OPS_MOVEMENT_AXIS_PART_H
#define TQ_OPS_MOVEMENT_AXIS_PART_H

#include "ops/check.h"
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

/* The copy of a whole tensor, of elements of `bytes`, into a part of the joined one. */
static inline void tq_move_into_part(tq_move *move, tq_axis_part p, size_t bytes)
{
    tq_strided_begin(&move->copy, bytes);
    tq_strided_dim(&move->copy, p.outer, (ptrdiff_t)p.span, (ptrdiff_t)p.whole);
    tq_strided_dim(&move->copy, p.span / bytes, (ptrdiff_t)bytes, (ptrdiff_t)bytes);
    tq_strided_end(&move->copy);
    move->copy.to_at = (ptrdiff_t)p.at;
}

/* The copy of a part of the joined tensor, of elements of `bytes`, into a whole one. */
static inline void tq_move_out_of_part(tq_move *move, tq_axis_part p, size_t bytes)
{
    tq_strided_begin(&move->copy, bytes);
    tq_strided_dim(&move->copy, p.outer, (ptrdiff_t)p.whole, (ptrdiff_t)p.span);
    tq_strided_dim(&move->copy, p.span / bytes, (ptrdiff_t)bytes, (ptrdiff_t)bytes);
    tq_strided_end(&move->copy);
    move->copy.from_at = (ptrdiff_t)p.at;
}

/* Checks that input `from`, which is to be split, has elements of a fixed size. */
static inline tq_status tq_check_splits_elements(const tq_node *node, int from, tq_error *error)
{
    if (tq_element_bytes(node->in[from]->type) == 0)
        return tq_input_fail(node, from, error, "is %s, which is not split", tq_type_name(node->in[from]->type));
    return TQ_OK;
}

#endif
