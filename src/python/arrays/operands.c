/* SPDX-License-Identifier: Apache-2.0 */
#include "python/arrays/operands.h"
#include "python/errors.h"

#include <math.h>
#include <string.h>

#include "python/arrays/array_args.h"
#include "quant/real_values.h"

/* Whether NumPy makes an array of it by a way of its own.  What speaks DLPack and is only a sequence or number besides
   is not: tensors of other libraries pretend to be those too, and come by DLPack. */
static bool is_numpys(PyObject *value)
{
    return PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyList_CheckExact(value) ||
           PyTuple_CheckExact(value) || PyArray_IsScalar(value, Generic) || PyObject_CheckBuffer(value) ||
           PyObject_HasAttrString(value, "__array__") || !PyObject_HasAttrString(value, "__dlpack__");
}

static PyArrayObject *from_dlpack(PyObject *value)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *array = numpy ? PyObject_CallMethod(numpy, "from_dlpack", "O", value) : NULL;
    Py_XDECREF(numpy);
    return (PyArrayObject *)array;
}

/* Python's integers that are too wide for NumPy, which makes objects of them, as float64.  Steals `objects`. */
static PyArrayObject *doubles_of_integers(PyArrayObject *objects)
{
    PyArrayObject *dense = (PyArrayObject *)PyArray_FromArray(objects, NULL, NPY_ARRAY_C_CONTIGUOUS);
    Py_DECREF(objects);
    PyArrayObject *made =
        dense ? (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(dense), PyArray_DIMS(dense), NPY_FLOAT64) : NULL;
    for (npy_intp i = 0; made && i < PyArray_SIZE(dense); i++) {
        PyObject *integer = ((PyObject **)PyArray_DATA(dense))[i];
        double value = PyLong_AsDouble(integer);
        if (value == -1 && PyErr_Occurred()) {
            int overflow;
            PyErr_Clear();
            PyLong_AsLongLongAndOverflow(integer, &overflow);
            value = overflow < 0 ? -INFINITY : INFINITY;
        }
        ((double *)PyArray_DATA(made))[i] = value;
    }
    Py_XDECREF(dense);
    return made;
}

/* An object array that NumPy made of something: a TypeError, unless it is of integers.  Steals `objects`. */
static PyArrayObject *from_objects(PyArrayObject *objects, PyObject *value, const char *name, bool integers)
{
    PyObject **at = PyArray_DATA(objects);
    bool are_integers = PyArray_SIZE(objects) > 0 && PyArray_IS_C_CONTIGUOUS(objects);
    PyObject *wide = NULL;
    for (npy_intp i = 0; are_integers && i < PyArray_SIZE(objects); i++) {
        int overflow = 0;
        are_integers = at[i] && PyLong_Check(at[i]);
        if (are_integers && PyLong_AsLongLongAndOverflow(at[i], &overflow) == -1 && overflow && !wide)
            wide = at[i];
    }
    if (are_integers && !(integers && wide))
        return doubles_of_integers(objects);
    if (are_integers)
        PyErr_Format(PyExc_ValueError, "%s holds %S; no integer type is so wide", name, wide);
    else
        PyErr_Format(PyExc_TypeError, "%s is %.200s; it must be an array of numbers", name, Py_TYPE(value)->tp_name);
    Py_DECREF(objects);
    return NULL;
}

/* Puts the argument's name before what NumPy says of a list whose parts differ in shape, or that is too deep. */
static void name_the_reason(const char *name)
{
    PyObject *type, *reason, *trace;
    PyErr_Fetch(&type, &reason, &trace);
    PyErr_Format(PyExc_ValueError, "%s is no array: %S", name, reason ? reason : Py_None);
    Py_XDECREF(type);
    Py_XDECREF(reason);
    Py_XDECREF(trace);
}

