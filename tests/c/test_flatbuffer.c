/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "flatbuffer/verify.h"
#include "samples.h"

/* ---- reading every field of the schema, verified or not ---- */

typedef struct reading {
    unsigned left;  /* vectors and tables that may still be read: unverified bytes may share them */
    uint64_t total; /* of values read, so that no load is optimized away */
} reading;

static void read_table(reading *r, tq_table_id id, const tq_table *table, unsigned depth);

static void read_bytes(reading *r, tq_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        r->total += bytes.data[i];
}

static void read_vector(reading *r, const tq_field *field, const tq_vector *vector, unsigned depth)
{
    uint32_t count = vector->count < 100 ? vector->count + 1 : 100; /* also one index past the end */
    for (uint32_t i = 0; i < count; i++) {
        if (field->shape == TQ_SHAPE_VEC_STRING)
            read_bytes(r, tq_vector_string(vector, i));
        else if (field->shape == TQ_SHAPE_VEC_TABLE) {
            tq_table table = tq_vector_table(vector, i);
            read_table(r, field->detail, &table, depth);
        } else if (tq_scalar_size[field->scalar] == 4)
            r->total += (uint32_t)tq_vector_i32(vector, i) + (tq_vector_f32(vector, i) > 0);
        else if (tq_scalar_size[field->scalar] == 8)
            r->total += (uint64_t)tq_vector_i64(vector, i);
    }
}

static void read_field(reading *r, const tq_table *table, tq_field_id id, unsigned depth)
{
    const tq_field *field = &tq_fields[id];
    tq_table child;
    tq_vector vector;
    tq_union choice;
    switch ((tq_field_shape)field->shape) {
    case TQ_SHAPE_SCALAR:
    case TQ_SHAPE_ENUM: r->total += tq_get_scalar(table, id).u; break;
    case TQ_SHAPE_STRING: read_bytes(r, tq_get_string(table, id)); break;
    case TQ_SHAPE_TABLE:
        child = tq_get_table(table, id);
        read_table(r, field->detail, &child, depth);
        break;
    case TQ_SHAPE_UNION:
        choice = tq_get_union(table, id);
        if (tq_union_member(field->detail, choice.type) != TQ_TABLE_NONE)
            read_table(r, tq_union_member(field->detail, choice.type), &choice.value, depth);
        break;
    default:
        vector = tq_get_vector(table, id);
        read_bytes(r, tq_vector_bytes(&vector, tq_scalar_size[field->scalar]));
        read_vector(r, field, &vector, depth);
    }
}

static void read_table(reading *r, tq_table_id id, const tq_table *table, unsigned depth)
{
    if (!table->at || depth > 8 || !r->left)
        return;
    r->left--;
    for (unsigned i = tq_tables[id].first; i < tq_tables[id + 1].first; i++)
        read_field(r, table, (tq_field_id)i, depth + 1);
}

/* Reads bytes as a model: verified, and then also if the verifier rejects them. */
static tq_status read_model(const uint8_t *data, size_t size)
{
    tq_bytes file = copy_exactly(data, size);
    reading r = {100000, 0}, unverified = {500, 0};
    tq_error error = {0};
    tq_table root = {.at = 0};
    tq_status status = tq_verify(file, TQ_TABLE_Model, NULL, &root, &error);
    CHECK(status == TQ_OK ? root.at != 0 : (root.at == 0 && error.status == status && error.text[0]));
    read_table(&r, TQ_TABLE_Model, &root, 0);
    size_t at;
    if (tq_offset_follow(file, 0, &at, NULL) == TQ_OK && tq_table_find(file, at, &root, NULL) == TQ_OK)
        read_table(&unverified, TQ_TABLE_Model, &root, 0);
    free_copy(file);
    return status;
}

static void test_every_length(const maker *m)
{
    for (size_t size = 0; size < m->size; size++)
        read_model(m->bytes, size);
    CHECK(read_model(m->bytes, m->size) == TQ_OK);
    CHECK(read_model(m->bytes, 7) == TQ_TOO_SMALL);
    CHECK(read_model(m->bytes, m->size / 2) != TQ_OK);
}

static void test_every_byte(const maker *m)
{
    static const uint8_t changes[] = {0x01, 0x80, 0xff, 0x04};
    maker changed = *m;
    for (size_t at = 0; at < m->size; at++) {
        for (size_t i = 0; i < sizeof changes; i++) {
            changed.bytes[at] = m->bytes[at] ^ changes[i];
            read_model(changed.bytes, changed.size);
        }
        changed.bytes[at] = m->bytes[at];
    }
}

