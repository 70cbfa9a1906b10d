/* SPDX-License-Identifier: Apache-2.0
 *
 * The copies of strided_copy.h.
 *
 * An ended copy consists of runs; no run touches the next one on both sides.  The two innermost dimensions are one call
 * of a plane function, chosen by the run's size; the others are counted like an odometer.
 */
#include "ops/movement/strided_copy.h"

#include <string.h>

#include "base/sizes.h"
#include "base/stop.h"
#include "ops/movement/plane.h"
#include "ops/parallel.h"

/* Picoseconds for a byte, and for a run. */
#define BYTE_COST 20
#define RUN_COST 100

/* The side of a transposition's square tiles, in runs. */
#define TILE 32

void tq_strided_begin(tq_strided *copy, size_t bytes)
{
    copy->rank = 0;
    copy->run = bytes;
    copy->from_at = copy->to_at = 0;
}

void tq_strided_dim(tq_strided *copy, size_t count, ptrdiff_t from, ptrdiff_t to)
{
    copy->dims[copy->rank++] = (tq_strided_step){count, from, to};
}

/* Merges dimension d with the dimension inside it, where one stride steps through both, on either side. */
static bool merge(tq_strided *copy, int d)
{
    tq_strided_step *outer = &copy->dims[d];
    const tq_strided_step *inner = outer + 1;
    const ptrdiff_t count = (ptrdiff_t)inner->count;
    if (outer->from != inner->from * count || outer->to != inner->to * count)
        return false;
    *outer = (tq_strided_step){outer->count * inner->count, inner->from, inner->to};
    return true;
}

static void remove_dim(tq_strided *copy, int d)
{
    const size_t inner = (size_t)(copy->rank - d - 1);
    memmove(copy->dims + d, copy->dims + d + 1, inner * sizeof copy->dims[0]);
    copy->rank--;
}

void tq_strided_end(tq_strided *copy)
{
    for (int d = copy->rank - 1; d >= 0; d--)
        if (copy->dims[d].count == 0) {
            copy->rank = 1;
            copy->dims[0] = (tq_strided_step){0, 0, 0};
            return;
        }
    for (int d = copy->rank - 1; d >= 0; d--)
        if (copy->dims[d].count == 1)
            remove_dim(copy, d);
    for (int d = copy->rank - 2; d >= 0; d--)
        if (merge(copy, d))
            remove_dim(copy, d + 1);
    int last = copy->rank - 1;
    ptrdiff_t run = (ptrdiff_t)copy->run;
    if (last >= 0 && copy->dims[last].from == run && copy->dims[last].to == run) {
        copy->run *= copy->dims[last].count;
        copy->rank--;
    }
}

ptrdiff_t tq_strided_source(const tq_strided *copy, size_t index, size_t bytes)
{
    size_t in_run = copy->run / bytes;
    ptrdiff_t at = copy->from_at + (ptrdiff_t)(index % in_run * bytes);
    index /= in_run;
    for (int d = copy->rank - 1; d >= 0; d--) {
        at += (ptrdiff_t)(index % copy->dims[d].count) * copy->dims[d].from;
        index /= copy->dims[d].count;
    }
    return at;
}

typedef tq_plane plane;

typedef void (*plane_fn)(const plane *p, const unsigned char *from, unsigned char *to);

static void plane_runs(const plane *p, const unsigned char *from, unsigned char *to)
{
    const plane q = *p; /* a copy: nothing that memcpy writes can change it */
    for (size_t r = 0; r < q.rows; r++, from += q.row_from, to += q.row_to) {
        const unsigned char *f = from;
        unsigned char *t = to;
        for (size_t c = 0; c < q.columns; c++, f += q.column_from, t += q.column_to)
            memcpy(t, f, q.run);
    }
}

static void plane_long_runs(const plane *p, const unsigned char *from, unsigned char *to)
{
    for (size_t r = 0; r < p->rows; r++)
        for (size_t c = 0; c < p->columns; c++)
            tq_copy(to + (ptrdiff_t)r * p->row_to + (ptrdiff_t)c * p->column_to,
                    from + (ptrdiff_t)r * p->row_from + (ptrdiff_t)c * p->column_from, p->run);
}

#define BYTES 1
#include "ops/movement/plane_template.h"
#define BYTES 3
#include "ops/movement/plane_template.h"
#define BYTES 2
#include "ops/movement/plane_template.h"
#define BYTES 4
#include "ops/movement/plane_template.h"
#define BYTES 8
#include "ops/movement/plane_template.h"
#define BYTES 16
#include "ops/movement/plane_template.h"

static plane_fn plane_of(size_t run)
{
    switch (run) {
    case 1: return plane_1;
    case 2: return plane_2;
    case 3: return plane_3;
    case 4: return plane_4;
    case 8: return plane_8;
    case 16: return plane_16;
    default: return run > TQ_CHUNK ? plane_long_runs : plane_runs;
    }
}

/* Shared by the threads.  Planes are numbered in the order of the outer dimensions; each is cut into parts. */
typedef struct job {
    const tq_strided *copy;
    int outer; /* dimensions outside of the plane */
    plane_fn run;
    plane plane;
    size_t parts;
    const unsigned char *from;
    unsigned char *to;
} job;

