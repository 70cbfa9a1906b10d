/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/arrays/array_walk.h"

#include <string.h>

#include "base/threads.h"
#include "kernels/arrays/narrow_values.h"

#define SHORT_RUN 64         /* elements; the parameters of shorter runs are expanded where that pays */
#define FEW_SETS 1024        /* sets whose columns are computed at a time, where each set is used once */
/* A pattern that is too long for the first-level cache is computed in strips, of several patterns in turn. */
#define STRIP 2048           /* elements, whose parameters take 16 KiB or so */
#define STRIP_ROWS 16
#define LONG_PATTERN 512     /* elements; shorter ones are repeated until whole blocks of kernels fit */
#define REPEATS_THAT_PAY_BLOCKS 16
#define REPEATS_THAT_PAY 4   /* expanding a pattern costs about as much as using it a few times */
#define BUFFER 1024          /* elements of a conversion's buffer */
#define NARROW_BUFFER 8192           /* elements of the buffer of narrow values, the only conversion then */
#define GRAIN 1024           /* elements: no thread gets less */
#define BYTES_A_THREAD 131072 /* with fewer, another thread costs more than it saves */
#define STREAM_BYTES (16u << 20) /* larger outputs leave the caches before they are read */

/* Contiguous rows that fit the conversion buffers. */
static void run_converted(const tq_walk *w, const char *in, char *out, size_t n, size_t rows, size_t entry)
{
    _Alignas(64) float buffer[BUFFER];
    _Alignas(64) uint8_t extended[NARROW_BUFFER];
    const size_t count = n * rows;
    const void *from = in;
    if (w->extend) {
        tq_extend_values((const uint8_t *)in, count, w->extend, w->is_signed, extended);
        from = extended;
    } else if (w->widen) {
        w->widen(in, buffer, count, 1, 0, NULL, 0);
        from = buffer;
    }
    w->kernel(from, w->narrow ? (void *)buffer : out, n, rows, n, w->params, entry);
    if (w->narrow)
        w->narrow(buffer, out, count, 1, 0, NULL, 0);
}

/* `rows` rows of n elements from `at` on, `stride` elements apart, with the parameters from entry `first` on. */
static void run(const tq_walk *w, size_t at, size_t n, size_t rows, size_t stride, size_t first)
{
    const char *in = w->in + at * w->in_size;
    char *out = w->out + at * w->out_size;
    if (!w->widen && !w->narrow && !w->extend) {
        w->kernel(in, out, n, rows, stride, w->params, first);
        return;
    }
    size_t most = w->widen || w->narrow ? BUFFER : NARROW_BUFFER,
           together = stride == n && n <= most / 2 ? most / n : 1;
    for (size_t r = 0, some; r < rows; r += some) {
        some = rows - r < together ? rows - r : together; /* several rows are whole rows */
        for (size_t i = 0; i < n; i += most)
            run_converted(w, in + (r * stride + i) * w->in_size, out + (r * stride + i) * w->out_size,
                          n - i < most ? n - i : most, some, w->pattern ? first + i : first + r);
    }
}

/* Points params at columns of a few sets; computes the columns in which all sets are equal, with `entries` entries. */
static void begin_few(tq_walk *w, tq_walk_params *params, tq_few_sets *few, size_t entries)
{
    *params = *w->params;
    tq_few_sets_init(few, w->columns);
    w->point(params, few->data);
    w->params = params;
    w->fill(params, few->data, w->columns->needed, w->source, 0, 1);
    tq_few_sets_constant(few, w->columns, entries);
}

static void fill_few(const tq_walk *w, tq_few_sets *few, size_t first, size_t sets)
{
    w->fill(w->params, few->data, w->columns->needed & ~w->columns->constant, w->source, first, sets);
}

static void walk_rows(void *context, size_t begin, size_t end)
{
    tq_walk w = *(const tq_walk *)context;
    tq_walk_params params;
    tq_few_sets few;
    size_t inner = w.layout.inner, channels = w.layout.channels, group = w.layout.outer * channels;
    size_t once = w.ready ? w.pitch : channels; /* sets of consecutive rows */
    if (!w.ready)
        begin_few(&w, &params, &few, channels < FEW_SETS ? channels : FEW_SETS);
    for (size_t at = begin; at < end;) {
        size_t row = at / inner, offset = at % inner, within = row % group, position = within % once;
        size_t set = row / group * once + position, n = inner - offset, rows = 1;
        if (n > end - at)
            n = end - at;
        else if (offset == 0) { /* whole rows with consecutive sets */
            rows = (end - at) / inner;
            rows = rows < once - position ? rows : once - position;
            rows = rows < group - within ? rows : group - within;
            rows = w.ready || rows < FEW_SETS ? rows : FEW_SETS;
        }
        if (!w.ready && w.layout.groups * group > 1)
            fill_few(&w, &few, row / group * channels + row % channels, rows);
        run(&w, at, n, rows, inner, w.ready ? set : 0);
        at += n * rows;
    }
}

