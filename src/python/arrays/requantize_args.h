/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of requantize() by their places.
 */
#ifndef TQ_PYTHON_ARRAYS_REQUANTIZE_ARGS_H
#define TQ_PYTHON_ARRAYS_REQUANTIZE_ARGS_H

#include "python/arrays/array_args.h"

/* requantize()'s arguments, in its order. */
enum {
    TQ_RQ_Q,
    TQ_RQ_MULTIPLIER,
    TQ_RQ_ZERO_POINT,
    TQ_RQ_INPUT_ZERO_POINT,
    TQ_RQ_DTYPE,
    TQ_RQ_AXIS,
    TQ_RQ_ROUNDING,
    TQ_RQ_OUT,
    TQ_RQ_NUM_THREADS,
    TQ_RQ_ARGUMENTS
};

#endif
