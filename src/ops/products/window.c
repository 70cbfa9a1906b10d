/* SPDX-License-Identifier: Apache-2.0
 *
 * The size and padding of a convolution's dimension.
 */
#include "ops/products/window.h"

#include "ops/check.h"

static tq_status check(const tq_node *node, const char *what, int64_t padding, const tq_window *w, tq_error *error)
{
    if (padding != TQ_Padding_SAME && padding != TQ_Padding_VALID)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "padding is %lld; there are SAME (0) and VALID (1)",
                          (long long)padding);
    if (w->stride <= 0)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the stride along %s is %d; it must be positive", what,
                          w->stride);
    if (w->dilation <= 0)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the dilation along %s is %d; it must be positive", what,
                          w->dilation);
    if (w->filter <= 0)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the filter's %s is %d; it must be positive", what, w->filter);
    return TQ_OK;
}

tq_status tq_window_fit(const tq_node *node, const char *what, int64_t padding, tq_window *w, tq_error *error)
{
    TQ_TRY(check(node, what, padding, w, error));
    /* Each factor is below 2^31, so their products and sums stay below 2^63. */
    int64_t effective = ((int64_t)w->filter - 1) * w->dilation + 1;
    int64_t free_cells =
        padding == TQ_Padding_SAME ? (int64_t)w->in + w->stride - 1 : (int64_t)w->in + w->stride - effective;
    int64_t out = free_cells / w->stride;
    if (out < 0)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the filter spans %lld cells along %s, and the input has %d",
                          (long long)effective, what, w->in);
    int64_t total = (out - 1) * w->stride + effective - w->in;
    int64_t pad = total > 0 ? total / 2 : 0;
    if (pad > INT32_MAX)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the padding along %s is %lld; it must fit 32 bits", what,
                          (long long)pad);
    w->out = (int32_t)out;
    w->pad = (int32_t)pad;
    return TQ_OK;
}
