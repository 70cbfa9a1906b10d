/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the table in arrays.c.
 */
#ifndef TQ_PYTHON_ARRAYS_FUNCTIONS_H
#define TQ_PYTHON_ARRAYS_FUNCTIONS_H

#include "python/state.h"

/* METH_FASTCALL | METH_KEYWORDS, one family a file: quantize.c, requantize.c, pack.c, variants.c. */
#define TQ_PY_METHOD(name) \
    PyObject *tq_py_##name(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)

TQ_PY_METHOD(quantize);
TQ_PY_METHOD(dequantize);
TQ_PY_METHOD(requantize);
TQ_PY_METHOD(pack);
TQ_PY_METHOD(unpack);
TQ_PY_METHOD(kernel_variants);
TQ_PY_METHOD(force_isa);

extern const char tq_py_quantize_doc[], tq_py_dequantize_doc[], tq_py_requantize_doc[], tq_py_pack_doc[],
    tq_py_unpack_doc[], tq_py_kernel_variants_doc[], tq_py_force_isa_doc[];

#endif
