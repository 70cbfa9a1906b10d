/* SPDX-License-Identifier: Apache-2.0
 *
 * A dense array as [outer, channels, inner] around one axis, in row-major order.
 *
 * Element (o, c, i) has the index (o * channels + c) * inner + i.  Per tensor: outer 1 and channels 1.  The product of
 * the three is the array's size, so it fits size_t.
 */
#ifndef TQ_QUANT_AXIS_VIEW_H
#define TQ_QUANT_AXIS_VIEW_H

#include <stddef.h>

typedef struct tq_axis_view {
    size_t outer, channels, inner;
} tq_axis_view;

/* The number of elements. */
static inline size_t tq_axis_view_size(tq_axis_view view)
{
    return view.outer * view.channels * view.inner;
}

/* The contiguous runs of one channel each that cover the elements [begin, end), in order; begin <= end <= size.  After
   the last run, count is 0:
       for (tq_axis_run r = tq_axis_run_first(view, begin, end); r.count; tq_axis_run_next(&r, view, end))          */
typedef struct tq_axis_run {
    size_t at, count, channel;
} tq_axis_run;

static inline tq_axis_run tq_axis_run_first(tq_axis_view view, size_t begin, size_t end)
{
    if (begin == end)
        return (tq_axis_run){begin, 0, 0};
    size_t left = view.inner - begin % view.inner;
    return (tq_axis_run){begin, left < end - begin ? left : end - begin, begin / view.inner % view.channels};
}

static inline void tq_axis_run_next(tq_axis_run *run, tq_axis_view view, size_t end)
{
    run->at += run->count;
    run->count = view.inner < end - run->at ? view.inner : end - run->at;
    run->channel = run->channel + 1 < view.channels ? run->channel + 1 : 0;
}

#endif
