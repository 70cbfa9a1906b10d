/* SPDX-License-Identifier: Apache-2.0
 *
 * The array work of tq/calibration/hessians.py and tq/quantization/rounding.py.
 *
 * Only tq calls these functions: they check what memory safety needs, and no more.  They hear Ctrl-C.
 */
#include "python/arrays/rounding.h"

#include <string.h>

#include "base/checked.h"
#include "base/stop.h"
#include "base/threads.h"
#include "kernels/rounding/cholesky.h"
#include "kernels/rounding/hessian.h"
#include "kernels/rounding/round_rows.h"
#include "kernels/rounding/solve.h"
#include "python/arrays/operands.h"
#include "python/errors.h"

/* ---- Ctrl-C ---- */

static bool is_interrupted(void *context)
{
    (void)context;
    const PyGILState_STATE held = PyGILState_Ensure();
    const bool raised = PyErr_CheckSignals() < 0;
    PyGILState_Release(held);
    return raised;
}

/* Calls `work` without the GIL.  0, or -1 with an exception. */
static int listening(PyObject *module, tq_status (*work)(void *job, tq_error *error), void *job)
{
    tq_error error;
    tq_status status;
    tq_stop stop = {.ask = is_interrupted, .denormals = tq_denormals_mode()};
    Py_BEGIN_ALLOW_THREADS
    const tq_listener before = tq_stop_enter((tq_listener){&stop, true});
    status = work(job, &error);
    tq_stop_enter(before);
    Py_END_ALLOW_THREADS
    if (atomic_load(&stop.stopped))
        return -1;
    if (status)
        tq_py_raise(PyModule_GetState(module), &error, NULL);
    return status ? -1 : 0;
}

/* 0 threads: as many as there are. */
static int threads_of(PyObject *value, int *threads)
{
    if (tq_py_threads(value, threads) < 0)
        return -1;
    *threads = tq_threads_for(*threads, (size_t)-1, 1);
    return 0;
}

/* Whether an array is dense, of a type, and as large as the product of three lengths. */
static bool is_table(PyArrayObject *array, int type, size_t a, size_t b, size_t c)
{
    uint64_t rows, size;
    return PyArray_TYPE(array) == type && PyArray_ISCARRAY_RO(array) && tq_mul_u64(a, b, &rows) &&
           tq_mul_u64(rows, c, &size) && (uint64_t)PyArray_SIZE(array) == size;
}

/* ---- Hessians ---- */

#define NO_FIT "the arrays do not fit the geometry"

typedef struct hessian_job {
    tq_patches patches;
    const float *z, *y; /* y: NULL, or the other input of a pair */
    double *products, *cross, *sums;
    int threads;
} hessian_job;

static tq_status add(void *context, tq_error *error)
{
    const hessian_job *job = context;
    return job->y ? tq_hessian_add_pair(&job->patches, job->z, job->y, job->products, job->cross, job->sums,
                                        job->threads, error)
                  : tq_hessian_add(&job->patches, job->z, job->products, job->sums, job->threads, error);
}

static bool is_sound(const tq_patches *p, uint64_t *size)
{
    const size_t most = (size_t)1 << 31;
    const size_t *const sizes[] = {&p->batches,       &p->height,       &p->width,           &p->channels,
                                   &p->out_height,    &p->out_width,    &p->kernel_height,   &p->kernel_width,
                                   &p->stride_height, &p->stride_width, &p->dilation_height, &p->dilation_width,
                                   &p->before_height, &p->before_width, &p->groups};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (*sizes[i] > most)
            return false;
    if (!p->groups || p->channels % p->groups || !p->stride_height || !p->stride_width)
        return false;
    uint64_t plane, image, taps, length;
    return tq_mul_u64(p->height, p->width, &plane) && tq_mul_u64(plane, p->channels, &image) &&
           tq_mul_u64(image, p->batches, size) && tq_mul_u64(p->kernel_height, p->kernel_width, &taps) &&
           tq_mul_u64(taps, p->channels, &length) && tq_mul_u64(p->out_height, p->out_width, &plane) &&
           tq_mul_u64(plane, p->batches, &plane);
}

