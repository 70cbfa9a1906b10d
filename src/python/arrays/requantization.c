/* SPDX-License-Identifier: Apache-2.0
 *
 * tq.Requantization: a layer's requantization, prepared for many arrays.
 */
#include "python/arrays/requantization.h"

#include "python/convert.h"
#include "python/arrays/operands.h"
#include "python/arrays/requantize.h"

#include <structmember.h>

#define MOST_DIMENSIONS 64 /* of any NumPy */

/* Arguments as tq.requantize takes them.  Nothing changes after new(), so that several threads may use one. */
typedef struct {
    PyObject_HEAD
    PyObject *multiplier, *zero_point, *input_zero_point; /* arrays that cannot be written to */
    PyObject *axis, *dtype, *rounding;
    PyObject *descr; /* of the results: dtype, with its byte order */
    PyObject
        *arguments[TQ_RQ_ARGUMENTS]; /* the same in the form that requantize() reads fastest; NULL: none was given */
    tq_requantize_sets sets;
} RequantizationObject;

/* How many values came of each parameter, and how many sets of them these are. */
enum { MULTIPLIER, ZERO_POINT, INPUT_ZERO_POINT, PARAMETERS };
typedef struct {
    npy_intp values[PARAMETERS], sets;
} given_counts;

static bool count_sets(PyObject *const v[TQ_RQ_ARGUMENTS], given_counts *given)
{
    static const struct {
        int argument;
        const char *name;
    } rows[] = {[MULTIPLIER] = {TQ_RQ_MULTIPLIER, "multiplier"},
                [ZERO_POINT] = {TQ_RQ_ZERO_POINT, "zero_point"},
                [INPUT_ZERO_POINT] = {TQ_RQ_INPUT_ZERO_POINT, "input_zero_point"}};
    const char *first = NULL; /* who says how many sets */
    *given = (given_counts){{1, 1, 1}, 1};
    for (int i = 0; i < PARAMETERS; i++) {
        if (!v[rows[i].argument])
            continue;
        PyArrayObject *array = tq_py_array(v[rows[i].argument], rows[i].name, false);
        if (!array)
            return false;
        npy_intp count = given->values[i] = PyArray_SIZE(array);
        Py_DECREF(array);
        if (count == 1 || count == given->sets)
            continue;
        if (first) {
            PyErr_Format(PyExc_ValueError, "%s has %zd values and %s has %zd: each needs one, or as many as the others",
                         first, (Py_ssize_t)given->sets, rows[i].name, (Py_ssize_t)count);
            return false;
        }
        first = rows[i].name;
        given->sets = count;
    }
    return true;
}

/* A copy of a column, of as many values as came: columns have one of values that are all the same. */
static PyObject *frozen(const tq_py_column *column, npy_intp count, int type)
{
    PyObject *copy = PyArray_SimpleNew(count != 1, &count, type);
    if (!copy)
        return NULL;
    const size_t size = (size_t)PyArray_ITEMSIZE((PyArrayObject *)copy);
    char *to = PyArray_BYTES((PyArrayObject *)copy);
    for (npy_intp i = 0; i < count; i++)
        memcpy(to + (size_t)i * size, (const char *)column->data + (column->many ? (size_t)i * size : 0), size);
    PyArray_CLEARFLAGS((PyArrayObject *)copy, NPY_ARRAY_WRITEABLE);
    return copy;
}

static bool keep(RequantizationObject *self, const tq_py_requantization *r, const given_counts *given)
{
    self->multiplier = frozen(&r->multiplier, given->values[MULTIPLIER], NPY_FLOAT64);
    self->zero_point = frozen(&r->zero_point, given->values[ZERO_POINT], NPY_INT32);
    self->input_zero_point = frozen(&r->input_zero_point, given->values[INPUT_ZERO_POINT], NPY_INT32);
    self->dtype = PyObject_GetAttrString((PyObject *)r->descr, "name");
    self->descr = Py_NewRef((PyObject *)r->descr);
    self->rounding = PyUnicode_FromString(tq_py_requantize_rules[r->rule]);
    return self->multiplier && self->zero_point && self->input_zero_point && self->dtype && self->rounding;
}

/* One value, or the array of them: also of those that are all the same, if that says alone how many channels there are.
 */
static PyObject *argument_of(PyObject *values, const tq_py_column *column, bool alone)
{
    PyArrayObject *array = (PyArrayObject *)values;
    bool many = PyArray_NDIM(array) && (column->many || alone);
    return many ? Py_NewRef(values) : PyArray_GETITEM(array, PyArray_DATA(array));
}

