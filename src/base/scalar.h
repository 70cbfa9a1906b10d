/* SPDX-License-Identifier: Apache-2.0
 *
 * The types of single values in files and in arrays.
 */
#ifndef TQ_BASE_SCALAR_H
#define TQ_BASE_SCALAR_H

#include <stdint.h>

typedef enum tq_scalar {
    TQ_BOOL,
    TQ_I8,
    TQ_U8,
    TQ_I16,
    TQ_U16,
    TQ_I32,
    TQ_U32,
    TQ_I64,
    TQ_U64,
    TQ_F32,
    TQ_F64,
    TQ_SCALAR_COUNT
} tq_scalar;

extern const uint8_t tq_scalar_size[TQ_SCALAR_COUNT]; /* bytes */

#endif
