/* SPDX-License-Identifier: Apache-2.0
 *
 * From the core's values to Python objects.  Each function returns a new reference, or NULL with an exception, unless
 * it says otherwise.
 */
#ifndef TQ_PYTHON_CONVERT_H
#define TQ_PYTHON_CONVERT_H

#include "flatbuffer/table.h"
#include "python/state.h"

/* A str of UTF-8 bytes.  An invalid byte becomes "\xNN", so that every name can be printed. */
PyObject *tq_py_text(tq_bytes bytes);
PyObject *tq_py_text_or_none(tq_bytes bytes); /* data NULL: None */

PyObject *tq_py_bytes(tq_bytes bytes); /* a copy; data NULL: None */

/* One-dimensional arrays of a vector's elements, copied. */
PyObject *tq_py_array_i32(const tq_vector *vector);
PyObject *tq_py_array_f32(const tq_vector *vector);
PyObject *tq_py_array_i64(const tq_vector *vector);
PyObject *tq_py_array_i32_from_i64(const tq_vector *vector); /* the low 32 bits, as LiteRT's zero points */

/* A tuple of a vector's int32 elements. */
PyObject *tq_py_tuple_i32(const tq_vector *vector);

/* The member of a schema enum; the int for a value unknown to the schema. */
PyObject *tq_py_enum_member(tq_state *state, tq_enum_id which, int64_t value);

/* A scalar of a field's type; an enum's value as int. */
PyObject *tq_py_scalar(const tq_field *field, tq_value value);

/* The field of a table with this name (str); NULL, without an exception: none. */
const tq_field *tq_py_find_field(tq_table_id id, PyObject *name);

/* A table as a dict by its schema rows: absent scalars have their defaults, absent offsets are None;
   enums are members, vectors lists, [ubyte] bytes, tables dicts, unions dicts with their table's name
   under "type". */
PyObject *tq_py_table(tq_state *state, tq_table_id id, const tq_table *table);

/* One field of a table, as in tq_py_table, by its name, a str; None where the file does not store it.
   ValueError: the table has no such field. */
PyObject *tq_py_stored(tq_state *state, tq_table_id id, const tq_table *table, PyObject *name);

/* A union as such a dict; None where it is not set or its type is unknown. */
PyObject *tq_py_union(tq_state *state, tq_union_id which, const tq_union *value);

/* The items of a sequence as a tuple, which no other thread can change; NULL with TypeError, which names what is
   needed. */
PyObject *tq_py_tuple_of(PyObject *sequence, const char *needed);

/* dict[key] = value.  Consumes value, which may be NULL.  0, or -1 with an exception. */
int tq_py_set(PyObject *dict, PyObject *key, PyObject *value);
int tq_py_set_string(PyObject *dict, const char *key, PyObject *value);

/* list.append(item).  Consumes item, which may be NULL.  0, or -1 with an exception. */
int tq_py_append(PyObject *list, PyObject *item);

/* Calls module.function(argument), a function of tq that is written in Python. */
PyObject *tq_py_call(const char *module, const char *function, PyObject *argument);

/* The same: module.function(first, *args, **kwargs).  kwargs may be NULL. */
PyObject *tq_py_call_with(const char *module, const char *function, PyObject *first, PyObject *args, PyObject *kwargs);

/* The result of __reduce__ for an object that its type makes of these arguments.  Consumes them; they may be NULL. */
PyObject *tq_py_reduced(PyObject *self, PyObject *positional, PyObject *keywords);

#endif
