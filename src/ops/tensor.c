/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/tensor.h"

#include <stdio.h>
#include <string.h>

void tq_shape_format(const tq_shape *shape, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "[");
    for (int i = 0; i < shape->rank && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%d", i ? "," : "", shape->dims[i]);
    if (at < size)
        at += (size_t)snprintf(out + at, size - at, "]");
    if (at >= size && size > 4)
        memcpy(out + size - 4, "...", 4);
}

tq_status tq_tensor_allocate(tq_tensor *tensor, tq_pool *pool, uint64_t bytes, tq_error *error)
{
    if (!tensor->block || tensor->block->size < bytes) {
        tq_block *block;
        tq_status status = tq_block_new(pool, bytes, &block, error);
        if (status != TQ_OK)
            return status;
        tq_block_release(tensor->block);
        tensor->block = block;
    }
    tensor->data = tensor->block->data;
    tensor->bytes = (size_t)bytes;
    return TQ_OK;
}

const char *tq_type_name(int64_t type)
{
    const char *name = tq_enum_name(TQ_ENUM_TensorType, type);
    return name ? name : "unknown";
}

size_t tq_element_bytes(int32_t type)
{
    const tq_type_row *row = tq_type(type);
    if (!row || row->kind == TQ_KIND_STRING)
        return 0;
    return row->kind == TQ_KIND_OPAQUE ? 4 : (row->bits + 7u) / 8;
}
