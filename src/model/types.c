/* SPDX-License-Identifier: Apache-2.0 */
#include "model/types.h"

#include <stddef.h>

#include "flatbuffer/schema.h"

static const tq_type_row rows[] = {
#define TYPE(name, bits, kind, dtype, details_dtype, low, high) \
    [TQ_TensorType_##name] = {#name, bits, TQ_KIND_##kind, dtype, details_dtype, low, high},
#include "model/types.def"
#undef TYPE
};

_Static_assert(sizeof rows / sizeof *rows == TQ_TYPE_COUNT, "TQ_TYPE_COUNT counts the rows");

const tq_type_row *tq_type(int64_t type)
{
    return type >= 0 && type < TQ_TYPE_COUNT ? &rows[type] : NULL;
}
