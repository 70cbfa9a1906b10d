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
    s->walk.params = p;
    s->walk.cost = node->in[0]->type == TQ_TensorType_INT16 ? 1000 : 100;
    node->eval = tq_pair_eval;
    return TQ_OK;
}

/* The input of one element beside bytes, where the output is bytes, and enough to pay for a table; else -1. */
static int find_one_element(const tq_node *node, const tq_broadcast *walk)
{
    enum { TABLE_PAYS = 1024 };
    if (tq_element_bytes(node->in[0]->type) != 1 || walk->out_bytes != 1 || walk->rank != 1 || walk->count < TABLE_PAYS)
        return -1;
    return walk->steps[0][0] == 0 ? 0 : walk->steps[1][0] == 0 ? 1 : -1;
}

tq_status tq_pair_eval(tq_node *node, tq_error *error)
{
    const tq_broadcast *walk = node->state;
    const int one = find_one_element(node, walk);
    if (one < 0)
        return tq_broadcast_eval(node, error);
    uint8_t bytes[256], table[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    tq_broadcast_run run = {.out = table, .n = 256, .params = walk->params};
    run.in[one] = node->in[one]->data, run.scalar[one] = true;
    run.in[1 - one] = bytes;
    walk->run(&run);
    tq_lookup_bytes(table, node->in[1 - one]->data, node->out[0]->data, walk->count);
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
