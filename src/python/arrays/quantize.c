/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize() and dequantize().
 */
#include "python/arrays/array_args.h"
#include "python/arrays/functions.h"
#include "python/arrays/operands.h"

const char tq_py_quantize_doc[] =
    "quantize(x, scale, zero_point=0, *, dtype='int8', axis=None, block_size=None, narrow_range=False,\n"
    "         rounding='away', out=None, num_threads=None)\n--\n\n"
    "Real values to quantized values: clamp(round(x / scale) + zero_point), as TensorFlow Lite does it.\n\n"
    "x: anything that NumPy takes for an array, of any shape, strides and byte order. float32, float16 and\n"
    "    bfloat16 are exact; float64 and integers are first rounded to float32, which is what a TFLite\n"
    "    model receives. A masked array's mask is not looked at, as by numpy.asarray.\n"
    "scale: positive float32, not denormal. One; or with axis one a channel; or with block_size an array\n"
    "    of x's shape whose axis counts blocks. Other floats are rounded to float32.\n"
    "zero_point: a value of dtype; one, or as many as scales.\n"
    "dtype: int8, uint8, int16, uint16, int32, int4, uint4 or int2. Named by a string, int4 and int2\n"
    "    come in an int8 array and uint4 in a uint8 array; ml_dtypes' types come as themselves.\n"
    "axis: the dimension that scales run along; negative counts from the end.\n"
    "block_size: elements along axis (default: the last) that share a scale; it divides the length.\n"
    "narrow_range: leave out the lowest value (int8: -127 to 127).\n"
    "rounding, with s the scale and z the zero point:\n"
#define QUANTIZE_RULE(symbol, name, text) "    '" name "': " text ".\n"
#include "quant/rounding.def"
    "out: a writable array of x's shape and the result's dtype. It may be x itself where element sizes\n"
    "    are equal; other overlaps of contiguous arrays are refused.\n"
    "num_threads: at most so many; None: as many as pay, up to TQ_NUM_THREADS or the processors.\n\n"
    "Returns a new array, or out. Too large and infinity give the highest value, too small and -infinity\n"
    "the lowest, NaN the zero point. Raises TypeError for types and ValueError for values that do not fit.\n\n"
    ">>> quantize([0.26, -3.0, float('nan')], 0.1, 5)\n"
    "array([  8, -25,   5], dtype=int8)";

const char tq_py_dequantize_doc[] =
    "dequantize(q, scale, zero_point=0, *, axis=None, block_size=None, dtype='float32', out=None,\n"
    "           num_threads=None)\n--\n\n"
    "Quantized values to real values: f32(q - zero_point) * scale, the difference exact and the product one\n"
    "float32 multiplication, as in TensorFlow Lite's reference DEQUANTIZE\n"
    "(tflite/kernels/internal/reference/dequantize.h).\n\n"
    "q: int8, uint8, int16, uint16, int32, or ml_dtypes' int4, uint4 or int2; lists of integers are int32.\n"
    "scale, axis, block_size, out, num_threads: as for quantize.\n"
    "zero_point: in the range of q's type.\n"
    "dtype: float32, or float16 or bfloat16: the float32 result rounded to nearest, ties to even.\n\n"
    "Returns a new array of q's shape, or out. TypeError: types that do not fit. ValueError: values that do not.\n\n"
    ">>> dequantize([-128, 0, 127], 0.5, -128)\n"
    "array([  0. ,  64. , 127.5], dtype=float32)";

/* The common part of quantize and dequantize, after their own arguments. */
struct conversion {
    PyArrayObject *input; /* convert() releases it, and descr, of the output */
    PyArray_Descr *descr;
    tq_py_type in, out;
    const tq_py_type *quantized; /* one of the two */
    int32_t low, high;       /* of the quantized values */
    int rule;                /* a tq_quantize_rule; -1: dequantize */
    int threads;
    PyObject *scale, *zero_point, *axis, *block_size, *array; /* arguments; array: `out` */
};

static tq_status compute(const struct conversion *c, const tq_array_job *job, tq_column_f32 scale,
                         tq_column_i32 zero_point, tq_error *error)
{
    if (c->rule < 0)
        return tq_dequantize_array(job, scale, zero_point, error);
    return tq_quantize_array(job, scale, zero_point, c->low, c->high, (tq_quantize_rule)c->rule, error);
}

