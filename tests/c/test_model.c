/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "model/model.h"
#include "model/tensor.h"
#include "samples.h"

/* An allocator whose nth call finds no memory, and that counts what is not released. */
typedef struct failing {
    unsigned calls, fail_at;
    int live;
} failing;

static void *failing_allocate(void *context, size_t size)
{
    failing *f = context;
    if (++f->calls == f->fail_at)
        return NULL;
    f->live++;
    return calloc(1, size);
}

static void failing_release(void *context, void *memory)
{
    failing *f = context;
    f->live -= memory != NULL;
    free(memory);
}

static void test_allocation_failures(void)
{
    static maker m;
    make_sample_model(&m);
    tq_bytes file = copy_exactly(m.bytes, m.size);
    tq_status status = TQ_NO_MEMORY;
    unsigned failures = 0;
    for (unsigned nth = 1; status != TQ_OK && nth < 10; nth++) {
        failing f = {.fail_at = nth};
        tq_allocator allocator = {.allocate = failing_allocate, .release = failing_release, .context = &f};
        tq_model model = {.external_index = (uint64_t *)&f};
        tq_error error = {0};
        status = tq_model_open(file, &allocator, &model, &error);
        CHECK(status == TQ_OK || (status == TQ_NO_MEMORY && error.status == TQ_NO_MEMORY));
        CHECK(status == TQ_OK || (f.live == 0 && model.external_index == (uint64_t *)&f)); /* untouched */
        failures += status != TQ_OK;
        if (status == TQ_OK)
            tq_model_close(&model);
        CHECK(f.live == 0);
    }
    CHECK(status == TQ_OK && failures == 2); /* the index of external buffers, and the table of parts */
    free_copy(file);
}

static void test_views(void)
{
    static maker m;
    make_sample_model(&m);
    tq_bytes file = copy_exactly(m.bytes, m.size), bytes;
    tq_model model;
    CHECK(tq_model_open(file, &tq_default_allocator, &model, NULL) == TQ_OK);
    CHECK(!tq_model_has_identifier(&model));
    static const int64_t ids[] = {7, 3}, missing[] = {0, 1, 4, 8, -1, INT64_MAX};
    for (size_t i = 0; i < 2; i++) {
        tq_table buffer = tq_model_external_buffer(&model, ids[i]);
        CHECK(tq_get_int(&buffer, TQ_ExternalBuffer_length) == 100 + ids[i] ||
              tq_get_u64(&buffer, TQ_ExternalBuffer_length) == 100 + (uint64_t)ids[i]);
    }
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        CHECK(!tq_model_external_buffer(&model, missing[i]).at);
    tq_subgraph subgraph = tq_model_subgraph(&model, 0);
    CHECK(subgraph.tensors.count == 2 && !tq_model_subgraph(&model, 1).table.at);
    tq_operator op = tq_model_operator(&model, &subgraph, 0);
    CHECK(op.code == TQ_BuiltinOperator_CONV_2D && op.version == 1 && !op.custom_name.data);
    CHECK(tq_operator_options(&op).id == TQ_TABLE_Conv2DOptions);
    CHECK(tq_model_operator(&model, &subgraph, 1).code == -1);
    CHECK(tq_model_buffer(&model, 1, &bytes, NULL) == TQ_OK && bytes.size == 6 && bytes.data[5] == 6);
    CHECK(tq_model_buffer(&model, 0, &bytes, NULL) == TQ_OK && !bytes.data);
    CHECK(tq_model_buffer(&model, UINT64_MAX, &bytes, NULL) == TQ_OK && !bytes.data);
    tq_table tensor = tq_vector_table(&subgraph.tensors, 0);
    uint64_t size;
    CHECK(tq_tensor_size(&tensor, &size, NULL) == TQ_OK && size == 6 && tq_tensor_is_constant(&model, &tensor));
    tq_model_close(&model);
    free_copy(file);
}

