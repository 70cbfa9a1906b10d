/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that XNNPACK's graph has as elementwise functions of one tensor or of two.
 */
#include "delegate/backends.h"
#include "ops/elementwise/binary.h"
#include "delegate/node_view.h"

/* XNNPACK replaces a pool of 1x1 by its activation. */
static bool is_one_pixel_pool(const tq_node *node)
{
    return tq_view_int_option(node, TQ_Pool2DOptions_filter_height) == 1 &&
           tq_view_int_option(node, TQ_Pool2DOptions_filter_width) == 1;
}

static tq_backend_kind kind_of(const tq_node *node)
{
    switch (node->row.code) {
#define UNARY(operator, ...) \
    case TQ_BuiltinOperator_##operator: return TQ_BACKEND_UNARY;
#define BINARY(operator, ...) \
    case TQ_BuiltinOperator_##operator: return TQ_BACKEND_BINARY;
#include "delegate/backends.def"
    case TQ_BuiltinOperator_MAX_POOL_2D:
    case TQ_BuiltinOperator_AVERAGE_POOL_2D: return is_one_pixel_pool(node) ? TQ_BACKEND_UNARY : TQ_BACKEND_OTHER;
    default: return TQ_BACKEND_OTHER;
    }
}

static bool is_one_element(const tq_tensor *t)
{
    if (!tq_view_is_static(t))
        return false;
    for (int i = 0; i < tq_view_rank(t); i++)
        if (tq_view_dimension(t, i) != 1)
            return false;
    return true;
}

tq_backend_kind tq_backend_elementwise(const tq_node *node, const tq_tensor **in)
{
    const tq_tensor *a = tq_view_input(node, 0), *b = tq_view_input(node, 1);
    if (node->wrong_operands || !a || !tq_view_output(node, 0) || tq_backend_unpacks(node))
        return TQ_BACKEND_OTHER;
    *in = a;
    tq_backend_kind kind = kind_of(node);
    if (kind != TQ_BACKEND_BINARY)
        return kind;
    if (!b)
        return TQ_BACKEND_OTHER;
    if (is_one_element(b) && !tq_view_is_static(a))
        return TQ_BACKEND_UNARY;
    if (is_one_element(a) && !tq_view_is_static(b)) {
        *in = b;
        return TQ_BACKEND_UNARY;
    }
    return TQ_BACKEND_BINARY;
}

bool tq_backend_clamps(const tq_node *node)
{
    return kind_of(node) == TQ_BACKEND_BINARY && tq_binary_activation(node) != TQ_ActivationFunctionType_NONE;
}
