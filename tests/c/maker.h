/* SPDX-License-Identifier: Apache-2.0
 *
 * A flatbuffer written forwards, part by part, so that a test can put any number in any place.
 * Every slot of a table has 8 bytes of room, wherever its value needs fewer.
 */
#ifndef TQ_TESTS_MAKER_H
#define TQ_TESTS_MAKER_H

#include <stddef.h>

#include "flatbuffer/schema.h"

typedef struct maker {
    uint8_t bytes[8192];
    size_t size;
} maker;

/* A root offset to the table that is made next. */
void make_start(maker *m, tq_table_id root);

/* These append something, and return where it is: a table's soffset, a vector's count. */
size_t make_table(maker *m, tq_table_id id);
size_t make_vector(maker *m, uint32_t count, unsigned element_size);
size_t make_integers(maker *m, unsigned element_size, uint32_t count, const int64_t *values);
size_t make_string(maker *m, const char *text);

/* The place of a field, which from now on is present. */
size_t make_field(maker *m, size_t table, tq_field_id field);

/* Stores an integer in `size` bytes at `at`. */
void put_integer(maker *m, size_t at, unsigned size, int64_t value);

/* table.field = value, or = offset to what is at `target`. */
void set_integer(maker *m, size_t table, tq_field_id field, int64_t value);
void set_link(maker *m, size_t table, tq_field_id field, size_t target);
void set_union(maker *m, size_t table, tq_field_id field, unsigned type, size_t target);

/* vector[index] = offset to what is at `target`. */
void set_element(maker *m, size_t vector, uint32_t index, size_t target);

#endif
