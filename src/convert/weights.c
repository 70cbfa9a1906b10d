/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/weights.h"

#include <string.h>

#include "kernels/arrays/quantize_weights.h"
#include "model/rewrite.h"
#include "quant/packing.h"

typedef struct weights {
    tq_maker values, scales; /* first, so that a pointer to it is one to the record */
    tq_weight_source source;
    float *factors, *chosen; /* by channel; chosen: the scales */
    bool is_ready;           /* both are */
} weights;

static tq_status make_values(tq_maker *self, uint8_t *out, tq_error *error);

/* The scales, without quantized values. */
static tq_status choose(weights *k, tq_error *error)
{
    const tq_weight_source *source = &k->source;
    tq_error found;
    if (k->is_ready)
        return TQ_OK;
    tq_weight_bounds(source->w, &source->layout, 0, k->factors);
    tq_status status =
        tq_weight_scales(&source->target, k->factors, tq_weight_scale_count(&source->layout), k->chosen, &found);
    if (status != TQ_OK)
        return tq_fail(error, status, TQ_NO_OFFSET, "%s: %s", source->label, found.text);
    k->is_ready = true;
    return TQ_OK;
}

static weights *weights_of(tq_maker *maker)
{
    return (weights *)(void *)maker;
}

static tq_status make_values(tq_maker *self, uint8_t *out, tq_error *error)
{
    weights *k = weights_of(self);
    const tq_weight_source *s = &k->source;
    const bool is_packed = tq_integer_bits(s->target.type) < 8;
    int8_t *q8 = is_packed ? NULL : (int8_t *)out;
    uint8_t *packed = is_packed ? out : NULL;
    if (!k->is_ready) {
        k->is_ready = tq_weight_walk(&s->target, s->w, &s->layout, 0, k->factors, k->chosen, q8, packed);
        if (k->is_ready)
            return TQ_OK;
    }
    tq_status status = choose(k, error);
    if (status != TQ_OK)
        return status;
    if (is_packed)
        tq_quantize_weights_packed(&s->target, s->w, &s->layout, k->factors, 0, packed);
    else
        tq_quantize_weights(&s->target, s->w, &s->layout, k->factors, 0, q8, NULL);
    return TQ_OK;
}

static tq_status make_scales(tq_maker *self, uint8_t *out, tq_error *error)
{
    weights *k = weights_of(self - 1);
    tq_status status = choose(k, error);
    for (size_t i = 0; status == TQ_OK && i < tq_weight_scale_count(&k->source.layout); i++) {
        uint32_t bits;
        memcpy(&bits, &k->chosen[i], sizeof bits);
        tq_store_u32(out + 4 * i, bits);
    }
    return status;
}

/* Whether the rule has such a type: asked with no weights at all. */
static tq_status check(const tq_weight_target *target, tq_error *error)
{
    float none;
    const int bits = tq_integer_bits(target->type);
    if (bits > 8)
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                       "quantized values of %d bits; they need to have 8 bits or fewer", bits);
    return tq_weight_scales(target, &none, 0, &none, error);
}

tq_status tq_convert_weights(tq_tree *tree, tq_tree_node *buffer, const tq_weight_source *source, tq_error *error)
{
    const size_t count = tq_weight_scale_count(&source->layout);
    const size_t size = source->layout.regions * tq_axis_view_size(source->layout.region);
    const int bits = tq_integer_bits(source->target.type);
    const size_t text = strlen(source->label) + 1;
    weights *made;
    char *label;
    tq_status status = check(&source->target, error);
    if (status == TQ_OK)
        status = tq_region_get(&tree->region, 1, sizeof *made, &made, error);
    if (status != TQ_OK)
        return status;
    *made = (weights){.values = {make_values}, .scales = {make_scales}, .source = *source};
    status = tq_region_get(&tree->region, count, sizeof *made->factors, &made->factors, error);
    if (status == TQ_OK)
        status = tq_region_get(&tree->region, count, sizeof *made->chosen, &made->chosen, error);
    if (status == TQ_OK)
        status = tq_region_get(&tree->region, text, 1, &label, error);
    if (status != TQ_OK)
        return status;
    memcpy(label, source->label, text);
    made->source.label = label;
    return tq_buffer_node_make(tree, buffer, &made->values, bits < 8 ? tq_packed_size(size, bits) : size, error);
}

