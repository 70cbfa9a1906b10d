/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements combined two by two, by a rule and a type that an operator finds in prepare: scatters, segments and windows
 * combine several elements at one index.
 */
#ifndef TQ_OPS_MOVEMENT_COMBINE_H
#define TQ_OPS_MOVEMENT_COMBINE_H

#include <stddef.h>
#include <stdint.h>

typedef enum tq_combination {
    TQ_COMBINE_REPLACE, /* new */
    TQ_COMBINE_ADD,     /* integers wrap; BOOL: or */
    TQ_COMBINE_MULTIPLY,
    TQ_COMBINE_MAX, /* held < new ? new : held */
    TQ_COMBINE_MIN,
    TQ_COMBINE_WINDOW_MAX, /* held >= new ? held : new, which differs for NaN */
    TQ_COMBINE_WINDOW_MIN,
    TQ_COMBINE_ALL, /* 1 or 0 */
    TQ_COMBINE_ANY,
    TQ_COMBINE_NONE
} tq_combination;

/* held[i] = held[i] + news[i] for n elements, where + is the combination.  The arrays do not overlap. */
typedef void (*tq_combine_fn)(void *held, const void *news, size_t n);

/* The function for a combination and a tensor type; NULL for a type that cannot be combined, and for TQ_COMBINE_NONE.
 */
tq_combine_fn tq_combine_of(tq_combination how, int32_t type);

/* The combination that a subgraph of the one builtin operator `code` computes, as STABLEHLO operators have for bodies;
   TQ_COMBINE_NONE for any other operator. */
tq_combination tq_combination_of_operator(int64_t code);

#endif
