/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that follow each other, done as one array: blocks go on from row to row, aligned, whatever a row's length is,
 * and none is left over at a row's end.
 *
 *   runs     a parameter set a row (row kernels): a block in which a row ends has the parameters of both, mixed
 *   cycle    a parameter set an element of the row (lanes kernels): blocks take theirs from where the row before ended,
 *            from columns that go on with their first entries (kernels.h)
 *   strips   a part of each row, rows being further apart (lanes kernels), four by turns
 *
 * A kernel says what a vector's parameters are, lane_t, and has
 *   lane_t set_<kernel>(p, entry, &first, vary)       those of one entry in all lanes, but for what `first` says of all
 *   lane_t load_<kernel>(p, at, &first, vary)         those of the entries from `at`, as above
 *   lane_t mix_<kernel>(&a, &b, cut, vary)            a's in the lanes below cut, b's in the others, as above
 *   fixed_lows block_<kernel>(x, y, c, p, stream)     does a block, c[4]: its vectors' parameters
 *   doubts_<kernel>(least)                            whether a code of it cannot be trusted
 *   exact_<kernel>(x, y, p, at, lanes, cut)           then does it again: entry `at` below cut and the next one from it
 *                                                     on; lanes: the entries from `at` on
 * A group of blocks has one look at its doubts, after its codes are stored: where there are doubts, input and output
 * are disjoint.
 */
#define BLOCKS 4 /* of a group */
#define BRIEF 128 /* elements; of such rows, of whole blocks, loads are not aligned, since mixing costs more */
#define FOURS_AHEAD 512 /* elements of a row: the next four of such rows are asked for, in their order */
/* Whether rows that follow each other are done four by turns.  Processors expect one that goes on, so that pays where
   twice as many parameters as elements would be loaded, and where few blocks are done twice, at rows' ends; but to
   write longer rows by turns is slower than to load all parameters. */
#define FOURS_PAY(n, vary, quantizes)                                                                              \
    ((vary) == VARY_ALL && ((n) % BLOCK == 0 || (n) >= 8 * BLOCK) && ((n) <= BRIEF || (quantizes)))

/* The elements before the first block that is aligned: in the array of the larger elements, or in the output for
   non-temporal stores.  Loads mind less than stores, and short arrays not at all. */
INLINE size_t stream_head(const void *x, const void *y, size_t x_size, size_t y_size, size_t total, bool stream)
{
    bool by_output = stream || y_size >= x_size;
    size_t size = by_output ? y_size : x_size, past = (by_output ? (uintptr_t)y : (uintptr_t)x) % VECTOR_BYTES;
    if (total < LONG_WALK || past % size != 0)
        return 0;
    return past ? (VECTOR_BYTES - past) / size : 0;
}

INLINE fixed_lows least_of(const fixed_lows least[BLOCKS])
{
    return fixed_least(fixed_least(least[0], least[1]), fixed_least(least[2], least[3]));
}

/* A bit for each block of a group that has doubts. */
#define DOUBT(kernel, least, k) (unsigned)doubts_##kernel(least[k]) << k
#define DOUBTFUL(kernel, least)                                                                                    \
    (DOUBT(kernel, least, 0) | DOUBT(kernel, least, 1) | DOUBT(kernel, least, 2) | DOUBT(kernel, least, 3))

/* The vector that a row ends in is mixed, those before and behind it are not. */
#define DEFINE_MIX4(kernel, lane_t)                                                                                \
    INLINE void mix4_##kernel(lane_t c[4], const lane_t *a, const lane_t *b, size_t cut, enum vary vary)           \
    {                                                                                                              \
        const lane_t middle = mix_##kernel(a, b, (int32_t)(cut % LANES), vary);                                    \
        switch (cut / LANES) {                                                                                     \
        case 0: c[0] = middle, c[1] = c[2] = c[3] = *b; break;                                                     \
        case 1: c[0] = *a, c[1] = middle, c[2] = c[3] = *b; break;                                                 \
        case 2: c[0] = c[1] = *a, c[2] = middle, c[3] = *b; break;                                                 \
        default: c[0] = c[1] = c[2] = *a, c[3] = middle; break;                                                    \
        }                                                                                                          \
    }

/* step_<kernel>: a block of one entry's parameters or, lanes, of the entries from `at` on.  part_<kernel>: fewer
   elements, through a copy on the stack, so that nothing outside the arrays is touched. */
