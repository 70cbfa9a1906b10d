/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "model/sparsity.h"
#include "samples.h"

/* 4 x 4 in blocks of 2 x 2; the first block is empty. */
static const sample_sparsity blocks = {
    .rank = 2,
    .shape = {4, 4},
    .type = TQ_TensorType_INT8,
    .order_count = 4,
    .order = {0, 1, 2, 3},
    .block_count = 2,
    .block_map = {0, 1},
    .level_count = 4,
    .levels =
        {
            {.dense_size = 2},
            {.format = TQ_DimensionType_SPARSE_CSR,
             .segment_count = 3,
             .segments = {0, 1, 3},
             .index_count = 3,
             .indices = {1, 0, 1},
             .width = 1},
            {.dense_size = 2},
            {.dense_size = 2},
        },
};
static const uint8_t blocks_stored[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const uint8_t blocks_dense[] = {0, 0, 1, 2, 0, 0, 3, 4, 5, 6, 9, 10, 7, 8, 11, 12};

/* Densifies into memory of exactly `dense_size` bytes, from exactly `size` bytes of a file whose tensor is at `at`. */
static tq_status densify(const uint8_t *data, size_t size, size_t at, const void *stored, size_t stored_size,
                         uint8_t *dense, size_t dense_size, tq_error *error)
{
    tq_bytes file = copy_exactly(data, size), values = copy_exactly(stored, stored_size);
    uint8_t *out = calloc(dense_size ? dense_size : 1, 1);
    tq_table tensor = {file, 0, 0, 0};
    tq_table_find(file, at, &tensor, NULL);
    tq_status status = tq_tensor_densify(&tensor, values, out, dense_size, error);
    memcpy(dense, out, dense_size);
    free(out);
    free_copy(values);
    free_copy(file);
    return status;
}

static tq_status densify_sample(const sample_sparsity *from, const void *stored, size_t stored_size, uint8_t *dense,
                                size_t dense_size, tq_error *error)
{
    static maker m;
    make_start(&m, TQ_TABLE_Model);
    size_t tensor = make_sparse_tensor(&m, from);
    return densify(m.bytes, m.size, tensor, stored, stored_size, dense, dense_size, error);
}

static void test_blocks(void)
{
    uint8_t dense[16] = {0};
    tq_error error;
    sample_sparsity s = blocks;
    for (unsigned width = 1; width <= 4; width *= 2) {
        s.levels[1].width = width;
        CHECK(densify_sample(&s, blocks_stored, 12, dense, 16, &error) == TQ_OK &&
              memcmp(dense, blocks_dense, 16) == 0);
    }
    CHECK(densify_sample(&s, blocks_stored, 11, dense, 16, &error) == TQ_DATA_SIZE);
    CHECK(densify_sample(&s, blocks_stored, 0, dense, 16, &error) == TQ_DATA_SIZE);
    CHECK(densify_sample(&s, blocks_stored, 12, dense, 15, &error) == TQ_BAD_ARGUMENT);
    uint8_t longer[14];
    memcpy(longer, blocks_stored, 12);
    CHECK(densify_sample(&s, longer, 14, dense, 16, &error) == TQ_OK && memcmp(dense, blocks_dense, 16) == 0);
    s.order[0] = 1, s.order[1] = 0, s.order[2] = 3, s.order[3] = 2; /* column-major, in and outside blocks */
    static const uint8_t turned[] = {0, 0, 5, 7, 0, 0, 6, 8, 1, 3, 9, 11, 2, 4, 10, 12};
    CHECK(densify_sample(&s, blocks_stored, 12, dense, 16, &error) == TQ_OK && memcmp(dense, turned, 16) == 0);
    s = blocks;
    s.block_map[0] = 1, s.block_map[1] = 0; /* column-major inside blocks alone */
    static const uint8_t turned_inside[] = {0, 0, 1, 3, 0, 0, 2, 4, 5, 7, 9, 11, 6, 8, 10, 12};
    CHECK(densify_sample(&s, blocks_stored, 12, dense, 16, &error) == TQ_OK && memcmp(dense, turned_inside, 16) == 0);
}

static void test_element_sizes(void)
{
    static const struct {
        int64_t type;
        size_t size;
    } rows[] = {{TQ_TensorType_BOOL, 1},
                {TQ_TensorType_FLOAT16, 2},
                {TQ_TensorType_FLOAT32, 4},
                {TQ_TensorType_INT64, 8},
                {TQ_TensorType_COMPLEX128, 16}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t stored[12 * 16], dense[16 * 16], expected[16 * 16];
        size_t size = rows[i].size;
        for (size_t k = 0; k < sizeof stored; k++)
            stored[k] = (uint8_t)(k + 1);
        for (size_t k = 0; k < 16; k++)
            for (size_t b = 0; b < size; b++)
                expected[k * size + b] = blocks_dense[k] ? stored[(blocks_dense[k] - 1u) * size + b] : 0;
        sample_sparsity s = blocks;
        s.type = rows[i].type;
        CHECK(densify_sample(&s, stored, 12 * size, dense, 16 * size, NULL) == TQ_OK &&
              memcmp(dense, expected, 16 * size) == 0);
    }
    static const int64_t refused[] = {
        TQ_TensorType_STRING, TQ_TensorType_INT4, TQ_TensorType_INT2, TQ_TensorType_RESOURCE, 100, -1};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        uint8_t dense[16];
        sample_sparsity s = blocks;
        s.type = refused[i];
        CHECK(densify_sample(&s, blocks_stored, 12, dense, 16, NULL) == TQ_BAD_TYPE);
    }
}

