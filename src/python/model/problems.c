/* SPDX-License-Identifier: Apache-2.0
 *
 * Problem, a named tuple; the list of a model's problems; and the rows of what can be one.
 */
#include "python/model/problems.h"

#include "model/problems/problems.h"
#include "python/convert.h"
#include "python/errors.h"
#include "python/model/records.h"

static PyStructSequence_Desc problem_desc = {
    "tq.Problem",
    "Something that is invalid or suspicious in a model that can be read.",
    (PyStructSequence_Field[]){
        {"code", "which kind of problem: 'scale-count'"},
        {"place", "where: \"subgraph 0, tensor 4 'conv/weights'\""},
        {"text", "what was found and what is needed"},
        {"severity",
         "'error': TFLite refuses it, or cannot do what the file says; 'warning': it runs, but is hardly meant"},
        {NULL, NULL},
    },
    4,
};

typedef struct collector {
    tq_state *state;
    PyObject *list; /* NULL once a Python exception is set */
} collector;

static PyObject *text_of(const char *text)
{
    return tq_py_text((tq_bytes){(const uint8_t *)text, strlen(text)});
}

static PyObject *make_problem(tq_state *state, const tq_problem *problem)
{
    const tq_problem_kind *kind = &tq_problem_kinds[problem->code];
    PyObject *items[] = {
        PyUnicode_InternFromString(kind->code),
        text_of(problem->location_text),
        text_of(problem->text),
        PyUnicode_InternFromString(tq_severity_name(kind->severity)),
    };
    return tq_py_record(state->Problem, items, 4);
}

static bool collect(void *context, const tq_problem *problem)
{
    collector *c = context;
    if (!problem) {
        if (PyErr_CheckSignals() < 0)
            Py_CLEAR(c->list);
        return c->list != NULL;
    }
    PyObject *made = make_problem(c->state, problem);
    if (!made || PyList_Append(c->list, made) < 0)
        Py_CLEAR(c->list);
    Py_XDECREF(made);
    return c->list != NULL;
}

PyObject *tq_py_problems(tq_state *state, const tq_model *model)
{
    collector c = {state, PyList_New(0)};
    tq_error error;
    if (!c.list)
        return NULL;
    tq_status status = tq_model_problems(model, &tq_default_allocator, collect, &c, &error);
    if (status != TQ_OK && c.list) {
        Py_DECREF(c.list);
        return tq_py_raise(state, &error, NULL);
    }
    return c.list;
}

static PyObject *problem_kinds(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(TQ_PROBLEM_COUNT);
    for (Py_ssize_t i = 0; list && i < TQ_PROBLEM_COUNT; i++) {
        const tq_problem_kind *kind = &tq_problem_kinds[i];
        PyObject *row = Py_BuildValue("(sss)", kind->code, tq_severity_name(kind->severity), kind->text);
        if (row)
            PyList_SET_ITEM(list, i, row);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyMethodDef functions[] = {
    {"problem_kinds", problem_kinds, METH_NOARGS,
     "[(code, severity, text)]: every kind of problem that model.problems can name."},
    {NULL, NULL, 0, NULL},
};

int tq_py_add_problems(PyObject *module, tq_state *state)
{
    state->Problem = (PyObject *)PyStructSequence_NewType(&problem_desc);
    if (!state->Problem || PyModule_AddObjectRef(module, "Problem", state->Problem) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