static void test_strings(void)
{
    /* "", "abc", "d" */
    static const uint8_t data[] = {3, 0, 0, 0, 20, 0, 0, 0, 20, 0, 0, 0, 23, 0, 0, 0, 24, 0, 0, 0, 'a', 'b', 'c', 'd'};
    tq_strings strings;
    for (size_t size = 0; size < sizeof data; size++) {
        tq_bytes bytes = copy_exactly(data, size);
        CHECK(tq_strings_open(bytes, &strings, NULL) == TQ_BAD_STRINGS);
        free_copy(bytes);
    }
    tq_bytes bytes = copy_exactly(data, sizeof data);
    CHECK(tq_strings_open(bytes, &strings, NULL) == TQ_OK && strings.count == 3);
    CHECK(tq_strings_item(&strings, 0).size == 0 && tq_strings_item(&strings, 2).size == 1);
    CHECK(tq_strings_item(&strings, 1).size == 3 && memcmp(tq_strings_item(&strings, 1).data, "abc", 3) == 0);
    CHECK(!tq_strings_item(&strings, 3).data && !tq_strings_item(&strings, UINT32_MAX).data);
    for (size_t at = 0; at < 20; at++) { /* opened, then changed by someone else */
        uint8_t *changed = (uint8_t *)(uintptr_t)bytes.data;
        changed[at] ^= 0xff;
        tq_strings open = {bytes, 3};
        for (uint32_t i = 0; i < 3; i++) {
            tq_bytes item = tq_strings_item(&open, i);
            CHECK(!item.data ||
                  (item.data >= bytes.data && item.size <= (size_t)(bytes.data + bytes.size - item.data)));
        }
        CHECK(tq_strings_open(bytes, &strings, NULL) == TQ_BAD_STRINGS);
        changed[at] ^= 0xff;
    }
    free_copy(bytes);
}

static void test_unpack_bits(void)
{
    static const uint8_t packed[] = {0xf7, 0x81, 0x05};
    static const int8_t as_int4[] = {7, -1, 1, -8, 5}, as_int2[] = {-1, 1, -1, -1, 1, 0, 0, -2, 1, 1};
    static const uint8_t as_uint4[] = {7, 15, 1, 8, 5};
    uint8_t out[12];
    for (uint64_t count = 0; count <= 5; count++) { /* an odd count leaves half a byte */
        tq_bytes bytes = copy_exactly(packed, (count + 1) / 2);
        uint8_t *exact = malloc(count + 1);
        tq_unpack_bits(bytes.data, 4, true, count, exact);
        CHECK(memcmp(exact, as_int4, count) == 0);
        tq_unpack_bits(bytes.data, 4, false, count, exact);
        CHECK(memcmp(exact, as_uint4, count) == 0);
        free(exact);
        free_copy(bytes);
    }
    for (uint64_t count = 0; count <= 10; count++) {
        tq_bytes bytes = copy_exactly(packed, (count + 3) / 4);
        memset(out, 0x55, sizeof out);
        tq_unpack_bits(bytes.data, 2, true, count, out);
        CHECK(memcmp(out, as_int2, count) == 0 && out[count] == 0x55);
        free_copy(bytes);
    }
}

static void test_shape_count(void)
{
    static const struct {
        uint32_t count;
        int64_t shape[3];
        tq_status status;
        uint64_t expected;
    } rows[] = {
        {0, {0}, TQ_OK, 1},
        {2, {2, 3}, TQ_OK, 6},
        {3, {INT32_MAX, INT32_MAX, 0}, TQ_OK, 0},
        {3, {0, INT32_MAX, -1}, TQ_BAD_SHAPE, 0},
        {3, {INT32_MAX, INT32_MAX, 2}, TQ_BAD_SHAPE, 0},
        {2, {INT32_MAX, INT32_MAX}, TQ_OK, UINT64_C(0x3fffffff00000001)},
        {3, {1 << 30, 1 << 30, 1 << 30}, TQ_BAD_SHAPE, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static maker m;
        make_start(&m, TQ_TABLE_Model);
        tq_vector shape = {
            {m.bytes, sizeof m.bytes}, make_integers(&m, 4, rows[i].count, rows[i].shape) + 4, rows[i].count};
        uint64_t count = 99;
        CHECK(tq_shape_count(&shape, &count, NULL) == rows[i].status);
        CHECK(count == (rows[i].status == TQ_OK ? rows[i].expected : 99));
    }
}

void test_model(void)
{
    test_allocation_failures();
    test_views();
    test_strings();
    test_unpack_bits();
    test_shape_count();
}
