/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of schema/, base/status.def, quant/integers.def and the tables of model/ for Python: tq builds its enums
 * from them, and tests compare them with an upstream schema.
 *
 * Rows become the lines of one text, with tabs between columns.  A C call for each row would take 80 KB of code.
 */
#include "python/model/schema.h"

#include "flatbuffer/schema.h"
#include "model/types.h"
#include "python/convert.h"
#include "quant/integers.h"

static const char table_lines[] =
#define TABLE(table) #table "\n"
#define FIELD(table, name, slot, kind, default) #table "\t" #name "\t" #slot "\t" #kind "\t" #default "\n"
#define TQ_ROWS "schema/tables.def"
#include "schema/rows.h"
    ;

static const char enum_lines[] =
#define VALUE(enum, name, value) #enum "\t" #name "\t" #value "\n"
#define TQ_ROWS "schema/enums.def"
#include "schema/rows.h"
#define BUILTIN(name, code, options) "BuiltinOperator\t" #name "\t" #code "\n"
#define TQ_ROWS "schema/builtins.def"
#include "schema/rows.h"
    ;

static const char union_lines[] =
#define MEMBER(union, table, type) #union "\t" #table "\t" #type "\n"
#define TQ_ROWS "schema/unions.def"
#include "schema/rows.h"
    ;

static const char status_lines[] =
#define STATUS(symbol, exception, text) #symbol "\t" #exception "\t" text "\n"
#include "base/status.def"
#undef STATUS
    ;

static const char callee_lines[] =
#define CALLEE(op, table, field, inputs, outputs) #op "\t" #table "\t" #field "\t" #inputs "\t" #outputs "\n"
#include "model/callees.def"
#undef CALLEE
    ;

/* The next columns of a line as a tuple; column `number` becomes an int; -1: none does. */
static PyObject *row_of(const char *line, int columns, int number)
{
    PyObject *row = PyTuple_New(columns);
    for (int i = 0; row && i < columns; i++) {
        size_t size = strcspn(line, "\t\n");
        PyObject *word = i == number ? PyLong_FromLongLong(strtoll(line, NULL, 10))
                                     : PyUnicode_FromStringAndSize(line, (Py_ssize_t)size);
        if (!word)
            Py_CLEAR(row);
        else
            PyTuple_SET_ITEM(row, i, word);
        line += size + 1;
    }
    return row;
}

static PyObject *listed(const char *lines, int columns)
{
    PyObject *list = PyList_New(0);
    for (; list && *lines; lines += strcspn(lines, "\n") + 1)
        if (tq_py_append(list, row_of(lines, columns, -1)) < 0)
            Py_CLEAR(list);
    return list;
}

/* {first column: [(other columns)]}; a line of one column has an empty list. */
static PyObject *grouped(const char *lines, int columns, int number)
{
    PyObject *dict = PyDict_New();
    for (; dict && *lines; lines += strcspn(lines, "\n") + 1) {
        size_t size = strcspn(lines, "\t\n");
        PyObject *key = PyUnicode_FromStringAndSize(lines, (Py_ssize_t)size), *empty = PyList_New(0);
        PyObject *group = key && empty ? PyDict_SetDefault(dict, key, empty) : NULL;
        Py_XDECREF(key);
        Py_XDECREF(empty);
        if (!group || (lines[size] == '\t' && tq_py_append(group, row_of(lines + size + 1, columns, number)) < 0))
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *schema_tables(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return grouped(table_lines, 4, 1);
}

static PyObject *schema_enums(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return grouped(enum_lines, 2, 1);
}

static PyObject *schema_unions(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return grouped(union_lines, 2, 1);
}

static PyObject *schema_builtins(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int64_t code = 0; list && code <= UINT8_MAX; code++) {
        const tq_builtin_row *row = tq_builtin(code);
        const char *options = row && row->options != TQ_TABLE_NONE ? tq_tables[row->options].name : NULL;
        if (row && tq_py_append(list, Py_BuildValue("(siz)", row->name, (int)code, options)) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *statuses(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return listed(status_lines, 3);
}

static PyObject *callees(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return listed(callee_lines, 5);
}

static PyObject *tensor_types(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < TQ_TYPE_COUNT; i++) {
        const tq_type_row *row = tq_type(i);
        if (tq_py_append(list, Py_BuildValue("(sis)", row->name, row->bits, row->dtype)) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *integer_types(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < TQ_INTEGER_TYPES; i++) {
        const tq_value_range range = tq_value_range_of((tq_integer_type)i, false);
        const char *name = tq_integer_name((tq_integer_type)i);
        if (tq_py_append(list, Py_BuildValue("(sii)", name, (int)range.low, (int)range.high)) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyMethodDef functions[] = {
    {"schema_tables", schema_tables, METH_NOARGS,
     "{table: [(field, slot, kind, default)]}, the rows of schema/tables.def."},
    {"schema_enums", schema_enums, METH_NOARGS,
     "{enum: [(name, value)]}, the rows of schema/enums.def and builtins.def."},
    {"schema_unions", schema_unions, METH_NOARGS, "{union: [(table, type)]}, the rows of schema/unions.def."},
    {"schema_builtins", schema_builtins, METH_NOARGS,
     "[(name, code, options table or None)], the rows of schema/builtins.def."},
    {"statuses", statuses, METH_NOARGS, "[(name, exception, text)]: every way in which the core can fail."},
    {"callees", callees, METH_NOARGS,
     "[(operator, options table, field, inputs, outputs)], the rows of model/callees.def: options that name subgraphs, "
     "and how\n"
     "many inputs and outputs these have: SAME as the operator, ALL_BUT_ONE, NO, ONE or ANY."},
    {"tensor_types", tensor_types, METH_NOARGS,
     "[(name, bits of an element, dtype)], the rows of model/types.def, by TensorType."},
    {"integer_types", integer_types, METH_NOARGS,
     "[(name, least value, greatest value)], the rows of quant/integers.def: the types of quantized values."},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_schema(PyObject *module, tq_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
