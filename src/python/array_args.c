/* SPDX-License-Identifier: Apache-2.0 */
#include "python/array_args.h"
#include "kernels/narrow_codes.h"
#include "kernels/parameter_checks.h"
#include "python/errors.h"
#include "python/operands.h"

#include <float.h>
#include <string.h>

/* ---- keywords ---- */

static int find_name(const tq_py_signature *s, PyObject *keyword)
{
    const char *text = PyUnicode_AsUTF8(keyword);
    if (!text)
        return -1;
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->names[i], text) == 0)
            return i;
    PyErr_Format(PyExc_TypeError, "%s() has no argument '%U'", s->function, keyword);
    return -1;
}

bool tq_py_bind(const tq_py_signature *s, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords,
                PyObject **values)
{
    for (int i = 0; i < s->count; i++)
        values[i] = i < nargs ? args[i] : NULL;
    if (nargs > s->positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments, %zd came", s->function,
                     s->positional, nargs);
        return false;
    }
    Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t k = 0; k < named; k++) {
        PyObject *keyword = PyTuple_GET_ITEM(keywords, k);
        int i = find_name(s, keyword);
        if (i < 0)
            return false;
        if (values[i]) {
            PyErr_Format(PyExc_TypeError, "%s() got '%U' twice", s->function, keyword);
            return false;
        }
        values[i] = args[nargs + k];
    }
    for (int i = 0; i < s->required; i++)
        if (!values[i]) {
            PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", s->function, s->names[i]);
            return false;
        }
    return true;
}

/* ---- types ---- */

static const tq_py_type code_types[] = {
#define CODE(name, element, low, high) {#name, TQ_##element, low, high, false},
#include "quant/codes.def"
#undef CODE
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

static bool is_float(const tq_py_type *type)
{
    return type->low == type->high;
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
    type->masked = registered && !is_float(row);
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

static int number_of_element(tq_element element)
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
    int number = number_of_element(type->element);
    return number >= 0 ? PyArray_DescrFromType(number) : ml_dtypes_descr(type->name);
}

static bool refuse_dtype(PyObject *dtype, bool integers)
{
    PyErr_Format(PyExc_TypeError, "dtype is %R: it must be %s", dtype,
                 integers ? "int8, uint8, int16, uint16, int32, int4, uint4 or int2"
                          : "float32, float16 or bfloat16");
    return false;
}

bool tq_py_type_of_dtype(PyObject *dtype, const char *fallback, bool integers, tq_py_type *type,
                         PyArray_Descr **descr)
{
    const char *name = fallback;
    if (dtype && PyUnicode_Check(dtype) && !(name = PyUnicode_AsUTF8(dtype)))
        return false;
    if (!dtype || PyUnicode_Check(dtype)) {
        const tq_py_type *row = type_named(name);
        if (row) {
            if (is_float(row) == integers || row->element == TQ_f64)
                return refuse_dtype(dtype, integers);
            *type = *row;
            return (*descr = descr_named(row)) != NULL;
        }
    }
    PyArray_Descr *found = NULL;
    if (dtype == Py_None || !PyArray_DescrConverter(dtype, &found)) {
        PyErr_Clear();
        return refuse_dtype(dtype, integers);
    }
    if (!type_of_descr(found, type) || is_float(type) == integers || type->element == TQ_f64) {
        Py_DECREF(found);
        return refuse_dtype(dtype, integers);
    }
    *descr = found;
    return true;
}

/* ---- arrays ---- */

static PyArrayObject *refuse_input(PyArrayObject *array, const char *argument, const char *needed)
{
    PyErr_Format(PyExc_TypeError, "%s has dtype %R: it must be %s", argument, (PyObject *)PyArray_DESCR(array), needed);
    Py_DECREF(array);
    return NULL;
}

/* Python's integers have no width: they become int32 where they fit. */
static PyArrayObject *narrow_integers(PyArrayObject *array, const char *argument)
{
    PyArrayObject *wide = (PyArrayObject *)PyArray_FROMANY((PyObject *)array, NPY_INT64, 0, 0,
                                                             NPY_ARRAY_CARRAY | NPY_ARRAY_FORCECAST);
    Py_DECREF(array);
    PyArrayObject *narrow = wide ? (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(wide), PyArray_DIMS(wide), NPY_INT32)
                                 : NULL;
    if (!narrow) {
        Py_XDECREF(wide);
        return NULL;
    }
    const int64_t *from = PyArray_DATA(wide);
    int32_t *to = PyArray_DATA(narrow);
    npy_intp count = PyArray_SIZE(wide);
    for (npy_intp i = 0; i < count; i++) {
        if (from[i] < INT32_MIN || from[i] > INT32_MAX) {
            PyErr_Format(PyExc_ValueError, "%s holds %lld, which is not in the range of int32", argument,
                         (long long)from[i]);
            Py_CLEAR(narrow);
            break;
        }
        to[i] = (int32_t)from[i];
    }
    Py_DECREF(wide);
    return narrow;
}

/* ml_dtypes' narrow integers as int8 or uint8, and the type to match. */
static PyArrayObject *unmask(PyArrayObject *array, tq_py_type *type)
{
    PyArrayObject *wide = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(array), PyArray_DIMS(array),
                                                             number_of_element(type->element));
    if (wide) {
        tq_extend_codes(PyArray_DATA(array), (size_t)PyArray_SIZE(array), tq_py_code_mask(type), type->low < 0,
                        PyArray_DATA(wide));
        type->masked = false;
    }
    Py_DECREF(array);
    return wide;
}

