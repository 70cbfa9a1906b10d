/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments that requantize() and Requantization have in common.
 */
#ifndef TQ_PYTHON_ARRAYS_REQUANTIZE_H
#define TQ_PYTHON_ARRAYS_REQUANTIZE_H

#include "python/arrays/array_args.h"

/* The rules' names, by tq_requantize_rule. */
extern const char *const tq_py_requantize_rules[TQ_REQUANTIZE_RULES];

/* requantize()'s arguments, in its order. */
enum {
    TQ_RQ_Q,
    TQ_RQ_MULTIPLIER,
    TQ_RQ_ZERO_POINT,
    TQ_RQ_INPUT_ZERO_POINT,
    TQ_RQ_DTYPE,
    TQ_RQ_AXIS,
    TQ_RQ_ROUNDING,
    TQ_RQ_OUT,
    TQ_RQ_NUM_THREADS,
    TQ_RQ_ARGUMENTS
};

/* All arguments but `out`, in the core's form. */
typedef struct tq_py_requantization {
    PyArrayObject *input;
    PyArray_Descr *descr; /* of out */
    tq_py_type in, out;
    int rule, threads;
    tq_py_parameters parameters;
    tq_py_column multiplier, zero_point, input_zero_point;
} tq_py_requantization;

/* v[i]: NULL: not given.  False with an exception: nothing to release. */
bool tq_py_requantization_begin(tq_py_requantization *r, PyObject *const v[TQ_RQ_ARGUMENTS]);
void tq_py_requantization_end(tq_py_requantization *r);

/* requantize().  sets: made of the same arguments before, or NULL. */
PyObject *tq_py_requantize_by(PyObject *module, PyObject *const v[TQ_RQ_ARGUMENTS], const tq_requantize_sets *sets);

#endif
