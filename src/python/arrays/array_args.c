/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments by position and by keyword; single values.
 */
#include "python/arrays/array_args.h"

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
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional argument%s, %zd came", s->function,
                     s->positional, s->positional == 1 ? "" : "s", nargs);
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

/* ---- values ---- */

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
    if (found == -1 && PyErr_Occurred()) { /* an array of one dimension has __index__, which raises */
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

/* 0 or 1; -1: any other object.  Not its truth value: that of "no" is True. */
static int truth_of(PyObject *object)
{
    if (PyBool_Check(object) || PyArray_IsScalar(object, Bool))
        return PyObject_IsTrue(object);
    if (!PyLong_Check(object) && !PyArray_IsScalar(object, Integer))
        return -1;
    Py_ssize_t value = PyNumber_AsSsize_t(object, NULL); /* clips */
    return value == 0 || value == 1 ? (int)value : -1;
}

bool tq_py_flag(PyObject *object, const char *argument, bool *flag)
{
    int truth = object ? truth_of(object) : 0;
    if (truth < 0) {
        if (PyLong_Check(object))
            PyErr_Format(PyExc_TypeError, "%s is %R: it must be True or False", argument, object);
        else if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "%s is a %s: it must be True or False", argument, Py_TYPE(object)->tp_name);
        return false;
    }
    *flag = truth;
    return true;
}
