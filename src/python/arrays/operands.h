/* SPDX-License-Identifier: Apache-2.0
 *
 * From Python arguments to the core's: arrays of one type, views, names of rows.
 *
 * Each function fails with NULL or -1 and an exception that names the argument, what was found and what is needed.
 * Array-likes are those of NumPy, and objects with DLPack only.
 */
#ifndef TQ_PYTHON_ARRAYS_OPERANDS_H
#define TQ_PYTHON_ARRAYS_OPERANDS_H

#include <stdbool.h>

#include "python/state.h"

#include "quant/axis_view.h"
#include "quant/integers.h"
#include "quant/measure.h"

/* The value as an array (new reference): itself, if it is one.  Python's integers too wide for NumPy become float64, or
   with `integers` raise ValueError; other objects raise TypeError. */
PyArrayObject *tq_py_array(PyObject *value, const char *name, bool integers);

/* The value as an array of type NPY_INT32 or NPY_INT64 (new reference), with any strides, in native byte order; values
   must fit. */
PyArrayObject *tq_py_integers(PyObject *value, const char *name, int type);

/* The core's type of the array's elements; TQ_REAL_TYPES: none. */
tq_real_type tq_py_real_type(PyArrayObject *array);

/* The value as an array of float64 (new reference). */
PyArrayObject *tq_py_doubles(PyObject *value, const char *name);

/* The value as a dense row-major array (new reference).  dense_reals: float32 or float64, whichever holds the values
   exactly; dense_floats: float32. */
PyArrayObject *tq_py_dense_reals(PyObject *value, const char *name);
PyArrayObject *tq_py_dense_floats(PyObject *value, const char *name);

/* "y has shape (2,) and x (3,); they must be the same". */
void tq_py_refuse_shapes(const char *name, PyArrayObject *array, const char *other_name, PyArrayObject *other);

/* *at: the dimension of the axis argument, from 0; -1 for None. */
int tq_py_axis(PyArrayObject *array, PyObject *axis, int *at);

/* The view around the axis argument; None: per tensor. */
int tq_py_axis_view(PyArrayObject *array, PyObject *axis, tq_axis_view *view);

/* The num_threads argument; 0 for None or NULL: as many as pay. */
int tq_py_threads(PyObject *value, int *threads);

/* The index of the string `value` in names[0..count); NULL: fallback.  -1 with an exception. */
int tq_py_choice(PyObject *value, const char *name, const char *const *names, int count, int fallback);

/* A dtype argument: a name, or an object that NumPy converts to a dtype; NULL: int8. */
int tq_py_integer_type(PyObject *value, tq_integer_type *integer_type);

/* Calls `loop` without the GIL on the broadcast inputs, of their arrays' types, and on new outputs, of types out_types.
   names: of the inputs, for errors.  Results of rank 0 stay arrays.  At most TQ_PY_OPERANDS inputs and outputs in all.
 */
#define TQ_PY_OPERANDS 8
typedef tq_status (*tq_py_loop)(char **data, const npy_intp *strides, npy_intp n, const void *context, tq_error *error);
int tq_py_broadcast(tq_state *state, PyArrayObject *const *inputs, const char *const *names, int input_count,
                    const int *out_types, int out_count, PyArrayObject **outputs, tq_py_loop loop, const void *context);

/* The same with arguments, read as float64. */
int tq_py_broadcast_doubles(tq_state *state, PyObject *const *values, const char *const *names, int count,
                            const int *out_types, int out_count, PyArrayObject **outputs, tq_py_loop loop,
                            const void *context);

#endif