#define DEFINE_STEP(kernel, in, out, params_t, lane_t)                                                             \
    INLINE void step_##kernel(const element_##in *x, element_##out *y, const params_t *p, size_t at, bool lanes)   \
    {                                                                                                              \
        const lane_t first = set_##kernel(p, at, NULL, VARY_ALL);                                                  \
        lane_t c[4];                                                                                               \
        for (size_t k = 0; k < 4; k++)                                                                             \
            c[k] = lanes ? load_##kernel(p, at + k * LANES, &first, VARY_ALL) : first;                             \
        if (doubts_##kernel(block_##kernel(x, y, c, p, false)))                                                    \
            exact_##kernel(x, y, p, at, lanes, BLOCK);                                                             \
    }                                                                                                              \
    RARELY void part_##kernel(const element_##in *x, element_##out *y, size_t n, const params_t *p, size_t at,     \
                              bool lanes)                                                                          \
    {                                                                                                              \
        element_##in from[BLOCK] = {0};                                                                            \
        element_##out to[BLOCK];                                                                                   \
        memcpy(from, x, n * sizeof *x);                                                                            \
        if (lanes)                                                                                                 \
            step_##kernel(from, to, p, at, true);                                                                  \
        else                                                                                                       \
            step_##kernel(from, to, p, at, false);                                                                 \
        memcpy(y, to, n * sizeof *y);                                                                              \
    }

/* Where a stream of runs stands: `left` elements of the run of `entry` are still to be done. */
struct run_place {
    size_t entry, left;
};

/* Goes a block on, and says where it began. */
INLINE struct run_place next_place(struct run_place *place, size_t n)
{
    if (place->left == 0)
        *place = (struct run_place){place->entry + 1, n};
    const struct run_place at = *place;
    if (place->left < BLOCK)
        *place = (struct run_place){place->entry + 1, place->left + n};
    place->left -= BLOCK;
    return at;
}

