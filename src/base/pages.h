/* SPDX-License-Identifier: Apache-2.0
 *
 * Large pages for memory that is about to be written.
 */
#ifndef TQ_BASE_PAGES_H
#define TQ_BASE_PAGES_H

#include <stddef.h>

/* Asks the system for large pages behind new memory: a fault for every 4 KiB page costs more than filling it.  Changes
   no byte; does nothing where the system has none. */
void tq_pages_prefer_large(void *memory, size_t size);

#endif
