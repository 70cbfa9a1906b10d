/* SPDX-License-Identifier: Apache-2.0
 *
 * From an array and its parameters to calls of row and lanes kernels.
 *
 * Parameter sets become columns (kernels.h).  Where each set covers a long contiguous run, row kernels do
 * run after run.  Where runs are short and the pattern repeats, the columns are spread out, one entry an
 * element, over the pattern or enough repetitions of it to fill a loop, and lanes kernels do pattern after
 * pattern; where runs are of one element, a strip of all patterns after another.  Where they are short and the
 * pattern does not repeat, they are folded: parameters are spread out some elements at a time.  Columns of sets
 * that are used once are made some sets at a time, since fresh memory takes longer than the sets.  Converting input
 * or output goes through a buffer that stays in the first-level cache.
 */
#include "kernels/elementwise.h"

#include <float.h>
#include <string.h>

#include "base/checked.h"
#include "base/threads.h"
#include "kernels/code_line.h"
#include "kernels/columns.h"
#include "kernels/isa.h"
#include "kernels/narrow_codes.h"

#define SHORT_RUN 64         /* elements; shorter runs are spread out, where that pays */
#define FEW_SETS 1024        /* sets whose columns are made at a time, where each is used in one place */
/* Of a pattern that is too long for the first-level cache, a strip is done at a time, of some patterns. */
#define STRIP 2048           /* elements, whose parameters take 16 KiB or so */
#define STRIP_ROWS 16
/* The like for kernels that go on from row to row (stream_simd.h): they are slower by strips. */
#define STREAM_WHOLE 3072
#define STREAM_STRIP 2048 /* of one column that varies; half of it for two */
#define TURNED_ROWS 16 /* at least */
#define UNEVEN 127 /* elements of a row: of sixteen of them, parameters stay in the first-level cache */
#define UNEVEN_ROWS 256 /* at least, or making parameters of sixteen takes longer than is saved */
#define STREAM_STRIP_ROWS 64
#define REPEATS_THAT_PAY 4   /* spreading a pattern costs about as much as using it a few times */
#define BUFFER 1024          /* elements of a conversion's buffer */
#define CODES 8192           /* of the buffer of narrow codes, which are all that is converted then */
#define LINES_PAY 4096       /* elements a set: what a line saves on fewer is less than looking for it */
#define GRAIN 1024           /* elements: no thread gets less */
#define BYTES_A_THREAD 131072 /* below it, another thread costs more than it brings */
#define STREAM_BYTES (16u << 20) /* an output this large leaves the caches before it is read */

/* ---- the walk ---- */

union params {
    tq_quantize_params quantize;
    tq_dequantize_params dequantize;
    tq_requantize_params requantize;
};

/* What parameter sets are made of; by operation. */
struct source {
    tq_column_f32 scale;
    tq_column_f64 multiplier;
    tq_column_i32 zero_point, input_zero_point;
    tq_requantize_rule rule;
    tq_element in, out;
    bool in_place; /* parameters may point at what is here, and need no columns of it */
    size_t misses; /* sets without a line, after which none are looked for */
};

/* The columns of sets [first, first + count), and what the parameters say of all of them: `columns`, a bit each, and
   perhaps others. */
typedef void (*fill_fn)(union params *params, char *const *data, unsigned columns, const struct source *source,
                        size_t first, size_t count);

struct walk {
    const char *in;
    char *out;
    size_t in_size, out_size;
    tq_kernel_fn kernel, widen, narrow; /* widen, narrow: NULL, or a conversion before, after */
    uint8_t extend;  /* the bits of input codes that are to be extended before, or 0 */
    bool is_signed;  /* they are */
    union params *params;
    tq_layout layout;
    bool streams;   /* of quantize and dequantize: kernels of stream_simd.h */
    size_t pattern; /* lanes: entries of a pattern, or of as many as are spread out; 0: rows */
    size_t pitch;   /* entries from group to group, where columns are ready */
    const tq_columns *columns;
    bool ready; /* the columns of all sets are there; or they are made as they are needed */
    const struct source *source;
    fill_fn fill;
    void (*point)(union params *, char *const *); /* lets parameters point at columns */
};

/* Where in a cache line the kernel's array of larger elements has element `at`, in entries of columns: vectors of both
   lie alike then, and are not each across two lines. */
static size_t phase_of(const struct walk *w, size_t at)
{
    uintptr_t place = w->out_size >= w->in_size ? (uintptr_t)w->out : (uintptr_t)w->in;
    if (!w->streams || w->widen || w->narrow || place % 4 != 0)
        return 0;
    return (place / 4 + at) % TQ_PHASES;
}

