/* SPDX-License-Identifier: Apache-2.0 */
#include "delegate/node_view.h"

#include "ops/elementwise/binary.h"

int64_t tq_view_activation(const tq_node *node)
{
    switch (node->row.code) {
#define OF(operator, table) \
    case TQ_BuiltinOperator_##operator: return tq_view_int_option(node, TQ_##table##_fused_activation_function);
        OF(CONV_2D, Conv2DOptions)
        OF(DEPTHWISE_CONV_2D, DepthwiseConv2DOptions)
        OF(TRANSPOSE_CONV, TransposeConvOptions)
        OF(FULLY_CONNECTED, FullyConnectedOptions)
        OF(MAX_POOL_2D, Pool2DOptions)
        OF(AVERAGE_POOL_2D, Pool2DOptions)
#undef OF
    default: return tq_binary_activation(node);
    }
}

bool tq_view_is_data(const tq_node *node, int i)
{
    switch (node->row.code) {
    case TQ_BuiltinOperator_SPLIT: return i == 1;
    case TQ_BuiltinOperator_MEAN:
    case TQ_BuiltinOperator_SUM:
    case TQ_BuiltinOperator_REDUCE_MAX:
    case TQ_BuiltinOperator_REDUCE_MIN:
    case TQ_BuiltinOperator_RESIZE_BILINEAR:
    case TQ_BuiltinOperator_PAD:
    case TQ_BuiltinOperator_SLICE:
    case TQ_BuiltinOperator_STRIDED_SLICE:
    case TQ_BuiltinOperator_RESHAPE:
    case TQ_BuiltinOperator_TRANSPOSE: return i == 0;
    default: return true;
    }
}