#define DEFINE_RUNS(kernel, in, out, params_t, lane_t)                                                             \
    DEFINE_MIX4(kernel, lane_t)                                                                                    \
    /* The next block, whose row's parameters are *row. */                                                         \
    INLINE fixed_lows next_##kernel(const element_##in *x, element_##out *y, size_t n, const params_t *p,          \
                                    struct run_place *place, lane_t *row, enum vary vary, bool stream)             \
    {                                                                                                              \
        lane_t c[4] = {*row, *row, *row, *row};                                                                    \
        if (place->left < BLOCK) {                                                                                 \
            const lane_t next = set_##kernel(p, ++place->entry, row, vary);                                        \
            if (place->left)                                                                                       \
                mix4_##kernel(c, row, &next, place->left, vary);                                                   \
            else                                                                                                   \
                c[0] = c[1] = c[2] = c[3] = next;                                                                  \
            *row = next;                                                                                           \
            place->left += n;                                                                                      \
        }                                                                                                          \
        place->left -= BLOCK;                                                                                      \
        return block_##kernel(x, y, c, p, stream);                                                                 \
    }                                                                                                              \
    /* Does blocks of a group again whose bits are in `doubtful`. */                                               \
    APART void again_runs_##kernel(const element_##in *x, element_##out *y, size_t n, const params_t *p,           \
                                   struct run_place place, unsigned doubtful)                                      \
    {                                                                                                              \
        for (; doubtful; doubtful >>= 1, x += BLOCK, y += BLOCK) {                                                 \
            const struct run_place at = next_place(&place, n);                                                     \
            if (doubtful & 1)                                                                                      \
                exact_##kernel(x, y, p, at.entry, false, at.left);                                                 \
        }                                                                                                          \
    }                                                                                                              \
    /* Any number of elements from `place` on, a piece of a run at a time. */                                      \
    APART void pieces_##kernel(const element_##in *x, element_##out *y, size_t count, size_t n, const params_t *p,\
                                struct run_place place)                                                            \
    {                                                                                                              \
        for (size_t part; count > 0; x += part, y += part, count -= part, place.left -= part) {                    \
            if (place.left == 0)                                                                                   \
                place = (struct run_place){place.entry + 1, n};                                                    \
            part = place.left < count ? place.left : count;                                                        \
            part = part < BLOCK ? part : BLOCK;                                                                    \
            if (part == BLOCK)                                                                                     \
                step_##kernel(x, y, p, place.entry, false);                                                        \
            else                                                                                                   \
                part_##kernel(x, y, part, p, place.entry, false);                                                  \
        }                                                                                                          \
    }                                                                                                              \
    INLINE void runs_##kernel(const element_##in *x, element_##out *y, size_t n, size_t rows, const params_t *p,   \
                              size_t first, enum vary vary, bool stream)                                           \
    {                                                                                                              \
        const size_t total = n * rows;                                                                             \
        const bool overlap = sizeof *x != sizeof *y; /* or x may be y, and what is done is not there again */      \
        struct run_place place = {first, n};                                                                       \
        size_t i = n % BLOCK == 0 && n <= BRIEF && !stream && sizeof *x > sizeof *y                                \
                       ? 0 /* nothing is mixed */                                                                  \
                       : stream_head(x, y, sizeof *x, sizeof *y, total, stream);                                   \
        if (n < BLOCK) {                                                                                           \
            pieces_##kernel(x, y, total, n, p, place);                                                             \
            return;                                                                                                \
        }                                                                                                          \
        if (i && overlap)                                                                                          \
            step_##kernel(x, y, p, first, false);                                                                  \
        else if (i)                                                                                                \
            part_##kernel(x, y, i, p, first, false);                                                               \
        place.left -= i;                                                                                           \
        lane_t row = set_##kernel(p, first, NULL, VARY_ALL);                                                       \
        for (; i + BLOCKS * BLOCK <= total; i += BLOCKS * BLOCK) {                                                 \
            const struct run_place before = place;                                                                 \
            fixed_lows least[BLOCKS];                                                                              \
            UNROLL(BLOCKS) for (size_t k = 0; k < BLOCKS; k++)                                                     \
                least[k] = next_##kernel(x + i + k * BLOCK, y + i + k * BLOCK, n, p, &place, &row, vary, stream);  \
            if (doubts_##kernel(least_of(least)))                                                                  \
                again_runs_##kernel(x + i, y + i, n, p, before, DOUBTFUL(kernel, least));                          \
        }                                                                                                          \
        if (stream)                                                                                                \
            end_stream();                                                                                          \
        for (; i + BLOCK <= total && place.left >= BLOCK; i += BLOCK, place.left -= BLOCK)                         \
            step_##kernel(x + i, y + i, p, place.entry, false);                                                    \
        if (i < total && overlap && total - i < BLOCK)                                                             \
            step_##kernel(x + total - BLOCK, y + total - BLOCK, p, first + rows - 1, false);                       \
        else if (i < total)                                                                                        \
            pieces_##kernel(x + i, y + i, total - i, n, p, place);                                                 \
    }

/* Four rows by turns, so that parameters are loaded once for all; `fours` times so many, of n elements: at least a
   block, and another one behind the first `head` of them, if there is a head.  Blocks may overlap. */
#define DEFINE_FOURS(kernel, in, out, params_t, lane_t)                                                            \
    APART void edge_##kernel(const element_##in *x, element_##out *y, size_t stride, const params_t *p, size_t at) \
    {                                                                                                              \
        for (size_t r = 0; r < BLOCKS; r++, x += stride, y += stride)                                              \
            step_##kernel(x, y, p, at, true);                                                                      \
    }                                                                                                              \
    APART void again_fours_##kernel(const element_##in *x, element_##out *y, size_t stride, const params_t *p,     \
                                    size_t at, unsigned doubtful)                                                  \
    {                                                                                                              \
        for (; doubtful; doubtful >>= 1, x += stride, y += stride)                                                 \
            if (doubtful & 1)                                                                                      \
                exact_##kernel(x, y, p, at, true, BLOCK);                                                          \
    }                                                                                                              \
    INLINE void fours_##kernel(const element_##in *x, element_##out *y, size_t n, size_t head, size_t stride,      \
                               size_t fours, const params_t *p, size_t first, enum vary vary)                      \
    {                                                                                                              \
        const lane_t row = set_##kernel(p, first, NULL, VARY_ALL);                                                 \
        for (; fours > 0; fours--, x += BLOCKS * stride, y += BLOCKS * stride) {                                   \
            size_t i = head;                                                                                       \
            if (i)                                                                                                 \
                edge_##kernel(x, y, stride, p, first);                                                             \
            for (; i + BLOCK <= n; i += BLOCK) {                                                                   \
                lane_t c[4];                                                                                       \
                fixed_lows least[BLOCKS];                                                                          \
                for (size_t k = 0; k < 4; k++)                                                                     \
                    c[k] = load_##kernel(p, first + i + k * LANES, &row, vary);                                    \
                if (sizeof *x > sizeof *y && stride == n && n <= FOURS_AHEAD)                                      \
                    for (size_t k = 0; k < BLOCKS * BLOCK; k += 64 / sizeof *x) /* perhaps past the array */       \
                        __builtin_prefetch((const void *)((uintptr_t)x + (BLOCKS * (n + i) + k) * sizeof *x));     \
                UNROLL(BLOCKS) for (size_t r = 0; r < BLOCKS; r++)                                                 \
                    least[r] = block_##kernel(x + r * stride + i, y + r * stride + i, c, p, false);                \
                if (doubts_##kernel(least_of(least)))                                                              \
                    again_fours_##kernel(x + i, y + i, stride, p, first + i, DOUBTFUL(kernel, least));             \
            }                                                                                                      \
            if (i < n)                                                                                             \
                edge_##kernel(x + n - BLOCK, y + n - BLOCK, stride, p, first + n - BLOCK);                         \
        }                                                                                                          \
    }                                                                                                              \
    APART void fours_all_##kernel(const element_##in *x, element_##out *y, size_t n, size_t head, size_t stride,   \
                                  size_t fours, const params_t *p, size_t first)                                   \
    {                                                                                                              \
        fours_##kernel(x, y, n, head, stride, fours, p, first, VARY_ALL);                                          \
    }                                                                                                              \
    APART void fours_scale_##kernel(const element_##in *x, element_##out *y, size_t n, size_t head, size_t stride, \
                                    size_t fours, const params_t *p, size_t first)                                 \
    {                                                                                                              \
        fours_##kernel(x, y, n, head, stride, fours, p, first, VARY_SCALE);                                        \
    }