/* Rows that follow each other, as many elements as fit the buffers through which they are converted. */
static void run_converted(const struct walk *w, const char *in, char *out, size_t n, size_t rows, size_t entry)
{
    _Alignas(64) float buffer[BUFFER];
    _Alignas(64) uint8_t codes[CODES];
    const size_t count = n * rows;
    const void *from = in;
    if (w->extend) {
        tq_extend_codes((const uint8_t *)in, count, w->extend, w->is_signed, codes);
        from = codes;
    } else if (w->widen) {
        w->widen(in, buffer, count, 1, 0, NULL, 0);
        from = buffer;
    }
    w->kernel(from, w->narrow ? (void *)buffer : out, n, rows, n, w->params, entry);
    if (w->narrow)
        w->narrow(buffer, out, count, 1, 0, NULL, 0);
}

/* `rows` rows of n elements from `at`, one every `stride`, their parameters from entry `first`. */
static void run(const struct walk *w, size_t at, size_t n, size_t rows, size_t stride, size_t first)
{
    const char *in = w->in + at * w->in_size;
    char *out = w->out + at * w->out_size;
    if (!w->widen && !w->narrow && !w->extend) {
        w->kernel(in, out, n, rows, stride, w->params, first);
        return;
    }
    size_t most = w->widen || w->narrow ? BUFFER : CODES, together = stride == n && n <= most / 2 ? most / n : 1;
    for (size_t r = 0, some; r < rows; r += some) {
        some = rows - r < together ? rows - r : together; /* whole rows, if there are more than one */
        for (size_t i = 0; i < n; i += most)
            run_converted(w, in + (r * stride + i) * w->in_size, out + (r * stride + i) * w->out_size,
                          n - i < most ? n - i : most, some, w->pattern ? first + i : first + r);
    }
}

/* Makes parameters point at columns of a few sets; what all sets have alike is there at once, in `entries`. */
static void begin_few(struct walk *w, union params *params, tq_few_sets *few, size_t entries)
{
    *params = *w->params;
    tq_few_sets_init(few, w->columns);
    w->point(params, few->data);
    w->params = params;
    w->fill(params, few->data, w->columns->needed, w->source, 0, 1);
    tq_few_sets_constant(few, w->columns, entries);
}

static void fill_few(const struct walk *w, tq_few_sets *few, size_t first, size_t sets)
{
    w->fill(w->params, few->data, w->columns->needed & ~w->columns->constant, w->source, first, sets);
}

static void walk_rows(void *context, size_t begin, size_t end)
{
    struct walk w = *(const struct walk *)context;
    union params params;
    tq_few_sets few;
    size_t inner = w.layout.inner, channels = w.layout.channels, group = w.layout.outer * channels;
    size_t once = w.ready ? w.pitch : channels; /* sets that follow each other */
    if (!w.ready)
        begin_few(&w, &params, &few, channels < FEW_SETS ? channels : FEW_SETS);
    for (size_t at = begin; at < end;) {
        size_t row = at / inner, offset = at % inner, within = row % group, place = within % once;
        size_t set = row / group * once + place, n = inner - offset, rows = 1;
        if (n > end - at)
            n = end - at;
        else if (offset == 0) { /* whole rows, as far as their sets follow each other */
            rows = (end - at) / inner;
            rows = rows < once - place ? rows : once - place;
            rows = rows < group - within ? rows : group - within;
            rows = w.ready || rows < FEW_SETS ? rows : FEW_SETS;
        }
        if (!w.ready && w.layout.groups * group > 1)
            fill_few(&w, &few, row / group * channels + row % channels, rows);
        run(&w, at, n, rows, inner, w.ready ? set : 0);
        at += n * rows;
    }
}

/* Whole patterns, a strip of each at a time, so that a strip's parameters stay in the first-level cache, and
   few enough patterns that the strips between are still in the second. */
