/* SPDX-License-Identifier: Apache-2.0
 *
 * tq's exceptions, and the one function from a tq_error to a Python exception.
 */
#include "python/errors.h"

#include <errno.h>

/* The exceptions of status.def's second column. */
enum exception { NONE, MEMORY, OS, VALUE, INDEX, MODEL, RUN };

static const enum exception exceptions[] = {
#define STATUS(symbol, exception, text) exception,
#include "base/status.def"
#undef STATUS
};

static PyObject *class_of(tq_state *state, tq_status status)
{
    switch (exceptions[status]) {
    case MEMORY: return PyExc_MemoryError;
    case OS: return PyExc_OSError;
    case VALUE: return PyExc_ValueError;
    case INDEX: return PyExc_IndexError;
    case MODEL: return state->ModelError;
    case RUN: return state->RunError;
    case NONE: break;
    }
    return PyExc_SystemError;
}

static PyObject *raise_os(const tq_error *error, PyObject *path)
{
    int number = error->os_error ? error->os_error : EINVAL;
    PyObject *args = Py_BuildValue("(isO)", number, error->text, path ? path : Py_None);
    if (args) {
        PyErr_SetObject(PyExc_OSError, args); /* errno selects FileNotFoundError or another subclass */
        Py_DECREF(args);
    }
    return NULL;
}

static int set_attributes(PyObject *exception, const tq_error *error)
{
    PyObject *code = PyUnicode_FromString(tq_status_name(error->status));
    PyObject *offset = error->offset == TQ_NO_OFFSET ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(error->offset);
    int failed = !code || !offset || PyObject_SetAttrString(exception, "code", code) < 0 ||
                 PyObject_SetAttrString(exception, "offset", offset) < 0;
    Py_XDECREF(code);
    Py_XDECREF(offset);
    return failed ? -1 : 0;
}

PyObject *tq_py_raise(tq_state *state, const tq_error *error, PyObject *path)
{
    PyObject *class = class_of(state, error->status);
    if (class == PyExc_MemoryError)
        return PyErr_NoMemory();
    if (class == PyExc_OSError)
        return raise_os(error, path);

    /* Names in a file need not be UTF-8, and a long message may be cut inside a character. */
    PyObject *text = PyUnicode_DecodeUTF8(error->text, (Py_ssize_t)strlen(error->text), "replace");
    if (text && error->offset != TQ_NO_OFFSET) {
        PyObject *with_offset = PyUnicode_FromFormat("byte %llu: %U", (unsigned long long)error->offset, text);
        Py_SETREF(text, with_offset);
    }
    if (!text)
        return NULL;
    PyObject *exception = PyObject_CallOneArg(class, text);
    Py_DECREF(text);
    if (!exception)
        return NULL;
    if ((class != state->ModelError && class != state->RunError) || set_attributes(exception, error) == 0)
        PyErr_SetObject(class, exception);
    Py_DECREF(exception);
    return NULL;
}

/* Adds an exception of tq that derives from a builtin one, too. */
static int add_error(PyObject *module, tq_state *state, PyObject *builtin, const char *name, const char *doc,
                     PyObject **slot)
{
    PyObject *bases = PyTuple_Pack(2, state->Error, builtin);
    if (!bases)
        return -1;
    *slot = PyErr_NewExceptionWithDoc(name, doc, bases, NULL);
    Py_DECREF(bases);
    return *slot ? PyModule_AddObjectRef(module, strrchr(name, '.') + 1, *slot) : -1;
}

int tq_py_add_errors(PyObject *module, tq_state *state)
{
    state->Error = PyErr_NewExceptionWithDoc("tq.Error", "What every exception of tq's own derives from.", NULL, NULL);
    if (!state->Error)
        return -1;
    if (PyModule_AddObjectRef(module, "Error", state->Error) < 0)
        return -1;
    if (add_error(module, state, PyExc_ValueError, "tq.ModelError",
                  "A file that is no model, or a part of a model that cannot be used.\n\n"
                  "code: the check that failed, a name such as 'VECTOR_RANGE'.\n"
                  "offset: the byte in the file where it failed, or None.",
                  &state->ModelError) < 0)
        return -1;
    return add_error(module, state, PyExc_RuntimeError, "tq.RunError",
                     "A model that cannot be run, or data that an operator of it cannot take.\n\n"
                     "code: what failed, a name such as 'BAD_OPERATOR'.\n"
                     "offset: None.",
                     &state->RunError);
}