#define DEFINE_CYCLE(kernel, in, out, params_t, lane_t)                                                            \
    APART void again_lanes_##kernel(const element_##in *x, element_##out *y, size_t n, const params_t *p,          \
                                    size_t first, size_t at, unsigned doubtful)                                    \
    {                                                                                                              \
        for (; doubtful; doubtful >>= 1, x += BLOCK, y += BLOCK) {                                                 \
            if (doubtful & 1)                                                                                      \
                exact_##kernel(x, y, p, first + at, true, BLOCK);                                                  \
            at += BLOCK;                                                                                           \
            at -= at >= n ? n : 0;                                                                                 \
        }                                                                                                          \
    }                                                                                                              \
    INLINE fixed_lows lanes_##kernel(const element_##in *x, element_##out *y, const params_t *p, size_t at,        \
                                     const lane_t *row, enum vary vary)                                            \
    {                                                                                                              \
        lane_t c[4];                                                                                               \
        for (size_t k = 0; k < 4; k++)                                                                             \
            c[k] = load_##kernel(p, at + k * LANES, row, vary);                                                    \
        return block_##kernel(x, y, c, p, false);                                                                  \
    }                                                                                                              \
    INLINE void cycle_##kernel(const element_##in *x, element_##out *y, size_t n, size_t rows, const params_t *p,  \
                               size_t first, enum vary vary)                                                       \
    {                                                                                                              \
        const size_t total = n * rows;                                                                             \
        const bool overlap = sizeof *x != sizeof *y;                                                               \
        size_t i = stream_head(x, y, sizeof *x, sizeof *y, total, false);                                          \
        if (n < BLOCK) {                                                                                           \
            for (; rows > 0; rows--, x += n, y += n)                                                               \
                part_##kernel(x, y, n, p, first, true);                                                            \
            return;                                                                                                \
        }                                                                                                          \
        if (i && overlap)                                                                                          \
            step_##kernel(x, y, p, first, true);                                                                   \
        else if (i)                                                                                                \
            part_##kernel(x, y, i, p, first, true);                                                                \
        const lane_t row = set_##kernel(p, first, NULL, VARY_ALL);                                                 \
        size_t at = i; /* in the row */                                                                            \
        if (overlap && FOURS_PAY(n, vary, sizeof *x > sizeof *y)) {                                                \
            const size_t fours = (total - i) / (BLOCKS * n); /* of rows that begin here, and go on */              \
            (vary == VARY_ALL ? fours_all_##kernel : fours_scale_##kernel)(x + i, y + i, n, 0, n, fours, p,        \
                                                                           first + i);                             \
            i += fours * BLOCKS * n;                                                                               \
        }                                                                                                          \
        for (; i + BLOCKS * BLOCK <= total; i += BLOCKS * BLOCK) {                                                 \
            const size_t before = at;                                                                              \
            fixed_lows least[BLOCKS];                                                                              \
            UNROLL(BLOCKS) for (size_t k = 0; k < BLOCKS; k++)                                                     \
            {                                                                                                      \
                least[k] = lanes_##kernel(x + i + k * BLOCK, y + i + k * BLOCK, p, first + at, &row, vary);        \
                at += BLOCK;                                                                                       \
                at -= at >= n ? n : 0;                                                                             \
            }                                                                                                      \
            if (doubts_##kernel(least_of(least)))                                                                  \
                again_lanes_##kernel(x + i, y + i, n, p, first, before, DOUBTFUL(kernel, least));                  \
        }                                                                                                          \
        for (; i + BLOCK <= total; i += BLOCK) {                                                                   \
            step_##kernel(x + i, y + i, p, first + at, true);                                                      \
            at += BLOCK;                                                                                           \
            at -= at >= n ? n : 0;                                                                                 \
        }                                                                                                          \
        const size_t rest = total - i;                                                                             \
        if (rest && overlap)                                                                                       \
            step_##kernel(x + total - BLOCK, y + total - BLOCK, p, first + n - BLOCK, true);                       \
        else if (rest)                                                                                             \
            part_##kernel(x + i, y + i, rest, p, first + at, true);                                                \
    }

#define DEFINE_STRIPS(kernel, in, out, params_t, lane_t)                                                           \
    INLINE void strips_##kernel(const element_##in *x, element_##out *y, size_t n, size_t rows, size_t stride,     \
                                const params_t *p, size_t first, enum vary vary)                                   \
    {                                                                                                              \
        if (sizeof *x != sizeof *y && n >= 2 * BLOCK) {                                                            \
            const size_t head = stream_head(x, y, sizeof *x, sizeof *y, LONG_WALK, false), fours = rows / BLOCKS;  \
            (vary == VARY_ALL ? fours_all_##kernel : fours_scale_##kernel)(x, y, n, head, stride, fours, p, first);\
            rows -= fours * BLOCKS, x += fours * BLOCKS * stride, y += fours * BLOCKS * stride;                    \
        }                                                                                                          \
        for (; rows > 0; rows--, x += stride, y += stride)                                                         \
            cycle_##kernel(x, y, n, 1, p, first, vary);                                                            \
    }

/* All of a kernel, but for what it does in other ways: sweep_rows_<kernel>, sweep_lanes_<kernel>. */
#define DEFINE_STREAM(kernel, in, out, params_t, lane_t)                                                           \
    DEFINE_STEP(kernel, in, out, params_t, lane_t)                                                                 \
    DEFINE_RUNS(kernel, in, out, params_t, lane_t)                                                                 \
    DEFINE_FOURS(kernel, in, out, params_t, lane_t)                                                                \
    DEFINE_CYCLE(kernel, in, out, params_t, lane_t)                                                                \
    DEFINE_STRIPS(kernel, in, out, params_t, lane_t)                                                               \
    INLINE void sweep_rows_##kernel(const element_##in *x, element_##out *y, size_t n, size_t rows, size_t stride, \
                                    const params_t *p, size_t first, enum vary vary, bool stream)                  \
    {                                                                                                              \
        const size_t together = stride == n ? rows : 1;                                                            \
        /* Non-temporal stores must be aligned. */                                                                 \
        stream = stream && n * together >= LONG_WALK && (uintptr_t)y % sizeof *y == 0;                             \
        for (; rows > 0; rows -= together, first += together, x += stride, y += stride)                            \
            if (stream)                                                                                            \
                runs_##kernel(x, y, n, together, p, first, VARY_ALL, true);                                        \
            else if (vary == VARY_ALL)                                                                             \
                runs_##kernel(x, y, n, together, p, first, VARY_ALL, false);                                       \
            else                                                                                                   \
                runs_##kernel(x, y, n, together, p, first, VARY_SCALE, false);                                     \
    }                                                                                                              \
    INLINE void sweep_lanes_##kernel(const element_##in *x, element_##out *y, size_t n, size_t rows, size_t stride,\
                                     const params_t *p, size_t first, enum vary vary)                              \
    {                                                                                                              \
        if (rows == 1 || stride == n)                                                                              \
            cycle_##kernel(x, y, n, rows, p, first, vary);                                                         \
        else                                                                                                       \
            strips_##kernel(x, y, n, rows, stride, p, first, vary);                                                \
    }

/* What kernels that are exact at once have in place of doubts. */
#define NO_DOUBTS(kernel, in, out, params_t)                                                                       \
    INLINE bool doubts_##kernel(fixed_lows least)                                                                  \
    {                                                                                                              \
        (void)least;                                                                                               \
        return false;                                                                                              \
    }                                                                                                              \
    INLINE void exact_##kernel(const element_##in *x, element_##out *y, const params_t *p, size_t at, bool lanes,  \
                               size_t cut)                                                                         \
    {                                                                                                              \
        (void)x, (void)y, (void)p, (void)at, (void)lanes, (void)cut;                                               \
    }