static PyObject *convert(PyObject *module, const struct conversion *c)
{
    tq_py_parameters p;
    tq_py_column scale = {.array = NULL}, zero_point = {.array = NULL};
    tq_py_output output = {.array = NULL};
    PyObject *result = NULL;
    if (!tq_py_layout(&p, c->input, c->axis, c->block_size, c->array) || !tq_py_scales(&scale, c->scale, &p) ||
        !tq_py_zero_points(&zero_point, c->zero_point, "zero_point", &p, c->low, c->high, c->quantized->name))
        Py_DECREF(c->descr);
    else if (tq_py_output_begin(&output, c->input, c->array, &c->out, c->descr)) { /* steals descr */
        tq_array_job job = {PyArray_DATA(c->input),
                            PyArray_DATA(output.array),
                            c->in.element,
                            c->out.element,
                            p.layout,
                            c->threads,
                            tq_py_type_mask(c->quantized),
                            NULL};
        tq_error error;
        PyThreadState *saved = PyArray_SIZE(c->input) >= TQ_PY_RELEASE_ELEMENTS ? PyEval_SaveThread() : NULL;
        tq_status status = compute(c, &job, tq_py_f32(&scale), tq_py_i32(&zero_point), &error);
        if (saved)
            PyEval_RestoreThread(saved);
        result = tq_py_output_end(&output, module, status, &error);
    }
    tq_py_column_free(&scale);
    tq_py_column_free(&zero_point);
    Py_DECREF(c->input);
    return result;
}

PyObject *tq_py_quantize(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)
{
    enum { X, SCALE, ZERO_POINT, DTYPE, AXIS, BLOCK_SIZE, NARROW_RANGE, ROUNDING, OUT, NUM_THREADS, COUNT };
    static const char *const names[] = {"x",          "scale",        "zero_point", "dtype", "axis",
                                        "block_size", "narrow_range", "rounding",   "out",   "num_threads"};
    static const tq_py_signature signature = {"quantize", names, COUNT, 3, 2};
    static const char *const rules[] = {
#define QUANTIZE_RULE(symbol, name, text) name,
#include "quant/rounding.def"
    };
    PyObject *v[COUNT];
    if (!tq_py_bind(&signature, args, nargs, keywords, v))
        return NULL;
    struct conversion c = {.scale = v[SCALE],
                           .zero_point = v[ZERO_POINT],
                           .axis = v[AXIS],
                           .block_size = v[BLOCK_SIZE],
                           .array = v[OUT],
                           .quantized = &c.out};
    bool narrow;
    c.rule = tq_py_choice(v[ROUNDING], "rounding", rules, TQ_QUANTIZE_RULES, TQ_QUANTIZE_AWAY);
    if (c.rule < 0 || !tq_py_flag(v[NARROW_RANGE], "narrow_range", &narrow) ||
        tq_py_threads(v[NUM_THREADS], &c.threads) < 0)
        return NULL;
    c.input = tq_py_real_input(v[X], "x", &c.in);
    if (!c.input)
        return NULL;
    if (!tq_py_type_of_dtype(v[DTYPE], "int8", TQ_PY_QUANTIZED_TYPES, &c.out, &c.descr)) {
        Py_DECREF(c.input);
        return NULL;
    }
    c.low = c.out.low + narrow, c.high = c.out.high;
    return convert(module, &c);
}

PyObject *tq_py_dequantize(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)
{
    enum { Q, SCALE, ZERO_POINT, AXIS, BLOCK_SIZE, DTYPE, OUT, NUM_THREADS, COUNT };
    static const char *const names[] = {"q",          "scale", "zero_point", "axis",
                                        "block_size", "dtype", "out",        "num_threads"};
    static const tq_py_signature signature = {"dequantize", names, COUNT, 3, 2};
    PyObject *v[COUNT];
    if (!tq_py_bind(&signature, args, nargs, keywords, v))
        return NULL;
    struct conversion c = {.scale = v[SCALE],
                           .zero_point = v[ZERO_POINT],
                           .axis = v[AXIS],
                           .block_size = v[BLOCK_SIZE],
                           .array = v[OUT],
                           .quantized = &c.in,
                           .rule = -1};
    if (tq_py_threads(v[NUM_THREADS], &c.threads) < 0)
        return NULL;
    c.input =
        tq_py_quantized_input(v[Q], "q", "int8, uint8, int16, uint16, int32, or ml_dtypes' int4, uint4 or int2", &c.in);
    if (!c.input)
        return NULL;
    if (!tq_py_type_of_dtype(v[DTYPE], "float32", "float32, float16 or bfloat16", &c.out, &c.descr)) {
        Py_DECREF(c.input);
        return NULL;
    }
    c.low = c.in.low, c.high = c.in.high;
    return convert(module, &c);
}
