/* SPDX-License-Identifier: Apache-2.0
 *
 * RFFT2D: the first w / 2 + 1 columns of the Fourier transform of each matrix, cut or padded with 0 to h x w (input 1).
 * In float64.
 *
 * Source: LiteRT f6745779, tflite/kernels/rfft2d.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"
#include "ops/parallel.h"
#include "ops/signal/fft.h"

#define COST 5000 /* picoseconds for an element of a matrix */

typedef struct rfft {
    size_t height, width;
    size_t largest;    /* of height and width */
    size_t matrices;
    size_t jobs;       /* parts of the matrices, each with scratch of its own */
    tq_complex128 *roots; /* of `largest`; NULL: each eval computes them in scratch */
} rfft;

static bool is_power_of_two(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* Scratch: height * width for the matrix, height for a column. */
static void transform_matrix(const rfft *s, const tq_complex128 *roots, tq_complex128 *matrix)
{
    tq_complex128 *column = matrix + s->height * s->width;
    for (size_t y = 0; y < s->height && !tq_stop_after(s->width); y++)
        tq_fft(matrix + y * s->width, s->width, roots, s->largest / s->width);
    for (size_t x = 0; x <= s->width / 2 && x < s->width && !tq_stop_after(4 * s->height); x++) {
        for (size_t y = 0; y < s->height; y++)
            column[y] = matrix[y * s->width + x];
        tq_fft(column, s->height, roots, s->largest / s->height);
        for (size_t y = 0; y < s->height; y++)
            matrix[y * s->width + x] = column[y];
    }
}

/* Elements of a job's scratch. */
static size_t job_elements(const rfft *s)
{
    return s->height * s->width + s->height;
}

typedef struct work {
    const tq_node *node;
    const tq_complex128 *roots;
} work;

static void run_matrix(const work *w, size_t m, tq_complex128 *matrix)
{
    const rfft *s = w->node->state;
    const tq_shape *in = &w->node->in[0]->shape;
    const size_t rows = (size_t)in->dims[in->rank - 2], columns = (size_t)in->dims[in->rank - 1];
    const size_t bins = s->width / 2 + 1;
    const float *from = (const float *)w->node->in[0]->data + m * rows * columns;
    float *to = (float *)w->node->out[0]->data + m * s->height * bins * 2;
    for (size_t y = 0; y < s->height && !tq_stop_after(s->width); y++)
        for (size_t x = 0; x < s->width; x++)
            matrix[y * s->width + x] = (tq_complex128){y < rows && x < columns ? (double)from[y * columns + x] : 0, 0};
    transform_matrix(s, w->roots, matrix);
    for (size_t y = 0; y < s->height && !tq_stop_after(s->width); y++)
        for (size_t x = 0; x < bins; x++, to += 2) {
            to[0] = (float)matrix[y * s->width + x].real;
            to[1] = (float)matrix[y * s->width + x].imaginary;
        }
}

static void run_jobs(void *context, size_t begin, size_t end)
{
    const work *w = context;
    const rfft *s = w->node->state;
    for (size_t job = begin; job < end; job++)
        for (size_t m = s->matrices * job / s->jobs; m < s->matrices * (job + 1) / s->jobs; m++)
            run_matrix(w, m, (tq_complex128 *)w->node->scratch + job * job_elements(s));
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    const rfft *s = node->state;
    tq_complex128 *roots = s->roots;
    if (roots == NULL) {
        roots = (tq_complex128 *)node->scratch + s->jobs * job_elements(s);
        tq_fft_roots(roots, s->largest);
    }
    work w = {node, roots};
    tq_parallel_for(s->jobs, 1, (int)s->jobs, run_jobs, &w);
    return TQ_OK;
}

static tq_status rfft2d_shape(tq_node *node, tq_error *error)
{
    rfft *s = node->state;
    int64_t height = tq_integer_at(node->in[1], 0), width = tq_integer_at(node->in[1], 1);
    if (!is_power_of_two(height) || !is_power_of_two(width) || height > INT32_MAX || width > INT32_MAX)
        return tq_input_fail(node, 1, error, "has %lld and %lld; it needs powers of two", (long long)height,
                             (long long)width);
    tq_shape shape = node->in[0]->shape;
    shape.dims[shape.rank - 2] = (int32_t)height;
    shape.dims[shape.rank - 1] = (int32_t)(width / 2 + 1);
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    s->height = (size_t)height;
    s->width = (size_t)width;
    s->largest = s->height > s->width ? s->height : s->width;
    s->matrices = tq_shape_span(&shape, 0, shape.rank - 2);
    s->jobs = (size_t)tq_paying_threads(s->matrices * s->height, COST * s->width, node->threads);
    size_t roots = tq_is_constant(node->in[1]) ? 0 : s->largest / 2;
    return tq_node_scratch(node, (s->jobs * job_elements(s) + roots) * sizeof(tq_complex128), error);
}

tq_status tq_prepare_rfft2d(tq_node *node, tq_error *error)
{
    rfft *s = NULL;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 2, TQ_DIMS, error));
    TQ_TRY(tq_check_list(node, 1, 2, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(COMPLEX64), error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    node->eval = eval;
    TQ_TRY(tq_shape_from_values(node, 1u << 1, rfft2d_shape, error));
    if (!tq_is_constant(node->in[1]))
        return TQ_OK;
    TQ_TRY(tq_node_memory(node, s->largest / 2, sizeof *s->roots, &s->roots, error));
    tq_fft_roots(s->roots, s->largest);
    return TQ_OK;
}
