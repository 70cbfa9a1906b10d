/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the walk of one kernel over the rows of an array.  The includer defines, and this file undefines at its
 * end:
 *
 *   KERNEL      ends the names of the kernel's functions, below <name>_KERNEL
 *   IN, OUT     elements: i8, f32 ...
 *   PARAMS      the record of parameters
 *   lane_t      the parameters of a vector of elements
 *
 * and the functions below.  A block is BLOCK elements.
 *
 *   lane_t splat_KERNEL(p, at)     the parameters of entry `at`, for every lane
 *   void step_KERNEL(x, y, p, row, at, lanes, stream, rule)
 *       computes a block with the parameters *row of entry `at`; lanes: with the parameters of entries from `at` on
 *   void pair_KERNEL(x, y, x2, y2, p, row, at, lanes, rule)
 *       only where the includer defines PAIRED, which this file undefines: computes two blocks with the same parameters
 *
 * It defines rows_KERNEL and lanes_KERNEL: the row kernel and the lanes kernel of kernels/elementwise.h.
 */

/* One block at the end of a row. */
APART void NAMED(block)(const in_t *x, out_t *y, const PARAMS *p, size_t at, bool lanes, int rule)
{
    const lane_t row = NAMED(splat)(p, at);
    NAMED(step)(x, y, p, &row, at, lanes, false, rule);
}

/* n <= BLOCK elements, through copies on the stack: nothing outside the arrays is read or written. */
RARELY void NAMED(part)(const in_t *x, out_t *y, size_t n, const PARAMS *p, size_t at, bool lanes, int rule)
{
    in_t from[BLOCK] = {0};
    out_t to[BLOCK];
    memcpy(from, x, n * sizeof *x);
    NAMED(block)(from, to, p, at, lanes, rule);
    memcpy(y, to, n * sizeof *y);
}

/* The elements of a row from i on. */
INLINE void NAMED(rest)(const in_t *x, out_t *y, size_t i, size_t n, const PARAMS *p, const lane_t *row, size_t first,
                        const bool lanes, int rule)
{
#ifdef PAIRED
    if (!lanes)
        for (; i + 2 * BLOCK <= n; i += 2 * BLOCK)
            NAMED(pair)(x + i, y + i, x + i + BLOCK, y + i + BLOCK, p, row, first, false, rule);
#endif
    for (; i + BLOCK <= n; i += BLOCK)
        NAMED(step)(x + i, y + i, p, row, lanes ? first + i : first, lanes, false, rule);
    if (i == n)
        return;
    /* Fewer than a block remain: the row's last whole block is computed once more.  Not where elements have one size: x
       and y may be the same array, whose input is overwritten by now. */
    if (n >= BLOCK && sizeof *x != sizeof *y)
        NAMED(block)(x + n - BLOCK, y + n - BLOCK, p, lanes ? first + n - BLOCK : first, lanes, rule);
    else
        NAMED(part)(x + i, y + i, n - i, p, lanes ? first + i : first, lanes, rule);
}

/* The start of a long row: the elements before the first aligned one, in the array with the larger elements or, for
   non-temporal stores, in the output; and then all blocks with non-temporal stores.  Returns their count. */
INLINE size_t NAMED(start)(const in_t *x, out_t *y, size_t n, const PARAMS *p, const lane_t *row, size_t first,
                           int rule)
{
    const bool stream = p->stream, by_output = stream || sizeof *y >= sizeof *x;
    const size_t size = by_output ? sizeof *y : sizeof *x;
    const size_t past = (by_output ? (uintptr_t)y : (uintptr_t)x) % VECTOR_BYTES;
    if (past % size != 0 || (!by_output && n < 8 * LONG_WALK)) /* unaligned loads cost less than unaligned stores */
        return 0;
    size_t i = past ? (VECTOR_BYTES - past) / size : 0;
    if (i)
        NAMED(part)(x, y, i, p, first, false, rule);
    if (stream) {
        for (; i + BLOCK <= n; i += BLOCK)
            NAMED(step)(x + i, y + i, p, row, first, false, true, rule);
        end_stream();
    }
    return i;
}

APART void NAMED(rows)(const in_t *x, out_t *y, size_t n, size_t rows, size_t stride, const PARAMS *params,
                       size_t first, int rule)
{
    const PARAMS copy = *params, *p = &copy; /* a copy that stores to y cannot alias */
    for (; rows > 0; rows--, x += stride, y += stride, first++) {
        const lane_t row = NAMED(splat)(p, first);
        const size_t begun = n < LONG_WALK ? 0 : NAMED(start)(x, y, n, p, &row, first, rule);
        NAMED(rest)(x, y, begun, n, p, &row, first, false, rule);
    }
}

APART void NAMED(lanes)(const in_t *x, out_t *y, size_t n, size_t rows, size_t stride, const PARAMS *params,
                        size_t first, int rule)
{
    const PARAMS copy = *params, *p = &copy;
    const lane_t row = NAMED(splat)(p, first);
#ifdef PAIRED
    /* Pairs of rows load each parameter once for two rows.  That pays for short rows and for kernels with many
       parameters; reading two long rows in turns costs more than loading two parameters again.  The elements after the
       last whole block are computed as in rest_KERNEL. */
    const bool whole = n % BLOCK == 0 || (n > BLOCK && sizeof *x != sizeof *y);
    const bool paired = whole && (n <= SHORT_ROW || sizeof(lane_t) > 2 * VECTOR_BYTES);
    for (; rows >= 2 && paired; rows -= 2, x += 2 * stride, y += 2 * stride) {
        OPAQUE(x2, x + stride);
        OPAQUE(y2, y + stride);
        size_t i = 0;
        for (; i + BLOCK <= n; i += BLOCK)
            NAMED(pair)(x + i, y + i, x2 + i, y2 + i, p, &row, first + i, true, rule);
        if (i < n) {
            NAMED(block)(x + n - BLOCK, y + n - BLOCK, p, first + n - BLOCK, true, rule);
            NAMED(block)(x2 + n - BLOCK, y2 + n - BLOCK, p, first + n - BLOCK, true, rule);
        }
    }
#endif
    for (; rows > 0; rows--, x += stride, y += stride)
        NAMED(rest)(x, y, 0, n, p, &row, first, true, rule);
}

#undef KERNEL
#undef IN
#undef OUT
#undef PARAMS
#undef lane_t
#undef PAIRED
