/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/halves.h"

#include "kernels/kernels.h"
#include "model/rewrite.h"

enum { PIECE = 2048 }; /* values converted at a time, in the first-level cache */

static const float greatest = 65504;

typedef struct halves {
    tq_maker maker;
    const float *values;
    uint64_t count;
} halves;

static tq_status make(tq_maker *self, uint8_t *out, tq_error *error)
{
    (void)error;
    const halves *k = (const halves *)(const void *)self;
    const tq_kernel *convert = tq_kernel_find(TQ_KERNEL_convert, TQ_f32, TQ_f16);
    float limited[PIECE];
    tq_half made[PIECE];
    for (uint64_t at = 0; at < k->count; at += PIECE) {
        const size_t n = k->count - at < PIECE ? (size_t)(k->count - at) : PIECE;
        for (size_t i = 0; i < n; i++) {
            float x = k->values[at + i];
            x = x < greatest ? x : greatest;
            limited[i] = x > -greatest ? x : -greatest;
        }
        convert->row(limited, made, n, 1, n, NULL, 0);
        for (size_t i = 0; i < n; i++)
            tq_store_u16(out + 2 * (at + i), made[i]);
    }
    return TQ_OK;
}

tq_status tq_convert_halves(tq_tree *tree, tq_tree_node *buffer, const float *values, uint64_t count, tq_error *error)
{
    halves *made;
    tq_status status = tq_region_get(&tree->region, 1, sizeof *made, &made, error);
    if (status != TQ_OK)
        return status;
    *made = (halves){{make}, values, count};
    return tq_buffer_node_make(tree, buffer, &made->maker, 2 * count, error);
}
