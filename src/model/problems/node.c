/* SPDX-License-Identifier: Apache-2.0
 *
 * One operator under check: its inputs, their shapes as far as the file fixes them, and constants of integers.
 */
#include "model/problems/node.h"

#include "model/tensor.h"
#include "model/types.h"

tq_table tq_checked_input(const tq_checker *checker, const tq_checked_node *node, uint32_t slot)
{
    int32_t tensor = slot < node->inputs.count ? tq_vector_i32(&node->inputs, slot) : -1;
    if (tensor < 0 || (uint32_t)tensor >= checker->subgraph.tensors.count)
        return (tq_table){checker->model->file, 0, 0, 0};
    return tq_vector_table(&checker->subgraph.tensors, (size_t)tensor);
}

tq_location tq_checked_location(const tq_checker *checker, const tq_checked_node *node, uint32_t slot)
{
    return tq_location_in(checker, TQ_LOCATION_OPERATOR_INPUT, node->index, slot);
}

tq_known_shape tq_known_shape_of(const tq_checker *checker, const tq_vector *tensors, uint32_t slot)
{
    int32_t index = slot < tensors->count ? tq_vector_i32(tensors, slot) : -1;
    tq_known_shape out = {0};
    if (index < 0 || (uint32_t)index >= checker->subgraph.tensors.count)
        return out;
    tq_table tensor = tq_vector_table(&checker->subgraph.tensors, (size_t)index);
    out.shape = tq_get_vector(&tensor, TQ_Tensor_shape);
    out.signature = tq_get_vector(&tensor, TQ_Tensor_shape_signature);
    out.constant = checker->flags[index] & TQ_TENSOR_CONSTANT;
    /* Without has_rank, a shape without dimensions may be a scalar or unknown. */
    out.known = out.shape.count || out.constant || tq_get_int(&tensor, TQ_Tensor_has_rank);
    return out;
}

int64_t tq_known_dimension(const tq_known_shape *shape, uint32_t i)
{
    bool open =
        !shape->constant && shape->signature.count == shape->shape.count && tq_vector_i32(&shape->signature, i) < 0;
    return i < shape->shape.count && !open ? tq_vector_i32(&shape->shape, i) : -1;
}

bool tq_known_count(const tq_known_shape *shape, uint64_t *out)
{
    for (uint32_t i = 0; i < shape->shape.count; i++)
        if (tq_known_dimension(shape, i) < 0)
            return false;
    return shape->known && tq_shape_count(&shape->shape, out, NULL) == TQ_OK;
}

bool tq_checked_integers(tq_checker *checker, const tq_checked_node *node, uint32_t slot, tq_integers *out)
{
    tq_table tensor = tq_checked_input(checker, node, slot);
    const tq_type_row *type = tq_type(tq_get_int(&tensor, TQ_Tensor_type));
    tq_vector shape = tq_get_vector(&tensor, TQ_Tensor_shape);
    tq_bytes bytes;
    uint64_t count;
    if (!tensor.at || !type || type->kind != TQ_KIND_INTEGER || type->bits < 8 ||
        tq_get_table(&tensor, TQ_Tensor_sparsity).at)
        return false;
    if (tq_tensor_bytes(checker->model, &tensor, &bytes, NULL) != TQ_OK || !bytes.data ||
        tq_shape_count(&shape, &count, NULL) != TQ_OK)
        return false;
    unsigned size = type->bits / 8;
    if (count > bytes.size / size || !tq_checker_spend(checker, count * size, tq_checked_location(checker, node, slot)))
        return false;
    *out = (tq_integers){bytes.data, count, size, type->low < 0};
    return true;
}

int64_t tq_integer(const tq_integers *integers, uint64_t i)
{
    const uint8_t *at = integers->data + i * integers->size;
    switch (integers->size) {
    case 1: return integers->is_signed ? (int8_t)*at : *at;
    case 2: return integers->is_signed ? (int16_t)tq_load_u16(at) : tq_load_u16(at);
    case 4: return integers->is_signed ? (int32_t)tq_load_u32(at) : (int64_t)tq_load_u32(at);
    default: /* UINT64 values above 2^63 - 1 become negative: outside every range, too */
        return (int64_t)tq_load_u64(at);
    }
}

bool tq_pads_at(const tq_integers *pads, uint64_t i, uint64_t *out)
{
    int64_t front = tq_integer(pads, 2 * i), back = tq_integer(pads, 2 * i + 1);
    *out = (uint64_t)front + (uint64_t)back; /* each is < 2^63 */
    return front >= 0 && back >= 0;
}

void tq_run_node_checks(tq_checker *checker, const tq_checked_node *node, const tq_node_check *checks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (checks[i].op == node->op.code)
            checks[i].check(checker, node);
}
