/* SPDX-License-Identifier: Apache-2.0
 *
 * Outputs: a new array or the caller's `out`, with a temporary array where kernels cannot write to `out`.
 */
#include "python/arrays/array_internal.h"

#include "python/errors.h"

/* Whether elements of the array may share memory: the stride of a dimension is less than the extent of all dimensions
   of smaller strides.  Never so for arrays made by slicing and transposing. */
static bool overlaps_itself(PyArrayObject *array)
{
    npy_intp steps[NPY_MAXDIMS], lengths[NPY_MAXDIMS], spanned = PyArray_ITEMSIZE(array);
    int count = 0;
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        npy_intp length = PyArray_DIM(array, i), step = PyArray_STRIDE(array, i);
        step = step < 0 ? -step : step;
        if (length == 0)
            return false;
        if (length == 1)
            continue;
        int at = count++;
        for (; at > 0 && steps[at - 1] > step; at--) {
            steps[at] = steps[at - 1];
            lengths[at] = lengths[at - 1];
        }
        steps[at] = step;
        lengths[at] = length;
    }
    for (int k = 0; k < count; k++) {
        if (steps[k] < spanned)
            return true;
        spanned += steps[k] * (lengths[k] - 1);
    }
    return false;
}

static bool check_out(PyArrayObject *input, PyObject *out, PyArray_Descr *descr)
{
    if (!PyArray_Check(out)) {
        PyErr_Format(PyExc_TypeError, "out is a %s: it must be a NumPy array", Py_TYPE(out)->tp_name);
        return false;
    }
    PyArrayObject *array = (PyArrayObject *)out;
    if (PyArray_DESCR(array)->type_num != descr->type_num && !PyArray_EquivTypes(PyArray_DESCR(array), descr)) {
        PyErr_Format(PyExc_TypeError, "out has dtype %R: it must be %R", (PyObject *)PyArray_DESCR(array),
                     (PyObject *)descr);
        return false;
    }
    if (!PyArray_SAMESHAPE(array, input)) {
        PyObject *found = PyObject_GetAttrString(out, "shape");
        PyObject *needed = found ? PyObject_GetAttrString((PyObject *)input, "shape") : NULL;
        if (needed)
            PyErr_Format(PyExc_ValueError, "out has shape %R: it must be %R", found, needed);
        Py_XDECREF(found);
        Py_XDECREF(needed);
        return false;
    }
    if (!PyArray_ISWRITEABLE(array)) {
        PyErr_SetString(PyExc_ValueError, "out is read-only: it must be writable");
        return false;
    }
    if (!PyArray_ISCARRAY(array) && overlaps_itself(array)) {
        PyErr_SetString(PyExc_ValueError, "out's own elements share memory: each must have its own");
        return false;
    }
    return true;
}

/* Whether kernels may write `out` while they read `input`; both are C-contiguous. */
static bool check_apart(PyArrayObject *input, PyArrayObject *out)
{
    bool same = PyArray_DATA(out) == PyArray_DATA(input) && PyArray_ITEMSIZE(out) == PyArray_ITEMSIZE(input);
    if (same || !tq_py_overlap(out, input))
        return true;
    PyErr_SetString(PyExc_ValueError, "out overlaps the input in memory: it must be apart from it, or be the same "
                                      "memory with elements of the same size");
    return false;
}

/* Steals descr. */
static PyArrayObject *new_like(PyArrayObject *input, PyArray_Descr *descr)
{
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, PyArray_NDIM(input), PyArray_DIMS(input), NULL,
                                                 NULL, 0, NULL);
}

/* tq_py_output_begin, after *output is cleared; does not steal descr. */
static bool begin(tq_py_output *output, PyArrayObject *input, PyObject *out, PyArray_Descr *descr)
{
    if (out && !check_out(input, out, descr))
        return false;
    if (out && PyArray_ISCARRAY((PyArrayObject *)out)) {
        if (!check_apart(input, (PyArrayObject *)out))
            return false;
        output->array = (PyArrayObject *)Py_NewRef(out);
        return true;
    }
    if (out)
        output->result = Py_NewRef(out);
    else if (!PyArray_ISNBO(descr->byteorder)) {
        output->result = (PyObject *)new_like(input, (PyArray_Descr *)Py_NewRef((PyObject *)descr));
        if (!output->result)
            return false;
    }
    PyArray_Descr *native = PyArray_DescrNewByteorder(descr, NPY_NATIVE);
    output->array = native ? new_like(input, native) : NULL;
    if (!output->array)
        Py_CLEAR(output->result);
    return output->array != NULL;
}

bool tq_py_output_begin(tq_py_output *output, PyArrayObject *input, PyObject *out, const tq_py_type *type,
                        PyArray_Descr *descr)
{
    *output = (tq_py_output){.type = *type};
    bool begun = begin(output, input, out == Py_None ? NULL : out, descr);
    Py_DECREF(descr);
    return begun;
}

static PyObject *finish(tq_py_output *output)
{
    if (!output->result)
        return (PyObject *)output->array;
    int failed = PyArray_CopyInto((PyArrayObject *)output->result, output->array);
    Py_DECREF(output->array);
    if (failed)
        Py_CLEAR(output->result);
    return output->result;
}

PyObject *tq_py_output_end(tq_py_output *output, PyObject *module, tq_status status, const tq_error *error)
{
    if (status == TQ_OK)
        return finish(output);
    Py_CLEAR(output->array);
    Py_CLEAR(output->result);
    return tq_py_raise(PyModule_GetState(module), error, NULL);
}
