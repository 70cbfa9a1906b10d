/* SPDX-License-Identifier: Apache-2.0
 *
 * The integer types of codes and what they can hold, from the rows of quant/codes.def.
 */
#ifndef TQ_QUANT_CODES_H
#define TQ_QUANT_CODES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tq_code {
#define CODE(name, element, low, high) TQ_CODE_##name,
#include "quant/codes.def"
#undef CODE
    TQ_CODES
} tq_code;

typedef struct tq_code_range {
    int32_t low, high;
} tq_code_range;

const char *tq_code_name(tq_code code);
int tq_code_bits(tq_code code);
bool tq_code_is_signed(tq_code code);

/* What the type holds; a narrow range leaves out the lowest code. */
tq_code_range tq_code_range_of(tq_code code, bool narrow);

#endif
