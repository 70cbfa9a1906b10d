/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks, parameters and choice of loops for binary_quantized.h.
 */
#include "ops/elementwise/binary_quantized.h"

#include "kernels/arrays/lookup.h"

bool tq_pair_is_quantized(const tq_node *node)
{
    const tq_tensor *in = node->in_count > 0 ? node->in[0] : NULL;
    if (!in)
        return false;
    if (in->type != TQ_TensorType_INT16)
        return in->type == TQ_TensorType_INT8 || in->type == TQ_TensorType_UINT8;
    switch (node->row.code) {
    case TQ_BuiltinOperator_ADD: return in->quantization.count > 0;
    case TQ_BuiltinOperator_MUL: return node->out_count > 0 && node->out[0] && node->out[0]->quantization.count > 0;
    default: return true;
    }
}

tq_status tq_pair_check_types(const tq_node *node, tq_error *error)
{
    return tq_check_input_like(node, 1, 0, error);
}

bool tq_pair_is_xnnpack(const tq_node *node)
{
    return node->numerics == TQ_NUMERICS_XNNPACK && tq_element_bytes(node->in[0]->type) == 1;
}

/* Whether some of the kernel's loops have the activation's bounds cut to the type: those over whole blocks, or DIV's
   over tensors of one shape. */
static bool cuts_bounds(const tq_node *node)
{
    if (node->row.code == TQ_BuiltinOperator_DIV)
        return true;
    const bool has_blocks = node->row.code == TQ_BuiltinOperator_ADD || node->row.code == TQ_BuiltinOperator_MUL;
    return has_blocks && node->in[0]->type == node->out[0]->type && node->numerics != TQ_NUMERICS_REFERENCE;
}

/* The input k of which the other input's bytes are a function, which becomes *map; -1: neither. */
static int find_map(const tq_node *node, uint8_t map[256])
{
    enum { FARTHEST = 10 }; /* operators between the two */
    for (int k = 0; k < 2; k++) {
        const tq_tensor *at = node->in[1 - k];
        for (int i = 0; i < 256; i++)
            map[i] = (uint8_t)i;
        for (int i = 0; i < FARTHEST && at != node->in[k] && at->mapped_from; i++, at = at->mapped_from) {
            uint8_t before[256];
            memcpy(before, map, sizeof before);
            for (int i = 0; i < 256; i++)
                map[i] = before[at->map[i]];
        }
        if (at == node->in[k] && at->storage != TQ_STORAGE_VARIABLE && tq_element_bytes(at->type) == 1)
            return k;
    }
    return -1;
}

tq_status tq_pair_prepare(tq_node *node, size_t size, tq_error *error)
{
    tq_pair_state *s;
    for (int i = 0; i < 2; i++)
        TQ_TRY(tq_check_input_scale(node, i, error));
    TQ_TRY(tq_check_output_scale(node, 0, error));
    TQ_TRY(tq_check_activation_bounds(node, tq_binary_activation(node), cuts_bounds(node), error));
    TQ_TRY(tq_node_state(node, size, &s, error));
    TQ_TRY(tq_broadcast_prepare(node, 0, 2, &s->walk, error));
    tq_pair *p = &s->p;
    p->flip = node->in[0]->type == TQ_TensorType_UINT8 ? 128 : 0;
    p->zero_first = tq_zero_point_of(node->in[0]) - p->flip;
    p->zero_second = tq_zero_point_of(node->in[1]) - p->flip;
    p->zero_output = tq_zero_point_of(node->out[0]) - p->flip;
    tq_activation_range(node, tq_binary_activation(node), &p->low, &p->high);
    p->low -= p->flip;
    p->high -= p->flip;
    p->least = p->low - p->zero_output;
    p->most = p->high - p->zero_output;
    s->read = find_map(node, s->map);
    s->walk.params = p;
    s->walk.cost = node->in[0]->type == TQ_TensorType_INT16 ? 1000 : 100;
    node->eval = tq_pair_eval;
    return TQ_OK;
}

enum { TABLE_PAYS = 1024 }; /* elements */

/* The input of one element beside bytes, where the output is bytes, and enough to pay for a table; else -1. */
static int find_one_element(const tq_broadcast *walk)
{
    if (walk->count < TABLE_PAYS || walk->bytes[0] != 1 || walk->out_bytes != 1 || walk->rank != 1)
        return -1;
    return walk->steps[0][0] == 0 ? 0 : walk->steps[1][0] == 0 ? 1 : -1;
}

/* table[byte] = the output for that byte of input `read`, beside `other` of the other input: one element, or a table.
 */
static void fill_table(const tq_broadcast *walk, int read, const void *other, bool is_element, uint8_t table[256])
{
    uint8_t bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    tq_broadcast_run run = {.out = table, .n = 256, .params = walk->params};
    run.in[read] = bytes;
    run.in[1 - read] = other;
    run.scalar[1 - read] = is_element;
    walk->run(&run);
}

tq_status tq_pair_eval(tq_node *node, tq_error *error)
{
    const tq_pair_state *s = node->state;
    const tq_broadcast *walk = &s->walk;
    const int one = find_one_element(walk);
    const bool by_map = one < 0 && s->read >= 0 && walk->count >= TABLE_PAYS && node->host->runs_all;
    const int read = by_map ? s->read : 1 - one;
    if (one < 0 && !by_map)
        return tq_broadcast_eval(node, error);
    uint8_t table[256];
    fill_table(walk, read, by_map ? s->map : node->in[one]->data, !by_map, table);
    tq_lookup_bytes(table, node->in[read]->data, node->out[0]->data, walk->count);
    return TQ_OK;
}

tq_status tq_pair_note_map(tq_node *node, tq_error *error)
{
    const tq_pair_state *s = node->state;
    tq_tensor *out = node->out[0];
    uint8_t *map;
    if (s->walk.bytes[0] != 1 || s->walk.out_bytes != 1)
        return TQ_OK;
    for (int k = 0; k < 2; k++) {
        const tq_tensor *other = node->in[1 - k];
        if (!tq_is_constant(other) || !other->data || tq_tensor_count(other) != 1 ||
            !tq_shape_equal(&node->in[k]->shape, &out->shape))
            continue;
        TQ_TRY(tq_node_memory(node, 256, 1, &map, error));
        fill_table(&s->walk, k, other->data, true, map);
        out->mapped_from = node->in[k];
        out->map = map;
    }
    return TQ_OK;
}

tq_status tq_pair_check_symmetric(const tq_node *node, tq_error *error)
{
    for (int i = 0; i < 2; i++)
        if (tq_zero_point_of(node->in[i]) != 0)
            return tq_input_fail(node, i, error, "has zero point %d; INT16 needs 0", tq_zero_point_of(node->in[i]));
    if (node->out[0]->type == TQ_TensorType_INT16 && tq_zero_point_of(node->out[0]) != 0)
        return tq_output_fail(node, 0, error, "has zero point %d; INT16 needs 0", tq_zero_point_of(node->out[0]));
    return TQ_OK;
}

tq_broadcast_fn tq_pair_choose(const tq_pair_loops *loops, int32_t type, bool fits)
{
    const int index = type == TQ_TensorType_INT16;
    return fits ? loops->lanes[index][tq_isa()] : loops->general[index];
}
