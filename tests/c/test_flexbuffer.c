/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "flatbuffer/flexbuffer.h"

/* {a: -5, f: 1.5, i: -70000 (indirect), s: "hi", t: [1, 2, 300] (typed), v: [null, 2^64 - 1, {}],
   x: blob 00 01, z: true}, as the flatbuffers package 25 writes it. */
static const uint8_t sample[] = {
    0x61, 0x00, 0x66, 0x00, 0x73, 0x00, 0x02, 0x68, 0x69, 0x00, 0x74, 0x00, 0x03, 0x00, 0x01, 0x00, 0x02, 0x00,
    0x2c, 0x01, 0x78, 0x00, 0x02, 0x00, 0x01, 0x69, 0x00, 0x00, 0x90, 0xee, 0xfe, 0xff, 0x7a, 0x00, 0x76, 0x00,
    0x00, 0x00, 0x01, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x03, 0x0b, 0x24, 0x08, 0x4c, 0x4b, 0x35, 0x4b, 0x46, 0x2f, 0x3e, 0x33, 0x08, 0x00, 0x00, 0x00, 0x01, 0x00,
    0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0xfb, 0xff, 0xff, 0xff, 0x00, 0x00, 0xc0, 0x3f, 0x4c, 0x00, 0x00, 0x00,
    0x65, 0x00, 0x00, 0x00, 0x62, 0x00, 0x00, 0x00, 0x44, 0x00, 0x00, 0x00, 0x61, 0x00, 0x00, 0x00, 0x01, 0x00,
    0x00, 0x00, 0x06, 0x0e, 0x1a, 0x14, 0x2d, 0x2b, 0x64, 0x6a, 0x28, 0x26, 0x01,
};

static bool same(tq_bytes bytes, const char *text, size_t size)
{
    return bytes.data && bytes.size == size && memcmp(bytes.data, text, size) == 0;
}

static void test_sample(void)
{
    tq_bytes bytes = copy_exactly(sample, sizeof sample), key;
    tq_flex_reader r;
    tq_flex root, item, inner;
    tq_error error;
    CHECK(tq_flex_open(bytes, &r, &root, &error) == TQ_OK && root.kind == TQ_FLEX_MAP && root.count == 8);
    CHECK(tq_flex_map_key(&r, &root, 3, &key) == TQ_OK && same(key, "s", 1));
    CHECK(tq_flex_map_key(&r, &root, 8, &key) == TQ_BAD_FLEXBUFFER);
    CHECK(tq_flex_item(&r, &root, 0, &item) == TQ_OK && item.kind == TQ_FLEX_INT && tq_flex_scalar(&r, &item).i == -5);
    CHECK(tq_flex_item(&r, &root, 1, &item) == TQ_OK && item.kind == TQ_FLEX_FLOAT &&
          tq_flex_scalar(&r, &item).f == 1.5);
    CHECK(tq_flex_item(&r, &root, 2, &item) == TQ_OK && item.kind == TQ_FLEX_INT &&
          tq_flex_scalar(&r, &item).i == -70000);
    CHECK(tq_flex_item(&r, &root, 3, &item) == TQ_OK && item.kind == TQ_FLEX_STRING &&
          same(tq_flex_bytes(&r, &item), "hi", 2));
    CHECK(tq_flex_item(&r, &root, 4, &item) == TQ_OK && item.kind == TQ_FLEX_VECTOR && item.count == 3 && item.typing);
    CHECK(tq_flex_item(&r, &item, 2, &inner) == TQ_OK && tq_flex_scalar(&r, &inner).i == 300);
    CHECK(tq_flex_item(&r, &item, 3, &inner) == TQ_BAD_FLEXBUFFER && error.status == TQ_BAD_FLEXBUFFER);
    CHECK(tq_flex_item(&r, &root, 5, &item) == TQ_OK && item.kind == TQ_FLEX_VECTOR && !item.typing);
    CHECK(tq_flex_item(&r, &item, 0, &inner) == TQ_OK && inner.kind == TQ_FLEX_NULL);
    CHECK(tq_flex_item(&r, &item, 1, &inner) == TQ_OK && inner.kind == TQ_FLEX_UINT &&
          tq_flex_scalar(&r, &inner).u == UINT64_MAX);
    CHECK(tq_flex_item(&r, &item, 2, &inner) == TQ_OK && inner.kind == TQ_FLEX_MAP && inner.count == 0 &&
          inner.depth == 2);
    CHECK(tq_flex_item(&r, &root, 6, &item) == TQ_OK && item.kind == TQ_FLEX_BLOB &&
          same(tq_flex_bytes(&r, &item), "\0\1", 2));
    CHECK(tq_flex_item(&r, &root, 7, &item) == TQ_OK && item.kind == TQ_FLEX_BOOL && tq_flex_scalar(&r, &item).i == 1);
    CHECK(tq_flex_verify(bytes, NULL) == TQ_OK && tq_flex_is_options(bytes));
    free_copy(bytes);
}

