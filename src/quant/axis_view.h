/* SPDX-License-Identifier: Apache-2.0
 *
 * A dense array seen around one axis: [outer, channels, inner], in row-major order.
 *
 * Element (o, c, i) stands at (o * channels + c) * inner + i.  Per tensor is one channel and no
 * outer.  The product of the three is the array's size, so it fits size_t.
 */
#ifndef TQ_QUANT_AXIS_VIEW_H
#define TQ_QUANT_AXIS_VIEW_H

#include <stddef.h>

typedef struct tq_axis_view {
    size_t outer, channels, inner;
} tq_axis_view;

#endif
