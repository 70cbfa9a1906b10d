/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of 8-bit codes whose parameters vary along them, GROUP rows at a time: parameters are loaded once for all of
 * them, since a load costs as much of a processor's time as an operation on what is loaded.
 *
 * A group is a block of each of its rows: first the left half of each, then the right, so that half a block's
 * parameters stay in registers.  Codes are stored before it is known whether they can be trusted, since input and
 * output are disjoint here; where one cannot, the group is done again, block by block.
 */
#define GROUP 8
#define UNROLL(times) UNROLL_(GCC unroll times)
#define UNROLL_(text) _Pragma(#text)

/* groups_<kernel>: whole groups of rows of n elements, n a multiple of BLOCK.  of_lane(x, &lane, slopes) is a vector in
   fixed point; load gives what it needs of a vector's parameters in registers; doubtful: fixed_doubts' limit. */
#define DEFINE_GROUPS(kernel, in, out, params_t, row_t, lane_t, load_row, load, of_lane, doubtful)                     \
    RARELY void again_##kernel(const element_##in *x, element_##out *y, size_t stride, const params_t *p, size_t at)   \
    {                                                                                                                  \
        const row_t row = load_row(p, at, false);                                                                      \
        for (int r = 0; r < GROUP; r++, x += stride, y += stride)                                                      \
            step_##kernel(x, y, p, &row, at, VARY_ALL, false);                                                         \
    }                                                                                                                  \
    static __attribute__((noinline, unused)) TARGET void groups_##kernel(                                              \
        const element_##in *x0, element_##out *y0, size_t n, size_t rows, size_t stride, const params_t *params,       \
        size_t first)                                                                                                  \
    {                                                                                                                  \
        const params_t copy = *params, *p = &copy;                                                                     \
        const uint8_t limit = doubtful;                                                                                \
        /* The next group is asked for: rows read by turns are not what processors expect. */                          \
        size_t line = n == stride ? 2 * LANES * sizeof *x0 : 0;                                                        \
        for (; rows >= GROUP; rows -= GROUP, x0 += GROUP * stride, y0 += GROUP * stride) {                             \
            const char *ahead = (const char *)x0 + (line ? GROUP * n * sizeof *x0 : 0);                                \
            for (size_t i = 0; i < n; i += BLOCK) {                                                                    \
                const element_##in *x = x0 + i;                                                                        \
                element_##out *y = y0 + i;                                                                             \
                const float *slope = p->slope + first + i;                                                             \
                fixed_half half[GROUP];                                                                                \
                lane_t a = load(p, first + i), b = load(p, first + i + LANES);                                         \
                UNROLL(GROUP) for (int r = 0; r < GROUP; r++, x += stride, ahead += line)                              \
                {                                                                                                      \
                    __builtin_prefetch(ahead);                                                                         \
                    half[r] = fixed_halve(of_lane(x, &a, slope), of_lane(x + LANES, &b, slope + LANES));               \
                }                                                                                                      \
                x = x0 + i + 2 * LANES;                                                                                \
                slope += 2 * LANES;                                                                                    \
                a = load(p, first + i + 2 * LANES);                                                                    \
                b = load(p, first + i + 3 * LANES);                                                                    \
                fixed_lows least;                                                                                      \
                UNROLL(GROUP) for (int r = 0; r < GROUP; r++, x += stride, y += stride, ahead += line)                 \
                {                                                                                                      \
                    __builtin_prefetch(ahead);                                                                         \
                    fixed_half right = fixed_halve(of_lane(x, &a, slope), of_lane(x + LANES, &b, slope + LANES));      \
                    struct fixed_block block = fixed_join(half[r], right);                                             \
                    least = r ? fixed_least(least, block.least) : block.least;                                         \
                    put(y, fixed_codes_##out(&block), false);                                                          \
                }                                                                                                      \
                if (fixed_doubts(least, limit))                                                                        \
                    again_##kernel(x0 + i, y0 + i, stride, p, first + i);                                              \
            }                                                                                                          \
        }                                                                                                              \
    }

/* What a sweep does first: the groups of its rows, where rows are whole blocks. */
#define WALK_GROUPS(kernel)                                                  \
    do {                                                                     \
        if (n % BLOCK == 0 && n <= TQ_GROUPED && rows >= GROUP) {               \
            groups_##kernel(x, y, n, rows, stride, p, first);                \
            x += rows / GROUP * GROUP * stride;                              \
            y += rows / GROUP * GROUP * stride;                              \
            rows %= GROUP;                                                   \
        }                                                                    \
    } while (0)