PyArrayObject *tq_py_array(PyObject *value, const char *name, bool integers)
{
    if (PyArray_Check(value))
        return (PyArrayObject *)Py_NewRef(value);
    if (!is_numpys(value))
        return from_dlpack(value);
    PyArrayObject *array = (PyArrayObject *)PyArray_FromAny(value, NULL, 0, 0, 0, NULL);
    if (!array && (PyList_Check(value) || PyTuple_Check(value)) && PyErr_ExceptionMatches(PyExc_ValueError))
        name_the_reason(name);
    if (array && PyArray_TYPE(array) == NPY_OBJECT)
        return from_objects(array, value, name, integers);
    return array;
}

void tq_py_refuse_shapes(const char *name, PyArrayObject *array, const char *other_name, PyArrayObject *other)
{
    PyObject *a = PyObject_GetAttrString((PyObject *)array, "shape");
    PyObject *b = a ? PyObject_GetAttrString((PyObject *)other, "shape") : NULL;
    if (b)
        PyErr_Format(PyExc_ValueError, "%s has shape %R and %s %R; they must be the same", name, a, other_name, b);
    Py_XDECREF(a);
    Py_XDECREF(b);
}

static int is_safe(PyArrayObject *array, int type)
{
    PyArray_Descr *to = PyArray_DescrFromType(type);
    int safe = PyArray_CanCastTypeTo(PyArray_DESCR(array), to, NPY_SAFE_CASTING);
    Py_DECREF(to);
    return safe;
}

/* Steals `array`. */
static PyArrayObject *cast(PyArrayObject *array, int type, int flags)
{
    PyArrayObject *made = (PyArrayObject *)PyArray_FromArray(
        array, PyArray_DescrFromType(type), flags | NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED | NPY_ARRAY_FORCECAST);
    Py_DECREF(array);
    return made;
}

/* Steals `array`. */
static PyArrayObject *wrong_type(PyArrayObject *array, const char *name, const char *needed)
{
    PyErr_Format(PyExc_TypeError, "%s has dtype %S; it must hold %s", name, PyArray_DESCR(array), needed);
    Py_DECREF(array);
    return NULL;
}

/* Whether every value lies within `type`, for wider integers. */
static int values_fit(PyArrayObject *array, const char *name, int type)
{
    if (PyArray_SIZE(array) == 0)
        return 1;
    for (int top = 0; top < 2; top++) {
        PyObject *extreme = top ? PyArray_Max(array, NPY_RAVEL_AXIS, NULL) : PyArray_Min(array, NPY_RAVEL_AXIS, NULL);
        PyObject *number = extreme ? PyNumber_Long(extreme) : NULL;
        int overflow = 0;
        long long value = number ? PyLong_AsLongLongAndOverflow(number, &overflow) : -1;
        Py_XDECREF(extreme);
        if (!number)
            return 0;
        if (overflow || (type == NPY_INT32 && (value < INT32_MIN || value > INT32_MAX))) {
            PyErr_Format(PyExc_ValueError, "%s holds %S; it must fit %s", name, number,
                         type == NPY_INT32 ? "int32" : "int64");
            Py_DECREF(number);
            return 0;
        }
        Py_DECREF(number);
    }
    return 1;
}

PyArrayObject *tq_py_integers(PyObject *value, const char *name, int type)
{
    /* Python's integers may be beyond any of NumPy's, and NumPy then gives objects. */
    int overflow = 0;
    if (PyLong_Check(value) && PyLong_AsLongLongAndOverflow(value, &overflow) == -1 && overflow) {
        PyErr_Format(PyExc_ValueError, "%s is %S; it must fit %s", name, value, type == NPY_INT32 ? "int32" : "int64");
        return NULL;
    }
    PyArrayObject *array = tq_py_array(value, name, true);
    if (!array || is_safe(array, type))
        return array ? cast(array, type, 0) : NULL;
    if (!PyArray_ISINTEGER(array)) {
        if (PyArray_SIZE(array) == 0 && !PyArray_Check(value))
            return cast(array, type, 0); /* [] is float64 to NumPy */
        return wrong_type(array, name, "integers");
    }
    if (!values_fit(array, name, type)) {
        Py_DECREF(array);
        return NULL;
    }
    return cast(array, type, 0);
}