/* Reads the numbers of tq_patches in their order.  size: of an input.  On failure a Python error is set. */
static bool read_geometry(PyObject *geometry, tq_patches *p, uint64_t *size)
{
    Py_ssize_t n[15];
    int transposed;
    if (!PyArg_ParseTuple(geometry, "nnnnnnnnnnnnnnnp", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7], &n[8],
                          &n[9], &n[10], &n[11], &n[12], &n[13], &n[14], &transposed))
        return false;
    *p = (tq_patches){(size_t)n[0],  (size_t)n[1],  (size_t)n[2],  (size_t)n[3],   (size_t)n[4],  (size_t)n[5],
                      (size_t)n[6],  (size_t)n[7],  (size_t)n[8],  (size_t)n[9],   (size_t)n[10], (size_t)n[11],
                      (size_t)n[12], (size_t)n[13], (size_t)n[14], transposed != 0};
    if (is_sound(p, size))
        return true;
    PyErr_SetString(PyExc_ValueError, NO_FIT);
    return false;
}

static bool is_input(PyArrayObject *z, uint64_t size)
{
    return PyArray_ISCARRAY_RO(z) && PyArray_TYPE(z) == NPY_FLOAT32 && (uint64_t)PyArray_SIZE(z) == size;
}

/* The memory of sums that are added to: float64 of the product of three lengths; NULL: a Python error is set. */
static double *sums_of(PyArrayObject *array, size_t a, size_t b, size_t c)
{
    if (!is_table(array, NPY_FLOAT64, a, b, c)) {
        PyErr_SetString(PyExc_ValueError, NO_FIT);
        return NULL;
    }
    return PyArray_FailUnlessWriteable(array, "sums") < 0 ? NULL : PyArray_DATA(array);
}

/* _hessian_add(z, geometry, products, sums, num_threads): the sums of kernels/rounding/hessian.h; geometry: the numbers
   of tq_patches in their order; products: None: only sums. */
static PyObject *hessian_add(PyObject *module, PyObject *args)
{
    PyArrayObject *z, *sums;
    PyObject *geometry, *table, *num_threads;
    hessian_job job = {0};
    uint64_t size = 0;
    if (!PyArg_ParseTuple(args, "O!O!OO!O:_hessian_add", &PyArray_Type, &z, &PyTuple_Type, &geometry, &table,
                          &PyArray_Type, &sums, &num_threads) ||
        threads_of(num_threads, &job.threads) < 0 || !read_geometry(geometry, &job.patches, &size))
        return NULL;
    const size_t groups = job.patches.groups, length = tq_patch_length(&job.patches);
    PyArrayObject *products = PyArray_Check(table) ? (PyArrayObject *)table : NULL;
    if ((!products && table != Py_None) || !is_input(z, size))
        return PyErr_Format(PyExc_ValueError, NO_FIT);
    job.z = PyArray_DATA(z);
    if ((products && !(job.products = sums_of(products, groups, length, length))) ||
        !(job.sums = sums_of(sums, groups, length, 1)))
        return NULL;
    return listening(module, add, &job) < 0 ? NULL : Py_NewRef(Py_None);
}

/* _hessian_add_pair(x, y, geometry, own, cross, sums, num_threads): the same of two inputs. */
static PyObject *hessian_add_pair(PyObject *module, PyObject *args)
{
    PyArrayObject *x, *y, *own, *cross, *sums;
    PyObject *geometry, *num_threads;
    hessian_job job = {0};
    uint64_t size = 0;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!O:_hessian_add_pair", &PyArray_Type, &x, &PyArray_Type, &y, &PyTuple_Type,
                          &geometry, &PyArray_Type, &own, &PyArray_Type, &cross, &PyArray_Type, &sums, &num_threads) ||
        threads_of(num_threads, &job.threads) < 0 || !read_geometry(geometry, &job.patches, &size))
        return NULL;
    const size_t groups = job.patches.groups, length = tq_patch_length(&job.patches);
    if (!is_input(x, size) || !is_input(y, size))
        return PyErr_Format(PyExc_ValueError, NO_FIT);
    job.z = PyArray_DATA(x), job.y = PyArray_DATA(y);
    if (!(job.products = sums_of(own, groups, length, length)) ||
        !(job.cross = sums_of(cross, groups, length, length)) || !(job.sums = sums_of(sums, 2, groups, length)))
        return NULL;
    return listening(module, add, &job) < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- the factor ---- */

typedef struct cholesky_job {
    double *a;
    size_t n;
    int threads;
    bool definite;
} cholesky_job;

static tq_status factor(void *context, tq_error *error)
{
    cholesky_job *job = context;
    return tq_cholesky(job->a, job->n, job->threads, &job->definite, error);
}