/* As a C-contiguous array in native byte order: itself where it is one. */
static PyArrayObject *contiguous(PyObject *object, const char *argument, bool integers)
{
    PyArrayObject *array = tq_py_array(object, argument, integers);
    if (array)
        Py_SETREF(array, (PyArrayObject *)PyArray_FROM_OF((PyObject *)array,
                                                          NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED |
                                                              NPY_ARRAY_NOTSWAPPED | NPY_ARRAY_ENSUREARRAY));
    return array;
}

/* Lists of Python's integers, and empty ones, are int64 and float64 to NumPy: neither is what they are. */
static bool has_no_width(PyArrayObject *array, PyObject *object)
{
    return (PyTypeNum_ISINTEGER(PyArray_TYPE(array)) || PyArray_SIZE(array) == 0) && !PyArray_Check(object) &&
           !PyArray_IsScalar(object, Generic) && !PyObject_CheckBuffer(object);
}

PyArrayObject *tq_py_code_input(PyObject *object, const char *argument, const char *needed, tq_py_type *type)
{
    PyArrayObject *array = PyArray_CheckExact(object) && PyArray_ISCARRAY_RO((PyArrayObject *)object)
                               ? (PyArrayObject *)Py_NewRef(object)
                               : contiguous(object, argument, true);
    if (!array)
        return NULL;
    bool known = tq_py_type_of_array(array, type);
    if ((!known || is_float(type)) && has_no_width(array, object)) {
        array = narrow_integers(array, argument);
        known = array && tq_py_type_of_array(array, type);
        return array;
    }
    if (!known || is_float(type))
        return refuse_input(array, argument, needed);
    return array;
}

PyArrayObject *tq_py_integer_input(PyObject *object, const char *argument, const char *needed, tq_py_type *type)
{
    PyArrayObject *array = tq_py_code_input(object, argument, needed, type);
    return array && type->masked ? unmask(array, type) : array;
}

PyArrayObject *tq_py_real_input(PyObject *object, const char *argument, tq_py_type *type)
{
    PyArrayObject *array = PyArray_CheckExact(object) && PyArray_ISCARRAY_RO((PyArrayObject *)object)
                               ? (PyArrayObject *)Py_NewRef(object)
                               : contiguous(object, argument, false);
    if (!array)
        return NULL;
    int number = PyArray_TYPE(array);
    bool known = tq_py_type_of_array(array, type);
    if (PyTypeNum_ISINTEGER(number) || number == NPY_LONGDOUBLE || (known && type->masked)) {
        Py_SETREF(array, (PyArrayObject *)PyArray_FROMANY((PyObject *)array, NPY_DOUBLE, 0, 0,
                                                          NPY_ARRAY_CARRAY | NPY_ARRAY_FORCECAST));
        known = array && tq_py_type_of_array(array, type);
        return array;
    }
    if (!known || !is_float(type))
        return refuse_input(array, argument,
                            "float32, float64, float16, bfloat16, or integers, which become float64");
    return array;
}

/* Whether any byte lies in both.  Only C-contiguous arrays come here. */
static bool overlap(PyArrayObject *a, PyArrayObject *b)
{
    uintptr_t a0 = (uintptr_t)PyArray_DATA(a), b0 = (uintptr_t)PyArray_DATA(b);
    return a0 < b0 + (uintptr_t)PyArray_NBYTES(b) && b0 < a0 + (uintptr_t)PyArray_NBYTES(a);
}

