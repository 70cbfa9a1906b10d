/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_ARRAYS_WEIGHTS_H
#define TQ_PYTHON_ARRAYS_WEIGHTS_H

#include "python/state.h"

#include "quant/weights.h"

/* How to quantize weights, from the arguments. */
typedef struct tq_py_weight_plan {
    tq_weight_target target;
    tq_weight_layout layout;
    int rank; /* of the array of scales, and its shape */
    npy_intp shape[NPY_MAXDIMS];
} tq_py_weight_plan;

/* The plan for weights w and quantized values of this type.  axis, block_size: as for quantize_weights; block_size may
   be NULL.  The rule is the default of the type.  0, or -1 with an exception. */
int tq_py_weight_plan_of(PyArrayObject *w, tq_integer_type integer_type, PyObject *axis, PyObject *block_size,
                         tq_py_weight_plan *plan);

int tq_py_add_weights(PyObject *module, tq_state *state);

#endif
