/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "check.h"

static void test_arithmetic(void)
{
    uint64_t out = 7;
    CHECK(tq_add_u64(UINT64_MAX - 1, 1, &out) && out == UINT64_MAX);
    CHECK(!tq_add_u64(UINT64_MAX, 1, &out) && out == UINT64_MAX);
    CHECK(tq_mul_u64(UINT64_MAX, 0, &out) && out == 0);
    CHECK(tq_mul_u64(0, UINT64_MAX, &out) && out == 0);
    CHECK(tq_mul_u64(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &out) && out == UINT64_MAX - UINT32_MAX);
    CHECK(!tq_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &out) && out == UINT64_MAX - UINT32_MAX);
}

static void test_loads(void)
{
    static const uint8_t data[] = {0, 1, 2, 3, 4, 5, 6, 7, 0x88, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0, 0xf8, 0xbf};
    tq_bytes bytes = copy_exactly(data, sizeof data);
    CHECK(tq_load_u16(bytes.data + 1) == 0x0201);
    CHECK(tq_load_u32(bytes.data + 1) == 0x04030201);
    CHECK(tq_load_u64(bytes.data + 1) == UINT64_C(0x8807060504030201));
    CHECK(tq_load_f32(bytes.data + 9) == 1.5f);
    CHECK(tq_load_f64(bytes.data + 13) == -1.5);
    CHECK(tq_bytes_hold(bytes, sizeof data, 0) && tq_bytes_hold(bytes, 0, sizeof data));
    CHECK(!tq_bytes_hold(bytes, sizeof data, 1) && !tq_bytes_hold(bytes, 1, UINT64_MAX));
    CHECK(!tq_bytes_hold(bytes, UINT64_MAX, 2) && !tq_bytes_hold(bytes, UINT64_MAX, 0));
    free_copy(bytes);
}

static void *refuse(void *context, size_t size)
{
    *(size_t *)context = size;
    return NULL;
}

static void test_allocation(void)
{
    size_t asked = 0;
    const tq_allocator refusing = {.allocate = refuse, .context = &asked};
    uint8_t *memory = NULL;
    tq_error error;
    CHECK(tq_allocate(&tq_default_allocator, UINT64_MAX / 2, 4, &memory, &error) == TQ_NO_MEMORY && !memory);
    CHECK(error.status == TQ_NO_MEMORY && error.offset == TQ_NO_OFFSET);
    CHECK(tq_allocate(&refusing, UINT64_C(1) << 63, 1, &memory, NULL) == TQ_NO_MEMORY && !memory && !asked);
    CHECK(tq_allocate(&refusing, 6, 7, &memory, &error) == TQ_NO_MEMORY && !memory && asked == 42);
    CHECK(tq_allocate(&tq_default_allocator, 0, 8, &memory, &error) == TQ_OK && memory);
    tq_release(&tq_default_allocator, memory);
    CHECK(tq_allocate(&tq_default_allocator, 3, 1, &memory, &error) == TQ_OK && !memory[0] && !memory[2]);
    tq_release(&tq_default_allocator, memory);
    tq_release(&tq_default_allocator, NULL);
}

static void test_status(void)
{
    tq_error error;
    char longer[600];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    CHECK(tq_fail(&error, TQ_BAD_SHAPE, 5, "%s", longer) == TQ_BAD_SHAPE);
    CHECK(strlen(error.text) == sizeof error.text - 1 && error.offset == 5 && error.os_error == 0);
    CHECK(tq_fail(NULL, TQ_BAD_SHAPE, 5, "%s", longer) == TQ_BAD_SHAPE);
    CHECK(strcmp(tq_status_name(TQ_VECTOR_RANGE), "VECTOR_RANGE") == 0);
    CHECK(strcmp(tq_status_name(TQ_STATUS_COUNT), "?") == 0 && strcmp(tq_status_text((tq_status)-1), "?") == 0);
}

static void test_byte_order(void)
{
    const uint16_t one = 1;
    tq_error error;
    uint8_t first;
    memcpy(&first, &one, 1);
    CHECK(first == !TQ_IS_BIG_ENDIAN);
    CHECK(tq_cpu_check_byte_order(false, &error) == TQ_OK);
    CHECK(tq_cpu_check_byte_order(true, &error) == TQ_MACHINE && strstr(error.text, "big-endian"));
}

void test_base(void)
{
    test_byte_order();
    test_arithmetic();
    test_loads();
    test_allocation();
    test_status();
}
