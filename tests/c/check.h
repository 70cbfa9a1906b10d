/* SPDX-License-Identifier: Apache-2.0
 *
 * The macro of the C tests, and copies of bytes whose ends a sanitizer watches.
 */
#ifndef TQ_TESTS_CHECK_H
#define TQ_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

extern unsigned checks_made, checks_failed;

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)

static inline void check(int holds, const char *text, const char *file, int line)
{
    checks_made++;
    if (holds)
        return;
    checks_failed++;
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
}

/* A copy of `size` bytes in an allocation of exactly that size; the caller frees it. */
static inline tq_bytes copy_exactly(const void *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    return (tq_bytes){copy, size};
}

static inline void free_copy(tq_bytes bytes)
{
    free((void *)(uintptr_t)bytes.data);
}

void test_base(void);
void test_file(void);
void test_processors(void);
void test_shared(void);
void test_arena_offsets(void);
void test_flatbuffer(void);
void test_model(void);
void test_flexbuffer(void);
void test_sparsity(void);
void test_fixed_math(void);
void test_rounding(void);

#endif
