/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions between the files behind array_args.h.
 */
#ifndef TQ_PYTHON_ARRAYS_ARRAY_PARTS_H
#define TQ_PYTHON_ARRAYS_ARRAY_PARTS_H

#include "python/arrays/array_args.h"

static inline bool tq_py_is_float(const tq_py_type *type)
{
    return type->low == type->high;
}

/* array_types.c: NumPy's number of an element; -1: none of its own. */
int tq_py_numpy_type(tq_element element);

/* array_inputs.c: `object` as a C-contiguous, aligned array in native byte order (new reference): itself where it is
   one.  integers: as tq_py_array has it. */
PyArrayObject *tq_py_contiguous(PyObject *object, const char *argument, bool integers);

/* Whether any byte lies in both.  Only for C-contiguous arrays. */
static inline bool tq_py_overlap(PyArrayObject *a, PyArrayObject *b)
{
    uintptr_t a0 = (uintptr_t)PyArray_DATA(a), b0 = (uintptr_t)PyArray_DATA(b);
    return a0 < b0 + (uintptr_t)PyArray_NBYTES(b) && b0 < a0 + (uintptr_t)PyArray_NBYTES(a);
}

/* array_layout.c: `object` as a contiguous array of the type `number` (new reference), apart from the output, of a
   shape that parameters may have.  kinds: NumPy's letters for what it may be, which errors call `words`. */
PyArrayObject *tq_py_parameter_array(PyObject *object, const char *argument, const char *kinds, const char *words,
                                     int number, const tq_py_parameters *p);

#endif