/* A root that is one number: the slot, the type, the width. */
static tq_value read_number(unsigned wire, unsigned width, uint64_t bits, tq_status expected)
{
    uint8_t data[10];
    for (unsigned i = 0; i < width; i++)
        data[i] = (uint8_t)(bits >> (8 * i));
    data[width] = (uint8_t)(wire << 2);
    data[width + 1] = (uint8_t)width;
    tq_bytes bytes = copy_exactly(data, width + 2);
    tq_flex_reader r;
    tq_flex root;
    tq_value value = {TQ_VALUE_INT, {0}};
    CHECK(tq_flex_open(bytes, &r, &root, NULL) == expected);
    if (expected == TQ_OK)
        value = tq_flex_scalar(&r, &root);
    CHECK(!tq_flex_is_options(bytes));
    free_copy(bytes);
    return value;
}

static void test_widths(void)
{
    enum { INT = 1, UINT = 2, FLOAT = 3, BOOL = 26 };
    for (unsigned width = 1; width <= 8; width *= 2) {
        uint64_t top = UINT64_C(1) << (8 * width - 1);
        CHECK(read_number(INT, width, top, TQ_OK).i == -(int64_t)(top - 1) - 1);
        CHECK(read_number(UINT, width, top, TQ_OK).u == top);
        CHECK(read_number(BOOL, width, top, TQ_OK).i == 1);
    }
    read_number(FLOAT, 1, 0, TQ_BAD_FLEXBUFFER);
    read_number(27, 1, 0, TQ_BAD_FLEXBUFFER);
    read_number(63, 1, 0, TQ_BAD_FLEXBUFFER);
    read_number(INT, 3, 0, TQ_BAD_FLEXBUFFER);
    CHECK(read_number(FLOAT, 8, UINT64_C(0xbff8000000000000), TQ_OK).f == -1.5);
    CHECK(read_number(FLOAT, 4, 0x3fc00000, TQ_OK).f == 1.5);
    CHECK(read_number(FLOAT, 2, 0x3e00, TQ_OK).f == 1.5);
    CHECK(read_number(FLOAT, 2, 0xfbff, TQ_OK).f == -65504);
    CHECK(read_number(FLOAT, 2, 0x0001, TQ_OK).f == 0x1p-24);
    CHECK(read_number(FLOAT, 2, 0x0400, TQ_OK).f == 0x1p-14);
    CHECK(1 / read_number(FLOAT, 2, 0xfc00, TQ_OK).f == 0 && read_number(FLOAT, 2, 0xfc00, TQ_OK).f < 0);
    double nan = read_number(FLOAT, 2, 0x7e00, TQ_OK).f;
    CHECK(nan != nan);
}

static tq_status verify_copy(const uint8_t *data, size_t size)
{
    tq_bytes bytes = copy_exactly(data, size);
    tq_error error = {0};
    tq_status status = tq_flex_verify(bytes, &error);
    CHECK(status == TQ_OK ||
          (status == TQ_BAD_FLEXBUFFER && error.status == status && error.offset <= size && error.text[0]));
    if (tq_flex_is_options(bytes))
        CHECK(status == TQ_OK);
    free_copy(bytes);
    return status;
}

static void test_every_length(void)
{
    for (size_t size = 0; size < 3; size++)
        CHECK(verify_copy(sample, size) == TQ_BAD_FLEXBUFFER);
    for (size_t size = 0; size < sizeof sample; size++) {
        verify_copy(sample, size);                         /* the end, which is where reading starts */
        verify_copy(sample + sizeof sample - size, size); /* the start */
    }
    CHECK(verify_copy(sample + 1, sizeof sample - 1) == TQ_BAD_FLEXBUFFER);
}

static void test_every_byte(void)
{
    uint8_t changed[sizeof sample];
    memcpy(changed, sample, sizeof sample);
    for (size_t at = 0; at < sizeof sample; at++) {
        for (unsigned value = 0; value < 256; value++) {
            changed[at] = (uint8_t)value;
            verify_copy(changed, sizeof changed);
        }
        changed[at] = sample[at];
    }
}

