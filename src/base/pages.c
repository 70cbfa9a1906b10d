/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system.h"

#include "base/pages.h"

#ifdef __linux__
#include <stdint.h>
#include <sys/mman.h>
#endif

void tq_pages_prefer_large(void *memory, size_t size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    /* Bytes.  The range is rounded outwards to whole pages: rounded inwards, it would lose the large page that begins
       with the memory, which is 512 faults. */
    enum { LARGE = 1 << 21, SMALL = 1 << 12 };
    uintptr_t begin = (uintptr_t)memory / SMALL * SMALL;
    uintptr_t end = ((uintptr_t)memory + size + SMALL - 1) / SMALL * SMALL;
    if (size >= LARGE)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)size;
#endif
}
