/* SPDX-License-Identifier: Apache-2.0
 *
 * Monotonic time.
 */
#ifndef TQ_BASE_CLOCK_H
#define TQ_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since a moment before the process began. */
uint64_t tq_nanoseconds(void);

/* The same with a resolution of 1 to 16 milliseconds, at a lower cost. */
uint64_t tq_nanoseconds_coarse(void);

#endif