static tq_status find(const tq_tree_node *buffer, weights **out, tq_error *error)
{
    const tq_cell *cell = tq_buffer_node_cell(buffer);
    if (!cell || !cell->is_made || cell->maker->make != make_values)
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                       "the buffer has no quantized weights that are yet to be made");
    *out = weights_of(cell->maker);
    return TQ_OK;
}

/* Gives a QuantizationParameters the scales of the quantized values that tq_convert_weights gave a
   Buffer.  TQ_BAD_ARGUMENT: it gave it none. */
static tq_status take_scales(tq_tree *tree, tq_tree_node *parameters, const tq_tree_node *buffer, tq_error *error)
{
    weights *k = NULL;
    tq_status status = find(buffer, &k, error);
    if (status != TQ_OK)
        return status;
    const size_t count = tq_weight_scale_count(&k->source.layout);
    tq_cell cell = {.slot = tq_fields[TQ_QuantizationParameters_scale].slot,
                    .kind = TQ_CELL_VECTOR,
                    .align = 4,
                    .is_made = true,
                    .count = (uint32_t)count,
                    .length = 4 * (uint64_t)count};
    cell.maker = &k->scales;
    return tq_tree_node_put(tree, parameters, &cell, error);
}

static tq_status put_zeros(tq_tree *tree, tq_tree_node *parameters, size_t count, tq_error *error)
{
    uint8_t *zeros;
    tq_status status = tq_region_get(&tree->region, count, 8, &zeros, error);
    if (status != TQ_OK)
        return status;
    memset(zeros, 0, 8 * count);
    tq_cell cell = {.slot = tq_fields[TQ_QuantizationParameters_zero_point].slot,
                    .kind = TQ_CELL_VECTOR,
                    .align = 8,
                    .count = (uint32_t)count,
                    .length = 8 * (uint64_t)count};
    cell.bytes = zeros;
    return tq_tree_node_put(tree, parameters, &cell, error);
}

tq_status tq_convert_tensor(tq_tree *tree, tq_tree_node *tensor, const tq_tree_node *buffer, uint32_t index,
                            uint8_t type, int32_t axis, tq_error *error)
{
    tq_tree_node *parameters;
    weights *k = NULL;
    tq_status status = find(buffer, &k, error);
    if (status == TQ_OK)
        status = tq_tree_node_make(tree, TQ_TABLE_QuantizationParameters, &parameters, error);
    if (status == TQ_OK)
        status = take_scales(tree, parameters, buffer, error);
    if (status == TQ_OK)
        status = put_zeros(tree, parameters, tq_weight_scale_count(&k->source.layout), error);
    if (status == TQ_OK)
        status = tq_tree_node_set_u64(tree, parameters, TQ_QuantizationParameters_quantized_dimension, (uint64_t)axis,
                                      error);
    if (status == TQ_OK)
        status = tq_tree_node_set_u64(tree, tensor, TQ_Tensor_buffer, index, error);
    if (status == TQ_OK)
        status = tq_tree_node_set_u64(tree, tensor, TQ_Tensor_type, type, error);
    if (status != TQ_OK)
        return status;
    tq_cell cell = {.slot = tq_fields[TQ_Tensor_quantization].slot, .kind = TQ_CELL_TABLE, .align = 4};
    cell.table = parameters;
    return tq_tree_node_put(tree, tensor, &cell, error);
}

tq_status tq_convert_scales_now(const tq_tree_node *buffer, const float **scales, size_t *count, tq_error *error)
{
    weights *k = NULL;
    tq_status status = find(buffer, &k, error);
    if (status == TQ_OK)
        status = choose(k, error);
    if (status == TQ_OK) {
        *scales = k->chosen;
        *count = tq_weight_scale_count(&k->source.layout);
    }
    return status;
}
