/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of alignment and strings: scalars, vectors and tables must lie at multiples of their size.  tq reads them at
 * any offset; flatbuffers' own verifier, and so LiteRT, refuses the file, and readers that cast pointers crash on some
 * machines.  Elements of 8 bytes need multiples of 4 only: that verifier accepts these, and real files have them.
 *
 * The walk is the verifier's, over the same rows, so the verifier's budgets bound it.
 */
#include "model/problems/checks.h"

static void walk_table(tq_checker *checker, tq_table_id id, const tq_table *table);

static void check_alignment(tq_checker *checker, tq_table_id id, const tq_field *field, size_t at, unsigned size,
                            const char *kind)
{
    if (at % size)
        tq_report(checker, TQ_PROBLEM_MISALIGNED, tq_location_of(TQ_LOCATION_MODEL, 0),
                  "%s.%s: %s at byte %llu, which is no multiple of %u", tq_tables[id].name, field->name, kind,
                  (unsigned long long)at, size);
}

/* The bytes of the UTF-8 character at `p`, which has `left` bytes; 0: invalid.  The range of the second byte excludes
   characters with a shorter form, surrogates, and values above U+10FFFF. */
static size_t character_size(const uint8_t *p, size_t left)
{
    unsigned first = p[0], low = 0x80, high = 0xbf;
    size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (size > left)
        return 0;
    low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : low;
    high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : high;
    if (size > 1 && (p[1] < low || p[1] > high))
        return 0;
    for (size_t i = 2; i < size; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return size;
}

static bool is_utf8(tq_bytes text)
{
    for (size_t i = 0, size; i < text.size; i += size) {
        size = character_size(text.data + i, text.size - i);
        if (!size)
            return false;
    }
    return true;
}

static void check_string(tq_checker *checker, tq_table_id id, const tq_field *field, tq_bytes string)
{
    tq_bytes file = checker->model->file;
    size_t at = (size_t)(string.data - file.data);
    tq_location location = tq_location_of(TQ_LOCATION_MODEL, 0);
    check_alignment(checker, id, field, at - 4, 4, "a string");
    if (at + string.size >= file.size || file.data[at + string.size])
        tq_report(checker, TQ_PROBLEM_STRING_END, location,
                  "%s.%s: the string at byte %llu needs a NUL behind its %llu bytes", tq_tables[id].name, field->name,
                  (unsigned long long)at, (unsigned long long)string.size);
    if (!is_utf8(string))
        tq_report(checker, TQ_PROBLEM_STRING_ENCODING, location, "%s.%s: the string at byte %llu is not UTF-8",
                  tq_tables[id].name, field->name, (unsigned long long)at);
}

static void walk_vector(tq_checker *checker, tq_table_id id, tq_field_id field_id, const tq_table *table)
{
    const tq_field *field = &tq_fields[field_id];
    tq_vector vector = tq_get_vector(table, field_id);
    if (!vector.at)
        return;
    check_alignment(checker, id, field, vector.at - 4, 4, "a vector");
    if (vector.count)
        check_alignment(checker, id, field, vector.at,
                        tq_scalar_size[field->scalar] > 4 ? 4 : tq_scalar_size[field->scalar], "elements");
    for (uint32_t i = 0; field->shape == TQ_SHAPE_VEC_TABLE && i < vector.count && !checker->stopped; i++) {
        tq_table item = tq_vector_table(&vector, i);
        if (item.at)
            walk_table(checker, (tq_table_id)field->detail, &item);
    }
}

static void walk_field(tq_checker *checker, tq_table_id id, tq_field_id field_id, const tq_table *table)
{
    const tq_field *field = &tq_fields[field_id];
    size_t at = tq_slot_at(table, field->slot);
    if (!at)
        return;
    bool is_number = field->shape == TQ_SHAPE_SCALAR || field->shape == TQ_SHAPE_ENUM; /* otherwise an offset */
    unsigned size = is_number ? tq_scalar_size[field->scalar] : 4;
    unsigned table_size = tq_load_u16(table->file.data + table->vtable + 2); /* in the file: tq_table_find */
    check_alignment(checker, id, field, at, size, "a field");
    if (at - table->at + size > table_size)
        tq_report(checker, TQ_PROBLEM_FIELD_OUTSIDE, tq_location_of(TQ_LOCATION_MODEL, 0),
                  "%s.%s: the field ends %llu bytes into its table at byte %llu, which has %u", tq_tables[id].name,
                  field->name, (unsigned long long)(at - table->at + size), (unsigned long long)table->at, table_size);
    switch ((tq_field_shape)field->shape) {
    case TQ_SHAPE_SCALAR:
    case TQ_SHAPE_ENUM: return;
    case TQ_SHAPE_TABLE: {
        tq_table target = tq_get_table(table, field_id);
        if (target.at)
            walk_table(checker, (tq_table_id)field->detail, &target);
        return;
    }
    case TQ_SHAPE_UNION: {
        tq_union target = tq_get_union(table, field_id);
        tq_table_id member = tq_union_member((tq_union_id)field->detail, target.type);
        if (target.value.at && member != TQ_TABLE_NONE)
            walk_table(checker, member, &target.value);
        return;
    }
    case TQ_SHAPE_STRING: {
        tq_bytes string = tq_get_string(table, field_id);
        if (string.data)
            check_string(checker, id, field, string);
        return;
    }
    case TQ_SHAPE_VEC_SCALAR:
    case TQ_SHAPE_VEC_ENUM:
    case TQ_SHAPE_VEC_STRING:
    case TQ_SHAPE_VEC_TABLE: walk_vector(checker, id, field_id, table);
    }
}

/* The recursion is as deep as the schema nests: no table contains itself. */
static void walk_table(tq_checker *checker, tq_table_id id, const tq_table *table)
{
    if (table->at % 4 || table->vtable % 2)
        tq_report(checker, TQ_PROBLEM_MISALIGNED, tq_location_of(TQ_LOCATION_MODEL, 0),
                  "a %s table at byte %llu, its vtable at %llu; they need multiples of 4 and 2", tq_tables[id].name,
                  (unsigned long long)table->at, (unsigned long long)table->vtable);
    for (unsigned i = tq_tables[id].first; i < tq_tables[id + 1].first && !checker->stopped; i++)
        walk_field(checker, id, (tq_field_id)i, table);
}

void tq_check_layout(tq_checker *checker)
{
    walk_table(checker, TQ_TABLE_Model, &checker->model->root);
}
