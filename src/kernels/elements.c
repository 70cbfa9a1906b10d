/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/elements.h"

static const struct {
    size_t size;
    int32_t low;
    int64_t high;
} elements[] = {
#define ELEMENT(name, type, low, high) {sizeof(type), low, high},
#include "kernels/elements.def"
#undef ELEMENT
};

size_t tq_element_size(tq_element element)
{
    return elements[element].size;
}

int32_t tq_element_low(tq_element element)
{
    return elements[element].low;
}

int64_t tq_element_high(tq_element element)
{
    return elements[element].high;
}
