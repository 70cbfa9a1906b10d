/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "base/pages.h"

#ifdef __linux__
#include <stdint.h>
#include <sys/mman.h>
#endif

void tq_pages_prefer_large(void *memory, size_t size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    enum { LARGE = 1 << 21, SMALL = 1 << 12 }; /* bytes; the kernel takes whole large pages only, and refuses other sizes */
    uintptr_t begin = ((uintptr_t)memory + SMALL - 1) / SMALL * SMALL;
    uintptr_t end = ((uintptr_t)memory + size) / SMALL * SMALL;
    if (size >= LARGE && end > begin)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)size;
#endif
}
