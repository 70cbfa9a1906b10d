/* SPDX-License-Identifier: Apache-2.0
 *
 * Time that only goes forward.
 */
#ifndef TQ_BASE_CLOCK_H
#define TQ_BASE_CLOCK_H

#include <stdint.h>

uint64_t tq_nanoseconds(void);

/* The same, to some milliseconds, for what is asked often. */
uint64_t tq_nanoseconds_coarse(void);

#endif
