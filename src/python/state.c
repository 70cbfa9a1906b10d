/* SPDX-License-Identifier: Apache-2.0
 *
 * From an object to the module's state; types of the module; the import of NumPy's C API.
 */
#define TQ_PYTHON_STATE_C
#include "python/state.h"

tq_state *tq_state_of(PyObject *self)
{
    /* A Python subclass has another module; its first base from C has this one. */
    PyTypeObject *type = Py_TYPE(self);
    while (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || !((PyHeapTypeObject *)type)->ht_module)
        type = type->tp_base;
    return PyType_GetModuleState(type);
}

int tq_py_add_type(PyObject *module, PyType_Spec *spec, PyObject **slot)
{
    *slot = PyType_FromModuleAndSpec(module, spec, NULL);
    if (!*slot)
        return -1;
    const char *name = strrchr(spec->name, '.') + 1;
    return *name == '_' ? 0 : PyModule_AddObjectRef(module, name, *slot);
}

int tq_py_import_numpy(void)
{
    return PyArray_ImportNumPyAPI();
}
