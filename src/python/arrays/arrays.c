/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions on arrays: their table, and the choice of kernels at import.
 */
#include "python/arrays/arrays.h"

#include <stdlib.h>

#include "base/threads.h"
#include "kernels/kernels.h"
#include "python/arrays/functions.h"

#define METHOD(python_name, name) \
    {python_name, (PyCFunction)(void (*)(void))tq_py_##name, METH_FASTCALL | METH_KEYWORDS, tq_py_##name##_doc}

static PyMethodDef methods[] = {
    METHOD("quantize", quantize),     METHOD("dequantize", dequantize),
    METHOD("requantize", requantize), METHOD("pack", pack),
    METHOD("unpack", unpack),         METHOD("kernel_variants", kernel_variants),
    METHOD("_force_isa", force_isa),  {NULL, NULL, 0, NULL},
};

/* "scalar, avx2, ..." */
static PyObject *feature_names(void)
{
    PyObject *text = PyUnicode_FromString(tq_cpu_name(0));
    for (int i = 1; text && tq_cpu_name(i); i++)
        Py_SETREF(text, PyUnicode_FromFormat("%U, %s", text, tq_cpu_name(i)));
    return text;
}

/* Warns of an invalid environment variable.  No error: it may be set for other programs. */
static int warn_of_environment(void)
{
    const char *threads = getenv("TQ_NUM_THREADS");
    size_t length = 0;
    const char *name = tq_cpu_unknown_name(getenv("TQ_DISABLE_CPU"), &length);
    if (tq_threads_wanted(threads) < 0 &&
        PyErr_WarnFormat(
            PyExc_RuntimeWarning, 1,
            "the environment variable TQ_NUM_THREADS is '%.60s'; it needs to be a positive number, and is ignored",
            threads) < 0)
        return -1;
    if (!name)
        return 0;
    PyObject *unknown = PyUnicode_DecodeUTF8(name, (Py_ssize_t)length, "replace"), *known = feature_names();
    int result = unknown && known ? PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                                                     "the environment variable TQ_DISABLE_CPU names %R, which is no "
                                                     "instruction set and is ignored; the names are %U",
                                                     unknown, known)
                                  : -1;
    Py_XDECREF(known);
    Py_XDECREF(unknown);
    return result;
}

int tq_py_add_arrays(PyObject *module, tq_state *state)
{
    (void)state;
    tq_threads_init();
    if (warn_of_environment() < 0)
        return -1;
    tq_kernels_choose(tq_cpu_detect(getenv("TQ_DISABLE_CPU")));
    return PyModule_AddFunctions(module, methods);
}
