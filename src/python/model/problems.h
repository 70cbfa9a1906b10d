/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_PROBLEMS_H
#define TQ_PYTHON_MODEL_PROBLEMS_H

#include "model/model.h"
#include "python/state.h"

/* [tq.Problem] of a model; a new reference, or NULL with an exception.  Holds the GIL: each problem
   becomes an object at once, and the checks read a bounded amount of data (model/problems/problems.h). */
PyObject *tq_py_problems(tq_state *state, const tq_model *model);

int tq_py_add_problems(PyObject *module, tq_state *state);

#endif
