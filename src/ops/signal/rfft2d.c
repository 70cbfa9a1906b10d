/* SPDX-License-Identifier: Apache-2.0
 *
 * RFFT2D: the first w / 2 + 1 columns of the Fourier transform of each matrix, cut or padded with 0 to h x w (input 1).
 * In float64.
 *
 * Source: LiteRT f6745779, tflite/kernels/rfft2d.cc.
 */
#include "base/sizes.h"
#include "ops/check.h"
#include "ops/movement/movement.h"
#include "ops/parallel.h"
#include "ops/signal/fft.h"

#define COST 5000 /* picoseconds for an element of a matrix */
#define ROW 1024  /* work of a write to a row of the output: the first may wait for the kernel to clear a page */

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

typedef struct work {
    const tq_node *node;
    const tq_complex128 *roots;
} work;

static size_t bins_of(const rfft *s)
{
    return s->width / 2 + 1;
}

/* Bytes of a job's scratch: lines that are transformed side by side, and the transformed rows of a matrix. */
static size_t job_bytes(const rfft *s)
{
    const size_t matrix = s->height > 1 ? s->height * bins_of(s) : 0;
    return s->largest * sizeof(tq_fft_element) + matrix * sizeof(tq_complex128);
}

/* Row `row` of all matrices, cut or padded with 0, to a lane. */
static void read_row(const tq_node *node, size_t row, tq_fft_element *line, size_t lane)
{
    const rfft *s = node->state;
    const tq_shape *in = &node->in[0]->shape;
    const size_t rows = (size_t)in->dims[in->rank - 2], columns = (size_t)in->dims[in->rank - 1];
    const size_t y = row % s->height, n = y < rows ? tq_min_size(columns, s->width) : 0;
    const float *from = node->in[0]->data;
    from += n ? (row / s->height * rows + y) * columns : 0;
    for (size_t x = 0; x < s->width; x++) {
        line[x].real[lane] = x < n ? (double)from[x] : 0;
        line[x].imaginary[lane] = 0;
    }
}

static void write_element(const tq_node *node, size_t at, const tq_fft_element *element, size_t lane)
{
    float *to = (float *)node->out[0]->data + at * 2;
    to[0] = (float)element->real[lane];
    to[1] = (float)element->imaginary[lane];
}

/* Rows [first, first + count), to the output, or where matrices have columns to `matrix`.  The lanes that the last
   group leaves repeat its last row. */
static void transform_rows(const work *w, size_t first, size_t count, tq_fft_element *line, tq_complex128 *matrix)
{
    const rfft *s = w->node->state;
    const size_t bins = bins_of(s);
    for (size_t y = 0, some; y < count && !tq_stop_after(TQ_FFT_LANES * s->width); y += some) {
        some = tq_min_size(TQ_FFT_LANES, count - y);
        for (size_t lane = 0; lane < TQ_FFT_LANES; lane++)
            read_row(w->node, first + y + tq_min_size(lane, some - 1), line, lane);
        tq_fft(line, s->width, w->roots, s->largest / s->width);
        for (size_t lane = 0; lane < some; lane++)
            if (s->height == 1)
                for (size_t x = 0; x < bins; x++)
                    write_element(w->node, (first + y + lane) * bins + x, &line[x], lane);
            else
                for (size_t x = 0; x < bins; x++)
                    matrix[(y + lane) * bins + x] = (tq_complex128){line[x].real[lane], line[x].imaginary[lane]};
    }
}

/* The columns of matrix m, to the output. */
static void transform_columns(const work *w, size_t m, tq_fft_element *line, const tq_complex128 *matrix)
{
    const rfft *s = w->node->state;
    const size_t bins = bins_of(s);
    for (size_t x = 0, some; x < bins && !tq_stop_after(4 * TQ_FFT_LANES * s->height); x += some) {
        some = tq_min_size(TQ_FFT_LANES, bins - x);
        for (size_t lane = 0; lane < TQ_FFT_LANES; lane++)
            for (size_t y = 0; y < s->height; y++) {
                const tq_complex128 element = matrix[y * bins + x + tq_min_size(lane, some - 1)];
                line[y].real[lane] = element.real;
                line[y].imaginary[lane] = element.imaginary;
            }
        tq_fft(line, s->height, w->roots, s->largest / s->height);
        for (size_t y = 0; y < s->height && !tq_stop_after(ROW); y++)
            for (size_t lane = 0; lane < some; lane++)
                write_element(w->node, (m * s->height + y) * bins + x + lane, &line[y], lane);
    }
}

static void run_jobs(void *context, size_t begin, size_t end)
{
    const work *w = context;
    const rfft *s = w->node->state;
    for (size_t job = begin; job < end; job++) {
        const size_t first = s->matrices * job / s->jobs, last = s->matrices * (job + 1) / s->jobs;
        tq_fft_element *line = (tq_fft_element *)(void *)((char *)w->node->scratch + job * job_bytes(s));
        tq_complex128 *matrix = (tq_complex128 *)(void *)(line + s->largest);
        if (s->height == 1)
            transform_rows(w, first, last - first, line, NULL);
        else
            for (size_t m = first; m < last; m++) {
                transform_rows(w, m * s->height, s->height, line, matrix);
                transform_columns(w, m, line, matrix);
            }
    }
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    const rfft *s = node->state;
    tq_complex128 *roots = s->roots;
    if (roots == NULL) {
        roots = (tq_complex128 *)(void *)((char *)node->scratch + s->jobs * job_bytes(s));
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
    return tq_node_scratch(node, s->jobs * job_bytes(s) + roots * sizeof(tq_complex128), error);
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
