/* SPDX-License-Identifier: Apache-2.0
 *
 * Between NumPy's and ml_dtypes' dtypes and the types of quantized and real values that tq has.
 */
#include "python/arrays/array_internal.h"

#include <string.h>

static const tq_py_type code_types[] = {
#define INTEGER(name, element, low, high) {#name, TQ_##element, low, high, false},
#include "quant/integers.def"
#undef INTEGER
};

static const tq_py_type float_types[] = {
    {"float32", TQ_f32, 0, 0, false},
    {"float64", TQ_f64, 0, 0, false},
    {"float16", TQ_f16, 0, 0, false},
    {"bfloat16", TQ_bf16, 0, 0, false},
};

#define COUNT(rows) ((int)(sizeof(rows) / sizeof *(rows)))

static const tq_py_type *type_named(const char *name)
{
    for (int i = 0; i < COUNT(code_types); i++)
        if (strcmp(code_types[i].name, name) == 0)
            return &code_types[i];
    for (int i = 0; i < COUNT(float_types); i++)
        if (strcmp(float_types[i].name, name) == 0)
            return &float_types[i];
    return NULL;
}

static const char *name_of_number(int number)
{
    switch (number) {
    case NPY_BYTE: return "int8";
    case NPY_UBYTE: return "uint8";
    case NPY_SHORT: return "int16";
    case NPY_USHORT: return "uint16";
    case NPY_INT: return "int32";
    case NPY_LONG: return sizeof(long) == 4 ? "int32" : NULL;
    case NPY_FLOAT: return "float32";
    case NPY_DOUBLE: return "float64";
    case NPY_HALF: return "float16";
    default: return NULL;
    }
}

/* ml_dtypes registers its types with NumPy under numbers of its own, and keeps a narrow integer in
   the lower bits of a byte. */
static bool type_of_descr(PyArray_Descr *descr, tq_py_type *type)
{
    const char *name = name_of_number(descr->type_num);
    bool registered = descr->type_num >= NPY_USERDEF;
    if (registered) {
        const char *full = descr->typeobj->tp_name, *dot = strrchr(full, '.');
        name = dot ? dot + 1 : full;
    }
    const tq_py_type *row = name ? type_named(name) : NULL;
    if (!row || (Py_ssize_t)tq_element_size(row->element) != PyDataType_ELSIZE(descr))
        return false;
    *type = *row;
    type->masked = registered && !tq_py_is_float(row);
    return true;
}

bool tq_py_type_of_array(PyArrayObject *array, tq_py_type *type)
{
    return type_of_descr(PyArray_DESCR(array), type);
}

static PyArray_Descr *ml_dtypes_descr(const char *name)
{
    PyObject *module = PyImport_ImportModule("ml_dtypes");
    PyObject *class = module ? PyObject_GetAttrString(module, name) : NULL;
    PyArray_Descr *descr = NULL;
    if (class && !PyArray_DescrConverter(class, &descr))
        descr = NULL;
    Py_XDECREF(class);
    Py_XDECREF(module);
    return descr;
}

int tq_py_numpy_type(tq_element element)
{
    switch (element) {
    case TQ_i8: return NPY_INT8;
    case TQ_u8: return NPY_UINT8;
    case TQ_i16: return NPY_INT16;
    case TQ_u16: return NPY_UINT16;
    case TQ_i32: return NPY_INT32;
    case TQ_f32: return NPY_FLOAT32;
    case TQ_f64: return NPY_FLOAT64;
    case TQ_f16: return NPY_FLOAT16;
    default: return -1;
    }
}

static PyArray_Descr *descr_named(const tq_py_type *type)
{
    int number = tq_py_numpy_type(type->element);
    return number >= 0 ? PyArray_DescrFromType(number) : ml_dtypes_descr(type->name);
}

static bool refuse_dtype(PyObject *dtype, const char *needed)
{
    PyErr_Format(PyExc_TypeError, "dtype is %R: it must be %s", dtype, needed);
    return false;
}

/* A row that `dtype` names; NULL: none. */
static const tq_py_type *type_of_string(PyObject *dtype)
{
    const char *name = PyUnicode_AsUTF8(dtype);
    if (!name)
        PyErr_Clear(); /* half a surrogate pair, which names nothing */
    return name ? type_named(name) : NULL;
}

bool tq_py_type_of_dtype(PyObject *dtype, const char *fallback, const char *needed, tq_py_type *type,
                         PyArray_Descr **descr)
{
    const tq_py_type *like = type_named(fallback), *row = like;
    if (dtype)
        row = PyUnicode_Check(dtype) ? type_of_string(dtype) : NULL;
    if (row) {
        if (tq_py_is_float(row) != tq_py_is_float(like) || row->element == TQ_f64)
            return refuse_dtype(dtype, needed);
        *type = *row;
        return (*descr = descr_named(row)) != NULL;
    }
    PyArray_Descr *found = NULL;
    if (dtype == Py_None || !PyArray_DescrConverter(dtype, &found)) {
        PyErr_Clear();
        return refuse_dtype(dtype, needed);
    }
    if (!type_of_descr(found, type) || tq_py_is_float(type) != tq_py_is_float(like) || type->element == TQ_f64) {
        Py_DECREF(found);
        return refuse_dtype(dtype, needed);
    }
    *descr = found;
    return true;
}
