/* SPDX-License-Identifier: Apache-2.0
 *
 * tq._core: the module's definition, its state, and the table of what it is made of.
 */
#define TQ_PYTHON_MODULE_C
#include "python/state.h"

#include "python/arrays.h"
#include "python/errors.h"
#include "python/fake_quant.h"
#include "python/fixed_point.h"
#include "python/observers.h"
#include "python/parameters.h"
#include "python/weights.h"

tq_state *tq_state_of(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    /* A Python subclass has no module state of its own; its first C base has. */
    while (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || ((PyHeapTypeObject *)type)->ht_module == NULL)
        type = type->tp_base;
    return PyType_GetModuleState(type);
}

static int (*const parts[])(PyObject *module, tq_state *state) = {
    tq_py_add_errors,
    tq_py_add_fixed_point,
    tq_py_add_parameters,
    tq_py_add_weights,
    tq_py_add_fake_quant,
    tq_py_add_observers,
    tq_py_add_arrays,
};

static int execute(PyObject *module)
{
    tq_state *state = PyModule_GetState(module);
    if (PyArray_ImportNumPyAPI() < 0)
        return -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i](module, state) < 0)
            return -1;
    return 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    tq_state *state = PyModule_GetState(module);
#define OBJECT(name) Py_VISIT(state->name);
#include "python/state.def"
#undef OBJECT
    return 0;
}

static int clear(PyObject *module)
{
    tq_state *state = PyModule_GetState(module);
#define OBJECT(name) Py_CLEAR(state->name);
#include "python/state.def"
#undef OBJECT
    return 0;
}

static void release(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

struct PyModuleDef tq_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tq._core",
    .m_doc = "The C core of tq.",
    .m_size = sizeof(tq_state),
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&tq_module);
}
