/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of any type and stride as doubles.
 */
#ifndef TQ_QUANT_REAL_VALUES_H
#define TQ_QUANT_REAL_VALUES_H

#include <stddef.h>

/* The type of an element, in native byte order. */
typedef enum tq_real_type {
    TQ_REAL_F32,
    TQ_REAL_F64,
    TQ_REAL_F16,
    TQ_REAL_BF16,
    TQ_REAL_I8,
    TQ_REAL_U8,
    TQ_REAL_I16,
    TQ_REAL_U16,
    TQ_REAL_I32,
    TQ_REAL_U32,
    TQ_REAL_I64,
    TQ_REAL_U64,
    TQ_REAL_TYPES
} tq_real_type;

/* to[i] = the element at from + i * stride bytes. */
typedef void (*tq_real_loader)(const char *from, ptrdiff_t stride, size_t n, double *to);

tq_real_loader tq_real_loader_of(tq_real_type type);

#endif
