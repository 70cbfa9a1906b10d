/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant weights of a model that is being changed: quantized values and float16 in place of float32, made when the
 * model is written (convert/weights.h).  Only tq/editing/editor.py calls these functions.
 */
#include "python/edit/tree_weights.h"

#include <string.h>

#include "base/checked.h"
#include "convert/halves.h"
#include "convert/weights.h"
#include "model/rewrite.h"
#include "python/errors.h"
#include "python/arrays/operands.h"
#include "python/edit/tree_objects.h"
#include "python/arrays/weights.h"

/* Gives `node`, a Buffer's, the quantized values of w, and returns the shape of their scales. */
static PyObject *put_codes(tq_state *state, tq_tree *tree, tq_tree_node *node, PyArrayObject *w, PyObject *axis,
                           PyObject *dtype, PyObject *block_size, const char *label)
{
    tq_py_weight_plan plan;
    tq_integer_type code;
    tq_error error;
    if (tq_py_integer_type(dtype, &code) < 0 || tq_py_weight_plan_of(w, code, axis, block_size, &plan) < 0)
        return NULL;
    plan.target.positive = true;
    const tq_weight_source source = {plan.target, plan.layout, PyArray_DATA(w), label};
    if (tq_convert_weights(tree, node, &source, &error) == TQ_OK)
        return PyArray_IntTupleFromIntp(plan.rank, plan.shape);
    return tq_py_raise(state, &error, NULL);
}

/* _codes_into(node, w, axis, dtype, block_size, label) -> shape of the scales.

   Gives the node of a Buffer the packed quantized values of the array w.  They are the values that quantize_weights
   makes by its usual rule, but that no scale is 0, and they are made when the model is written.  Until then w must not
   change: where it is dense it is not copied, and the tree keeps it alive.  If w is itself a view of that tree, the two
   keep each other, and neither is freed. */
static PyObject *codes_into(PyObject *module, PyObject *args)
{
    tq_state *state = PyModule_GetState(module);
    PyObject *object, *value, *axis, *dtype, *block_size, *made = NULL;
    const char *label;
    tq_tree_node *node;
    if (!PyArg_ParseTuple(args, "OOOOOs:_codes_into", &object, &value, &axis, &dtype, &block_size, &label))
        return NULL;
    tq_tree *tree = tq_py_change_node(state, object, "Buffer", &node);
    PyArrayObject *w = tree ? tq_py_dense_floats(value, "w") : NULL;
    if (w && tq_py_hold_for_node(object, (PyObject *)w) == 0)
        made = put_codes(state, tree, node, w, axis, dtype, block_size, label);
    Py_XDECREF(w);
    return made;
}

/* The tree that both nodes belong to: `object`, of that table, and `buffer`, of a Buffer. */
static tq_tree *change_both(tq_state *state, PyObject *object, const char *table, tq_tree_node **node, PyObject *buffer,
                            tq_tree_node **codes)
{
    tq_tree *tree = tq_py_change_node(state, object, table, node);
    tq_tree *other = tree ? tq_py_change_node(state, buffer, "Buffer", codes) : NULL;
    if (!other || tree == other)
        return other;
    PyErr_SetString(PyExc_ValueError, "the buffer belongs to another model");
    return NULL;
}

/* The bytes of a Buffer as an array of floats of that shape, which must not outlive the tree.  NULL without an
   exception where the bytes cannot be read as such floats in place: their number is another, or they are not aligned.
   */
static PyArrayObject *floats_of(const tq_tree_node *buffer, PyObject *shape)
{
    const tq_cell *cell = tq_buffer_node_cell(buffer);
    PyArray_Dims dims = {NULL, 0};
    if (!PyArray_IntpConverter(shape, &dims))
        return NULL;
    uint64_t size = 4;
    bool fits = cell && !cell->is_made && (uintptr_t)cell->bytes % 4 == 0 && NPY_BYTE_ORDER == NPY_LITTLE_ENDIAN;
    for (int i = 0; fits && i < dims.len; i++)
        fits = dims.ptr[i] >= 0 && tq_mul_u64(size, (uint64_t)dims.ptr[i], &size);
    PyArrayObject *made = NULL;
    if (fits && size && size == cell->length)
        made = (PyArrayObject *)PyArray_New(&PyArray_Type, dims.len, dims.ptr, NPY_FLOAT32, NULL,
                                            (void *)(uintptr_t)cell->bytes, 0, NPY_ARRAY_CARRAY_RO, NULL);
    PyDimMem_FREE(dims.ptr);
    return made;
}

/* _codes_from(node, source, shape, axis, dtype, block_size, label) -> shape of the scales, or None.

   As _codes_into, of the weights that `source`, another Buffer of that tree, holds.  None, and nothing is done, where
   its bytes cannot be read as floats of that shape in place. */
