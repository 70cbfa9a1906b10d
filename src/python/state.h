/* SPDX-License-Identifier: Apache-2.0
 *
 * The module's state, which every file of the binding includes.
 *
 * One file holds one Python type or one family of functions.  It offers
 *     int tq_py_add_<name>(PyObject *module, tq_state *state)    -> 0, or -1 with an exception
 * and module.c calls it from a row of its table.
 */
#ifndef TQ_PYTHON_STATE_H
#define TQ_PYTHON_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define PY_ARRAY_UNIQUE_SYMBOL tq_numpy_api
#ifndef TQ_PYTHON_STATE_C
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "base/status.h"
#include "flatbuffer/schema.h"
#include "model/types.h"
#include "python/free_threads.h"

/* Interned strings for dict keys and attribute names: KEY(name). */
/* clang-format off */
#define TQ_KEYS(KEY)                                                                                                 \
    KEY(name) KEY(index) KEY(shape) KEY(shape_signature) KEY(dtype) KEY(quantization) KEY(quantization_parameters)   \
    KEY(sparsity_parameters) KEY(scales) KEY(zero_points) KEY(quantized_dimension) KEY(block_size) KEY(min) KEY(max) \
    KEY(range_min) KEY(range_max) KEY(traversal_order) KEY(block_map) KEY(dim_metadata) KEY(format) KEY(dense_size)  \
    KEY(array_segments) KEY(array_indices)
/* clang-format on */

typedef struct tq_state {
#define OBJECT(name) PyObject *name;
#include "python/state.def"
#undef OBJECT
    struct {
#define KEY(name) PyObject *name;
        TQ_KEYS(KEY)
#undef KEY
    } key;
    tq_py_lazy dtypes[TQ_TYPE_COUNT];  /* by TensorType: of Tensor.data */
    tq_py_lazy classes[TQ_TYPE_COUNT]; /* by TensorType: of get_tensor_details */
    tq_py_lazy members[TQ_ENUM_COUNT]; /* by tq_enum_id: a dict from value to member; constant */
} tq_state;

/* Imports NumPy's C API for all files, once, when the module is made.  0, or -1 with an exception. */
int tq_py_import_numpy(void);

/* The module's state for `self`, an object of a type of this module or of a subclass. */
tq_state *tq_state_of(PyObject *self);

/* Loops over a file's items call this with the number of the iteration, to hear Ctrl-C.  0, or -1 with an exception. */
static inline int tq_py_hears(size_t round)
{
    return round % 256 == 255 ? PyErr_CheckSignals() : 0;
}

/* Makes a type of this module from its spec, stores it in *slot and, unless its name starts with an underscore, adds it
   to the module.  0, or -1 with an exception. */
int tq_py_add_type(PyObject *module, PyType_Spec *spec, PyObject **slot);

#endif
