/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk of reductions.  See reduce_walk.h.
 */
#include "ops/reductions/reduce_walk.h"

#include <string.h>

#include "base/stop.h"
#include "ops/parallel.h"

#define COST 80 /* picoseconds for an input */
/* Runs that are folded together: one behind the other, and of a line in several passes, which threads share. */
enum { SOME_RUNS = 64, LINE_RUNS = 16 };

void tq_reduction_plan(tq_reduction *r, const tq_reducer *how, const tq_shape *shape, uint32_t axes)
{
    size_t dims[TQ_DIMS];
    bool cut[TQ_DIMS];
    int rank = 0, reduced = 0;
    r->how = how;
    r->fold_row = how->fold_row[tq_isa()];
    r->fold_run = how->fold_run[tq_isa()];
    r->outputs = r->each = 1;
    for (int d = 0; d < shape->rank; d++) {
        bool is_cut = axes >> d & 1;
        size_t dim = (size_t)shape->dims[d];
        reduced += is_cut;
        *(is_cut ? &r->each : &r->outputs) *= dim;
        if (dim == 1 && !r->close)
            continue;
        if (rank > 0 && cut[rank - 1] == is_cut) {
            dims[rank - 1] *= dim;
            continue;
        }
        dims[rank] = dim;
        cut[rank++] = is_cut;
    }
    r->all = reduced == shape->rank;
    r->row = rank > 0 && !cut[rank - 1];
    r->inner = rank > 0 ? dims[rank - 1] : 1;
    r->kept_rank = r->cut_rank = 0;
    size_t step = r->inner;
    for (int d = rank - 2; d >= 0; step *= dims[d], d--) {
        /* from the inside out */
        int *count = cut[d] ? &r->cut_rank : &r->kept_rank;
        (cut[d] ? r->cut : r->kept)[*count] = dims[d];
        (cut[d] ? r->cut_step : r->kept_step)[(*count)++] = step;
    }
    /* the dimension around reduced runs is kept */
    r->line_rank = !r->row && r->cut_rank > 0 && r->fold_runs && r->inner <= TQ_CHUNK;
    r->line = r->row ? r->inner : r->line_rank ? r->kept[0] : 1;
    r->line_step = r->row ? 1 : r->inner;
}

/* fold_run, between whose pieces Ctrl-C is heard. */
static void fold_run(const tq_reduction *r, void *acc, const void *in, size_t n)
{
    const unsigned char *from = in;
    for (; n > TQ_CHUNK && !r->close; n -= TQ_CHUNK, from += TQ_CHUNK * r->how->in_bytes) {
        r->fold_run(r, acc, from, TQ_CHUNK);
        if (tq_stop_after(TQ_CHUNK))
            return;
    }
    r->fold_run(r, acc, from, n);
}

/* Folds a pass of n outputs of a line, whose inputs lie at `in`. */
static void fold_line(const tq_reduction *r, void *acc, const void *in, size_t n)
{
    if (r->row)
        r->fold_row(r, acc, in, n);
    else if (r->line_rank)
        r->fold_runs(r, acc, in, r->inner, n);
    else
        fold_run(r, acc, in, r->inner);
}

static void start(const tq_reduction *r, uint64_t *acc, size_t n);

/* Folds short rows that lie one behind the other as longer ones, with accumulators for each row of these: calls take as
   long as short folds.  Returns the rows that it folds, the first ones. */
static size_t fold_together(const tq_reduction *r, void *acc, const unsigned char *in, size_t n)
{
    enum { WIDE = TQ_REDUCE_ROW / 2, LEAST = 4, FOLDS = 8 }; /* fewer are not worth the accumulators' sums */
    const size_t together = WIDE / n, rows = together * TQ_REDUCE_ROWS, count = r->cut[0];
    if (!r->combine || !r->row || r->cut_rank != 1 || r->cut_step[0] != n || together < LEAST || count < FOLDS * rows)
        return 0;
    tq_reduction wide = *r;
    wide.cut_step[0] = together * n;
    start(r, acc, together * n);
    size_t done = 0;
    for (; done + rows <= count && !tq_stop_after(rows * n); done += rows, in += rows * n * r->how->in_bytes)
        r->fold_rows(&wide, acc, in, together * n);
    for (size_t i = 1; i < together; i++)
        r->combine(r, acc, (const unsigned char *)acc + i * n * r->how->acc_bytes, n);
    return done;
}

/* Folds all inputs of n outputs of a line, whose inputs lie at `in`.  cut_rank: at least 1.  acc has room for
   TQ_REDUCE_ROW accumulators. */
static void fold(const tq_reduction *r, void *acc, const unsigned char *in, size_t n)
{
    enum { PIECE = 32 }; /* folds between two looks */
    const tq_fold_fn rows = r->row ? r->fold_rows : NULL;
    const size_t bytes = r->how->in_bytes, step = r->cut_step[0] * bytes, count = r->cut[0];
    size_t work = 0, at[TQ_DIMS] = {0}, width = n * r->line_step;
    const size_t folded = fold_together(r, acc, in, n);
    for (int d = 0; d < r->cut_rank;) {
        const unsigned char *from = in + folded * step;
        for (size_t i = folded; i < count;) {
            const size_t end = count - i < PIECE ? count : i + PIECE;
            for (; rows && i + TQ_REDUCE_ROWS <= end; i += TQ_REDUCE_ROWS, from += TQ_REDUCE_ROWS * step)
                rows(r, acc, from, n);
            for (; i < end; i++, from += step)
                fold_line(r, acc, from, n);
            if (tq_stop_count(&work, PIECE * width))
                return;
        }
        if (r->close)
            r->close(r, acc, n);
        for (d = 1; d < r->cut_rank; d++) {
            in += r->cut_step[d] * bytes;
            if (++at[d] < r->cut[d])
                break;
            in -= r->cut[d] * r->cut_step[d] * bytes;
            at[d] = 0;
        }
    }
}

