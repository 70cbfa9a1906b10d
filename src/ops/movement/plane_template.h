/* SPDX-License-Identifier: Apache-2.0
 *
 * A plane of runs of BYTES bytes, 1, 2, 3, 4, 8 or 16: included by strided_copy.c for each, with BYTES defined before.
 * Defines plane_<BYTES>, a plane_fn.
 *
 * memcpy of a constant size is one load and one store for any alignment.  Fills and transpositions have loops of their
 * own: compilers vectorize fills, and transpositions go in square tiles, so that both sides stay in the first cache.
 */
#define JOIN(name, bytes) name##_##bytes
#define EXPAND(name, bytes) JOIN(name, bytes)
#define NAME(name) EXPAND(name, BYTES)

static void NAME(copy_row)(const unsigned char *from, unsigned char *to, size_t count, ptrdiff_t step_from,
                           ptrdiff_t step_to)
{
    for (size_t c = 0; c < count; c++, from += step_from, to += step_to)
        memcpy(to, from, BYTES);
}

static void NAME(fill_row)(const unsigned char *restrict from, unsigned char *restrict to, size_t count)
{
    unsigned char value[BYTES];
    memcpy(value, from, BYTES);
    for (size_t c = 0; c < count; c++)
        memcpy(to + c * BYTES, value, BYTES);
}

#if BYTES <= 2
/* Backwards: bytes by words of eight, and two of them by vectors, which gain nothing from longer elements. */
static void NAME(reverse_row)(const unsigned char *restrict from, unsigned char *restrict to, size_t count)
{
#if BYTES == 1
    for (uint64_t eight; count >= 8; count -= 8, from -= 8, to += 8) {
        memcpy(&eight, from - 7, 8);
        eight = __builtin_bswap64(eight);
        memcpy(to, &eight, 8);
    }
#endif
    for (size_t c = 0; c < count; c++)
        memcpy(to + c * BYTES, from - c * BYTES, BYTES);
}
#endif

static void NAME(transpose)(const plane *p, const unsigned char *restrict from, unsigned char *restrict to)
{
    for (size_t r0 = 0; r0 < p->rows; r0 += TILE)
        for (size_t c0 = 0; c0 < p->columns; c0 += TILE) {
            size_t rows = p->rows - r0 < TILE ? p->rows - r0 : TILE;
            size_t columns = p->columns - c0 < TILE ? p->columns - c0 : TILE;
            const unsigned char *f = from + r0 * BYTES + (ptrdiff_t)c0 * p->column_from;
            unsigned char *t = to + (ptrdiff_t)r0 * p->row_to + c0 * BYTES;
            if (rows < columns)
                for (size_t r = 0; r < rows; r++)
                    NAME(copy_row)(f + r * BYTES, t + (ptrdiff_t)r * p->row_to, columns, p->column_from, BYTES);
            else
                for (size_t c = 0; c < columns; c++)
                    NAME(copy_row)(f + (ptrdiff_t)c * p->column_from, t + c * BYTES, rows, BYTES, p->row_to);
        }
}

static void NAME(plane)(const plane *p, const unsigned char *from, unsigned char *to)
{
    const bool dense_to = p->column_to == BYTES;
    if (dense_to && p->row_from == BYTES && p->rows > 1) {
        if (!tq_plane_transpose(p, from, to))
            NAME(transpose)(p, from, to);
        return;
    }
    for (size_t r = 0; r < p->rows; r++, from += p->row_from, to += p->row_to)
        if (dense_to && p->column_from == 0)
            NAME(fill_row)(from, to, p->columns);
#if BYTES <= 2
        else if (dense_to && p->column_from == -BYTES)
            NAME(reverse_row)(from, to, p->columns);
#endif
        else
            NAME(copy_row)(from, to, p->columns, p->column_from, p->column_to);
}

#undef JOIN
#undef EXPAND
#undef NAME
#undef BYTES