static PyObject *codes_from(PyObject *module, PyObject *args)
{
    tq_state *state = PyModule_GetState(module);
    PyObject *object, *source, *shape, *axis, *dtype, *block_size;
    const char *label;
    tq_tree_node *node, *floats;
    if (!PyArg_ParseTuple(args, "OOOOOOs:_codes_from", &object, &source, &shape, &axis, &dtype, &block_size, &label))
        return NULL;
    tq_tree *tree = change_both(state, object, "Buffer", &node, source, &floats);
    PyArrayObject *w = tree ? floats_of(floats, shape) : NULL;
    if (!w)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    PyObject *made = put_codes(state, tree, node, w, axis, dtype, block_size, label);
    Py_DECREF(w);
    return made;
}

/* _halves_from(node, source, shape) -> bool.

   Gives the node of a Buffer the floats of `source`, another Buffer, as float16.  False where _codes_from gives None.
 */
static PyObject *halves_from(PyObject *module, PyObject *args)
{
    tq_state *state = PyModule_GetState(module);
    PyObject *object, *source, *shape;
    tq_tree_node *node, *floats;
    tq_error error;
    if (!PyArg_ParseTuple(args, "OOO:_halves_from", &object, &source, &shape))
        return NULL;
    tq_tree *tree = change_both(state, object, "Buffer", &node, source, &floats);
    PyArrayObject *w = tree ? floats_of(floats, shape) : NULL;
    if (!w)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    tq_status status = tq_convert_halves(tree, node, PyArray_DATA(w), (uint64_t)PyArray_SIZE(w), &error);
    Py_DECREF(w);
    return status == TQ_OK ? Py_NewRef(Py_True) : tq_py_raise(state, &error, NULL);
}

/* _become_codes(tensor, buffer, index, type, axis) -> None.

   Makes the node of a Tensor one of quantized values: those that _codes_into gave `buffer`, which is the model's
   index-th. */
static PyObject *become_codes(PyObject *module, PyObject *args)
{
    tq_state *state = PyModule_GetState(module);
    PyObject *object, *buffer;
    tq_tree_node *node, *codes;
    tq_error error;
    unsigned index;
    unsigned char type;
    int axis;
    if (!PyArg_ParseTuple(args, "OOIbi:_become_codes", &object, &buffer, &index, &type, &axis))
        return NULL;
    tq_tree *tree = change_both(state, object, "Tensor", &node, buffer, &codes);
    if (!tree)
        return NULL;
    if (tq_convert_tensor(tree, node, codes, index, type, axis, &error) == TQ_OK)
        Py_RETURN_NONE;
    return tq_py_raise(state, &error, NULL);
}

/* _scales_of(buffer) -> a flat array of the scales of the quantized values that _codes_into gave it. */
static PyObject *scales_of(PyObject *module, PyObject *buffer)
{
    tq_state *state = PyModule_GetState(module);
    tq_tree_node *codes;
    tq_error error;
    const float *scales;
    size_t found;
    if (!tq_py_change_node(state, buffer, "Buffer", &codes))
        return NULL;
    if (tq_convert_scales_now(codes, &scales, &found, &error) != TQ_OK)
        return tq_py_raise(state, &error, NULL);
    npy_intp size = (npy_intp)found;
    PyObject *made = PyArray_SimpleNew(1, &size, NPY_FLOAT32);
    if (made)
        memcpy(PyArray_DATA((PyArrayObject *)made), scales, found * sizeof *scales);
    return made;
}

/* What changes a tree holds it: that of the node that stands first. */
static PyObject *hold_tree(PyObject *module, PyObject *args, PyObject *node, PyCFunction work)
{
    PyObject *tree = tq_py_tree_of(PyModule_GetState(module), node), *made;
    if (!tree)
        return work(module, args); /* which says what is needed */
    TQ_HOLD(tree)
    made = work(module, args);
    TQ_LET_GO()
    return made;
}

#define HELD(name)                                                                                       \
    static PyObject *held_##name(PyObject *module, PyObject *args)                                       \
    {                                                                                                    \
        return hold_tree(module, args, PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL, name); \
    }
HELD(codes_into)
HELD(codes_from)
HELD(halves_from)
HELD(become_codes)

static PyObject *held_scales_of(PyObject *module, PyObject *buffer)
{
    return hold_tree(module, buffer, buffer, scales_of);
}

static PyMethodDef functions[] = {
    {"_codes_into", held_codes_into, METH_VARARGS, NULL},   {"_codes_from", held_codes_from, METH_VARARGS, NULL},
    {"_halves_from", held_halves_from, METH_VARARGS, NULL}, {"_become_codes", held_become_codes, METH_VARARGS, NULL},
    {"_scales_of", held_scales_of, METH_O, NULL},           {NULL, NULL, 0, NULL},
};

int tq_py_add_tree_weights(PyObject *module, tq_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
