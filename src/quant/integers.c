/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/integers.h"

static const struct {
    const char *name;
    int32_t low, high;
} rows[] = {
#define INTEGER(name, element, low, high) {#name, low, high},
#include "quant/integers.def"
#undef INTEGER
};

const char *tq_integer_name(tq_integer_type type)
{
    return rows[type].name;
}

int tq_integer_bits(tq_integer_type type)
{
    int bits = 0;
    for (int64_t last = (int64_t)rows[type].high - rows[type].low; last > 0; last >>= 1)
        bits++;
    return bits;
}

bool tq_integer_is_signed(tq_integer_type type)
{
    return rows[type].low < 0;
}

tq_value_range tq_value_range_of(tq_integer_type type, bool narrow)
{
    return (tq_value_range){rows[type].low + narrow, rows[type].high};
}
