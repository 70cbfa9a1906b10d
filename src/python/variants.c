/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_variants(), and the door through which tests reach each variant.
 */
#include "python/array_args.h"
#include "python/arrays.h"

const char tq_py_kernel_variants_doc[] =
    "kernel_variants()\n--\n\n"
    "Every variant of every elementwise kernel, one dict each: name (operation, input and output type),\n"
    "isa, available (this machine has the instruction set, and TQ_DISABLE_CPU did not name it at import)\n"
    "and chosen (array functions use it).";

const char tq_py_force_isa_doc[] =
    "_force_isa(isa)\n--\n\n"
    "For tests: from now on, array functions called on this thread use the variants of that instruction\n"
    "set, and scalar ones where it has none. None ends it.";

PyObject *tq_py_kernel_variants(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)
{
    static const tq_py_signature signature = {"kernel_variants", NULL, 0, 0, 0};
    (void)module;
    if (!tq_py_bind(&signature, args, nargs, keywords, NULL))
        return NULL;
    size_t count;
    const tq_kernel *rows = tq_kernels(&count);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        bool available = tq_kernels_features() >> rows[i].feature & 1;
        bool chosen = tq_kernel_find(rows[i].operation, rows[i].in, rows[i].out) == &rows[i];
        PyObject *row = Py_BuildValue("{sssssOsO}", "name", rows[i].name, "isa", rows[i].isa, "available",
                                      available ? Py_True : Py_False, "chosen", chosen ? Py_True : Py_False);
        if (row)
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        else
            Py_CLEAR(list);
    }
    return list;
}

PyObject *tq_py_force_isa(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)
{
    static const char *const names[] = {"isa"};
    static const tq_py_signature signature = {"_force_isa", names, 1, 1, 1};
    PyObject *v[1];
    (void)module;
    if (!tq_py_bind(&signature, args, nargs, keywords, v))
        return NULL;
    int feature = -1;
    if (v[0] != Py_None) {
        const char *name = PyUnicode_AsUTF8(v[0]);
        if (!name)
            return NULL;
        for (feature = 0; feature < TQ_CPU_FEATURES && strcmp(tq_cpu_name(feature), name) != 0;)
            feature++;
        if (feature == TQ_CPU_FEATURES || !(tq_kernels_features() >> feature & 1)) {
            PyErr_Format(PyExc_ValueError, "isa is %R: this machine has no such instruction set, or it is disabled", v[0]);
            return NULL;
        }
    }
    tq_kernels_force(feature);
    Py_RETURN_NONE;
}
