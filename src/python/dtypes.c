/* SPDX-License-Identifier: Apache-2.0
 *
 * From tensor types to NumPy's dtypes, by the names in model/types.def.
 */
#include "python/dtypes.h"

/* np.dtype(name), where a name "ml_dtypes.x" means the class x of that package. */
static PyObject *make_dtype(const char *name)
{
    static const char prefix[] = "ml_dtypes.";
    PyObject *from, *dtype = NULL;
    if (strncmp(name, prefix, sizeof prefix - 1) == 0) {
        PyObject *module = PyImport_ImportModule("ml_dtypes");
        from = module ? PyObject_GetAttrString(module, name + sizeof prefix - 1) : NULL;
        Py_XDECREF(module);
    } else {
        from = PyUnicode_FromString(name);
    }
    if (from && PyArray_DescrConverter(from, (PyArray_Descr **)&dtype) != NPY_SUCCEED)
        dtype = NULL;
    Py_XDECREF(from);
#if NPY_BYTE_ORDER == NPY_BIG_ENDIAN
    if (dtype) /* the bytes of files are little-endian */
        Py_SETREF(dtype, (PyObject *)PyArray_DescrNewByteorder((PyArray_Descr *)dtype, NPY_LITTLE));
#endif
    return dtype;
}

PyArray_Descr *tq_py_dtype(tq_state *state, int64_t type)
{
    PyObject *dtype = state->dtypes[type];
    return (PyArray_Descr *)(dtype ? dtype : tq_py_publish(&state->dtypes[type], make_dtype(tq_type(type)->dtype)));
}

PyObject *tq_py_details_class(tq_state *state, int64_t type)
{
    const tq_type_row *row = tq_type(type);
    if (!row)
        return Py_None;
    PyObject *class = state->classes[type];
    if (class)
        return class;
    PyObject *dtype = make_dtype(row->details_dtype);
    class = tq_py_publish(&state->classes[type], dtype ? PyObject_GetAttrString(dtype, "type") : NULL);
    Py_XDECREF(dtype);
    return class;
}

PyObject *tq_py_integer_name(int64_t type)
{
    const tq_type_row *row = tq_type(type);
    if (!row || row->kind != TQ_KIND_INTEGER)
        return Py_NewRef(Py_None);
    const char *dot = strchr(row->dtype, '.');
    return PyUnicode_FromString(dot ? dot + 1 : row->dtype);
}