typedef struct job {
    const tq_reduction *r;
    const unsigned char *in;
    unsigned char *out;
    size_t chunks, chunk; /* of a line; outputs of each but the last */
} job;

#define START(type)                                              \
    do {                                                         \
        type init;                                               \
        memcpy(&init, &r->init, sizeof init);                    \
        for (size_t i = 0; i < n; i++)                           \
            memcpy((type *)(void *)acc + i, &init, sizeof init); \
    } while (0)

static void start(const tq_reduction *r, uint64_t *acc, size_t n)
{
    switch (r->how->acc_bytes) {
    case 1: START(uint8_t); break;
    case 2: START(uint16_t); break;
    case 4: START(uint32_t); break;
    default: START(uint64_t); break;
    }
}

/* Runs that lie one behind the other: stored together, since a call takes as long as a short fold. */
static void reduce_runs(const tq_reduction *r, const unsigned char *in, unsigned char *out, size_t count)
{
    _Alignas(64) uint64_t acc[SOME_RUNS];
    const size_t in_bytes = r->inner * r->how->in_bytes, acc_bytes = r->how->acc_bytes;
    for (size_t n; count > 0 && !tq_stop_after(SOME_RUNS * r->inner); count -= n) {
        n = count < SOME_RUNS ? count : SOME_RUNS;
        start(r, acc, n);
        if (r->fold_runs)
            r->fold_runs(r, acc, in, r->inner, n);
        else
            for (size_t i = 0; i < n; i++)
                r->fold_run(r, (unsigned char *)acc + i * acc_bytes, in + i * in_bytes, r->inner);
        in += n * in_bytes;
        r->how->store(r, acc, out, n);
        out += n * r->how->out_bytes;
    }
}

static void reduce_part(void *context, size_t begin, size_t end)
{
    size_t work = 0;
    const job *j = context;
    const tq_reduction *r = j->r;
    const tq_reducer *how = r->how;
    if (!r->row && r->cut_rank == 0 && r->inner <= TQ_CHUNK) {
        reduce_runs(r, j->in + begin * r->inner * how->in_bytes, j->out + begin * how->out_bytes, end - begin);
        return;
    }
    _Alignas(64) uint64_t acc[TQ_REDUCE_ROW]; /* each fold reads the stores of the one before: in whole cache lines */
    for (size_t unit = begin; unit < end && !tq_stop_count(&work, 1); unit++) {
        const bool whole = j->chunks == 1; /* divisions take as long as short folds */
        size_t outer = whole ? unit : unit / j->chunks, chunk = whole ? 0 : unit % j->chunks * j->chunk;
        size_t n = r->line - chunk < j->chunk ? r->line - chunk : j->chunk;
        size_t from = chunk * r->line_step, rest = outer;
        for (int d = r->line_rank; d < r->kept_rank - 1; d++) {
            from += rest % r->kept[d] * r->kept_step[d];
            rest /= r->kept[d];
        }
        if (r->kept_rank > r->line_rank)
            from += rest * r->kept_step[r->kept_rank - 1];
        start(r, acc, n);
        /* Without a reduced dimension outside of the innermost, one fold is enough. */
        const unsigned char *inputs = j->in + from * how->in_bytes;
        if (r->cut_rank > 0)
            fold(r, acc, inputs, n);
        else
            fold_line(r, acc, inputs, n);
        how->store(r, acc, j->out + (outer * r->line + chunk) * how->out_bytes, n);
    }
}

/* Reduces all elements to one value, which begins as the first element. */
static void reduce_all(const tq_reduction *r, const unsigned char *in, void *out)
{
    uint64_t acc = 0;
    memcpy(&acc, in, r->how->in_bytes);
    if (r->each > 1)
        fold_run(r, &acc, in + r->how->in_bytes, r->each - 1);
    r->how->store(r, &acc, out, 1);
}

/* Outputs of no inputs. */
static void reduce_none(const tq_reduction *r, unsigned char *out)
{
    uint64_t acc = r->init;
    TQ_EACH (i, r->outputs)
        r->how->store(r, &acc, out + i * r->how->out_bytes, 1);
}

void tq_reduction_run(const tq_reduction *r, const void *in, void *out, int threads)
{
    if (r->outputs == 0)
        return;
    if (r->each == 0) {
        reduce_none(r, out);
        return;
    }
    if (r->all && r->how->seeds_from_input) {
        reduce_all(r, in, out);
        return;
    }
    const size_t chunk = r->row ? TQ_REDUCE_ROW : LINE_RUNS;
    job j = {r, in, out, (r->line + chunk - 1) / chunk, chunk};
    const size_t parts = r->outputs / r->line * j.chunks;
    tq_parallel_for(parts, 1, tq_paying_threads(r->outputs * r->each, COST, threads), reduce_part, &j);
}
