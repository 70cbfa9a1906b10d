/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/codes.h"

static const struct {
    const char *name;
    int bits;
    bool is_signed;
} rows[] = {
#define CODE(symbol, name, bits, is_signed) {name, bits, is_signed},
#include "quant/codes.def"
#undef CODE
};

const char *tq_code_name(tq_code code)
{
    return rows[code].name;
}

int tq_code_bits(tq_code code)
{
    return rows[code].bits;
}

bool tq_code_is_signed(tq_code code)
{
    return rows[code].is_signed;
}

tq_code_range tq_code_range_of(tq_code code, bool narrow)
{
    int64_t levels = (int64_t)1 << rows[code].bits;
    int64_t low = rows[code].is_signed ? -levels / 2 : 0;
    return (tq_code_range){(int32_t)(low + narrow), (int32_t)(low + levels - 1)};
}
