/* SPDX-License-Identifier: Apache-2.0
 *
 * The element types that kernels read and write, from the rows of elements.def.
 */
#ifndef TQ_KERNELS_ELEMENTS_H
#define TQ_KERNELS_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

/* Float16 and bfloat16 as bits. */
typedef uint16_t tq_half;
typedef uint16_t tq_bfloat;

/* TQ_i8, TQ_f32 ...; and the C type of each: tq_element_i8, tq_element_f32 ... */
typedef enum tq_element {
#define ELEMENT(name, type, low, high) TQ_##name,
#include "kernels/elements.def"
#undef ELEMENT
    TQ_ELEMENTS
} tq_element;

#define ELEMENT(name, type, low, high) typedef type tq_element_##name;
#include "kernels/elements.def"
#undef ELEMENT

/* Bytes of one element: 1 to 8. */
size_t tq_element_size(tq_element element);

/* The least and the greatest value of an integer type; 0 and 0 for floating point. */
int32_t tq_element_low(tq_element element);
int64_t tq_element_high(tq_element element);

#endif