/* Whether some of an array's own elements may share memory: a dimension whose step does not reach past what
   the smaller steps span.  Never so for what slicing and transposing make. */
static bool overlaps_itself(PyArrayObject *array)
{
    npy_intp steps[NPY_MAXDIMS], lengths[NPY_MAXDIMS], spanned = PyArray_ITEMSIZE(array);
    int count = 0;
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        npy_intp length = PyArray_DIM(array, i), step = PyArray_STRIDE(array, i);
        step = step < 0 ? -step : step;
        if (length == 0)
            return false;
        if (length == 1)
            continue;
        int at = count++;
        for (; at > 0 && steps[at - 1] > step; at--) {
            steps[at] = steps[at - 1];
            lengths[at] = lengths[at - 1];
        }
        steps[at] = step;
        lengths[at] = length;
    }
    for (int k = 0; k < count; k++) {
        if (steps[k] < spanned)
            return true;
        spanned += steps[k] * (lengths[k] - 1);
    }
    return false;
}

static bool check_out(PyArrayObject *input, PyObject *out, PyArray_Descr *descr)
{
    if (!PyArray_Check(out)) {
        PyErr_Format(PyExc_TypeError, "out is a %s: it must be a NumPy array", Py_TYPE(out)->tp_name);
        return false;
    }
    PyArrayObject *array = (PyArrayObject *)out;
    if (PyArray_DESCR(array)->type_num != descr->type_num && !PyArray_EquivTypes(PyArray_DESCR(array), descr)) {
        PyErr_Format(PyExc_TypeError, "out has dtype %R: it must be %R", (PyObject *)PyArray_DESCR(array),
                     (PyObject *)descr);
        return false;
    }
    if (!PyArray_SAMESHAPE(array, input)) {
        PyObject *found = PyObject_GetAttrString(out, "shape");
        PyObject *needed = found ? PyObject_GetAttrString((PyObject *)input, "shape") : NULL;
        if (needed)
            PyErr_Format(PyExc_ValueError, "out has shape %R: it must be %R", found, needed);
        Py_XDECREF(found);
        Py_XDECREF(needed);
        return false;
    }
    if (!PyArray_ISWRITEABLE(array)) {
        PyErr_SetString(PyExc_ValueError, "out is read-only: it must be writable");
        return false;
    }
    if (!PyArray_ISCARRAY(array) && overlaps_itself(array)) {
        PyErr_SetString(PyExc_ValueError, "out's own elements share memory: each must have its own");
        return false;
    }
    return true;
}

bool tq_py_output_begin(tq_py_output *output, PyArrayObject *input, PyObject *out, const tq_py_type *type,
                        PyArray_Descr *descr)
{
    *output = (tq_py_output){.type = *type, .descr = descr};
    if (out && out != Py_None) {
        if (!check_out(input, out, descr)) {
            Py_DECREF(descr);
            return false;
        }
        PyArrayObject *array = (PyArrayObject *)out;
        if (PyArray_ISCARRAY(array)) {
            bool same = PyArray_DATA(array) == PyArray_DATA(input) && PyArray_ITEMSIZE(array) == PyArray_ITEMSIZE(input);
            if (!same && overlap(array, input)) {
                Py_DECREF(descr);
                PyErr_SetString(PyExc_ValueError,
                                "out overlaps the input in memory: it must be apart from it, or be the same "
                                "memory with elements of the same size");
                return false;
            }
            Py_DECREF(descr);
            output->array = (PyArrayObject *)Py_NewRef(out);
            return true;
        }
        output->result = Py_NewRef(out);
    }
    PyArray_Descr *native = PyArray_DescrNewByteorder(descr, NPY_NATIVE);
    if (native && !output->result && !PyArray_ISNBO(descr->byteorder)) {
        output->result = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef((PyObject *)descr),
                                              PyArray_NDIM(input), PyArray_DIMS(input), NULL, NULL, 0, NULL);
        if (!output->result)
            Py_CLEAR(native);
    }
    Py_DECREF(descr);
    output->array = native ? (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, native, PyArray_NDIM(input),
                                                                   PyArray_DIMS(input), NULL, NULL, 0, NULL)
                           : NULL;
    if (!output->array)
        Py_CLEAR(output->result);
    return output->array != NULL;
}

