/* SPDX-License-Identifier: Apache-2.0
 *
 * The arrays behind schema.h, each one pass over the rows.
 */
#include "flatbuffer/schema.h"

#include <stddef.h>

/* An enum's base, as a constant that the kinds below can name. */
enum {
#define ENUM(enum, base) BASE_OF_##enum = TQ_##base,
#define TQ_ROWS "schema/enums.def"
#include "schema/rows.h"
#define ENUM(enum, base) BASE_OF_##enum = TQ_##base,
#define TQ_ROWS "schema/builtins.def"
#include "schema/rows.h"
};

/* The kind column of a row becomes three initializers: shape, scalar, detail. */
#define KIND_BOOL TQ_SHAPE_SCALAR, TQ_BOOL, 0
#define KIND_I8 TQ_SHAPE_SCALAR, TQ_I8, 0
#define KIND_U8 TQ_SHAPE_SCALAR, TQ_U8, 0
#define KIND_I16 TQ_SHAPE_SCALAR, TQ_I16, 0
#define KIND_U16 TQ_SHAPE_SCALAR, TQ_U16, 0
#define KIND_I32 TQ_SHAPE_SCALAR, TQ_I32, 0
#define KIND_U32 TQ_SHAPE_SCALAR, TQ_U32, 0
#define KIND_I64 TQ_SHAPE_SCALAR, TQ_I64, 0
#define KIND_U64 TQ_SHAPE_SCALAR, TQ_U64, 0
#define KIND_F32 TQ_SHAPE_SCALAR, TQ_F32, 0
#define KIND_F64 TQ_SHAPE_SCALAR, TQ_F64, 0
#define KIND_ENUM(e) TQ_SHAPE_ENUM, BASE_OF_##e, TQ_ENUM_##e
#define KIND_STRING TQ_SHAPE_STRING, TQ_U32, 0
#define KIND_TABLE(t) TQ_SHAPE_TABLE, TQ_U32, TQ_TABLE_##t
#define KIND_UNION(u) TQ_SHAPE_UNION, TQ_U32, TQ_UNION_##u
#define KIND_VEC_BOOL TQ_SHAPE_VEC_SCALAR, TQ_BOOL, 0
#define KIND_VEC_U8 TQ_SHAPE_VEC_SCALAR, TQ_U8, 0
#define KIND_VEC_U16 TQ_SHAPE_VEC_SCALAR, TQ_U16, 0
#define KIND_VEC_I32 TQ_SHAPE_VEC_SCALAR, TQ_I32, 0
#define KIND_VEC_I64 TQ_SHAPE_VEC_SCALAR, TQ_I64, 0
#define KIND_VEC_F32 TQ_SHAPE_VEC_SCALAR, TQ_F32, 0
#define KIND_VEC_ENUM(e) TQ_SHAPE_VEC_ENUM, BASE_OF_##e, TQ_ENUM_##e
#define KIND_VEC_STRING TQ_SHAPE_VEC_STRING, TQ_U32, 0
#define KIND_VEC_TABLE(t) TQ_SHAPE_VEC_TABLE, TQ_U32, TQ_TABLE_##t
#define NONE 0

const tq_field tq_fields[] = {
#define FIELD(table, name, slot, kind, default) {#name, default, slot, KIND_##kind},
#define TQ_ROWS "schema/tables.def"
#include "schema/rows.h"
};

_Static_assert(TQ_TABLE_COUNT <= UINT8_MAX, "tq_field.detail holds a table id");

/* ENUM names the index of the next VALUE or BUILTIN. */
enum {
#define ENUM(enum, base) FIRST_VALUE_##enum, BACK_##enum = FIRST_VALUE_##enum - 1,
#define VALUE(enum, name, value) PLACE_##enum##_##name,
#define TQ_ROWS "schema/enums.def"
#include "schema/rows.h"
#define ENUM(enum, base) FIRST_VALUE_##enum, BACK_##enum = FIRST_VALUE_##enum - 1,
#define BUILTIN(name, code, options) PLACE_BUILTIN_##name,
#define TQ_ROWS "schema/builtins.def"
#include "schema/rows.h"
    VALUE_COUNT
};

const tq_table_row tq_tables[TQ_TABLE_COUNT + 1] = {
#define TABLE(table) {#table, TQ_FIRST_OF_##table},
#define TQ_ROWS "schema/tables.def"
#include "schema/rows.h"
    {NULL, TQ_FIELD_COUNT},
};

const tq_enum_value tq_enum_values[] = {
#define VALUE(enum, name, value) {#name, value},
#define TQ_ROWS "schema/enums.def"
#include "schema/rows.h"
#define BUILTIN(name, code, options) {#name, code},
#define TQ_ROWS "schema/builtins.def"
#include "schema/rows.h"
};

const tq_enum_row tq_enums[TQ_ENUM_COUNT + 1] = {
#define ENUM(enum, base) {#enum, FIRST_VALUE_##enum, BASE_OF_##enum},
#define TQ_ROWS "schema/enums.def"
#include "schema/rows.h"
#define ENUM(enum, base) {#enum, FIRST_VALUE_##enum, BASE_OF_##enum},
#define TQ_ROWS "schema/builtins.def"
#include "schema/rows.h"
    {NULL, VALUE_COUNT, 0},
};

static const tq_builtin_row builtins[] = {
#define BUILTIN(name, code, options) [code] = {#name, TQ_TABLE_##options},
#define TQ_ROWS "schema/builtins.def"
#include "schema/rows.h"
};

const tq_builtin_row *tq_builtin(int64_t code)
{
    if (code < 0 || code >= (int64_t)(sizeof builtins / sizeof *builtins) || !builtins[code].name)
        return NULL;
    return &builtins[code];
}

tq_table_id tq_union_member(tq_union_id which, uint8_t type)
{
    switch ((unsigned)which << 8 | type) {
#define MEMBER(union, table, type) \
    case TQ_UNION_##union << 8 | type: return TQ_TABLE_##table;
#define TQ_ROWS "schema/unions.def"
#include "schema/rows.h"
    }
    return TQ_TABLE_NONE;
}

const char *tq_union_name(tq_union_id which)
{
    static const char *const names[] = {
#define UNION(union) #union,
#define TQ_ROWS "schema/unions.def"
#include "schema/rows.h"
    };
    return names[which];
}

const char *tq_enum_name(tq_enum_id which, int64_t value)
{
    for (unsigned i = tq_enums[which].first; i < tq_enums[which + 1].first; i++)
        if (tq_enum_values[i].value == value)
            return tq_enum_values[i].name;
    return NULL;
}
