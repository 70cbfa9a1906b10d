/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements combined two by two, by the rule and type that an operator finds when it is prepared: what scatters,
 * segments and windows do where several elements meet in one place.
 */
#ifndef TQ_OPS_MOVEMENT_COMBINE_H
#define TQ_OPS_MOVEMENT_COMBINE_H

#include <stddef.h>
#include <stdint.h>

typedef enum tq_combination {
    TQ_COMBINE_REPLACE, /* the newcomer */
    TQ_COMBINE_ADD,     /* integers wrap; BOOL: or */
    TQ_COMBINE_MULTIPLY,
    TQ_COMBINE_MAX, /* held < new ? new : held */
    TQ_COMBINE_MIN,
    TQ_COMBINE_WINDOW_MAX, /* held >= new ? held : new, which treats NaN otherwise */
    TQ_COMBINE_WINDOW_MIN,
    TQ_COMBINE_ALL, /* 1 or 0 */
    TQ_COMBINE_ANY,
    TQ_COMBINE_NONE
} tq_combination;

/* held[i] = held[i] + news[i] for n elements, whatever + is. */
typedef void (*tq_combine_fn)(void *held, const void *news, size_t n);

/* NULL: not for this type. */
tq_combine_fn tq_combine_of(tq_combination how, int32_t type);

/* What is left of STABLEHLO and other operators' bodies: their one operator's code. */
tq_combination tq_combination_of_operator(int64_t code);

#endif
