/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is about to be filled.
 */
#ifndef TQ_BASE_PAGES_H
#define TQ_BASE_PAGES_H

#include <stddef.h>

/* Asks the system for large pages behind memory that is new and about to be written, where it gives some: a fault for
   every 4 KiB costs more than filling them.  Changes no byte. */
void tq_pages_prefer_large(void *memory, size_t size);

#endif