static bool keep_arguments(RequantizationObject *self, const tq_py_requantization *r)
{
    PyObject **v = self->arguments;
    if (r->out.element != TQ_i8)
        v[TQ_RQ_DTYPE] = Py_NewRef(r->descr);
    if (r->rule != TQ_REQUANTIZE_DOUBLE)
        v[TQ_RQ_ROUNDING] = Py_NewRef(self->rounding);
    v[TQ_RQ_AXIS] = Py_NewRef(self->axis);
    const bool alone = !r->multiplier.many;
    v[TQ_RQ_MULTIPLIER] = argument_of(self->multiplier, &r->multiplier, true);
    v[TQ_RQ_ZERO_POINT] = argument_of(self->zero_point, &r->zero_point, alone);
    v[TQ_RQ_INPUT_ZERO_POINT] = argument_of(self->input_zero_point, &r->input_zero_point, alone);
    return v[TQ_RQ_MULTIPLIER] && v[TQ_RQ_ZERO_POINT] && v[TQ_RQ_INPUT_ZERO_POINT];
}

static bool make_sets(RequantizationObject *self, const tq_py_requantization *r, size_t sets)
{
    tq_error error;
    tq_status status;
    Py_BEGIN_ALLOW_THREADS
    status =
        tq_requantize_sets_make(tq_py_f64(&r->multiplier), tq_py_i32(&r->input_zero_point), tq_py_i32(&r->zero_point),
                                sets, r->out.element, (tq_requantize_rule)r->rule, &self->sets, &error);
    Py_END_ALLOW_THREADS
    if (status != TQ_OK)
        PyErr_NoMemory();
    return status == TQ_OK;
}

/* Accumulators of the shape (sets,): the arguments are checked by what they would do to these. */
static PyObject *trial_input(npy_intp sets)
{
    return PyArray_ZEROS(1, &sets, NPY_INT32, 0);
}

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"multiplier", "zero_point", "input_zero_point", "dtype", "axis", "rounding", NULL};
    PyObject *v[TQ_RQ_ARGUMENTS] = {NULL};
    bool has_axis;
    long axis;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$OOOO:Requantization", names, &v[TQ_RQ_MULTIPLIER],
                                     &v[TQ_RQ_ZERO_POINT], &v[TQ_RQ_INPUT_ZERO_POINT], &v[TQ_RQ_DTYPE], &v[TQ_RQ_AXIS],
                                     &v[TQ_RQ_ROUNDING]) ||
        !tq_py_optional_int(v[TQ_RQ_AXIS], "axis", -MOST_DIMENSIONS, MOST_DIMENSIONS - 1, &has_axis, &axis))
        return NULL;
    given_counts given;
    if (!count_sets(v, &given) || !(v[TQ_RQ_Q] = trial_input(given.sets)))
        return NULL;
    PyObject *first = has_axis ? PyLong_FromLong(0) : Py_NewRef(Py_None);
    v[TQ_RQ_AXIS] = first;
    tq_py_requantization r;
    RequantizationObject *self = NULL;
    if (first && tq_py_requantization_begin(&r, v)) {
        self = (RequantizationObject *)type->tp_alloc(type, 0);
        if (self)
            self->axis = has_axis ? PyLong_FromLong(axis) : Py_NewRef(Py_None);
        if (self && (!self->axis || !keep(self, &r, &given) || !keep_arguments(self, &r) ||
                     !make_sets(self, &r, (size_t)given.sets)))
            Py_CLEAR(self);
        tq_py_requantization_end(&r);
    }
    Py_XDECREF(first);
    Py_DECREF(v[TQ_RQ_Q]);
    return (PyObject *)self;
}

static PyObject *requantize(RequantizationObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)
{
    enum { Q, OUT, NUM_THREADS, COUNT };
    static const char *const names[] = {"q", "out", "num_threads"};
    static const tq_py_signature signature = {"requantize", names, COUNT, 1, 1};
    PyObject *own[COUNT];
    if (!tq_py_bind(&signature, args, nargs, keywords, own))
        return NULL;
    PyObject *v[TQ_RQ_ARGUMENTS];
    memcpy(v, self->arguments, sizeof v);
    v[TQ_RQ_Q] = own[Q], v[TQ_RQ_OUT] = own[OUT], v[TQ_RQ_NUM_THREADS] = own[NUM_THREADS];
    return tq_py_requantize_by(PyType_GetModule(Py_TYPE(self)), v, &self->sets);
}

/* ---- the type ---- */