/* Whole patterns, in strips: a strip's parameters stay in the first-level cache, and few enough patterns at a time that
   the other strips stay in the second. */
static void run_patterns(const tq_walk *w, size_t at, size_t patterns, size_t first)
{
    size_t strip = STRIP, most = STRIP_ROWS;
    if (w->pattern <= STRIP)
        strip = w->pattern, most = patterns;
    while (patterns > 0) {
        size_t few = patterns < most ? patterns : most;
        for (size_t offset = 0; offset < w->pattern; offset += strip) {
            size_t left = w->pattern - offset;
            run(w, at + offset, left < strip ? left : strip, few, w->pattern, first + offset);
        }
        at += few * w->pattern;
        patterns -= few;
    }
}

static void walk_patterns(void *context, size_t begin, size_t end)
{
    const tq_walk *w = context;
    size_t group = w->layout.outer * w->layout.channels * w->layout.inner;
    for (size_t at = begin; at < end;) {
        size_t g = at / group, within = at % group, offset = within % w->pattern;
        size_t span = group - within < end - at ? group - within : end - at;
        size_t left = w->pattern - offset, n = left < span ? left : span;
        if (n == w->pattern) {
            run_patterns(w, at, span / n, g * w->pitch);
            at += span / n * n;
        } else {
            run(w, at, n, 1, 0, g * w->pitch + offset);
            at += n;
        }
    }
}

/* At most TQ_FOLD elements of runs with consecutive sets at a time. */
static void walk_folded(void *context, size_t begin, size_t end)
{
    tq_walk w = *(const tq_walk *)context;
    tq_walk_params params;
    tq_few_sets few;
    tq_folded folded;
    size_t inner = w.layout.inner, channels = w.layout.channels, group = w.layout.outer * channels;
    unsigned varying = w.columns->needed & ~w.columns->constant;
    begin_few(&w, &params, &few, TQ_FOLD);
    tq_folded_init(&folded, w.columns, few.data);
    w.point(&params, folded.data);
    w.pattern = TQ_FOLD;
    for (size_t at = begin, n; at < end; at += n) {
        size_t row = at / inner, cut = at % inner, channel = row % channels, left = (channels - channel) * inner - cut;
        n = end - at < TQ_FOLD ? end - at : TQ_FOLD;
        n = n < left ? n : left;
        fill_few(&w, &few, row / group * channels + channel, (cut + n + inner - 1) / inner);
        tq_folded_fill(&folded, w.columns, varying, few.data, inner, cut, n);
        run(&w, at, n, 1, 0, 0);
    }
}

size_t tq_layout_elements(const tq_layout *layout)
{
    return layout->groups * layout->outer * layout->channels * layout->inner;
}

static int count_threads(const tq_array_job *job, size_t total)
{
    if (job->threads > 0)
        return job->threads;
    size_t bytes = total * (tq_element_size(job->in_type) + tq_element_size(job->out_type));
    size_t paying = bytes / BYTES_A_THREAD;
    if (paying <= 1)
        return 1;
    int most = tq_default_threads();
    return paying < (size_t)most ? (int)paying : most;
}

tq_way tq_layout_way(const tq_layout *layout)
{
    if (layout->groups * layout->channels == 1 || layout->inner >= SHORT_RUN)
        return TQ_WAY_ROWS;
    return layout->inner == 1 || layout->outer >= REPEATS_THAT_PAY ? TQ_WAY_PATTERNS : TQ_WAY_FOLDED;
}

/* How often a pattern of `once` entries is repeated in columns: until it is whole blocks of kernels, where the array
   uses it often enough; else until it fills a block. */
static size_t count_repeats(size_t once, size_t outer)
{
    size_t whole = TQ_COLUMN_PADDING, full = (TQ_COLUMN_PADDING + once - 1) / once;
    for (size_t n = once; n % 2 == 0 && whole > 1; n /= 2)
        whole /= 2;
    whole *= (full + whole - 1) / whole;
    const size_t paying = once < TQ_COLUMN_PADDING ? REPEATS_THAT_PAY : REPEATS_THAT_PAY_BLOCKS;
    if (once < LONG_PATTERN && whole <= outer / paying)
        return whole;
    return full < outer ? full : outer;
}

/* How often the sets of few channels are repeated in columns, so that one call of a kernel has many rows. */
static size_t count_turns(const tq_layout *l)
{
    size_t turns = FEW_SETS / l->channels, most = l->outer / REPEATS_THAT_PAY;
    turns = turns < most ? turns : most;
    return turns > 1 ? turns : 1;
}

