/* SPDX-License-Identifier: Apache-2.0
 *
 * tq._core: the module's definition, and the table of the files that fill it.
 */
#include "python/state.h"

#include "python/arrays/arrays.h"
#include "python/arrays/biases.h"
#include "python/model/buffer.h"
#include "python/model/details_list.h"
#include "python/errors.h"
#include "python/arrays/fake_quant.h"
#include "python/model/file.h"
#include "python/arrays/fixed_point.h"
#include "python/model/flex.h"
#include "python/interpreter/interpreter.h"
#include "python/arrays/measures.h"
#include "python/model/model.h"
#include "python/arrays/observers.h"
#include "python/arrays/rounding.h"
#include "python/model/operator.h"
#include "python/arrays/parameters.h"
#include "python/model/problems.h"
#include "python/model/quantization.h"
#include "python/model/records.h"
#include "python/arrays/requantization.h"
#include "python/model/schema.h"
#include "python/model/sequence.h"
#include "python/model/subgraph.h"
#include "python/model/tensor.h"
#include "python/edit/tree.h"
#include "python/edit/tree_weights.h"
#include "python/arrays/weights.h"

static int add_keys(PyObject *module, tq_state *state)
{
    (void)module;
#define KEY(name)                                        \
    state->key.name = PyUnicode_InternFromString(#name); \
    if (!state->key.name)                                \
        return -1;
    TQ_KEYS(KEY)
#undef KEY
    return 0;
}

static int (*const adders[])(PyObject *module, tq_state *state) = {
    add_keys,
    tq_py_add_errors,
    tq_py_add_schema,
    tq_py_add_records,
    tq_py_add_sequence,
    tq_py_add_file,
    tq_py_add_buffer,
    tq_py_add_model,
    tq_py_add_quantization,
    tq_py_add_requantization,
    tq_py_add_subgraph,
    tq_py_add_operator,
    tq_py_add_tensor,
    tq_py_add_flex,
    tq_py_add_details,
    tq_py_add_details_list,
    tq_py_add_problems,
    tq_py_add_fixed_point,
    tq_py_add_parameters,
    tq_py_add_weights,
    tq_py_add_biases,
    tq_py_add_fake_quant,
    tq_py_add_observers,
    tq_py_add_rounding,
    tq_py_add_measures,
    tq_py_add_arrays,
    tq_py_add_tree,
    tq_py_add_tree_weights,
    tq_py_add_interpreter,
};

/* NumPy supports the main interpreter only.  Newer Pythons refuse other subinterpreters by the slot below; those that
   share everything with the main one come here. */
static int refuse_subinterpreter(void)
{
    if (PyInterpreterState_Get() == PyInterpreterState_Main())
        return 0;
    PyErr_SetString(PyExc_ImportError,
                    "tq does not support subinterpreters, as NumPy does not: use threads or processes");
    return -1;
}

static int execute(PyObject *module)
{
    tq_state *state = PyModule_GetState(module);
    if (refuse_subinterpreter() < 0)
        return -1;
    if (tq_py_import_numpy() < 0)
        return -1;
    for (size_t i = 0; i < sizeof adders / sizeof *adders; i++)
        if (adders[i](module, state) < 0)
            return -1;
    return 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    tq_state *state = PyModule_GetState(module);
#define OBJECT(name) Py_VISIT(state->name);
#include "python/state.def"
#undef OBJECT
    for (int i = 0; i < TQ_TYPE_COUNT; i++) {
        Py_VISIT(state->dtypes[i]);
        Py_VISIT(state->classes[i]);
    }
    for (int i = 0; i < TQ_ENUM_COUNT; i++)
        Py_VISIT(state->members[i]);
    return 0;
}

static int clear(PyObject *module)
{
    tq_state *state = PyModule_GetState(module);
#define OBJECT(name) Py_CLEAR(state->name);
#include "python/state.def"
#undef OBJECT
#define KEY(name) Py_CLEAR(state->key.name);
    TQ_KEYS(KEY)
#undef KEY
    for (int i = 0; i < TQ_TYPE_COUNT; i++) {
        tq_py_retract(&state->dtypes[i]);
        tq_py_retract(&state->classes[i]);
    }
    for (int i = 0; i < TQ_ENUM_COUNT; i++)
        tq_py_retract(&state->members[i]);
    return 0;
}

static void release(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED}, /* free_threads.h */
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,      .m_name = "tq._core", .m_doc = "The C core of tq.",
    .m_size = sizeof(tq_state), .m_slots = slots,     .m_traverse = traverse,
    .m_clear = clear,           .m_free = release,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