static PyObject *finish(tq_py_output *output)
{
    if (!output->result)
        return (PyObject *)output->array;
    int failed = PyArray_CopyInto((PyArrayObject *)output->result, output->array);
    Py_DECREF(output->array);
    if (failed)
        Py_CLEAR(output->result);
    return output->result;
}

PyObject *tq_py_output_end(tq_py_output *output, PyObject *module, tq_status status, const tq_error *error)
{
    if (status == TQ_OK)
        return finish(output);
    Py_CLEAR(output->array);
    Py_CLEAR(output->result);
    return tq_py_raise(PyModule_GetState(module), error, NULL);
}

/* ---- parameters ---- */

bool tq_py_optional_int(PyObject *object, const char *argument, long low, long high, bool *given, long *value)
{
    *given = object && object != Py_None;
    if (!*given)
        return true;
    if (!PyIndex_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s is a %s: it must be an int or None", argument, Py_TYPE(object)->tp_name);
        return false;
    }
    Py_ssize_t found = PyNumber_AsSsize_t(object, NULL); /* clips */
    if (found == -1 && PyErr_Occurred()) { /* an array of one dimension has __index__ too, and it raises */
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "%s is %R: it must be an int or None", argument, object);
        }
        return false;
    }
    if (found < low || found > high) {
        PyErr_Format(PyExc_ValueError, "%s is %R: it must be from %ld to %ld", argument, object, low, high);
        return false;
    }
    *value = (long)found;
    return true;
}

bool tq_py_flag(PyObject *object, const char *argument, bool *flag)
{
    int truth = object ? PyObject_IsTrue(object) : 0;
    if (truth < 0) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s is a %s: it must be True or False", argument, Py_TYPE(object)->tp_name);
        return false;
    }
    *flag = truth;
    return true;
}

static size_t product(const npy_intp *dims, int from, int to)
{
    size_t count = 1;
    for (int i = from; i < to; i++)
        count *= (size_t)dims[i];
    return count;
}

bool tq_py_layout(tq_py_parameters *p, PyArrayObject *input, PyObject *axis, PyObject *block_size, PyObject *out)
{
    int rank = PyArray_NDIM(input);
    const npy_intp *dims = PyArray_DIMS(input);
    size_t total = (size_t)PyArray_SIZE(input);
    long at = -1, size = 0;
    *p = (tq_py_parameters){.layout = {1, 1, 1, total}, .sets = 1, .array = input};
    if (out && PyArray_Check(out) && PyArray_ISCARRAY((PyArrayObject *)out))
        p->out = (PyArrayObject *)out;
    if ((!axis || axis == Py_None) && (!block_size || block_size == Py_None))
        return true;
    if (!tq_py_optional_int(block_size, "block_size", 1, LONG_MAX, &p->has_blocks, &size))
        return false;
    if (axis && axis != Py_None && rank == 0) {
        PyErr_Format(PyExc_ValueError, "axis is %R: an array of no dimensions has no axis", axis);
        return false;
    }
    if (!tq_py_optional_int(axis, "axis", -rank, rank - 1, &p->has_axis, &at))
        return false;
    if (rank == 0) {
        PyErr_SetString(PyExc_ValueError, "block_size needs an array of at least one dimension");
        return false;
    }
    p->has_axis = true;
    p->axis = (int)(at < 0 ? at + rank : at);
    size_t before = product(dims, 0, p->axis), after = product(dims, p->axis + 1, rank);
    size_t length = (size_t)dims[p->axis];
    if (!p->has_blocks) {
        p->layout = (tq_layout){1, before, length, after};
        p->sets = (npy_intp)length;
        return true;
    }
    if (length % (size_t)size != 0) {
        PyErr_Format(PyExc_ValueError, "block_size is %R: it must divide the length of axis %d, which is %zd",
                     block_size, p->axis, (Py_ssize_t)length);
        return false;
    }
    size_t blocks = before * (length / (size_t)size);
    p->blocks = (npy_intp)length / size;
    p->layout = after == 1 ? (tq_layout){1, 1, blocks, (size_t)size} : (tq_layout){blocks, (size_t)size, after, 1};
    p->sets = (npy_intp)(blocks * after);
    return true;
}