/* Copies a large plane in blocks, between which Ctrl-C is heard. */
static void run_plane(const job *j, const unsigned char *from, unsigned char *to)
{
    enum { ROWS = 8 * TILE, COLUMNS = 128 * TILE };
    const plane *p = &j->plane;
    if (p->rows <= ROWS && p->columns <= COLUMNS) {
        j->run(p, from, to);
        return;
    }
    for (size_t r = 0; r < p->rows; r += ROWS)
        for (size_t c = 0; c < p->columns; c += COLUMNS) {
            plane part = *p;
            part.rows = p->rows - r < ROWS ? p->rows - r : ROWS;
            part.columns = p->columns - c < COLUMNS ? p->columns - c : COLUMNS;
            if (tq_stop_after(part.rows * part.columns))
                return;
            j->run(&part, from + (ptrdiff_t)r * p->row_from + (ptrdiff_t)c * p->column_from,
                   to + (ptrdiff_t)r * p->row_to + (ptrdiff_t)c * p->column_to);
        }
}

/* The part of a plane: some of its rows, or some columns of its one row. */
static void run_part(const job *j, size_t part, const unsigned char *from, unsigned char *to)
{
    job own = *j;
    const plane *p = &j->plane;
    size_t *cut = p->rows > 1 ? &own.plane.rows : &own.plane.columns;
    const size_t first = *cut * part / j->parts;
    *cut = *cut * (part + 1) / j->parts - first;
    from += (ptrdiff_t)first * (p->rows > 1 ? p->row_from : p->column_from);
    to += (ptrdiff_t)first * (p->rows > 1 ? p->row_to : p->column_to);
    run_plane(&own, from, to);
}

/* Parts [begin, end) of all planes. */
static void copy_parts(void *context, size_t begin, size_t end)
{
    const job *j = context;
    const tq_strided *copy = j->copy;
    size_t at[TQ_STRIDED_DIMS];
    ptrdiff_t from = copy->from_at, to = copy->to_at;
    size_t rest = begin / j->parts, part = begin % j->parts;
    for (int d = j->outer - 1; d >= 0; d--) {
        at[d] = rest % copy->dims[d].count;
        rest /= copy->dims[d].count;
        from += (ptrdiff_t)at[d] * copy->dims[d].from;
        to += (ptrdiff_t)at[d] * copy->dims[d].to;
    }
    for (size_t i = begin; i < end; i++) {
        if (j->parts == 1)
            run_plane(j, j->from + from, j->to + to);
        else
            run_part(j, part, j->from + from, j->to + to);
        if (++part < j->parts)
            continue;
        part = 0;
        for (int d = j->outer - 1; d >= 0; d--) {
            from += copy->dims[d].from;
            to += copy->dims[d].to;
            if (++at[d] < copy->dims[d].count)
                break;
            from -= (ptrdiff_t)copy->dims[d].count * copy->dims[d].from;
            to -= (ptrdiff_t)copy->dims[d].count * copy->dims[d].to;
            at[d] = 0;
        }
    }
}

/* The same copy in another order, where that makes its planes transpositions: a dimension whose runs are contiguous in
   the source comes next to the one whose runs are contiguous in the destination. */
static tq_strided in_planes(const tq_strided *copy)
{
    tq_strided c = *copy;
    const int last = c.rank - 1, next = c.rank - 2;
    const ptrdiff_t run = (ptrdiff_t)c.run;
    if (next < 1 || c.dims[last].to != run || c.dims[next].from == run)
        return c;
    for (int d = 0; d < next; d++)
        if (c.dims[d].from == run) {
            c.dims[next] = copy->dims[d];
            c.dims[d] = copy->dims[next];
            break;
        }
    return c;
}

typedef struct one_run {
    const char *from;
    char *to;
} one_run;

static void copy_bytes(void *context, size_t begin, size_t end)
{
    const one_run *r = context;
    memcpy(r->to + begin, r->from + begin, end - begin);
}

static void copy_one_run(const tq_strided *copy, const void *from, void *to, int threads)
{
    enum { PAGE = 4096 };
    one_run r = {(const char *)from + copy->from_at, (char *)to + copy->to_at};
    if (copy->run <= PAGE)
        memcpy(r.to, r.from, copy->run);
    else
        tq_parallel_work(copy->run, PAGE, BYTE_COST, threads, copy_bytes, &r);
}

void tq_strided_copy(const tq_strided *copy, const void *from, void *to, int threads)
{
    enum { PARTS = 2 }; /* for a thread, at least */
    const int rank = copy->rank;
    if (rank == 0) {
        copy_one_run(copy, from, to, threads);
        return;
    }
    tq_strided own;
    if (rank > 2) {
        own = in_planes(copy);
        copy = &own;
    }
    size_t runs = 1, planes = 1;
    for (int d = 0; d < rank; d++)
        runs *= copy->dims[d].count;
    if (runs * copy->run == 0)
        return;
    job j = {copy, rank < 2 ? 0 : rank - 2, plane_of(copy->run), {1, 1, copy->run, 0, 0, 0, 0}, 1, from, to};
    j.plane.columns = copy->dims[rank - 1].count;
    j.plane.column_from = copy->dims[rank - 1].from;
    j.plane.column_to = copy->dims[rank - 1].to;
    if (rank >= 2) {
        j.plane.rows = copy->dims[rank - 2].count;
        j.plane.row_from = copy->dims[rank - 2].from;
        j.plane.row_to = copy->dims[rank - 2].to;
    }
    for (int d = 0; d < j.outer; d++)
        planes *= copy->dims[d].count;
    const size_t cost = copy->run * BYTE_COST + RUN_COST;
    const size_t wanted = (size_t)tq_paying_threads(runs, cost, threads) * PARTS;
    if (wanted > PARTS && planes < wanted)
        j.parts =
            tq_min_size(wanted / planes + (wanted % planes != 0), j.plane.rows > 1 ? j.plane.rows : j.plane.columns);
    tq_parallel_work(planes * j.parts, 1, runs / (planes * j.parts) * cost, threads, copy_parts, &j);
}