/* Whether values are real numbers: of types that float64 holds, or wider ones that round to it. */
static int is_real(PyArrayObject *array)
{
    return is_safe(array, NPY_FLOAT64) || PyArray_TYPE(array) == NPY_LONGDOUBLE;
}

/* The value as an array of real numbers of any type. */
static PyArrayObject *reals_of(PyObject *value, const char *name)
{
    PyArrayObject *array = tq_py_array(value, name, false);
    return array && !is_real(array) ? wrong_type(array, name, "real numbers") : array;
}

tq_real_type tq_py_real_type(PyArrayObject *array)
{
    switch (PyArray_TYPE(array)) {
    case NPY_FLOAT: return TQ_REAL_F32;
    case NPY_DOUBLE: return TQ_REAL_F64;
    case NPY_HALF: return TQ_REAL_F16;
    case NPY_BYTE: return TQ_REAL_I8;
    case NPY_BOOL:
    case NPY_UBYTE: return TQ_REAL_U8;
    case NPY_SHORT: return TQ_REAL_I16;
    case NPY_USHORT: return TQ_REAL_U16;
    case NPY_INT: return TQ_REAL_I32;
    case NPY_UINT: return TQ_REAL_U32;
    case NPY_LONG: return sizeof(long) == 4 ? TQ_REAL_I32 : TQ_REAL_I64;
    case NPY_ULONG: return sizeof(long) == 4 ? TQ_REAL_U32 : TQ_REAL_U64;
    case NPY_LONGLONG: return TQ_REAL_I64;
    case NPY_ULONGLONG: return TQ_REAL_U64;
    default: break;
    }
    tq_py_type type;
    return tq_py_type_of_array(array, &type) && type.element == TQ_bf16 ? TQ_REAL_BF16 : TQ_REAL_TYPES;
}

/* float32 or float64, dense.  NumPy would do it too, and warn of overflow and of signalling NaN. */
static void convert_reals(PyArrayObject *from, tq_real_type number, PyArrayObject *to)
{
    enum { PART = 512 };
    double part[PART];
    tq_real_loader load = tq_real_loader_of(number);
    npy_intp count = PyArray_SIZE(from), size = PyArray_ITEMSIZE(from);
    for (npy_intp i = 0; i < count; i += PART) {
        npy_intp n = count - i < PART ? count - i : PART;
        load(PyArray_BYTES(from) + i * size, size, (size_t)n, part);
        if (PyArray_TYPE(to) == NPY_FLOAT64)
            memcpy((double *)PyArray_DATA(to) + i, part, (size_t)n * sizeof *part);
        else
            for (npy_intp k = 0; k < n; k++)
                ((float *)PyArray_DATA(to))[i + k] = (float)part[k];
    }
}

/* Steals `array`; an array of that type, dense. */
static PyArrayObject *dense_of(PyArrayObject *array, int type)
{
    const int flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_ENSUREARRAY;
    tq_real_type number = tq_py_real_type(array);
    if (PyArray_TYPE(array) == type || number == TQ_REAL_TYPES)
        return cast(array, type, NPY_ARRAY_C_CONTIGUOUS);
    PyArrayObject *from = (PyArrayObject *)PyArray_FromArray(array, PyArray_DescrFromType(PyArray_TYPE(array)), flags);
    Py_DECREF(array);
    PyArrayObject *to = from ? (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(from), PyArray_DIMS(from), type) : NULL;
    if (to)
        convert_reals(from, number, to);
    Py_XDECREF(from);
    return to;
}

PyArrayObject *tq_py_doubles(PyObject *value, const char *name)
{
    PyArrayObject *array = reals_of(value, name);
    return array ? dense_of(array, NPY_FLOAT64) : NULL;
}

PyArrayObject *tq_py_dense_reals(PyObject *value, const char *name)
{
    PyArrayObject *array = reals_of(value, name);
    return array ? dense_of(array, is_safe(array, NPY_FLOAT32) ? NPY_FLOAT32 : NPY_FLOAT64) : NULL;
}

