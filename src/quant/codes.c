/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/codes.h"

static const struct {
    const char *name;
    int32_t low, high;
} rows[] = {
#define CODE(name, element, low, high) {#name, low, high},
#include "quant/codes.def"
#undef CODE
};

const char *tq_code_name(tq_code code)
{
    return rows[code].name;
}

int tq_code_bits(tq_code code)
{
    int bits = 0;
    for (int64_t last = (int64_t)rows[code].high - rows[code].low; last > 0; last >>= 1)
        bits++;
    return bits;
}

bool tq_code_is_signed(tq_code code)
{
    return rows[code].low < 0;
}

tq_code_range tq_code_range_of(tq_code code, bool narrow)
{
    return (tq_code_range){rows[code].low + narrow, rows[code].high};
}