static void test_shapes(void)
{
    uint8_t dense[8] = {0};
    static const sample_sparsity scalar = {.type = TQ_TensorType_INT8};
    CHECK(densify_sample(&scalar, "\7", 1, dense, 1, NULL) == TQ_OK && dense[0] == 7);
    /* no elements, though the sizes multiply to more than 2^64 and walking the first level would not end */
    sample_sparsity none = {
        .rank = 4,
        .shape = {INT32_MAX, INT32_MAX, INT32_MAX, 0},
        .type = TQ_TensorType_FLOAT32,
        .order_count = 4,
        .order = {0, 1, 2, 3},
        .level_count = 4,
        .levels = {{.dense_size = INT32_MAX}, {.dense_size = INT32_MAX}, {.dense_size = INT32_MAX}, {.dense_size = 0}}};
    tq_status status = densify_sample(&none, "", 0, dense, 0, NULL);
    CHECK(status == TQ_BAD_SPARSITY); /* INT32_MAX^3 positions cannot be counted */
    none.shape[2] = none.levels[2].dense_size = 1;
    CHECK(densify_sample(&none, "", 0, dense, 0, NULL) == TQ_OK);
    /* an index that occurs twice: the later value */
    static const sample_sparsity twice = {
        .rank = 1,
        .shape = {3},
        .type = TQ_TensorType_INT8,
        .order_count = 1,
        .order = {0},
        .level_count = 1,
        .levels = {{.format = TQ_DimensionType_SPARSE_CSR,
                    .segment_count = 2,
                    .segments = {0, 3},
                    .index_count = 3,
                    .indices = {2, 0, 2},
                    .width = 2}},
    };
    CHECK(densify_sample(&twice, "\1\2\3", 3, dense, 3, NULL) == TQ_OK && memcmp(dense, "\2\0\3", 3) == 0);
    CHECK(densify_sample(&twice, NULL, 0, dense, 3, NULL) == TQ_DATA_SIZE);
}

#define CHECK_BAD(change, part)                                                              \
    do {                                                                                     \
        sample_sparsity s = blocks;                                                          \
        s.levels[1].width = 4;                                                               \
        change;                                                                              \
        tq_error error = {0};                                                                \
        uint8_t dense[16];                                                                   \
        CHECK(densify_sample(&s, blocks_stored, 12, dense, 16, &error) == TQ_BAD_SPARSITY && \
              strstr(error.text, part));                                                     \
    } while (0)