PyArrayObject *tq_py_dense_floats(PyObject *value, const char *name)
{
    PyArrayObject *array = reals_of(value, name);
    return array ? dense_of(array, NPY_FLOAT32) : NULL;
}

int tq_py_axis(PyArrayObject *array, PyObject *axis, int *at)
{
    int rank = PyArray_NDIM(array), overflow;
    *at = -1;
    if (!axis || axis == Py_None)
        return 0;
    PyObject *index = PyNumber_Index(axis);
    if (!index) {
        PyErr_Format(PyExc_TypeError, "axis is %R; it must be an integer or None", axis);
        return -1;
    }
    long value = PyLong_AsLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    if (rank == 0) {
        PyErr_Format(PyExc_ValueError, "axis is %S; an array of no dimensions has no axis", axis);
        return -1;
    }
    if (overflow || value < -rank || value >= rank) {
        PyErr_Format(PyExc_ValueError, "axis is %S; an array of rank %d needs one from %d to %d", axis, rank, -rank,
                     rank - 1);
        return -1;
    }
    *at = (int)(value < 0 ? value + rank : value);
    return 0;
}

int tq_py_axis_view(PyArrayObject *array, PyObject *axis, tq_axis_view *view)
{
    int at;
    *view = (tq_axis_view){1, 1, (size_t)PyArray_SIZE(array)};
    if (tq_py_axis(array, axis, &at) < 0)
        return -1;
    if (at < 0)
        return 0;
    view->inner = 1;
    for (int i = 0; i < PyArray_NDIM(array); i++)
        *(i < at ? &view->outer : i == at ? &view->channels : &view->inner) *= (size_t)PyArray_DIM(array, i);
    if (PyArray_SIZE(array) == 0)
        view->outer = 0; /* else loops would count through empty runs */
    return 0;
}

int tq_py_threads(PyObject *value, int *threads)
{
    bool given;
    long wanted = 0;
    if (!tq_py_optional_int(value, "num_threads", 1, INT_MAX, &given, &wanted))
        return -1;
    *threads = (int)wanted;
    return 0;
}

static void raise_choice(PyObject *value, const char *name, const char *const *names, int count)
{
    PyObject *list = PyUnicode_FromString("");
    for (int i = 0; i < count && list; i++)
        Py_SETREF(list, PyUnicode_FromFormat("%U%s'%s'", list, i == 0 ? "" : i + 1 < count ? ", " : " or ", names[i]));
    if (list)
        PyErr_Format(PyUnicode_Check(value) ? PyExc_ValueError : PyExc_TypeError, "%s is %R; it must be %U", name,
                     value, list);
    Py_XDECREF(list);
}

int tq_py_choice(PyObject *value, const char *name, const char *const *names, int count, int fallback)
{
    if (!value)
        return fallback;
    if (PyUnicode_Check(value))
        for (int i = 0; i < count; i++)
            if (PyUnicode_CompareWithASCIIString(value, names[i]) == 0)
                return i;
    raise_choice(value, name, names, count);
    return -1;
}

int tq_py_integer_type(PyObject *value, tq_integer_type *code)
{
    tq_py_type type;
    PyArray_Descr *descr;
    if (!tq_py_type_of_dtype(value, "int8", TQ_PY_QUANTIZED_TYPES, &type, &descr))
        return -1;
    Py_DECREF(descr);
    for (*code = 0; strcmp(tq_integer_name(*code), type.name) != 0;)
        ++*code; /* both walk the rows of integers.def */
    return 0;
}

static tq_status run_loop(NpyIter *iterator, tq_py_loop loop, const void *context, tq_error *error)
{
    NpyIter_IterNextFunc *next = NpyIter_GetIterNext(iterator, NULL);
    char **data = NpyIter_GetDataPtrArray(iterator);
    npy_intp *strides = NpyIter_GetInnerStrideArray(iterator), *count = NpyIter_GetInnerLoopSizePtr(iterator);
    if (!next)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "no memory for an iterator");
    tq_status status;
    do
        status = loop(data, strides, *count, context, error);
    while (!status && next(iterator));
    return status;
}