/* _cholesky(a, num_threads) -> whether a[n, n], whose upper triangle becomes R, is positive definite.  What is below
   the diagonal stays as it is. */
static PyObject *cholesky(PyObject *module, PyObject *args)
{
    PyArrayObject *a;
    PyObject *num_threads;
    cholesky_job job;
    if (!PyArg_ParseTuple(args, "O!O:_cholesky", &PyArray_Type, &a, &num_threads) ||
        threads_of(num_threads, &job.threads) < 0)
        return NULL;
    job.n = PyArray_NDIM(a) == 2 ? (size_t)PyArray_DIM(a, 0) : 0;
    if (PyArray_NDIM(a) != 2 || !is_table(a, NPY_FLOAT64, job.n, job.n, 1))
        return PyErr_Format(PyExc_ValueError, "a square matrix of float64 is needed");
    if (PyArray_FailUnlessWriteable(a, "a") < 0)
        return NULL;
    job.a = PyArray_DATA(a);
    return listening(module, factor, &job) < 0 ? NULL : PyBool_FromLong(job.definite);
}

/* ---- rows times a matrix ---- */

typedef struct product_job {
    const double *a, *turned, *triangle;
    size_t rows, n;
    double *out;
    int threads;
} product_job;

static tq_status multiply(void *context, tq_error *error)
{
    const product_job *job = context;
    return tq_multiply_rows(job->a, job->turned, job->triangle, job->rows, job->n, job->out, job->threads, error);
}

/* _multiply_rows(a, turned, triangle, num_threads) -> a M, or a M H^-1: kernels/rounding/solve.h. */
static PyObject *multiply_rows(PyObject *module, PyObject *args)
{
    PyArrayObject *a, *turned;
    PyObject *triangle, *num_threads;
    product_job job;
    if (!PyArg_ParseTuple(args, "O!O!OO:_multiply_rows", &PyArray_Type, &a, &PyArray_Type, &turned, &triangle,
                          &num_threads) ||
        threads_of(num_threads, &job.threads) < 0)
        return NULL;
    PyArrayObject *factor = PyArray_Check(triangle) ? (PyArrayObject *)triangle : NULL;
    job.rows = PyArray_NDIM(a) == 2 ? (size_t)PyArray_DIM(a, 0) : 0;
    job.n = PyArray_NDIM(a) == 2 ? (size_t)PyArray_DIM(a, 1) : 0;
    if (PyArray_NDIM(a) != 2 || !is_table(a, NPY_FLOAT64, job.rows, job.n, 1) ||
        !is_table(turned, NPY_FLOAT64, job.n, job.n, 1) || (!factor && triangle != Py_None) ||
        (factor && !is_table(factor, NPY_FLOAT64, job.n, job.n, 1)))
        return PyErr_Format(PyExc_ValueError, "rows of float64 and squares as wide are needed");
    PyArrayObject *out = (PyArrayObject *)PyArray_NewLikeArray(a, NPY_CORDER, NULL, 0);
    if (!out)
        return NULL;
    job.a = PyArray_DATA(a);
    job.turned = PyArray_DATA(turned);
    job.triangle = factor ? PyArray_DATA(factor) : NULL;
    job.out = PyArray_DATA(out);
    if (listening(module, multiply, &job) < 0)
        Py_CLEAR(out);
    return (PyObject *)out;
}

/* ---- rounding ---- */

static const char *const methods[] = {"gptq", "comq"};

typedef struct rounding_job {
    tq_rounding r;
    int8_t *quantized;
    float *scales;
    double *errors;
    int threads;
} rounding_job;

static tq_status round_all(void *context, tq_error *error)
{
    const rounding_job *job = context;
    return tq_round_rows(&job->r, job->quantized, job->scales, job->errors, job->threads, error);
}

/* A permutation has every number once; `seen`: n bytes. */
static bool is_permutation(const int64_t *order, size_t n, char *seen)
{
    memset(seen, 0, n);
    for (size_t i = 0; i < n; i++) {
        if (order[i] < 0 || (size_t)order[i] >= n || seen[order[i]])
            return false;
        seen[order[i]] = 1;
    }
    return true;
}