static void dealloc(RequantizationObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->multiplier);
    Py_XDECREF(self->zero_point);
    Py_XDECREF(self->input_zero_point);
    Py_XDECREF(self->axis);
    Py_XDECREF(self->dtype);
    Py_XDECREF(self->descr);
    Py_XDECREF(self->rounding);
    for (int i = 0; i < TQ_RQ_ARGUMENTS; i++)
        Py_XDECREF(self->arguments[i]);
    tq_requantize_sets_free(&self->sets);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *keywords_of(RequantizationObject *self)
{
    return Py_BuildValue("{sOsOsOsO}", "input_zero_point", self->input_zero_point, "dtype", self->descr, "axis",
                         self->axis, "rounding", self->rounding);
}

static PyObject *reduce(RequantizationObject *self, PyObject *unused)
{
    (void)unused;
    return tq_py_reduced((PyObject *)self, PyTuple_Pack(2, self->multiplier, self->zero_point), keywords_of(self));
}

/* "3", or "64 multipliers". */
static PyObject *brief(PyObject *values, const char *noun)
{
    PyArrayObject *array = (PyArrayObject *)values;
    if (PyArray_NDIM(array) > 0)
        return PyUnicode_FromFormat("%zd %s", (Py_ssize_t)PyArray_SIZE(array), noun);
    PyObject *number = PyObject_CallMethod(values, "item", NULL), *text = number ? PyObject_Repr(number) : NULL;
    Py_XDECREF(number);
    return text;
}

static PyObject *repr(RequantizationObject *self)
{
    PyObject *multiplier = brief(self->multiplier, "multipliers");
    PyObject *zero_point = multiplier ? brief(self->zero_point, "zero points") : NULL;
    PyObject *input = zero_point ? brief(self->input_zero_point, "input zero points") : NULL, *text = NULL;
    if (input)
        text = PyUnicode_FromFormat("<tq.Requantization: (q - %U) * %U + %U, to %U, axis %R, rounding %R>", input,
                                    multiplier, zero_point, self->dtype, self->axis, self->rounding);
    Py_XDECREF(multiplier);
    Py_XDECREF(zero_point);
    Py_XDECREF(input);
    return text;
}

#define MEMBER_OF(name, text) {#name, T_OBJECT_EX, offsetof(RequantizationObject, name), READONLY, text}
static PyMemberDef members[] = {
    MEMBER_OF(multiplier, "float64 array, read-only: one, of the shape (), or one a channel."),
    MEMBER_OF(zero_point, "int32 array, read-only: one, of the shape (), or one a channel."),
    MEMBER_OF(input_zero_point, "int32 array, read-only: one, of the shape (), or one a channel."),
    MEMBER_OF(axis, "int or None: the dimension of the channels."),
    MEMBER_OF(dtype, "str: the type of the results, such as 'int8'."),
    MEMBER_OF(rounding, "str: the rule, such as 'double'."),
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"requantize", (PyCFunction)(void (*)(void))requantize, METH_FASTCALL | METH_KEYWORDS,
     "requantize($self, q, /, *, out=None, num_threads=None)\n--\n\n"
     "tq.requantize with these parameters."},
    {"__reduce__", (PyCFunction)reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(
    doc,
    "Requantization(multiplier, zero_point=0, *, input_zero_point=0, dtype='int8', axis=None, "
    "rounding='double')\n--\n\n"
    "tq.requantize's parameters, checked and prepared once for many arrays of the same layer.\n\n"
    "Its requantize(q) gives what tq.requantize(q, multiplier, ...) does, bit for bit, and takes the same arrays.\n"
    "Parameters are copied and do not change; it can be pickled, and used by several threads at once.\n"
    "ValueError, TypeError: as of tq.requantize, for an array of as many channels as parameters have values.\n\n"
    ">>> layer = Requantization([0.5, 0.25], zero_point=3, axis=-1)\n"
    ">>> layer.requantize(numpy.int32([[10, 10], [-10, 100]]))\n"
    "array([[ 8,  6],\n"
    "       [-2, 28]], dtype=int8)");

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)doc}, {Py_tp_new, new}, {Py_tp_dealloc, dealloc}, {Py_tp_repr, repr}, {Py_tp_members, members},
    {Py_tp_methods, methods}, {0, NULL},
};

static PyType_Spec spec = {
    .name = "tq._core.Requantization",
    .basicsize = sizeof(RequantizationObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tq_py_add_requantization(PyObject *module, tq_state *state)
{
    return tq_py_add_type(module, &spec, &state->Requantization);
}