static void run_patterns(const struct walk *w, size_t at, size_t patterns, size_t first)
{
    size_t strip = w->streams ? STREAM_STRIP : STRIP, most = w->streams ? STREAM_STRIP_ROWS : STRIP_ROWS;
    if (w->pattern <= (w->streams ? STREAM_WHOLE : STRIP))
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
    const struct walk *w = context;
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

/* Sets from `place` of the group that begins at `group`, and on with its first: n of them, as a source's first. */
struct turned {
    float scale[STREAM_WHOLE];
    int32_t zero_point[STREAM_WHOLE];
};

static void turn(struct source *from, struct turned *to, size_t channels, size_t group, size_t place, size_t n)
{
    size_t before = channels - place, after = n - before;
    if (from->scale.many) {
        memcpy(to->scale, from->scale.data + group + place, before * sizeof *to->scale);
        memcpy(to->scale + before, from->scale.data + group, after * sizeof *to->scale);
        from->scale.data = to->scale;
    }
    if (from->zero_point.many) {
        memcpy(to->zero_point, from->zero_point.data + group + place, before * sizeof *to->zero_point);
        memcpy(to->zero_point + before, from->zero_point.data + group, after * sizeof *to->zero_point);
        from->zero_point.data = to->zero_point;
    }
}

/* `rows` rows of n elements, whose sets begin at `place` of a group.  Kernels read nothing behind n sets where they do
   not go on from row to row and a block is full. */
static void run_strip(struct walk *w, tq_few_sets *few, size_t at, size_t n, size_t rows, size_t group, size_t place)
{
    struct source source = *w->source;
    struct turned turned;
    size_t channels = w->layout.channels, first = group + place;
    source.in_place = n >= TQ_COLUMN_PADDING && (rows == 1 || n < channels) && !w->widen && !w->narrow;
    if (place + n > channels) {
        turn(&source, &turned, channels, group, place, n);
        source.in_place = false;
        first = 0;
    }
    tq_few_sets_shift(few, w->columns, phase_of(w, at));
    w->point(w->params, few->data);
    w->fill(w->params, few->data, w->columns->needed & ~w->columns->constant, &source, first, n);
    tq_few_sets_pad(few, w->columns, n);
    run(w, at, n, rows, channels, 0);
}

/* The elements of a row before the first that begins a cache line in each, if there are rows enough for them to be done
   from there to there. */
static size_t to_turn(const struct walk *w, size_t at, size_t rows)
{
    return rows >= TURNED_ROWS && w->layout.channels % TQ_PHASES == 0 ? (TQ_PHASES - phase_of(w, at)) % TQ_PHASES : 0;
}

/* Rows of a set an element: a strip of all of them, then the next. */
static void walk_strips(void *context, size_t begin, size_t end)
{
    struct walk w = *(const struct walk *)context;
    union params params;
    tq_few_sets few;
    size_t channels = w.layout.channels, group = w.layout.outer * channels;
    begin_few(&w, &params, &few, channels + TQ_COLUMN_PADDING + TQ_PHASES);
    w.pattern = channels;
    for (size_t at = begin; at < end;) {
        size_t sets = at / group * channels, within = at % group, place = within % channels;
        size_t span = group - within < end - at ? group - within : end - at, left = channels - place;
        size_t row = left < span ? left : span, rows = row == channels ? span / channels : 1, head = 0, n;
        size_t strip = w.source->zero_point.many ? STREAM_STRIP / 2 : STREAM_STRIP;
        if (row <= (w.source->zero_point.many ? STREAM_STRIP : STREAM_WHOLE) && row <= few.room)
            strip = row;
        else if ((head = to_turn(&w, at, rows)) > 0) {
            run_strip(&w, &few, at, head, 1, sets, place);
            at += head, place += head, rows--;
        }
        for (size_t i = 0; i < row; i += n) {
            n = strip + (TQ_PHASES - phase_of(&w, at + i)) % TQ_PHASES; /* the next begins a line, if rows do alike */
            n = row - i < n ? row - i : n;
            run_strip(&w, &few, at + i, n, rows, sets, place + i);
        }
        at += row * rows;
    }
}

/* Runs as far as their sets follow each other, TQ_FOLD elements at most. */
static void walk_folded(void *context, size_t begin, size_t end)
{
    struct walk w = *(const struct walk *)context;
    union params params;
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

static size_t count_elements(const tq_layout *layout)
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

/* Rows that begin in different places of a cache line: spread out as a few, they do not. */
static bool is_uneven(const tq_layout *layout)
{
    bool uneven = layout->channels % TQ_PHASES != 0 && layout->channels <= UNEVEN;
    return uneven && layout->outer >= UNEVEN_ROWS;
}

/* Which kernels win: lanes where runs are short, folded unless their pattern comes often. */
static enum way { ROWS, STRIPS, PATTERNS, FOLDED } way_of(const tq_layout *layout, bool streams)
{
    if (layout->groups * layout->channels == 1 || layout->inner >= SHORT_RUN)
        return ROWS;
    if (streams && layout->inner == 1 && layout->channels >= SHORT_RUN && !is_uneven(layout))
        return STRIPS;
    return layout->inner == 1 || layout->outer >= REPEATS_THAT_PAY ? PATTERNS : FOLDED;
}

/* How often a pattern of `once` entries is written out: until whole blocks of kernels fit, or, where kernels go on from
   row to row, whole cache lines, if there is use enough for that; at least, if it is shorter than a block, until a
   block is full. */
static size_t count_repeats(size_t once, size_t outer, bool streams)
{
    size_t whole = streams ? TQ_PHASES : TQ_COLUMN_PADDING, full = (TQ_COLUMN_PADDING + once - 1) / once;
    for (size_t n = once; n % 2 == 0 && whole > 1; n /= 2)
        whole /= 2;
    whole *= (full + whole - 1) / whole;
    if (whole <= outer / REPEATS_THAT_PAY && (!streams || whole * once <= STREAM_STRIP))
        return whole;
    return full < outer ? full : outer;
}

/* How often the sets of few channels are written out, so that kernels have many rows to do at a time. */
static size_t count_turns(const tq_layout *l)
{
    size_t turns = FEW_SETS / l->channels, most = l->outer / REPEATS_THAT_PAY;
    turns = turns < most ? turns : most;
    return turns > 1 ? turns : 1;
}

/* The columns that are made beforehand, in entries: those of all sets, if they are used often, and those spread out. */
struct needs {
    size_t sets, pattern; /* pattern: entries of a pattern, 0 for rows */
    size_t pitch;         /* entries of a group, with what kernels read */
    size_t spread;        /* all groups' pitches, 0 if sets will do */
};

static struct needs needs_of(const tq_layout *l, bool streams)
{
    struct needs needs = {0};
    size_t sets = l->groups * l->channels, once = l->channels * l->inner;
    enum way way = way_of(l, streams);
    if (way == PATTERNS) {
        needs.sets = sets;
        needs.pattern = needs.pitch = once * count_repeats(once, l->outer, streams);
        if (needs.pattern != l->channels) {
            needs.pitch += streams ? TQ_COLUMN_PADDING : 0;
            needs.spread = l->groups * needs.pitch;
        }
    } else if (way == ROWS && l->outer > 1 && sets > 1) {
        needs.sets = sets;
        needs.pitch = l->channels * count_turns(l);
        needs.spread = needs.pitch != l->channels ? l->groups * needs.pitch : 0;
    }
    return needs;
}

/* The columns of all sets in the form that the walk's kernel reads, if they are used often. */
static tq_status lay_out(struct walk *w, tq_columns *c, tq_error *error)
{
    tq_layout l = w->layout;
    struct needs needs = needs_of(&l, w->streams);
    w->columns = c;
    w->ready = needs.sets > 0;
    if (!w->ready)
        return TQ_OK;
    c->phase = phase_of(w, 0);
    tq_status status = tq_columns_allocate(c, needs.sets, error);
    if (status != TQ_OK)
        return status;
    w->fill(w->params, c->data, c->needed, w->source, 0, needs.sets);
    w->pattern = needs.pattern;
    w->pitch = needs.pitch;
    if (needs.spread) {
        l.inner = needs.pattern ? l.inner : 1; /* rows: a set each */
        size_t repeats = (needs.pattern ? needs.pattern : needs.pitch) / (l.channels * l.inner);
        status = tq_columns_spread(c, &l, repeats, needs.pattern ? needs.pitch - needs.pattern : 0, error);
    }
    if (status == TQ_OK && needs.pattern)
        tq_columns_pad(c);
    if (status == TQ_OK)
        w->point(w->params, c->data);
    return status;
}

static const tq_kernel *find(tq_operation operation, tq_element in, tq_element out, tq_status *status,
                             tq_error *error)
{
    const tq_kernel *kernel = tq_kernel_find(operation, in, out);
    if (!kernel)
        *status = tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "no kernel for these element types");
    return kernel;
}

static bool is_large(const tq_array_job *job)
{
    return count_elements(&job->layout) >= STREAM_BYTES / tq_element_size(job->out_type);
}

/* One set for everything is one run. */
static tq_layout join_runs(tq_layout layout, bool many)
{
    return many ? layout : (tq_layout){1, 1, 1, count_elements(&layout)};
}

/* The walk's kernels, from its layout.  The array is not empty. */
static tq_status plan(struct walk *w, const tq_array_job *job, tq_operation operation, tq_error *error)
{
    tq_element in = job->in_type, out = job->out_type;
    tq_status status = TQ_OK;
    w->in = job->in;
    w->out = job->out;
    w->in_size = tq_element_size(in);
    w->out_size = tq_element_size(out);
    if (job->code_mask && (in == TQ_i8 || in == TQ_u8)) {
        w->extend = job->code_mask;
        w->is_signed = in == TQ_i8;
    }
    if (in == TQ_f64 || in == TQ_f16 || in == TQ_bf16) {
        const tq_kernel *widen = find(TQ_OP_convert, in, TQ_f32, &status, error);
        w->widen = widen ? widen->row : NULL;
        in = TQ_f32;
    }
    if (out == TQ_f16 || out == TQ_bf16) {
        const tq_kernel *narrow = find(TQ_OP_convert, TQ_f32, out, &status, error);
        w->narrow = narrow ? narrow->row : NULL;
        out = TQ_f32;
    }
    const tq_kernel *kernel = find(operation, in, out, &status, error);
    if (kernel)
        w->kernel = way_of(&w->layout, w->streams) == ROWS ? kernel->row : kernel->lanes;
    return status;
}

/* Quantize has the most columns. */
#define QUANTIZE_COLUMNS .size = {4, 4, 4, 4, 4}, .count = Q_COLUMNS
enum { Q_SCALE, Q_INVERSE, Q_SLOPE, Q_OFFSET, Q_ZERO, Q_COLUMNS };

bool tq_array_scratch(const tq_layout *layout, uint64_t *bytes)
{
    const tq_columns c = {QUANTIZE_COLUMNS};
    struct needs needs = {0};
    uint64_t sets = 0, spread = 0;
    if (count_elements(layout) > 0)
        needs = needs_of(layout, true);
    bool fits = (needs.sets == 0 || tq_columns_bytes(&c, needs.sets, &sets)) &&
                (needs.spread == 0 || tq_columns_bytes(&c, needs.spread, &spread));
    return tq_add_u64(sets, spread, bytes) && fits;
}

static tq_status perform(struct walk *w, const tq_array_job *job, tq_operation operation, tq_columns *c,
                         tq_error *error)
{
    static const tq_range_fn bodies[] = {
        [ROWS] = walk_rows, [STRIPS] = walk_strips, [PATTERNS] = walk_patterns, [FOLDED] = walk_folded};
    size_t total = count_elements(&w->layout);
    tq_status status = plan(w, job, operation, error);
    if (status == TQ_OK)
        status = lay_out(w, c, error);
    if (status == TQ_OK)
        tq_parallel_for(total, GRAIN, count_threads(job, total), bodies[way_of(&w->layout, w->streams)], w);
    tq_columns_free(c);
    return status;
}

/* A column of floats or integers from one value or from as many as sets. */
static void fill_u32(void *to, const void *from, bool many, size_t first, size_t sets)
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

/* What kernels take off 8-bit codes to make them signed. */
static int32_t center_of(tq_element type)
{
    return tq_element_low(type) == 0 ? 128 : 0;
}

/* ---- quantize ---- */

/* Whether a slope is infinite.  With short rows there are many sets. */
TQ_BODY bool slopes(const float *restrict scale, size_t n, float *restrict inverse, float *restrict slope)
{
    int steep = 0;
    for (size_t i = 0; i < n; i++) {
        float value = 1.0f / scale[i]; /* tq_inverse_scale */
        slope[i] = value * 65536;
        steep |= !(slope[i] <= FLT_MAX);
        if (inverse)
            inverse[i] = value;
    }
    return steep;
}

typedef bool (*slopes_fn)(const float *, size_t, float *, float *);
#define SLOPES(isa, target)                                                                                        \
    target static bool slopes_##isa(const float *scale, size_t n, float *inverse, float *slope)                    \
    {                                                                                                              \
        return slopes(scale, n, inverse, slope);                                                                   \
    }
TQ_EVERY_ISA(SLOPES)

/* Offsets of fixed_simd.h: exact where they are used, for 8-bit codes. */
TQ_BODY void offsets(const int32_t *restrict zero, size_t n, int32_t center, float *restrict offset)
{
    for (size_t i = 0; i < n; i++)
        offset[i] = (float)(zero[i] - center) * 65536.0f + (32768.0f + TQ_FIXED_ERROR);
}

typedef void (*offsets_fn)(const int32_t *, size_t, int32_t, float *);
#define OFFSETS(isa, target)                                                                          \
    target static void offsets_##isa(const int32_t *zero, size_t n, int32_t center, float *offset)    \
    {                                                                                                 \
        offsets(zero, n, center, offset);                                                             \
    }
TQ_EVERY_ISA(OFFSETS)

static void fill_quantize(union params *p, char *const *data, unsigned columns, const struct source *from, size_t first,
                          size_t sets)
{
    static const slopes_fn of_scales[TQ_ISAS] = TQ_ISA_FUNCTIONS(slopes);
    static const offsets_fn of_zeros[TQ_ISAS] = TQ_ISA_FUNCTIONS(offsets);
    const float *scales = (const float *)data[Q_SCALE];
    const int32_t *zeros = (const int32_t *)data[Q_ZERO];
    if (from->in_place && from->scale.many)
        p->quantize.scale = scales = from->scale.data + first;
    else
        fill_u32(data[Q_SCALE], from->scale.data, from->scale.many, first, sets);
    p->quantize.steep = of_scales[tq_isa()](scales, sets, columns >> Q_INVERSE & 1 ? (float *)data[Q_INVERSE] : NULL,
                                            (float *)data[Q_SLOPE]);
    if (!(columns >> Q_ZERO & 1))
        return;
    if (from->in_place && from->zero_point.many)
        p->quantize.zero_point = zeros = from->zero_point.data + first;
    else
        fill_u32(data[Q_ZERO], from->zero_point.data, from->zero_point.many, first, sets);
    of_zeros[tq_isa()](zeros, sets, center_of(from->out), (float *)data[Q_OFFSET]);
}

/* The lower 8 bits, four times. */
static int32_t four_bytes(int32_t code)
{
    const uint32_t bytes = ((uint32_t)code & 0xFF) * 0x01010101u;
    int32_t four;
    memcpy(&four, &bytes, sizeof four);
    return four;
}

static void point_quantize(union params *params, char *const *data)
{
    tq_quantize_params *p = &params->quantize;
    p->scale = (float *)data[Q_SCALE], p->inverse = (float *)data[Q_INVERSE];
    p->slope = (float *)data[Q_SLOPE], p->offset = (float *)data[Q_OFFSET];
    p->zero_point = (int32_t *)data[Q_ZERO];
}

tq_status tq_quantize_array(const tq_array_job *job, tq_column_f32 scale, tq_column_i32 zero_point, int32_t low,
                            int32_t high, tq_quantize_rule rule, tq_error *error)
{
    static const tq_operation operations[] = {
        [TQ_QUANTIZE_AWAY] = TQ_OP_quantize_away,
        [TQ_QUANTIZE_EVEN] = TQ_OP_quantize_even,
    };
    if (count_elements(&job->layout) == 0)
        return TQ_OK;
    bool clamp = low != tq_element_low(job->out_type) || high != tq_element_high(job->out_type);
    int32_t mask = job->code_mask ? job->code_mask : -1;
    union params p = {.quantize = {.low = low, .high = high, .mask = mask, .low_bytes = four_bytes(low),
                                   .high_bytes = four_bytes(high), .mask_bytes = four_bytes(mask),
                                   .one_zero_point = !zero_point.many, .clamp = clamp, .stream = is_large(job)}};
    struct source source = {.scale = scale, .zero_point = zero_point, .in = job->in_type, .out = job->out_type};
    bool many = scale.many || zero_point.many;
    struct walk w = {.params = &p, .source = &source, .streams = true, .fill = fill_quantize, .point = point_quantize,
                     .layout = join_runs(job->layout, many)};
    source.in_place = many && way_of(&w.layout, true) == ROWS && needs_of(&w.layout, true).sets == 0;
    unsigned of_rule = rule == TQ_QUANTIZE_AWAY ? 1u << Q_SCALE : 1u << Q_INVERSE;
    unsigned of_zero_point = 1u << Q_OFFSET | 1u << Q_ZERO;
    tq_columns c = {QUANTIZE_COLUMNS, .needed = of_rule | 1u << Q_SLOPE | of_zero_point, .scratch = job->scratch,
                    .constant = zero_point.many ? 0 : of_zero_point};
    return perform(&w, job, operations[rule], &c, error);
}

/* ---- dequantize ---- */

enum { D_SCALE, D_ZERO, D_COLUMNS };

static void fill_dequantize(union params *p, char *const *data, unsigned columns, const struct source *from,
                            size_t first, size_t sets)
{
    const int32_t *zeros = (int32_t *)data[D_ZERO];
    fill_u32(data[D_SCALE], from->scale.data, from->scale.many, first, sets);
    if (!(columns >> D_ZERO & 1))
        return;
    fill_u32(data[D_ZERO], from->zero_point.data, from->zero_point.many, first, sets);
    p->dequantize.wide = false;
    for (size_t i = 0; i < sets && from->in == TQ_i32; i++)
        p->dequantize.wide |= zeros[i] != 0;
}

static void point_dequantize(union params *params, char *const *data)
{
    params->dequantize.scale = (float *)data[D_SCALE];
    params->dequantize.zero_point = (int32_t *)data[D_ZERO];
}

tq_status tq_dequantize_array(const tq_array_job *job, tq_column_f32 scale, tq_column_i32 zero_point,
                              tq_error *error)
{
    if (count_elements(&job->layout) == 0)
        return TQ_OK;
    union params p = {.dequantize = {.one_zero_point = !zero_point.many,
                                     .stream = is_large(job) && job->out_type == TQ_f32}};
    struct source source = {.scale = scale, .zero_point = zero_point, .in = job->in_type, .out = job->out_type};
    struct walk w = {.params = &p, .source = &source, .streams = true, .fill = fill_dequantize,
                     .point = point_dequantize, .layout = join_runs(job->layout, scale.many || zero_point.many)};
    tq_columns c = {.size = {4, 4}, .count = D_COLUMNS, .needed = (1u << D_COLUMNS) - 1, .scratch = job->scratch,
                    .constant = zero_point.many ? 0 : 1u << D_ZERO};
    return perform(&w, job, TQ_OP_dequantize, &c, error);
}

/* ---- requantize ---- */

enum {
    R_REAL,
    R_REAL_F32,
    R_MULTIPLIER,
    R_LEFT,
    R_RIGHT,
    R_SLOPE,
    R_OFFSET,
    R_OFFSET_NEGATIVE,
    R_ZERO,
    R_INPUT_ZERO,
    R_LINE_SLOPE,
    R_LINE_OFFSET,
    R_LINE_OFFSET_NEGATIVE,
    R_LINE_EXCEPTION,
    R_LINE_EXCEPTION_2,
    R_COLUMNS
};

/* 2^16 (real + 1/2) + E, for kernels' 16.16 fixed point. */
static float fixed_offset(double real, double error)
{
    return (float)((real + 0.5) * 65536 + error);
}

/* As tq_fixed_point_of; error: E of kernels/fixed_simd.h. */
static bool fixed_point_of(const tq_multiplier *m, tq_requantize_rule rule, tq_element out, int32_t zero_point,
                           double error, float *slope, float *offset, float *offset_negative)
{
    double shift[2], real = tq_multiplier_real(m, rule);
    int32_t center = center_of(out);
    tq_multiplier_tie_shift(m, rule, shift);
    *slope = (float)(real * 65536);
    *offset = fixed_offset(zero_point - center + shift[0], error);
    *offset_negative = fixed_offset(zero_point - center + shift[1], error);
    return isnormal(*slope) || real == 0; /* of which every sum is the zero point */
}

bool tq_fixed_point_of(const tq_multiplier *m, tq_requantize_rule rule, tq_element out, int32_t zero_point,
                       float *slope, float *offset, float *offset_negative)
{
    return fixed_point_of(m, rule, out, zero_point, TQ_FIXED_ERROR, slope, offset, offset_negative);
}

/* Twice the error of fixed point that is enough for these sets (fixed_simd.h). */
static uint8_t doubtful_of(const struct source *from, size_t first, size_t sets)
{
    const double *multiplier = from->multiplier.data + (from->multiplier.many ? first : 0);
    bool exact = true;
    for (size_t i = 0; i < (from->multiplier.many ? sets : 1); i++)
        exact &= multiplier[i] >= 0x1p-15 || multiplier[i] == 0;
    return exact ? TQ_FIXED_EXACT_DOUBLED : 2 * TQ_FIXED_ERROR;
}

static void fill_set(tq_requantize_params *p, char *const *data, size_t i, const tq_multiplier *m,
                     const struct source *from, int32_t zero_point, int32_t input_zero_point)
{
    fixed_point_of(m, from->rule, from->out, zero_point, p->doubtful * 0.5, (float *)data[R_SLOPE] + i,
                   (float *)data[R_OFFSET] + i, (float *)data[R_OFFSET_NEGATIVE] + i);
    ((double *)data[R_REAL])[i] = m->f64;
    ((float *)data[R_REAL_F32])[i] = m->f32;
    ((int32_t *)data[R_MULTIPLIER])[i] = m->fixed;
    ((int32_t *)data[R_LEFT])[i] = m->shift > 0 ? m->shift : 0;
    ((int32_t *)data[R_RIGHT])[i] = m->shift < 0 ? -m->shift : 0;
    ((int32_t *)data[R_ZERO])[i] = zero_point;
    ((int32_t *)data[R_INPUT_ZERO])[i] = input_zero_point;
    p->shifts_left |= m->shift > 0;
}

/* The lines of `count` sets from i on: how many have none. */
static size_t fill_lines(char *const *data, size_t i, size_t count, const tq_multiplier *m, const int32_t *zero_points,
                         tq_requantize_rule rule)
{
    tq_code_line lines[TQ_LINES_AT_ONCE];
    size_t misses = 0;
    tq_code_lines_of(m, zero_points, count, rule, lines);
    for (size_t k = 0; k < count; k++, i++) {
        ((float *)data[R_LINE_SLOPE])[i] = lines[k].slope;
        ((float *)data[R_LINE_OFFSET])[i] = lines[k].offset;
        ((float *)data[R_LINE_OFFSET_NEGATIVE])[i] = lines[k].offset_negative;
        ((int32_t *)data[R_LINE_EXCEPTION])[i] = lines[k].exception[0];
        ((int32_t *)data[R_LINE_EXCEPTION_2])[i] = lines[k].exception[1];
        misses += lines[k].slope != lines[k].slope;
    }
    return misses;
}

/* With no line of these sets. */
static void fill_no_lines(char *const *data, size_t i, size_t count)
{
    for (; count > 0; count--)
        ((float *)data[R_LINE_SLOPE])[i++] = NAN;
}

static void fill_requantize(union params *params, char *const *data, unsigned columns, const struct source *from,
                            size_t first, size_t sets)
{
    (void)columns; /* all */
    tq_requantize_params *p = &params->requantize;
    p->wide = p->shifts_left = false;
    p->doubtful = doubtful_of(from, first, sets);
    size_t misses = 0;
    for (size_t i = 0, some; i < sets; i += some) {
        tq_multiplier m[TQ_LINES_AT_ONCE];
        int32_t zero_points[TQ_LINES_AT_ONCE];
        some = sets - i < TQ_LINES_AT_ONCE ? sets - i : TQ_LINES_AT_ONCE;
        for (size_t k = 0; k < some; k++) {
            size_t set = first + i + k;
            m[k] = tq_multiplier_of(from->multiplier.data[from->multiplier.many ? set : 0], from->rule);
            int32_t zero = from->zero_point.data[from->zero_point.many ? set : 0];
            int32_t input_zero = from->input_zero_point.data[from->input_zero_point.many ? set : 0];
            fill_set(p, data, i + k, &m[k], from, zero, input_zero);
            p->wide |= (from->in == TQ_i32 && input_zero != 0) || (from->out == TQ_i32 && zero != 0);
            zero_points[k] = zero - center_of(from->out);
        }
        if (p->lines && misses < from->misses)
            misses += fill_lines(data, i, some, m, zero_points, from->rule);
        else if (p->lines)
            fill_no_lines(data, i, some);
    }
}

static void point_requantize(union params *params, char *const *data)
{
    tq_requantize_params *p = &params->requantize;
    p->real = (double *)data[R_REAL], p->real_f32 = (float *)data[R_REAL_F32];
    p->multiplier = (int32_t *)data[R_MULTIPLIER];
    p->left = (int32_t *)data[R_LEFT], p->right = (int32_t *)data[R_RIGHT];
    p->slope = (float *)data[R_SLOPE], p->offset = (float *)data[R_OFFSET];
    p->offset_negative = (float *)data[R_OFFSET_NEGATIVE];
    p->zero_point = (int32_t *)data[R_ZERO], p->input_zero_point = (int32_t *)data[R_INPUT_ZERO];
    if (!p->lines)
        return;
    p->line_slope = (float *)data[R_LINE_SLOPE], p->line_offset = (float *)data[R_LINE_OFFSET];
    p->line_offset_negative = (float *)data[R_LINE_OFFSET_NEGATIVE];
    p->line_exception[0] = (int32_t *)data[R_LINE_EXCEPTION];
    p->line_exception[1] = (int32_t *)data[R_LINE_EXCEPTION_2];
}

/* The columns that a rule's bodies read. */
static unsigned columns_of(tq_requantize_rule rule)
{
    unsigned all = 1u << R_ZERO | 1u << R_INPUT_ZERO | 1u << R_SLOPE | 1u << R_OFFSET;
    if (rule == TQ_REQUANTIZE_FLOAT64_AWAY)
        return all | 1u << R_REAL;
    if (rule == TQ_REQUANTIZE_FLOAT32_EVEN)
        return all | 1u << R_REAL_F32;
    all |= 1u << R_MULTIPLIER | 1u << R_LEFT | 1u << R_RIGHT;
    return rule == TQ_REQUANTIZE_DOUBLE ? all | 1u << R_OFFSET_NEGATIVE : all;
}

/* How many sets are likely to have no line.  That is by trial: one in M^3 / 6e-13 by "double", whose steps are alike on
   both sides of 0, where the zero point is the middle of the codes; more where it is their end; and more by other
   rules. */
static double expected_misses(const struct source *from, size_t sets)
{
    const bool rounds = from->rule == TQ_REQUANTIZE_FLOAT32_EVEN; /* as its line does, for a zero point of 0 */
    double misses = 0, middle = from->rule == TQ_REQUANTIZE_DOUBLE ? 6e-13 : 3e-11;
    for (size_t i = 0; i < sets; i++) {
        double real = from->multiplier.data[from->multiplier.many ? i : 0];
        double zero = from->zero_point.data[from->zero_point.many ? i : 0] - center_of(from->out);
        if (!rounds || zero)
            misses += (middle + 1e-14 * zero * zero) / (real * real * real + 1e-15);
    }
    return rounds ? 3 * misses : misses;
}

/* Whether it pays to look for lines.  Along rows they are of use if all sets have one, and kernels do several rows at a
   time. */
static bool lines_pay(struct source *from, const tq_layout *layout)
{
    size_t sets = layout->groups * layout->channels;
    size_t pattern = needs_of(layout, false).pattern;
    bool grouped = pattern > 0 && pattern <= TQ_GROUPED && pattern % TQ_COLUMN_PADDING == 0;
    bool rows = way_of(layout, false) == ROWS, of_use = (rows || grouped) && from->in == TQ_i32;
    if (!of_use || tq_element_size(from->out) != 1 || count_elements(layout) / sets < LINES_PAY)
        return false;
    from->misses = rows ? sets : 1;
    return expected_misses(from, sets) < (rows ? sets * 0.5 : 0.7);
}

tq_status tq_requantize_array(const tq_array_job *job, tq_column_f64 multiplier, tq_column_i32 input_zero_point,
                              tq_column_i32 zero_point, tq_requantize_rule rule, tq_error *error)
{
    static const tq_operation operations[] = {
        [TQ_REQUANTIZE_DOUBLE] = TQ_OP_requantize_double,
        [TQ_REQUANTIZE_SINGLE] = TQ_OP_requantize_single,
        [TQ_REQUANTIZE_UP] = TQ_OP_requantize_up,
        [TQ_REQUANTIZE_FLOAT64_AWAY] = TQ_OP_requantize_float64_away,
        [TQ_REQUANTIZE_FLOAT32_EVEN] = TQ_OP_requantize_float32_even,
    };
    if (count_elements(&job->layout) == 0)
        return TQ_OK;
    union params p = {.requantize = {.low = tq_element_low(job->out_type),
                                     .high = (int32_t)tq_element_high(job->out_type), .stream = is_large(job)}};
    struct source source = {.multiplier = multiplier, .zero_point = zero_point, .input_zero_point = input_zero_point,
                            .rule = rule, .in = job->in_type, .out = job->out_type};
    bool many = multiplier.many || zero_point.many || input_zero_point.many;
    struct walk w = {.params = &p, .source = &source, .fill = fill_requantize, .point = point_requantize,
                     .layout = join_runs(job->layout, many)};
    bool lines = lines_pay(&source, &w.layout);
    p.requantize.lines = lines;
    unsigned of_lines = lines ? 31u << R_LINE_SLOPE : 0;
    tq_columns c = {.size = {8, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, .count = lines ? R_COLUMNS : R_LINE_SLOPE,
                    .needed = columns_of(rule) | of_lines, .constant = zero_point.many ? 0 : 1u << R_ZERO};
    return perform(&w, job, operations[rule], &c, error);
}