/* Vectors of two offsets to one another: 2^31 paths in 31 levels, and then the same two levels more. */
static size_t make_nest(uint8_t *data, unsigned levels, unsigned width)
{
    enum { VECTOR = 10 << 2 };
    size_t size = 0, before = 0;
    for (unsigned i = 0; i < levels; i++) {
        data[size++] = (uint8_t)(i ? width : 0);
        size_t target = size;
        for (unsigned k = 0; i && k < width; k++, size++)
            data[size] = (uint8_t)(size - before);
        for (unsigned k = 0; i && k < width; k++)
            data[size++] = VECTOR;
        before = target;
    }
    data[size] = (uint8_t)(size - before);
    data[size + 1] = VECTOR;
    data[size + 2] = 1;
    return size + 3;
}

static void test_budgets(void)
{
    uint8_t data[4096];
    CHECK(verify_copy(data, make_nest(data, TQ_FLEX_DEPTH, 1)) == TQ_OK);
    CHECK(verify_copy(data, make_nest(data, TQ_FLEX_DEPTH + 1, 1)) == TQ_BAD_FLEXBUFFER);
    CHECK(verify_copy(data, make_nest(data, 8, 2)) == TQ_OK); /* 254 values */
    CHECK(verify_copy(data, make_nest(data, 31, 2)) == TQ_BAD_FLEXBUFFER);
    /* a vector whose element is the vector itself */
    static const uint8_t loop[] = {1, 0, 10 << 2, 2, 10 << 2, 1};
    CHECK(verify_copy(loop, sizeof loop) == TQ_BAD_FLEXBUFFER);
}

/* `count` offsets of 4 bytes to one string, or key, of `length` bytes. */
static tq_status verify_shared(unsigned wire, uint32_t count, uint32_t length)
{
    size_t size = 4 + (size_t)length + 1 + 4 + 5 * (size_t)count + 6;
    uint8_t *data = calloc(size, 1), *p = data;
    if (!data)
        abort();
    tq_store_u32(p, length);
    memset(p + 4, 'k', length);
    p += 4 + length + 1;
    tq_store_u32(p, count);
    p += 4;
    for (uint32_t i = 0; i < count; i++, p += 4) {
        uint32_t distance = (uint32_t)(p - data) - 4;
        tq_store_u32(p, distance);
    }
    memset(p, (int)(wire << 2 | 2), count);
    p += count;
    uint32_t distance = count * 5;
    tq_store_u32(p, distance);
    p[4] = 10 << 2 | 2;
    p[5] = 4;
    tq_status status = verify_copy(data, size);
    free(data);
    return status;
}

static void test_shared_bytes(void)
{
    enum { KEY = 4, STRING = 5 };
    for (unsigned wire = KEY; wire <= STRING; wire++) {
        CHECK(verify_shared(wire, 1000, 1000) == TQ_OK);
        CHECK(verify_shared(wire, 10000, 10000) == TQ_BAD_FLEXBUFFER);
    }
}

/* ---- the smallest buffers on either side of each bound ---- */

#define VERIFY(...) verify_copy((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

enum {
    T_INT = 1 << 2,
    T_KEY = 4 << 2,
    T_STRING = 5 << 2,
    T_INDIRECT = 6 << 2,
    T_MAP = 9 << 2,
    T_VECTOR = 10 << 2,
    T_INTS = 11 << 2
};

static void test_ends(void)
{
    CHECK(VERIFY(4, T_INT, 1) == TQ_OK);
    CHECK(VERIFY(4, T_INT, 4) == TQ_BAD_FLEXBUFFER);
    CHECK(VERIFY('k', 0, 2, T_KEY, 1) == TQ_OK);
    CHECK(VERIFY('k', 'k', 2, T_KEY, 1) == TQ_BAD_FLEXBUFFER); /* no NUL */
    CHECK(VERIFY('k', 0, 3, T_KEY, 1) == TQ_BAD_FLEXBUFFER);   /* before the start */
    CHECK(VERIFY(4, 's', 1, T_STRING, 1) == TQ_OK);
    CHECK(VERIFY(5, 's', 1, T_STRING, 1) == TQ_BAD_FLEXBUFFER);
    CHECK(VERIFY('s', 1, T_STRING, 1) == TQ_BAD_FLEXBUFFER); /* no size */
    CHECK(VERIFY(2, 1, 2, 2, T_INDIRECT | 1, 1) == TQ_OK);
    CHECK(VERIFY(2, 1, T_INDIRECT | 2, 1) == TQ_OK);
    CHECK(VERIFY(2, 1, T_INDIRECT | 3, 1) == TQ_BAD_FLEXBUFFER);
    CHECK(VERIFY(3, 0, T_INTS, 1) == TQ_OK); /* the slot, the type and the width are the elements */
    CHECK(VERIFY(4, 0, T_INTS, 1) == TQ_BAD_FLEXBUFFER);
    CHECK(VERIFY(0, 0, T_VECTOR, 1) == TQ_OK);
    CHECK(VERIFY(2, 0, T_VECTOR, 1) == TQ_BAD_FLEXBUFFER);
    CHECK(VERIFY(0, 0, 27 << 2, 1) == TQ_BAD_FLEXBUFFER);
    CHECK(VERIFY(0, 0, 35 << 2, 1) == TQ_BAD_FLEXBUFFER);
    CHECK(VERIFY(0, 0, 37 << 2, 1) == TQ_BAD_FLEXBUFFER);
}

