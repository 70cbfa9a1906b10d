/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/mediapipe_options.h"

#include <string.h>

tq_status tq_mediapipe_options(const tq_node *node, int32_t *out, size_t count, tq_error *error)
{
    tq_bytes bytes = {NULL, 0};
    tq_error inner;
    tq_status status = tq_operator_custom_options(&node->row, &bytes, &inner);
    if (status != TQ_OK)
        return tq_op_fail(node, error, status, "%s", inner.text);
    if (bytes.size < count * sizeof *out)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %zu bytes of options; it needs %zu", bytes.size,
                          count * sizeof *out);
    memcpy(out, bytes.data, count * sizeof *out);
    if (out[0] != TQ_MEDIAPIPE_SAME && out[0] != TQ_MEDIAPIPE_VALID)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has padding %d; it needs 1, SAME, or 2, VALID", (int)out[0]);
    for (size_t i = 1; i < count; i++)
        if (out[i] < 1)
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has a stride or filter of %d; it needs 1 at least",
                              (int)out[i]);
    return TQ_OK;
}