/* The shapes that an array of parameters may have, in words; new reference. */
static PyObject *wanted_shapes(const tq_py_parameters *p)
{
    if (!p->has_axis)
        return PyUnicode_FromString("one value (or give axis, for one value a channel)");
    if (!p->has_blocks)
        return PyUnicode_FromFormat("one value, or %zd, the length of axis %d", (Py_ssize_t)p->sets, p->axis);
    PyObject *shape = PyObject_GetAttrString((PyObject *)p->array, "shape");
    PyObject *text = shape ? PyUnicode_FromFormat("one value, or %zd: the input's shape %R with axis %d of %zd blocks",
                                                  (Py_ssize_t)p->sets, shape, p->axis, (Py_ssize_t)p->blocks)
                           : NULL;
    Py_XDECREF(shape);
    return text;
}

/* One dimension of all sets, or the input's dimensions with 1 where parameters do not vary. */
static bool has_wanted_shape(PyArrayObject *array, const tq_py_parameters *p)
{
    int rank = PyArray_NDIM(array);
    if (PyArray_SIZE(array) != p->sets || !p->has_axis)
        return false;
    if (rank == 1 && (!p->has_blocks || PyArray_NDIM(p->array) == 1))
        return true;
    if (rank != PyArray_NDIM(p->array))
        return false;
    for (int i = 0; i < rank; i++) {
        npy_intp wanted = i == p->axis ? (p->has_blocks ? p->blocks : p->sets)
                                       : (p->has_blocks ? PyArray_DIM(p->array, i) : 1);
        if (PyArray_DIM(array, i) != wanted)
            return false;
    }
    return true;
}

static bool check_shape(PyArrayObject *array, const char *argument, const tq_py_parameters *p)
{
    if (PyArray_SIZE(array) == 1 || has_wanted_shape(array, p))
        return true;
    PyObject *found = PyObject_GetAttrString((PyObject *)array, "shape"), *wanted = found ? wanted_shapes(p) : NULL;
    if (wanted)
        PyErr_Format(PyExc_ValueError, "%s has shape %R: it needs %U", argument, found, wanted);
    Py_XDECREF(found);
    Py_XDECREF(wanted);
    return false;
}

/* uint64 as int64: what is too large must not come out negative. */
static PyArrayObject *saturate_unsigned(PyArrayObject *array)
{
    PyArrayObject *copy = (PyArrayObject *)PyArray_NewCopy(array, NPY_CORDER);
    if (copy) {
        uint64_t *values = PyArray_DATA(copy);
        npy_intp count = PyArray_SIZE(copy);
        for (npy_intp i = 0; i < count; i++)
            values[i] = values[i] > INT64_MAX ? INT64_MAX : values[i];
    }
    return copy;
}

/* Parameters as a contiguous array of `number`, of a shape that fits.  Kinds: NumPy's letters. */
static PyArrayObject *parameter_array(PyObject *object, const char *argument, const char *kinds, const char *words,
                                      int number, const tq_py_parameters *p)
{
    PyArrayObject *array = contiguous(object, argument, number == NPY_INT64 || number == NPY_INT32);
    if (!array)
        return NULL;
    char kind = PyArray_DESCR(array)->kind;
    tq_py_type type;
    bool registered = tq_py_type_of_array(array, &type) && PyArray_TYPE(array) >= NPY_USERDEF;
    if (registered)
        kind = is_float(&type) ? 'f' : 'i';
    if (!strchr(kinds, kind) && PyArray_SIZE(array) != 0) {
        PyErr_Format(PyExc_TypeError, "%s has dtype %R: it must be %s", argument, (PyObject *)PyArray_DESCR(array),
                     words);
        Py_DECREF(array);
        return NULL;
    }
    PyArrayObject *cast = NULL;
    if (check_shape(array, argument, p))
        cast = (PyArrayObject *)PyArray_FROMANY((PyObject *)array, number, 0, 0,
                                                NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST | NPY_ARRAY_ENSUREARRAY);
    if (cast && number == NPY_INT64 && PyTypeNum_ISUNSIGNED(PyArray_TYPE(array)) && PyArray_ITEMSIZE(array) == 8)
        Py_SETREF(cast, saturate_unsigned(array));
    if (cast && p->out && overlap(cast, p->out))
        Py_SETREF(cast, (PyArrayObject *)PyArray_NewCopy(cast, NPY_CORDER));
    Py_DECREF(array);
    return cast;
}