/* {k: 42}: key, keys' size and slot, the map's three numbers, its value and type, the root. */
static void test_map(void)
{
    CHECK(VERIFY('k', 0, 1, 3, 1, 1, 1, 42, T_INT, 2, T_MAP, 1) == TQ_OK);
    CHECK(VERIFY('k', 0, 2, 3, 1, 1, 1, 42, T_INT, 2, T_MAP, 1) == TQ_BAD_FLEXBUFFER); /* two keys */
    CHECK(VERIFY('k', 0, 0, 3, 1, 1, 1, 42, T_INT, 2, T_MAP, 1) == TQ_BAD_FLEXBUFFER); /* none */
    CHECK(VERIFY('k', 0, 1, 4, 1, 1, 1, 42, T_INT, 2, T_MAP, 1) == TQ_BAD_FLEXBUFFER); /* before the start */
    CHECK(VERIFY('k', 0, 1, 3, 5, 1, 1, 42, T_INT, 2, T_MAP, 1) == TQ_BAD_FLEXBUFFER); /* the keys too */
    CHECK(VERIFY(1, 1, 42, T_INT, 2, T_MAP, 1) == TQ_BAD_FLEXBUFFER);                  /* no keys at all */
    for (uint8_t width = 0; width <= 8; width++) { /* {"": 42}, whose keys stand at 8 */
        uint8_t data[29] = {[21] = 13, width, 1, 42, T_INT, 2, T_MAP, 1};
        data[8 - width] = 1;
        bool known = width == 1 || width == 2 || width == 4 || width == 8;
        CHECK(verify_copy(data, sizeof data) == (known ? TQ_OK : TQ_BAD_FLEXBUFFER));
    }
}

static void test_typed_vectors(void)
{
    static const tq_flex_kind kinds[] = {TQ_FLEX_INT, TQ_FLEX_UINT, TQ_FLEX_FLOAT};
    uint8_t data[8 * 4 + 3] = {0};
    tq_flex_reader r;
    tq_flex root, item;
    for (unsigned nth = 0; nth < 9; nth++) { /* VECTOR_INT2 is 16, VECTOR_FLOAT4 24 */
        data[32] = 32;
        data[33] = (uint8_t)((16 + nth) << 2 | 3);
        data[34] = 1;
        tq_bytes bytes = copy_exactly(data, sizeof data);
        CHECK(tq_flex_open(bytes, &r, &root, NULL) == TQ_OK && root.kind == TQ_FLEX_VECTOR &&
              root.count == 2 + nth / 3);
        CHECK(tq_flex_item(&r, &root, root.count - 1, &item) == TQ_OK && item.kind == kinds[nth % 3] &&
              item.width == 8);
        CHECK(tq_flex_verify(bytes, NULL) == TQ_OK && !tq_flex_is_options(bytes));
        free_copy(bytes);
    }
    static const struct {
        uint8_t wire;
        tq_flex_kind kind;
    } rows[] = {{11, TQ_FLEX_INT}, {12, TQ_FLEX_UINT}, {14, TQ_FLEX_KEY}, {15, TQ_FLEX_KEY}, {36, TQ_FLEX_BOOL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint8_t two[] = {'a', 0, 2, 3, 4, 2, (uint8_t)(rows[i].wire << 2), 1};
        tq_bytes bytes = copy_exactly(two, sizeof two);
        CHECK(tq_flex_open(bytes, &r, &root, NULL) == TQ_OK && root.kind == TQ_FLEX_VECTOR && root.count == 2);
        CHECK(tq_flex_item(&r, &root, 1, &item) == TQ_OK && item.kind == rows[i].kind);
        CHECK(item.kind != TQ_FLEX_KEY || same(tq_flex_bytes(&r, &item), "a", 1));
        CHECK(tq_flex_verify(bytes, NULL) == TQ_OK && !tq_flex_is_options(bytes));
        CHECK(tq_flex_map_key(&r, &root, 0, &bytes) == TQ_BAD_FLEXBUFFER);
        free_copy(r.bytes);
    }
}

void test_flexbuffer(void)
{
    test_sample();
    test_widths();
    test_ends();
    test_map();
    test_typed_vectors();
    test_every_length();
    test_every_byte();
    test_budgets();
    test_shared_bytes();
}
