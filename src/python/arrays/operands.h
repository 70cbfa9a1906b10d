/* SPDX-License-Identifier: Apache-2.0
 *
 * From Python arguments to the core's: arrays of one type, views, names of rows.
 *
 * Each sets an exception that names the argument, what was found and what is needed.  Array-likes are
 * whatever NumPy takes, and objects that speak DLPack alone.
 */
#ifndef TQ_PYTHON_ARRAYS_OPERANDS_H
#define TQ_PYTHON_ARRAYS_OPERANDS_H

#include <stdbool.h>

#include "python/state.h"

#include "quant/axis_view.h"
#include "quant/integers.h"
#include "quant/measure.h"

/* A new reference to the value as an array: itself, if it is one.  Python's integers that are too wide for
   NumPy become float64, or with `integers` a ValueError; other objects a TypeError. */
PyArrayObject *tq_py_array(PyObject *value, const char *name, bool integers);

/* A new reference to an array of that integer type (NPY_INT32 or NPY_INT64), whose values fit it;
   any stride, byte order native. */
PyArrayObject *tq_py_integers(PyObject *value, const char *name, int type);

/* How the core reads the array's elements; TQ_REAL_TYPES where it cannot. */
tq_real_type tq_py_real_type(PyArrayObject *array);

/* A new reference to an array of float64. */
PyArrayObject *tq_py_doubles(PyObject *value, const char *name);

/* A new reference to a dense row-major array: float32 or float64, whichever holds the values exactly,
   or float32 whatever they are. */
PyArrayObject *tq_py_dense_reals(PyObject *value, const char *name);
PyArrayObject *tq_py_dense_floats(PyObject *value, const char *name);

/* "y has shape (2,) and x (3,); they must be the same". */
void tq_py_refuse_shapes(const char *name, PyArrayObject *array, const char *other_name, PyArrayObject *other);

/* The dimension that `axis` names, from 0; -1 for None. */
int tq_py_axis(PyArrayObject *array, PyObject *axis, int *at);

/* The view around `axis`, None being per tensor. */
int tq_py_axis_view(PyArrayObject *array, PyObject *axis, tq_axis_view *view);

/* The num_threads argument; 0 for None, or NULL: as many as pay. */
int tq_py_threads(PyObject *value, int *threads);

/* The index of the string `value` in `names`, or -1; NULL stands for `fallback`. */
int tq_py_choice(PyObject *value, const char *name, const char *const *names, int count, int fallback);

/* A `dtype` argument: a name, or anything NumPy makes a dtype of; NULL is int8. */
int tq_py_integer_type(PyObject *value, tq_integer_type *code);

/* Runs `loop` without the GIL over inputs, which are broadcast, into new arrays.  Inputs have the types of their arrays
   and outputs out_types; errors call inputs by their names.  Results without dimensions stay arrays.  There are at most
   TQ_PY_OPERANDS inputs and outputs together. */
#define TQ_PY_OPERANDS 8
typedef tq_status (*tq_py_loop)(char **data, const npy_intp *strides, npy_intp n, const void *context, tq_error *error);
int tq_py_broadcast(tq_state *state, PyArrayObject *const *inputs, const char *const *names, int input_count,
                    const int *out_types, int out_count, PyArrayObject **outputs, tq_py_loop loop, const void *context);

/* The same of arguments, which are read as float64. */
int tq_py_broadcast_doubles(tq_state *state, PyObject *const *values, const char *const *names, int count,
                            const int *out_types, int out_count, PyArrayObject **outputs, tq_py_loop loop,
                            const void *context);

#endif
