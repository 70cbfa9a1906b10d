/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of schema/ as C: constants for code that names tables, fields and enumerators, and arrays for code that
 * walks the schema (verifier, options, Python enums).
 */
#ifndef TQ_FLATBUFFER_SCHEMA_H
#define TQ_FLATBUFFER_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/scalar.h"

/* ---- identities: TQ_TABLE_Tensor, TQ_ENUM_Padding, TQ_UNION_BuiltinOptions ---- */

typedef enum tq_table_id {
#define TABLE(table) TQ_TABLE_##table,
#define TQ_ROWS "schema/tables.def"
#include "schema/rows.h"
    TQ_TABLE_COUNT,
    TQ_TABLE_NONE = TQ_TABLE_COUNT
} tq_table_id;

typedef enum tq_enum_id {
#define ENUM(enum, base) TQ_ENUM_##enum,
#define TQ_ROWS "schema/enums.def"
#include "schema/rows.h"
#define ENUM(enum, base) TQ_ENUM_##enum,
#define TQ_ROWS "schema/builtins.def"
#include "schema/rows.h"
    TQ_ENUM_COUNT
} tq_enum_id;

typedef enum tq_union_id {
#define UNION(union) TQ_UNION_##union,
#define TQ_ROWS "schema/unions.def"
#include "schema/rows.h"
    TQ_UNION_COUNT
} tq_union_id;

/* A row of tables.def: TQ_Tensor_shape.  TQ_FIRST_OF_Tensor is the table's first field. */
typedef enum tq_field_id {
#define TABLE(table) TQ_FIRST_OF_##table, TQ_BEFORE_##table = TQ_FIRST_OF_##table - 1,
#define FIELD(table, name, slot, kind, default) TQ_##table##_##name,
#define TQ_ROWS "schema/tables.def"
#include "schema/rows.h"
    TQ_FIELD_COUNT
} tq_field_id;

/* ---- values: TQ_TensorType_INT8, TQ_BuiltinOperator_CONV_2D, TQ_QuantizationDetails_x ---- */

enum {
#define VALUE(enum, name, value) TQ_##enum##_##name = value,
#define TQ_ROWS "schema/enums.def"
#include "schema/rows.h"
#define BUILTIN(name, code, options) TQ_BuiltinOperator_##name = code,
#define TQ_ROWS "schema/builtins.def"
#include "schema/rows.h"
#define MEMBER(union, table, type) TQ_##union##_##table = type,
#define TQ_ROWS "schema/unions.def"
#include "schema/rows.h"
};

/* ---- rows to walk ---- */

typedef enum tq_field_shape {
    TQ_SHAPE_SCALAR,     /* detail: -            */
    TQ_SHAPE_ENUM,       /* detail: tq_enum_id   */
    TQ_SHAPE_STRING,     /* detail: -            */
    TQ_SHAPE_TABLE,      /* detail: tq_table_id  */
    TQ_SHAPE_UNION,      /* detail: tq_union_id  */
    TQ_SHAPE_VEC_SCALAR, /* detail: -            */
    TQ_SHAPE_VEC_ENUM,   /* detail: tq_enum_id   */
    TQ_SHAPE_VEC_STRING, /* detail: -            */
    TQ_SHAPE_VEC_TABLE   /* detail: tq_table_id  */
} tq_field_shape;

typedef struct tq_field {
    const char *name;
    double default_value; /* exact: every default is a small integer; 0 for offsets */
    uint8_t slot;   /* index in the vtable */
    uint8_t shape;  /* tq_field_shape */
    uint8_t scalar; /* tq_scalar of the value or of a vector's element; TQ_U32 for offsets */
    uint8_t detail; /* as tq_field_shape says */
} tq_field;

/* A row of tables or enums has the fields or values from its `first` to the next row's `first`.  The arrays have one
   row more than there are ids, which ends the last one. */
typedef struct tq_table_row {
    const char *name;
    uint16_t first; /* in tq_fields */
} tq_table_row;

typedef struct tq_enum_value {
    const char *name;
    int64_t value;
} tq_enum_value;

typedef struct tq_enum_row {
    const char *name;
    uint16_t first; /* in tq_enum_values */
    uint8_t base;   /* tq_scalar */
} tq_enum_row;

typedef struct tq_builtin_row {
    const char *name;
    tq_table_id options; /* TQ_TABLE_NONE: the operator has none */
} tq_builtin_row;

extern const tq_field tq_fields[];
extern const tq_table_row tq_tables[TQ_TABLE_COUNT + 1];
extern const tq_enum_value tq_enum_values[];
extern const tq_enum_row tq_enums[TQ_ENUM_COUNT + 1];

/* The row of a builtin operator, or NULL for a code that this schema does not know. */
const tq_builtin_row *tq_builtin(int64_t code);

/* The table that a union's type byte selects; TQ_TABLE_NONE for 0 and for unknown types. */
tq_table_id tq_union_member(tq_union_id which, uint8_t type);

/* The name of a union: "BuiltinOptions". */
const char *tq_union_name(tq_union_id which);

/* The name of an enumerator, or NULL for a value that this schema does not know. */
const char *tq_enum_name(tq_enum_id which, int64_t value);

#endif
