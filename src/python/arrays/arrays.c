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
    METHOD("quantize", quantize),
    METHOD("dequantize", dequantize),
    METHOD("requantize", requantize),
    METHOD("pack", pack),
    METHOD("unpack", unpack),
    METHOD("kernel_variants", kernel_variants),
    METHOD("_force_isa", force_isa),
    {NULL, NULL, 0, NULL},
};

int tq_py_add_arrays(PyObject *module, tq_state *state)
{
    (void)state;
    tq_threads_init();
    tq_kernels_choose(tq_cpu_detect(getenv("TQ_DISABLE_CPU")));
    return PyModule_AddFunctions(module, methods);
}
