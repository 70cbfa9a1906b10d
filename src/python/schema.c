/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of schema/ and of base/status.def as Python sees them: the enums of tq are built from
 * these, and the tests hold them against an upstream schema.
 */
#include "python/schema.h"

#include "flatbuffer/schema.h"
#include "python/convert.h"

/* list.append(value), which is consumed. */
static int append(PyObject *list, PyObject *value)
{
    int result = value ? PyList_Append(list, value) : -1;
    Py_XDECREF(value);
    return result;
}

#define LIST_ROW(...)                                         \
    if (append(list, Py_BuildValue(__VA_ARGS__)) < 0) {       \
        Py_DECREF(list);                                      \
        return NULL;                                          \
    }

/* [(table, field, slot, kind, default)], a table without fields as (table, None, ...). */
static PyObject *table_rows(void)
{
    PyObject *list = PyList_New(0);
    if (!list)
        return NULL;
#define TABLE(table) LIST_ROW("(sOOOO)", #table, Py_None, Py_None, Py_None, Py_None)
#define FIELD(table, name, slot, kind, default) LIST_ROW("(ssiss)", #table, #name, slot, #kind, #default)
#define TQ_ROWS "schema/tables.def"
#include "schema/rows.h"
    return list;
}

/* {table: [(field, slot, kind, default)]} of rows that begin with a table's name. */
static PyObject *group_rows(PyObject *rows)
{
    PyObject *dict = rows ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; dict && i < PyList_GET_SIZE(rows); i++) {
        PyObject *row = PyList_GET_ITEM(rows, i), *key = PyTuple_GET_ITEM(row, 0);
        PyObject *group = PyDict_SetDefault(dict, key, Py_None);
        int failed = group == Py_None && tq_py_set(dict, key, PyList_New(0)) < 0;
        if (!failed && PyTuple_GET_ITEM(row, 1) != Py_None)
            failed = append(PyDict_GetItem(dict, key), PyTuple_GetSlice(row, 1, PyTuple_GET_SIZE(row))) < 0;
        if (failed || !group)
            Py_CLEAR(dict);
    }
    Py_XDECREF(rows);
    return dict;
}

static PyObject *schema_tables(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return group_rows(table_rows());
}

static PyObject *enum_rows(void)
{
    PyObject *list = PyList_New(0);
    if (!list)
        return NULL;
#define VALUE(enum, name, value) LIST_ROW("(ssi)", #enum, #name, value)
#define TQ_ROWS "schema/enums.def"
#include "schema/rows.h"
#define BUILTIN(name, code, options) LIST_ROW("(ssi)", "BuiltinOperator", #name, code)
#define TQ_ROWS "schema/builtins.def"
#include "schema/rows.h"
    return list;
}

static PyObject *schema_enums(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return group_rows(enum_rows());
}

static PyObject *union_rows(void)
{
    PyObject *list = PyList_New(0);
    if (!list)
        return NULL;
#define MEMBER(union, table, type) LIST_ROW("(ssi)", #union, #table, type)
#define TQ_ROWS "schema/unions.def"
#include "schema/rows.h"
    return list;
}

static PyObject *schema_unions(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return group_rows(union_rows());
}

static PyObject *schema_builtins(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int64_t code = 0; list && code <= UINT8_MAX; code++) {
        const tq_builtin_row *row = tq_builtin(code);
        const char *options = row && row->options != TQ_TABLE_NONE ? tq_tables[row->options].name : NULL;
        if (row && append(list, Py_BuildValue("(siz)", row->name, (int)code, options)) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *statuses(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    if (!list)
        return NULL;
#define STATUS(symbol, exception, text) LIST_ROW("(sss)", #symbol, #exception, text)
#include "base/status.def"
#undef STATUS
    return list;
}

static PyMethodDef functions[] = {
    {"schema_tables", schema_tables, METH_NOARGS, "{table: [(field, slot, kind, default)]}, the rows of schema/tables.def."},
    {"schema_enums", schema_enums, METH_NOARGS, "{enum: [(name, value)]}, the rows of schema/enums.def and builtins.def."},
    {"schema_unions", schema_unions, METH_NOARGS, "{union: [(table, type)]}, the rows of schema/unions.def."},
    {"schema_builtins", schema_builtins, METH_NOARGS, "[(name, code, options table or None)], the rows of schema/builtins.def."},
    {"statuses", statuses, METH_NOARGS, "[(name, exception, text)]: every way in which the core can fail."},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_schema(PyObject *module, tq_state *state)
{
    state->enum_members = PyList_New(TQ_ENUM_COUNT);
    for (Py_ssize_t i = 0; state->enum_members && i < TQ_ENUM_COUNT; i++)
        PyList_SET_ITEM(state->enum_members, i, Py_NewRef(Py_None));
    return state->enum_members ? PyModule_AddFunctions(module, functions) : -1;
}
