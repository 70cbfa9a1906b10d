/* SPDX-License-Identifier: Apache-2.0
 *
 * From sums to outputs of any type.
 */
#include <string.h>

#include "kernels/depthwise/depthwise_parts.h"

void tq_depthwise_store(const tq_depthwise *d, const tq_tile_store *t)
{
    if (t->store->out != TQ_i32) {
        tq_store_fn_of(d->kernel->stores, t->store->out, d->wide)(t);
        return;
    }
    for (size_t r = 0; r < t->rows; r++)
        memcpy((int32_t *)t->out + r * t->out_stride, (const int32_t *)t->sums + r * t->sums_stride,
               t->channels * sizeof(int32_t));
}
