/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_variants(), and the choice of a variant for tests.
 */
#include "kernels/blockwise/blockwise.h"
#include "kernels/depthwise/depthwise.h"
#include "kernels/winograd/winograd.h"
#include "python/arrays/array_args.h"
#include "python/arrays/functions.h"

const char tq_py_kernel_variants_doc[] =
    "kernel_variants()\n--\n\n"
    "Every variant of every kernel, one dict each: name (of an elementwise kernel, operation, input and output\n"
    "type; of the matrix products, gemm_, winograd_ and depthwise_ with the rows' type), isa, available (this machine "
    "has\n"
    "the instruction set, and TQ_DISABLE_CPU did not name it at import) and chosen (the best of them, which\n"
    "array functions and interpreters use).";

const char tq_py_force_isa_doc[] =
    "_force_isa(isa)\n--\n\n"
    "For tests: from now on, array functions called and interpreters allocated on this thread use the variants\n"
    "of that instruction set, and scalar ones where it has none. None ends it.";

static bool add_table(PyObject *list, bool (*table)(size_t, tq_variant *))
{
    tq_variant v;
    for (size_t i = 0; table(i, &v); i++) {
        PyObject *row = Py_BuildValue("{sssssOsO}", "name", v.name, "isa", v.isa, "available",
                                      v.available ? Py_True : Py_False, "chosen", v.chosen ? Py_True : Py_False);
        if (!row || PyList_Append(list, row) < 0) {
            Py_XDECREF(row);
            return false;
        }
        Py_DECREF(row);
    }
    return true;
}

PyObject *tq_py_kernel_variants(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)
{
    static const tq_py_signature signature = {"kernel_variants", NULL, 0, 0, 0};
    (void)module;
    if (!tq_py_bind(&signature, args, nargs, keywords, NULL))
        return NULL;
    static bool (*const tables[])(size_t, tq_variant *) = {tq_kernel_variant, tq_gemm_variant, tq_winograd_variant,
                                                           tq_depthwise_variant, tq_blockwise_variant};
    PyObject *list = PyList_New(0);
    for (size_t t = 0; list && t < sizeof tables / sizeof *tables; t++)
        if (!add_table(list, tables[t]))
            Py_CLEAR(list);
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
            PyErr_Format(PyExc_ValueError, "isa is %R: this machine has no such instruction set, or it is disabled",
                         v[0]);
            return NULL;
        }
    }
    tq_kernels_force(feature);
    Py_RETURN_NONE;
}
