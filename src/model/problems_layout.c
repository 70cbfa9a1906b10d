/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of how the flatbuffer lies in the file: numbers, vectors and tables at multiples of their size.
 * tq reads them anywhere; flatbuffers' own verifier, and with it LiteRT, refuses the file, and readers
 * that cast pointers crash on some machines.  Elements of 8 bytes need multiples of 4 only: that verifier
 * takes them, and real files have them.
 *
 * The walk is the verifier's, over the same rows: what that bounded, bounds this.
 */
#include "model/problems_walk.h"

static void walk_table(tq_walk *walk, tq_table_id id, const tq_table *table);

static void check_place(tq_walk *walk, tq_table_id id, const tq_field *field, size_t at, unsigned size, const char *what)
{
    if (at % size)
        tq_report(walk, TQ_PROBLEM_MISALIGNED, tq_place_of(TQ_PLACE_MODEL, 0), "%s.%s: %s at byte %llu, which is no multiple of %u",
                  tq_tables[id].name, field->name, what, (unsigned long long)at, size);
}

static void walk_vector(tq_walk *walk, tq_table_id id, tq_field_id field_id, const tq_table *table)
{
    const tq_field *field = &tq_fields[field_id];
    tq_vector vector = tq_get_vector(table, field_id);
    if (!vector.at)
        return;
    check_place(walk, id, field, vector.at - 4, 4, "a vector");
    if (vector.count)
        check_place(walk, id, field, vector.at, tq_scalar_size[field->scalar] > 4 ? 4 : tq_scalar_size[field->scalar], "elements");
    for (uint32_t i = 0; field->shape == TQ_SHAPE_VEC_TABLE && i < vector.count && !walk->stopped; i++) {
        tq_table item = tq_vector_table(&vector, i);
        if (item.at)
            walk_table(walk, (tq_table_id)field->detail, &item);
    }
}

static void walk_field(tq_walk *walk, tq_table_id id, tq_field_id field_id, const tq_table *table)
{
    const tq_field *field = &tq_fields[field_id];
    size_t at = tq_slot_at(table, field->slot);
    if (!at)
        return;
    bool is_number = field->shape == TQ_SHAPE_SCALAR || field->shape == TQ_SHAPE_ENUM; /* else an offset */
    check_place(walk, id, field, at, is_number ? tq_scalar_size[field->scalar] : 4, "a field");
    switch ((tq_field_shape)field->shape) {
    case TQ_SHAPE_SCALAR:
    case TQ_SHAPE_ENUM:
        return;
    case TQ_SHAPE_TABLE: {
        tq_table target = tq_get_table(table, field_id);
        if (target.at)
            walk_table(walk, (tq_table_id)field->detail, &target);
        return;
    }
    case TQ_SHAPE_UNION: {
        tq_union target = tq_get_union(table, field_id);
        tq_table_id member = tq_union_member((tq_union_id)field->detail, target.type);
        if (target.value.at && member != TQ_TABLE_NONE)
            walk_table(walk, member, &target.value);
        return;
    }
    case TQ_SHAPE_STRING: {
        tq_bytes string = tq_get_string(table, field_id);
        if (string.data)
            check_place(walk, id, field, (size_t)(string.data - table->file.data) - 4, 4, "a string");
        return;
    }
    case TQ_SHAPE_VEC_SCALAR:
    case TQ_SHAPE_VEC_ENUM:
    case TQ_SHAPE_VEC_STRING:
    case TQ_SHAPE_VEC_TABLE:
        walk_vector(walk, id, field_id, table);
    }
}

/* Recursion is as deep as the schema nests: no table holds itself. */
static void walk_table(tq_walk *walk, tq_table_id id, const tq_table *table)
{
    if (table->at % 4)
        tq_report(walk, TQ_PROBLEM_MISALIGNED, tq_place_of(TQ_PLACE_MODEL, 0), "a %s table at byte %llu, which is no multiple of 4",
                  tq_tables[id].name, (unsigned long long)table->at);
    for (unsigned i = tq_tables[id].first; i < tq_tables[id + 1].first && !walk->stopped; i++)
        walk_field(walk, id, (tq_field_id)i, table);
}

void tq_check_layout(tq_walk *walk)
{
    walk_table(walk, TQ_TABLE_Model, &walk->model->root);
}
