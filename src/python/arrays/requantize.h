/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments that requantize() and Requantization have in common.
 */
#ifndef TQ_PYTHON_ARRAYS_REQUANTIZE_H
#define TQ_PYTHON_ARRAYS_REQUANTIZE_H

#include "python/arrays/requantize_args.h"

/* The rules' names, by tq_requantize_rule. */
extern const char *const tq_py_requantize_rules[TQ_REQUANTIZE_RULES];

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