/* "scale" or "scale[3]", and its value, in an error. */
static bool refuse_entry(const char *argument, npy_intp at, bool many, double value, const char *rule)
{
    PyObject *number = PyFloat_FromDouble(value);
    if (number && many)
        PyErr_Format(PyExc_ValueError, "%s[%zd] is %R: %s", argument, (Py_ssize_t)at, number, rule);
    else if (number)
        PyErr_Format(PyExc_ValueError, "%s is %R: %s", argument, number, rule);
    Py_XDECREF(number);
    return false;
}

/* A number that is a Python float or int or a NumPy scalar; *is_one says whether it was. */
static bool one_number(PyObject *object, double *value, bool *is_one)
{
    *is_one = true;
    if (PyFloat_CheckExact(object)) {
        *value = PyFloat_AS_DOUBLE(object);
        return true;
    }
    *is_one = PyFloat_Check(object) || PyLong_Check(object) || PyArray_IsScalar(object, Floating) ||
              PyArray_IsScalar(object, Integer);
    if (!*is_one)
        return true;
    *value = PyFloat_AsDouble(object);
    if (*value == -1.0 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return false;
        PyErr_Clear(); /* an int beyond float64 */
        *value = INFINITY;
    }
    return true;
}

static bool is_scale(float scale)
{
    return scale >= FLT_MIN && scale <= FLT_MAX;
}

#define SCALE_RULE "a scale must be finite, above 0 and not denormal as float32 (at least 2**-126)"

/* Refuses the first that is no scale; `wide` has them before they were rounded, or is NULL. */
static bool check_scales(tq_py_column *c, npy_intp count, const double *wide)
{
    const float *scale = c->data;
    if (tq_scales_fit(scale, (size_t)count))
        return true;
    for (npy_intp i = 0; i < count; i++)
        if (!is_scale(scale[i])) {
            refuse_entry("scale", i, c->many, wide ? wide[i] : scale[i], SCALE_RULE);
            tq_py_column_free(c);
            return false;
        }
    return true;
}

/* Rounds to float32 here and not in NumPy, which would warn of what is refused anyway. */
static bool many_scales(tq_py_column *c, PyArrayObject *wide)
{
    npy_intp count = PyArray_SIZE(wide);
    const double *from = PyArray_DATA(wide);
    c->array = (PyArrayObject *)PyArray_SimpleNew(1, &count, NPY_FLOAT32);
    if (!c->array)
        return false;
    float *to = PyArray_DATA(c->array);
    c->data = to;
    c->many = count != 1;
    for (npy_intp i = 0; i < count; i++)
        to[i] = (float)from[i];
    return check_scales(c, count, from);
}

bool tq_py_scales(tq_py_column *c, PyObject *object, const tq_py_parameters *p)
{
    double value;
    bool is_one;
    *c = (tq_py_column){.data = &c->one};
    if (!one_number(object, &value, &is_one))
        return false;
    if (is_one) {
        c->one.f32 = (float)value;
        return is_scale(c->one.f32) || refuse_entry("scale", 0, false, value, SCALE_RULE);
    }
    bool narrow = PyArray_Check(object) && PyArray_TYPE((PyArrayObject *)object) == NPY_FLOAT32;
    PyArrayObject *wide = parameter_array(object, "scale", "fiu", "real numbers", narrow ? NPY_FLOAT32 : NPY_FLOAT64, p);
    if (!wide)
        return false;
    if (narrow) {
        npy_intp count = PyArray_SIZE(wide);
        c->array = wide;
        c->data = PyArray_DATA(wide);
        c->many = count != 1;
        return check_scales(c, count, NULL);
    }
    bool read = many_scales(c, wide);
    Py_DECREF(wide);
    return read;
}

bool tq_py_multipliers(tq_py_column *c, PyObject *object, const tq_py_parameters *p, bool float32)
{
    const char *rule = float32 ? "a multiplier must be finite as float32 and not negative"
                               : "a multiplier must be finite and not negative";
    const double most = float32 ? FLT_MAX : DBL_MAX;
    bool is_one;
    *c = (tq_py_column){.data = &c->one};
    if (!one_number(object, &c->one.f64, &is_one))
        return false;
    if (!is_one) {
        c->array = parameter_array(object, "multiplier", "fiu", "real numbers", NPY_FLOAT64, p);
        if (!c->array)
            return false;
        c->data = PyArray_DATA(c->array);
        c->many = PyArray_SIZE(c->array) != 1;
    }
    const double *multiplier = c->data;
    npy_intp count = is_one ? 1 : PyArray_SIZE(c->array);
    for (npy_intp i = 0; i < count; i++)
        if (!(multiplier[i] >= 0 && multiplier[i] <= most)) {
            refuse_entry("multiplier", i, c->many, multiplier[i], rule);
            tq_py_column_free(c);
            return false;
        }
    return true;
}