tq_walk_needs tq_layout_needs(const tq_layout *l)
{
    tq_walk_needs needs = {0};
    size_t sets = l->groups * l->channels, once = l->channels * l->inner;
    tq_way way = tq_layout_way(l);
    if (way == TQ_WAY_PATTERNS) {
        needs.sets = sets;
        needs.pattern = needs.pitch = once * count_repeats(once, l->outer);
        needs.spread = needs.pattern != l->channels ? l->groups * needs.pitch : 0;
    } else if (way == TQ_WAY_ROWS && l->outer > 1 && sets > 1) {
        needs.sets = sets;
        needs.pitch = l->channels * count_turns(l);
        needs.spread = needs.pitch != l->channels ? l->groups * needs.pitch : 0;
    }
    return needs;
}

/* Computes the columns of all sets, as the walk's kernel reads them, where tq_layout_needs says so. */
static tq_status lay_out(tq_walk *w, tq_columns *c, tq_error *error)
{
    tq_layout l = w->layout;
    tq_walk_needs needs = tq_layout_needs(&l);
    w->columns = c;
    w->ready = needs.sets > 0;
    if (!w->ready)
        return TQ_OK;
    tq_status status = tq_columns_allocate(c, needs.sets, error);
    if (status != TQ_OK)
        return status;
    w->fill(w->params, c->data, c->needed, w->source, 0, needs.sets);
    w->pattern = needs.pattern;
    w->pitch = needs.pitch;
    if (needs.spread) {
        l.inner = needs.pattern ? l.inner : 1; /* rows: an entry a set */
        size_t repeats = (needs.pattern ? needs.pattern : needs.pitch) / (l.channels * l.inner);
        status = tq_columns_spread(c, &l, repeats, error);
    }
    if (status == TQ_OK && needs.pattern)
        tq_columns_pad(c);
    if (status == TQ_OK)
        w->point(w->params, c->data);
    return status;
}

static const tq_kernel *find(tq_operation operation, tq_element in, tq_element out, tq_status *status, tq_error *error)
{
    const tq_kernel *kernel = tq_kernel_find(operation, in, out);
    if (!kernel)
        *status = tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "no kernel for these element types");
    return kernel;
}

bool tq_job_is_large(const tq_array_job *job)
{
    return tq_layout_elements(&job->layout) >= STREAM_BYTES / tq_element_size(job->out_type);
}

tq_layout tq_layout_joined(tq_layout layout, bool many)
{
    return many ? layout : (tq_layout){1, 1, 1, tq_layout_elements(&layout)};
}

/* Chooses the walk's kernels.  The array is not empty. */
static tq_status plan(tq_walk *w, const tq_array_job *job, tq_operation operation, tq_error *error)
{
    tq_element in = job->in_type, out = job->out_type;
    tq_status status = TQ_OK;
    w->in = job->in;
    w->out = job->out;
    w->in_size = tq_element_size(in);
    w->out_size = tq_element_size(out);
    if (job->value_mask && (in == TQ_i8 || in == TQ_u8)) {
        w->extend = job->value_mask;
        w->is_signed = in == TQ_i8;
    }
    if (in == TQ_f64 || in == TQ_f16 || in == TQ_bf16) {
        const tq_kernel *widen = find(TQ_KERNEL_convert, in, TQ_f32, &status, error);
        w->widen = widen ? widen->row : NULL;
        in = TQ_f32;
    }
    if (out == TQ_f16 || out == TQ_bf16) {
        const tq_kernel *narrow = find(TQ_KERNEL_convert, TQ_f32, out, &status, error);
        w->narrow = narrow ? narrow->row : NULL;
        out = TQ_f32;
    }
    const tq_kernel *kernel = find(operation, in, out, &status, error);
    if (kernel)
        w->kernel = tq_layout_way(&w->layout) == TQ_WAY_ROWS ? kernel->row : kernel->lanes;
    return status;
}

tq_status tq_walk_run(tq_walk *w, const tq_array_job *job, tq_operation operation, tq_columns *c, tq_error *error)
{
    static const tq_range_fn bodies[] = {
        [TQ_WAY_ROWS] = walk_rows, [TQ_WAY_PATTERNS] = walk_patterns, [TQ_WAY_FOLDED] = walk_folded};
    size_t total = tq_layout_elements(&w->layout);
    tq_status status = plan(w, job, operation, error);
    if (status == TQ_OK)
        status = lay_out(w, c, error);
    if (status == TQ_OK)
        tq_parallel_for(total, GRAIN, count_threads(job, total), bodies[tq_layout_way(&w->layout)], w);
    tq_columns_free(c);
    return status;
}

void tq_fill_u32(void *to, const void *from, bool many, size_t first, size_t sets)
{
    if (many) {
        memcpy(to, (const char *)from + first * 4, sets * 4);
        return;
    }
    uint32_t value, *column = to;
    memcpy(&value, from, sizeof value);
    for (size_t i = 0; i < sets; i++)
        column[i] = value;
}
