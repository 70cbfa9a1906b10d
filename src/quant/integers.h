/* SPDX-License-Identifier: Apache-2.0
 *
 * The integer types of values and what they can hold, from the rows of quant/integers.def.
 */
#ifndef TQ_QUANT_INTEGERS_H
#define TQ_QUANT_INTEGERS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tq_integer_type {
#define INTEGER(name, element, low, high) TQ_INTEGER_##name,
#include "quant/integers.def"
#undef INTEGER
    TQ_INTEGER_TYPES
} tq_integer_type;

typedef struct tq_value_range {
    int32_t low, high;
} tq_value_range;

const char *tq_integer_name(tq_integer_type type);
int tq_integer_bits(tq_integer_type type);
bool tq_integer_is_signed(tq_integer_type type);

/* What the type holds; a narrow range leaves out the lowest value. */
tq_value_range tq_value_range_of(tq_integer_type type, bool narrow);

#endif
