/* SPDX-License-Identifier: Apache-2.0
 *
 * Includes one .def file.  Row macros that the includer did not define are empty; all of them are undefined
 * afterwards.  No include guard: each use includes it once.
 *
 *   #define BUILTIN(name, code, options) ...
 *   #define TQ_ROWS "schema/builtins.def"
 *   #include "schema/rows.h"
 */
#ifndef TABLE
#define TABLE(table)
#endif
#ifndef FIELD
#define FIELD(table, name, slot, kind, default)
#endif
#ifndef ENUM
#define ENUM(enum, base)
#endif
#ifndef VALUE
#define VALUE(enum, name, value)
#endif
#ifndef UNION
#define UNION(union)
#endif
#ifndef MEMBER
#define MEMBER(union, table, type)
#endif
#ifndef BUILTIN
#define BUILTIN(name, code, options)
#endif

#include TQ_ROWS

#undef TABLE
#undef FIELD
#undef ENUM
#undef VALUE
#undef UNION
#undef MEMBER
#undef BUILTIN
#undef TQ_ROWS