static void test_contradictions(void)
{
    CHECK_BAD(s.order_count = 3, "traversal_order has 3 items");
    CHECK_BAD(s.order[1] = 0, "traversal_order has dimension 0 twice");
    CHECK_BAD(s.order[1] = -1, "traversal_order[1] is -1");
    CHECK_BAD((s.order[1] = 2, s.order[2] = 1), "traversal_order[1] is 2");
    CHECK_BAD(s.order[3] = 4, "traversal_order[3] is 4");
    CHECK_BAD(s.block_map[1] = 2, "block_map[1] is 2");
    CHECK_BAD(s.block_map[1] = -1, "block_map[1] is -1");
    CHECK_BAD(s.block_map[1] = 0, "block_map has dimension 0 twice");
    CHECK_BAD(s.block_count = 1, "dim_metadata has 4 items");
    CHECK_BAD(s.level_count = 3, "dim_metadata has 3 items");
    CHECK_BAD((s.rank = 33, s.block_count = 0), "sparse tensors may have 32");
    CHECK_BAD(s.levels[0].dense_size = 3, "level 0 has dense_size 3; the shape gives 2");
    CHECK_BAD(s.levels[0].dense_size = -1, "level 0 has dense_size -1");
    CHECK_BAD(s.levels[0].format = 2, "level 0 has the unknown format 2");
    CHECK_BAD(s.levels[3].format = 1, "level 3 is inside a block and not DENSE");
    CHECK_BAD(s.levels[3].dense_size = 3, "blocks of 3 do not divide dimension 1 of size 4");
    CHECK_BAD(s.levels[3].dense_size = 0, "blocks of 0");
    CHECK_BAD(s.levels[3].dense_size = -2, "blocks of -2");
    CHECK_BAD(s.levels[1].width = 0, "has no array_segments");
    CHECK_BAD(s.levels[1].segment_count = 2, "level 1 has 2 array_segments; 2 positions above it need one more");
    CHECK_BAD(s.levels[1].segment_count = 4, "level 1 has 4 array_segments");
    CHECK_BAD(s.levels[1].segments[0] = 1, "array_segments[0] is 1");
    CHECK_BAD(s.levels[1].segments[1] = 4, "array_segments[2] is 3");
    CHECK_BAD(s.levels[1].segments[1] = -1, "array_segments[1] is -1");
    CHECK_BAD(s.levels[1].segments[2] = 2, "array_segments end at 2, array_indices has 3");
    CHECK_BAD(s.levels[1].segments[2] = INT32_MAX, "array_segments end at 2147483647");
    CHECK_BAD(s.levels[1].indices[2] = 2, "array_indices[2] is 2; the dimension has size 2");
    CHECK_BAD(s.levels[1].indices[2] = -1, "array_indices[2] is -1");
    sample_sparsity s = blocks;
    uint8_t dense[16];
    s.shape[0] = -4;
    CHECK(densify_sample(&s, blocks_stored, 12, dense, 16, NULL) == TQ_BAD_SHAPE);
    tq_error error;
    tq_table none = {.at = 0};
    CHECK(tq_tensor_densify(&none, (tq_bytes){NULL, 0}, dense, 0, &error) == TQ_BAD_SPARSITY &&
          strstr(error.text, "no sparsity"));
}

/* Bytes are not verified here: accessors and checks alone must keep every access inside. */
static void test_every_length_and_byte(void)
{
    static const uint8_t changes[] = {0x01, 0x02, 0x80, 0xff};
    static maker m, changed;
    make_start(&m, TQ_TABLE_Model);
    size_t tensor = make_sparse_tensor(&m, &blocks);
    const size_t unread = 36; /* of the last level: half of dense_size's room, and four absent fields */
    uint8_t dense[16];
    changed = m;
    for (size_t size = 0; size <= m.size; size++) {
        tq_error error = {0};
        tq_status status = densify(m.bytes, size, tensor, blocks_stored, 12, dense, 16, &error);
        CHECK(status == error.status && (status == TQ_OK) == (size >= m.size - unread));
    }
    for (size_t at = 0; at < m.size; at++) {
        for (size_t i = 0; i < sizeof changes; i++) {
            changed.bytes[at] = m.bytes[at] ^ changes[i];
            densify(changed.bytes, changed.size, tensor, blocks_stored, 12, dense, 16, NULL);
        }
        changed.bytes[at] = m.bytes[at];
    }
}

static void test_dimensions(void)
{
    static maker m;
    make_start(&m, TQ_TABLE_Model);
    size_t at = make_sparse_tensor(&m, &blocks);
    tq_bytes file = copy_exactly(m.bytes, m.size);
    tq_table tensor;
    CHECK(tq_table_find(file, at, &tensor, NULL) == TQ_OK);
    tq_table sparsity = tq_get_table(&tensor, TQ_Tensor_sparsity);
    tq_dimension level = tq_sparsity_dimension(&sparsity, 1);
    CHECK(level.format == TQ_DimensionType_SPARSE_CSR && level.segments.vector.count == 3 &&
          level.indices.vector.count == 3);
    CHECK(tq_indices_at(&level.segments, 2) == 3 && tq_indices_at(&level.segments, 3) == 0 &&
          tq_indices_at(&level.indices, 0) == 1);
    level = tq_sparsity_dimension(&sparsity, 0);
    CHECK(level.format == TQ_DimensionType_DENSE && level.dense_size == 2 && !level.segments.vector.at &&
          tq_indices_at(&level.segments, 0) == 0);
    CHECK(!tq_sparsity_dimension(&sparsity, 4).indices.vector.at);
    free_copy(file);
}

void test_sparsity(void)
{
    test_blocks();
    test_element_sizes();
    test_shapes();
    test_contradictions();
    test_every_length_and_byte();
    test_dimensions();
}
