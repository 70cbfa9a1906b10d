/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TQ_PYTHON_MODEL_FLEX_H
#define TQ_PYTHON_MODEL_FLEX_H

#include "base/bytes.h"
#include "python/state.h"

/* A flexbuffer's root as dict, list, int, float, bool, str, bytes or None; a new reference, or NULL
   with an exception: ModelError (BAD_FLEXBUFFER) where the bytes are malformed.  Before showing
   custom options, ask tq_flex_is_options. */
PyObject *tq_py_flex(tq_state *state, tq_bytes bytes);

/* decode_flexbuffer(buffer) */
int tq_py_add_flex(PyObject *module, tq_state *state);

#endif
