/* SPDX-License-Identifier: Apache-2.0
 *
 * Heapsort: qsort may allocate or be quadratic, and takes no context.
 */
#include "base/sort.h"

#include "base/stop.h"

static void sift(uint32_t *indices, size_t root, size_t count, tq_before *before, const void *context)
{
    uint32_t moved = indices[root];
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && before(context, indices[child], indices[child + 1]))
            child++;
        if (!before(context, moved, indices[child]))
            break;
        indices[root] = indices[child];
    }
    indices[root] = moved;
}

void tq_sort_indices(uint32_t *indices, size_t count, tq_before *before, const void *context)
{
    size_t work = 0;
    for (size_t i = count / 2; i-- > 0 && !tq_stop_count(&work, 8);)
        sift(indices, i, count, before, context);
    for (size_t end = count; end-- > 1 && !tq_stop_count(&work, 32);) {
        uint32_t last = indices[end];
        indices[end] = indices[0];
        indices[0] = last;
        sift(indices, 0, end, before, context);
    }
}