/* ---- accessors at the file's last byte ---- */

static void test_file_ends(void)
{
    /* vtable at 0: 6 bytes, field 0 at distance 4; table at 6; the field at 10 */
    static const uint8_t data[] = {6, 0, 8, 0, 4, 0, 6, 0, 0, 0, 0x2a, 0, 0, 0};
    for (size_t size = 0; size <= sizeof data; size++) {
        tq_bytes file = copy_exactly(data, size);
        tq_table table = {.at = 0};
        CHECK((tq_table_find(file, 6, &table, NULL) == TQ_OK) == (size >= 10));
        if (table.at) {
            CHECK(tq_slot_at(&table, 0) == 10 && tq_slot_at(&table, 1) == 0);
            CHECK(tq_get_int(&table, TQ_Int32Vector_values) == (size >= 14 ? 0x2a : 0));
            CHECK(tq_get_vector(&table, TQ_Int32Vector_values).at == 0);
            CHECK(tq_get_string(&table, TQ_Int32Vector_values).data == NULL);
            CHECK(tq_get_table(&table, TQ_Int32Vector_values).at == 0);
        }
        free_copy(file);
    }
    tq_bytes file = copy_exactly("\2\0\0\0abcd\1\0\0\0", 12);
    tq_vector vector;
    CHECK(tq_vector_find(file, 0, 4, &vector, NULL) == TQ_OK && vector.count == 2 && tq_vector_i32(&vector, 2) == 0);
    CHECK(tq_vector_find(file, 0, 5, &vector, NULL) == TQ_VECTOR_RANGE);
    CHECK(tq_vector_find(file, 8, 1, &vector, NULL) == TQ_VECTOR_RANGE);
    CHECK(tq_vector_find(file, 9, 1, &vector, NULL) == TQ_OFFSET_RANGE);
    CHECK(tq_vector_find(file, SIZE_MAX, 1, &vector, NULL) == TQ_OFFSET_RANGE);
    free_copy(file);
}

/* ---- the verifier's budgets ---- */

/* `outer` references to one subgraph, with `inner` references to one tensor, whose name has 1000 bytes. */
static void make_shared(maker *m, uint32_t outer, uint32_t inner)
{
    char name[1001];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    make_start(m, TQ_TABLE_Model);
    size_t model = make_table(m, TQ_TABLE_Model);
    size_t subgraphs = make_vector(m, outer, 4), subgraph = make_table(m, TQ_TABLE_SubGraph);
    size_t tensors = make_vector(m, inner, 4), tensor = make_table(m, TQ_TABLE_Tensor);
    set_link(m, model, TQ_Model_subgraphs, subgraphs);
    set_link(m, subgraph, TQ_SubGraph_tensors, tensors);
    set_link(m, tensor, TQ_Tensor_name, make_string(m, name));
    for (uint32_t i = 0; i < outer; i++)
        set_element(m, subgraphs, i, subgraph);
    for (uint32_t i = 0; i < inner; i++)
        set_element(m, tensors, i, tensor);
}

static void test_budgets(void)
{
    static maker m;
    tq_table root;
    tq_error error;
    make_shared(&m, 100, 100);
    CHECK(read_model(m.bytes, m.size) == TQ_TABLE_BUDGET);
    make_shared(&m, 20, 20);
    tq_bytes file = copy_exactly(m.bytes, m.size);
    tq_budget exact = {3, 1 + 20 + 400, 20 * 4 + 20 * (20 * 4 + 20 * 1000)};
    CHECK(tq_verify(file, TQ_TABLE_Model, NULL, &root, NULL) == TQ_OK);
    CHECK(tq_verify(file, TQ_TABLE_Model, &exact, &root, NULL) == TQ_OK);
    exact.bytes--;
    CHECK(tq_verify(file, TQ_TABLE_Model, &exact, &root, &error) == TQ_BYTE_BUDGET);
    CHECK(strstr(error.text, "Model.subgraphs: SubGraph.tensors: Tensor.name: ") == error.text);
    exact.bytes++;
    exact.tables--;
    CHECK(tq_verify(file, TQ_TABLE_Model, &exact, &root, NULL) == TQ_TABLE_BUDGET);
    exact.tables++;
    exact.depth = 2;
    CHECK(tq_verify(file, TQ_TABLE_Model, &exact, &root, NULL) == TQ_DEPTH_BUDGET);
    free_copy(file);
}

void test_flatbuffer(void)
{
    static maker m;
    make_sample_model(&m);
    test_every_length(&m);
    test_every_byte(&m);
    test_file_ends();
    test_budgets();
}