/* In place of NumPy's error, which has no names. */
static void refuse_broadcast(PyArrayObject *const *inputs, const char *const *names, int count)
{
    PyObject *text = PyUnicode_FromString("");
    for (int i = 0; i < count && text; i++) {
        PyObject *shape = PyObject_GetAttrString((PyObject *)inputs[i], "shape");
        Py_SETREF(text,
                  shape ? PyUnicode_FromFormat("%U%s%s has shape %R", text, i ? ", " : "", names[i], shape) : NULL);
        Py_XDECREF(shape);
    }
    if (text)
        PyErr_Format(PyExc_ValueError, "%U; shapes must be the same, or broadcast", text);
    Py_XDECREF(text);
}

int tq_py_broadcast(tq_state *state, PyArrayObject *const *inputs, const char *const *names, int input_count,
                    const int *out_types, int out_count, PyArrayObject **outputs, tq_py_loop loop, const void *context)
{
    PyArrayObject *operands[TQ_PY_OPERANDS] = {NULL};
    PyArray_Descr *types[TQ_PY_OPERANDS] = {NULL};
    npy_uint32 flags[TQ_PY_OPERANDS];
    int count = input_count + out_count, result = -1;
    for (int i = 0; i < count; i++) {
        bool in = i < input_count;
        operands[i] = in ? inputs[i] : NULL;
        types[i] = PyArray_DescrFromType(in ? PyArray_TYPE(inputs[i]) : out_types[i - input_count]);
        flags[i] = NPY_ITER_ALIGNED | NPY_ITER_NBO |
                   (in ? NPY_ITER_READONLY : NPY_ITER_WRITEONLY | NPY_ITER_ALLOCATE | NPY_ITER_NO_SUBTYPE);
    }
    NpyIter *iterator = NpyIter_MultiNew(
        count, operands, NPY_ITER_EXTERNAL_LOOP | NPY_ITER_BUFFERED | NPY_ITER_GROWINNER | NPY_ITER_ZEROSIZE_OK,
        NPY_KEEPORDER, NPY_SAFE_CASTING, flags, types);
    for (int i = 0; i < count; i++)
        Py_DECREF(types[i]);
    if (!iterator) {
        if (!PyErr_Occurred()) { /* NumPy says nothing where it had no memory */
            PyErr_NoMemory();
        } else if (PyErr_ExceptionMatches(PyExc_ValueError)) {
            PyErr_Clear();
            refuse_broadcast(inputs, names, input_count);
        }
        return -1;
    }

    tq_error error;
    tq_status status = TQ_OK;
    if (NpyIter_GetIterSize(iterator) > 0) {
        PyThreadState *thread = NpyIter_IterationNeedsAPI(iterator) ? NULL : PyEval_SaveThread();
        status = run_loop(iterator, loop, context, &error);
        if (thread)
            PyEval_RestoreThread(thread);
    }
    if (status)
        tq_py_raise(state, &error, NULL);
    else {
        for (int i = 0; i < out_count; i++)
            outputs[i] = (PyArrayObject *)Py_NewRef(NpyIter_GetOperandArray(iterator)[input_count + i]);
        result = 0;
    }
    if (NpyIter_Deallocate(iterator) != NPY_SUCCEED && result == 0) {
        for (int i = 0; i < out_count; i++)
            Py_CLEAR(outputs[i]);
        result = -1;
    }
    return result;
}

int tq_py_broadcast_doubles(tq_state *state, PyObject *const *values, const char *const *names, int count,
                            const int *out_types, int out_count, PyArrayObject **outputs, tq_py_loop loop,
                            const void *context)
{
    PyArrayObject *inputs[TQ_PY_OPERANDS] = {NULL};
    int ready = 0, failed = -1;
    while (ready < count && (inputs[ready] = tq_py_doubles(values[ready], names[ready])))
        ready++;
    if (ready == count)
        failed = tq_py_broadcast(state, inputs, names, count, out_types, out_count, outputs, loop, context);
    for (int i = 0; i < ready; i++)
        Py_DECREF(inputs[i]);
    return failed;
}
