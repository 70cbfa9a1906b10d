/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/weights.h"

#include "kernels/weight_codes.h"
#include "model/rewrite.h"
#include "quant/packing.h"

typedef struct weights {
    tq_maker maker; /* first, so that a pointer to it is one to the whole */
    tq_weight_target target;
    tq_weight_layout layout;
    const float *w, *factors;
} weights;

static void make(const tq_maker *self, uint8_t *out)
{
    const weights *k = (const weights *)(const void *)self;
    if (tq_code_bits(k->target.code) < 8)
        tq_weight_packed_codes(&k->target, k->w, &k->layout, k->factors, 0, out);
    else
        tq_weight_codes(&k->target, k->w, &k->layout, k->factors, 0, (int8_t *)out, NULL);
}

tq_status tq_convert_weights(tq_tree *tree, tq_node *buffer, const tq_weight_target *target,
                             const tq_weight_layout *layout, const float *w, float *scales, tq_error *error)
{
    const size_t count = tq_weight_scale_count(layout), size = layout->regions * tq_axis_view_size(layout->region);
    const int bits = tq_code_bits(target->code);
    weights *made;
    float *factors;
    if (bits > 8)
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "codes of %d bits; 8 and fewer are made", bits);
    tq_status status = tq_region_get(&tree->region, 1, sizeof *made, &made, error);
    if (status == TQ_OK)
        status = tq_region_get(&tree->region, count, sizeof *factors, &factors, error);
    if (status != TQ_OK)
        return status;
    tq_weight_bounds(w, layout, 0, factors);
    status = tq_weight_scales(target, factors, count, scales, error);
    if (status != TQ_OK)
        return status;
    *made = (weights){{make}, *target, *layout, w, factors};
    return tq_buffer_node_make(tree, buffer, &made->maker, bits < 8 ? tq_packed_size(size, bits) : size, error);
}
