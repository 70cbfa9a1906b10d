/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensor types: the rows of types.def.
 */
#ifndef TQ_MODEL_TYPES_H
#define TQ_MODEL_TYPES_H

#include <stdint.h>

typedef enum tq_type_kind {
    TQ_KIND_FLOAT,
    TQ_KIND_INTEGER,
    TQ_KIND_COMPLEX,
    TQ_KIND_BOOLEAN,
    TQ_KIND_STRING,
    TQ_KIND_OPAQUE
} tq_type_kind;

typedef struct tq_type_row {
    const char *name;                  /* "INT8" */
    uint8_t bits;                      /* of one element: 2 to 128; 0: no fixed size */
    uint8_t kind;                      /* tq_type_kind */
    const char *dtype, *details_dtype; /* "ml_dtypes.int4", "int8" */
    double low, high;                  /* of an INTEGER; else 0 */
} tq_type_row;

#define TQ_TYPE_COUNT 23 /* rows; TensorType values are 0 to 22 */

/* The row of a TensorType; NULL for a value unknown to the schema. */
const tq_type_row *tq_type(int64_t type);

#endif