static bool refuse_zero_point(const char *argument, npy_intp at, bool many, PyObject *value, int32_t low, int32_t high,
                              const char *of)
{
    if (value && many)
        PyErr_Format(PyExc_ValueError, "%s[%zd] is %R: it must be a code of %s, from %d to %d", argument,
                     (Py_ssize_t)at, value, of, low, high);
    else if (value)
        PyErr_Format(PyExc_ValueError, "%s is %R: it must be a code of %s, from %d to %d", argument, value, of, low,
                     high);
    return false;
}

static bool one_zero_point(tq_py_column *c, PyObject *object, const char *argument, int32_t low, int32_t high,
                           const char *of)
{
    PyObject *index = PyNumber_Index(object);
    if (!index)
        return false;
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(index, &overflow);
    bool fits = !overflow && value >= low && value <= high;
    if (fits)
        c->one.i32 = (int32_t)value;
    else
        refuse_zero_point(argument, 0, false, index, low, high, of);
    Py_DECREF(index);
    return fits;
}

/* Refuses the first that is no code. */
static void refuse_zero_points(PyArrayObject *array, const char *argument, int32_t low, int32_t high, const char *of)
{
    bool wide = PyArray_ITEMSIZE(array) == 8;
    npy_intp count = PyArray_SIZE(array);
    const void *from = PyArray_DATA(array);
    for (npy_intp i = 0; i < count; i++) {
        int64_t value = wide ? ((const int64_t *)from)[i] : ((const int32_t *)from)[i];
        if (value >= low && value <= high)
            continue;
        PyObject *number = PyLong_FromLongLong(value);
        refuse_zero_point(argument, i, count != 1, number, low, high, of);
        Py_XDECREF(number);
        return;
    }
}

/* Every int64 or int32 as int32, in a new array.  Zero points that are all the same, such as the zeros of weights, are
   one. */
static bool many_zero_points(tq_py_column *c, PyArrayObject *array, const char *argument, int32_t low, int32_t high,
                             const char *of)
{
    npy_intp count = PyArray_SIZE(array);
    const void *from = PyArray_DATA(array);
    c->array = (PyArrayObject *)PyArray_SimpleNew(1, &count, NPY_INT32);
    if (!c->array)
        return false;
    int32_t *to = PyArray_DATA(c->array);
    bool differ;
    if (!(PyArray_ITEMSIZE(array) == 8 ? tq_zero_points_fit_i64(from, (size_t)count, low, high, to, &differ)
                                       : tq_zero_points_fit_i32(from, (size_t)count, low, high, to, &differ))) {
        refuse_zero_points(array, argument, low, high, of);
        tq_py_column_free(c);
        return false;
    }
    c->data = to;
    c->many = count == 0 || differ;
    return true;
}

bool tq_py_zero_points(tq_py_column *c, PyObject *object, const char *argument, const tq_py_parameters *p,
                       int32_t low, int32_t high, const char *of)
{
    *c = (tq_py_column){.data = &c->one};
    if (!object) {
        /* 0 stands for the zero point that was not given, but uint narrow ranges begin at 1 */
        if (low <= 0)
            return true;
        PyErr_Format(PyExc_ValueError, "%s is 0: it must be a code of %s, from %d to %d", argument, of, low, high);
        return false;
    }
    if (PyLong_Check(object) || PyArray_IsScalar(object, Integer) ||
        (PyIndex_Check(object) && !PyObject_HasAttrString(object, "__array__") &&
         !PyObject_HasAttrString(object, "__dlpack__"))) /* tensors have __index__ too, of whatever size */
        return one_zero_point(c, object, argument, low, high, of);
    bool narrow = PyArray_Check(object) && PyArray_TYPE((PyArrayObject *)object) == NPY_INT32;
    PyArrayObject *array = parameter_array(object, argument, "iu", "integers", narrow ? NPY_INT32 : NPY_INT64, p);
    if (!array)
        return false;
    bool read = many_zero_points(c, array, argument, low, high, of);
    Py_DECREF(array);
    return read;
}

void tq_py_column_free(tq_py_column *c)
{
    Py_CLEAR(c->array);
}
