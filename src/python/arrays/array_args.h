/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of the array functions: reading keywords, types, arrays, parameters and outputs from Python, with
 * errors that name the argument, what was found and what is needed.
 *
 * Functions that can fail return false, or NULL, with an exception set.
 */
#ifndef TQ_PYTHON_ARRAYS_ARRAY_ARGS_H
#define TQ_PYTHON_ARRAYS_ARRAY_ARGS_H

#include <stdbool.h>

#include "kernels/arrays/arrays.h"
#include "python/state.h"

/* ---- keywords ---- */

/* A function's parameters: names[0..count), of which the first `positional` may come by position and the
   first `required` must come. */
typedef struct tq_py_signature {
    const char *function;
    const char *const *names;
    int count, positional, required;
} tq_py_signature;

/* values[i] (borrowed) is the argument for names[i]; NULL where it did not come. */
bool tq_py_bind(const tq_py_signature *s, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords,
                PyObject **values);

/* ---- types ---- */

/* How values lie in an array's memory. */
typedef struct tq_py_type {
    const char *name; /* "int4", "bfloat16" */
    tq_element element;
    int32_t low, high; /* an integer's range; 0 and 0 for floating point */
    bool masked;       /* ml_dtypes' narrow integers: the upper bits of each byte are zero */
} tq_py_type;

/* The type of an array, native byte order assumed; false without an exception if tq has none for it. */
bool tq_py_type_of_array(PyArrayObject *array, tq_py_type *type);

/* The type that `dtype` asks for: a string, a NumPy dtype or type, or an ml_dtypes type; NULL means fallback.  It must
   be of fallback's kind, integers or floats.  needed: the types that errors ask for.  *descr: the descriptor (new
   reference) of the array that holds such values: ml_dtypes' own for its types, int8 or uint8 for narrow integers that
   a string names. */
bool tq_py_type_of_dtype(PyObject *dtype, const char *fallback, const char *needed, tq_py_type *type,
                         PyArray_Descr **descr);

#define TQ_PY_QUANTIZED_TYPES "int8, uint8, int16, uint16, int32, int4, uint4 or int2"

/* ---- arrays ---- */

/* The bits of a byte that a masked type uses; 0: all. */
static inline uint8_t tq_py_type_mask(const tq_py_type *type)
{
    return type->masked ? (uint8_t)(type->high - type->low) : 0;
}

/* `object` as a C-contiguous, aligned array in native byte order: itself where it is one, else a copy.

   As integers: narrow ml_dtypes integers become int8 or uint8, whose upper bits stay masked where they are quantized
   values; Python's integers become int32; other types are a TypeError that says which are `needed`. As real numbers:
   integers and long doubles become float64. */
PyArrayObject *tq_py_quantized_input(PyObject *object, const char *argument, const char *needed, tq_py_type *type);
PyArrayObject *tq_py_integer_input(PyObject *object, const char *argument, const char *needed, tq_py_type *type);
PyArrayObject *tq_py_real_input(PyObject *object, const char *argument, tq_py_type *type);

/* The array that gets the results.  `array` is C-contiguous and free of harmful overlap; end() copies to what the
   caller gets where `array` is not itself it. */
typedef struct tq_py_output {
    PyArrayObject *array;  /* the kernel's */
    PyObject *result;      /* the caller's, if another */
    tq_py_type type;
} tq_py_output;

/* A new array like `input` of that type, or `out` (may be NULL or None), which must have input's shape and
   the type, be writable and hold each element in memory of its own.  Steals descr.  An `out` that overlaps `input` is
   refused unless it is the very same memory with elements of the same size. */
bool tq_py_output_begin(tq_py_output *output, PyArrayObject *input, PyObject *out, const tq_py_type *type,
                        PyArray_Descr *descr);
/* The result for the caller (new reference), or NULL with `error`'s exception where the work failed. */
PyObject *tq_py_output_end(tq_py_output *output, PyObject *module, tq_status status, const tq_error *error);

/* ---- parameters ---- */

/* None or an int that fits. */
bool tq_py_optional_int(PyObject *object, const char *argument, long low, long high, bool *given, long *value);

/* True or False, or the numbers 1 and 0; NULL is false. */
bool tq_py_flag(PyObject *object, const char *argument, bool *flag);

/* The layout for axis and block_size (NULL or None: absent), and the shape that parameters have. */
typedef struct tq_py_parameters {
    tq_layout layout;
    bool has_axis, has_blocks;
    int axis;
    npy_intp sets;          /* groups * channels; 1 without an axis */
    npy_intp blocks;        /* along the axis */
    PyArrayObject *array;   /* input */
    PyArrayObject *out;     /* the caller's `out`, or NULL: results are written to it while parameters are read */
} tq_py_parameters;

bool tq_py_layout(tq_py_parameters *p, PyArrayObject *input, PyObject *axis, PyObject *block_size, PyObject *out);

/* Scales, multipliers and zero points: a scalar, or an array with one entry for each set.  Storage for a
   scalar is in the struct; free with tq_py_column_free. */
typedef struct tq_py_column {
    union {
        float f32;
        double f64;
        int32_t i32;
    } one;
    const void *data;
    bool many;
    PyArrayObject *array;
} tq_py_column;

bool tq_py_scales(tq_py_column *c, PyObject *object, const tq_py_parameters *p);
bool tq_py_multipliers(tq_py_column *c, PyObject *object, const tq_py_parameters *p, bool float32);
/* NULL stands for 0.  Values must be in [low, high], the range of the type that `of` names. */
bool tq_py_zero_points(tq_py_column *c, PyObject *object, const char *argument, const tq_py_parameters *p, int32_t low,
                       int32_t high, const char *of);
void tq_py_column_free(tq_py_column *c);

static inline tq_column_f32 tq_py_f32(const tq_py_column *c)
{
    return (tq_column_f32){c->data, c->many};
}
static inline tq_column_f64 tq_py_f64(const tq_py_column *c)
{
    return (tq_column_f64){c->data, c->many};
}
static inline tq_column_i32 tq_py_i32(const tq_py_column *c)
{
    return (tq_column_i32){c->data, c->many};
}

/* An element count from which work is worth releasing the interpreter for. */
#define TQ_PY_RELEASE_ELEMENTS 8192

#endif
