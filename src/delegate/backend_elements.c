/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes XNNPACK's graph has as functions of one element, or of two.
 */
#include "delegate/backends.h"
#include "ops/elementwise/binary.h"
#include "delegate/seen.h"

/* A pool of single pixels is one too: XNNPACK makes its activation of it. */
static bool is_one_pixel_pool(const tq_node *node)
{
    return option(node, TQ_Pool2DOptions_filter_height) == 1 && option(node, TQ_Pool2DOptions_filter_width) == 1;
}

static tq_backend_shape shape_of(const tq_node *node)
{
    switch (node->row.code) {
#define FUNCTION(operator, ...) \
    case TQ_BuiltinOperator_##operator: return TQ_BACKEND_UNARY;
#define FUNCTION_OF_TWO(operator, ...) \
    case TQ_BuiltinOperator_##operator: return TQ_BACKEND_BINARY;
#include "delegate/backends.def"
    case TQ_BuiltinOperator_MAX_POOL_2D:
    case TQ_BuiltinOperator_AVERAGE_POOL_2D: return is_one_pixel_pool(node) ? TQ_BACKEND_UNARY : TQ_BACKEND_OTHER;
    default: return TQ_BACKEND_OTHER;
    }
}

static bool is_one_element(const tq_tensor *t)
{
    if (!is_static(t))
        return false;
    for (int i = 0; i < rank_of(t); i++)
        if (dimension(t, i) != 1)
            return false;
    return true;
}

tq_backend_shape tq_backend_element(const tq_node *node, const tq_tensor **in)
{
    const tq_tensor *a = input(node, 0), *b = input(node, 1);
    if (node->misfit || !a || !output(node, 0) || tq_backend_unpacks(node))
        return TQ_BACKEND_OTHER;
    *in = a;
    tq_backend_shape shape = shape_of(node);
    if (shape != TQ_BACKEND_BINARY)
        return shape;
    if (!b)
        return TQ_BACKEND_OTHER;
    if (is_one_element(b) && !is_static(a))
        return TQ_BACKEND_UNARY;
    if (is_one_element(a) && !is_static(b)) {
        *in = b;
        return TQ_BACKEND_UNARY;
    }
    return TQ_BACKEND_BINARY;
}

bool tq_backend_clamps(const tq_node *node)
{
    return shape_of(node) == TQ_BACKEND_BINARY && tq_binary_activation(node) != TQ_ActivationFunctionType_NONE;
}
