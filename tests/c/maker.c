/* SPDX-License-Identifier: Apache-2.0 */
#include "maker.h"

#include <stdlib.h>

/* Appends zeros. */
static size_t grow(maker *m, size_t size)
{
    size_t at = m->size;
    if (size > sizeof m->bytes - at)
        abort();
    m->size += size;
    return at;
}

void put_integer(maker *m, size_t at, unsigned size, int64_t value)
{
    for (unsigned i = 0; i < size; i++)
        m->bytes[at + i] = (uint8_t)((uint64_t)value >> (8 * i));
}

static unsigned count_slots(tq_table_id id)
{
    unsigned slots = 0;
    for (unsigned i = tq_tables[id].first; i < tq_tables[id + 1].first; i++)
        if (tq_fields[i].slot >= slots)
            slots = tq_fields[i].slot + 1u;
    return slots;
}

size_t make_table(maker *m, tq_table_id id)
{
    unsigned slots = count_slots(id);
    size_t vtable = grow(m, 4 + 2 * slots), table = grow(m, 4 + 8 * slots);
    put_integer(m, vtable, 2, 4 + 2 * slots);
    put_integer(m, vtable + 2, 2, 4 + 8 * slots);
    put_integer(m, table, 4, (int64_t)(table - vtable));
    return table;
}

void make_start(maker *m, tq_table_id root)
{
    *m = (maker){.size = 4};
    size_t vtable_size = 4 + 2 * count_slots(root);
    put_integer(m, 0, 4, (int64_t)(4 + vtable_size));
}

size_t make_vector(maker *m, uint32_t count, unsigned element_size)
{
    size_t at = grow(m, 4 + (size_t)count * element_size);
    put_integer(m, at, 4, count);
    return at;
}

size_t make_integers(maker *m, unsigned element_size, uint32_t count, const int64_t *values)
{
    size_t at = make_vector(m, count, element_size);
    for (uint32_t i = 0; i < count; i++)
        put_integer(m, at + 4 + (size_t)i * element_size, element_size, values[i]);
    return at;
}

size_t make_string(maker *m, const char *text)
{
    uint32_t count = 0;
    while (text[count])
        count++;
    size_t at = make_vector(m, count, 1);
    for (uint32_t i = 0; i < count; i++)
        m->bytes[at + 4 + i] = (uint8_t)text[i];
    return at;
}

static size_t make_slot(maker *m, size_t table, unsigned slot)
{
    size_t vtable = table - m->bytes[table] - 256u * m->bytes[table + 1];
    put_integer(m, vtable + 4 + 2 * slot, 2, 4 + 8 * slot);
    return table + 4 + 8 * slot;
}

size_t make_field(maker *m, size_t table, tq_field_id field)
{
    return make_slot(m, table, tq_fields[field].slot);
}

void set_integer(maker *m, size_t table, tq_field_id field, int64_t value)
{
    put_integer(m, make_field(m, table, field), tq_scalar_size[tq_fields[field].scalar], value);
}

void set_link(maker *m, size_t table, tq_field_id field, size_t target)
{
    size_t at = make_field(m, table, field);
    put_integer(m, at, 4, (int64_t)(target - at));
}

void set_union(maker *m, size_t table, tq_field_id field, unsigned type, size_t target)
{
    m->bytes[make_slot(m, table, tq_fields[field].slot - 1u)] = (uint8_t)type;
    set_link(m, table, field, target);
}

void set_element(maker *m, size_t vector, uint32_t index, size_t target)
{
    size_t at = vector + 4 + 4 * (size_t)index;
    put_integer(m, at, 4, (int64_t)(target - at));
}