static bool fits(const tq_rounding *r, PyArrayObject *weights, PyArrayObject *order, PyArrayObject *square,
                 PyArrayObject *diagonal, PyArrayObject *scales)
{
    if (!r->block || r->columns % r->block || !r->factor_count || r->sweeps < 0 || r->least < -128 || r->most > 127 ||
        r->least > r->most)
        return false;
    if (!is_table(weights, NPY_FLOAT64, r->rows, r->columns, 1) || !is_table(order, NPY_INT64, r->columns, 1, 1) ||
        !is_table(square, NPY_FLOAT64, r->columns, r->columns, 1) ||
        !is_table(diagonal, NPY_FLOAT64, r->columns, 1, 1) ||
        !is_table(scales, NPY_FLOAT32, r->columns / r->block, r->rows, 1))
        return false;
    char *seen = PyMem_Malloc(r->columns + 1);
    const bool found = seen && is_permutation(PyArray_DATA(order), r->columns, seen);
    PyMem_Free(seen);
    return found;
}

/* _round_rows(method, weights, order, square, diagonal, scales, block, halves, factors, sweeps, refit, least, most,
   num_threads) -> quantized, scales, errors: kernels/rounding/round_rows.h. */
static PyObject *round_rows(PyObject *module, PyObject *args)
{
    PyArrayObject *weights, *order, *square, *diagonal, *scales, *factors;
    PyObject *method, *num_threads;
    rounding_job job;
    tq_rounding *r = &job.r;
    Py_ssize_t block;
    int halves, refit;
    if (!PyArg_ParseTuple(args, "OO!O!O!O!O!npO!ipiiO:_round_rows", &method, &PyArray_Type, &weights, &PyArray_Type,
                          &order, &PyArray_Type, &square, &PyArray_Type, &diagonal, &PyArray_Type, &scales, &block,
                          &halves, &PyArray_Type, &factors, &r->sweeps, &refit, &r->least, &r->most, &num_threads) ||
        threads_of(num_threads, &job.threads) < 0)
        return NULL;
    const int chosen = tq_py_choice(method, "method", methods, TQ_ROUNDING_METHODS, 0);
    if (chosen < 0)
        return NULL;
    r->method = (tq_rounding_method)chosen;
    if (PyArray_NDIM(weights) != 2)
        return PyErr_Format(PyExc_ValueError, "weights: [rows, K] is needed");
    npy_intp shape[2] = {PyArray_DIM(weights, 0), PyArray_DIM(weights, 1)};
    r->rows = (size_t)shape[0];
    r->columns = (size_t)shape[1];
    r->block = block > 0 ? (size_t)block : 0;
    r->halves = halves;
    r->refit = refit && r->block == r->columns;
    r->factor_count = (size_t)PyArray_SIZE(factors);
    if (!is_table(factors, NPY_FLOAT64, r->factor_count, 1, 1) || !fits(r, weights, order, square, diagonal, scales))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "the arrays do not fit each other");
    r->weights = PyArray_DATA(weights);
    r->order = PyArray_DATA(order);
    r->square = PyArray_DATA(square);
    r->diagonal = PyArray_DATA(diagonal);
    r->scales = PyArray_DATA(scales);
    r->factors = PyArray_DATA(factors);
    PyArrayObject *quantized = (PyArrayObject *)PyArray_ZEROS(2, shape, NPY_INT8, 0);
    PyArrayObject *new_scales = (PyArrayObject *)PyArray_NewLikeArray(scales, NPY_CORDER, NULL, 0);
    PyArrayObject *errors = (PyArrayObject *)PyArray_ZEROS(1, shape, NPY_FLOAT64, 0);
    if (quantized && new_scales && errors) {
        job.quantized = PyArray_DATA(quantized);
        job.scales = PyArray_DATA(new_scales);
        job.errors = PyArray_DATA(errors);
        if (listening(module, round_all, &job) < 0)
            Py_CLEAR(quantized);
    }
    return Py_BuildValue("NNN", quantized, new_scales, errors); /* fails, and frees the rest, if one is NULL */
}

static PyMethodDef functions[] = {
    {"_hessian_add", hessian_add, METH_VARARGS, NULL}, {"_hessian_add_pair", hessian_add_pair, METH_VARARGS, NULL},
    {"_cholesky", cholesky, METH_VARARGS, NULL},       {"_multiply_rows", multiply_rows, METH_VARARGS, NULL},
    {"_round_rows", round_rows, METH_VARARGS, NULL},   {NULL, NULL, 0, NULL},
};

int tq_py_add_rounding(PyObject *module, tq_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
