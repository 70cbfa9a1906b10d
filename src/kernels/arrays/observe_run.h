/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: one run of floats or doubles.  observe.c defines, and this file undefines at its end:
 *
 *   NAME        begins the names of functions
 *   TYPE        float or double, with
 *   ABSOLUTE    fabsf or fabs, and
 *   GREATEST    FLT_MAX or DBL_MAX
 *
 * Compilers may not reorder a minimum of floats, so a block is cut by hand into LANES, which they vectorize.  v - v is
 * 0 for finite v and NaN for others, so the sum of v - v says whether all values are finite.  A block with other values
 * discards its bounds and is computed again, value by value.
 */
#define LOCAL__(name, part) name##_##part
#define LOCAL_(name, part) LOCAL__(name, part)
#define LOCAL(part) LOCAL_(NAME, part)

TQ_BODY void LOCAL(one)(TYPE v, tq_observed *o)
{
    if (ABSOLUTE(v) <= GREATEST) {
        o->min = v < o->min ? v : o->min;
        o->max = v > o->max ? v : o->max;
        o->finite++;
    } else if (v != v)
        o->nan++;
    else
        o->infinite++;
}

TQ_BODY bool LOCAL(clean)(const TYPE *x, size_t n, tq_observed *o)
{
    TYPE low[LANES], high[LANES], zero[LANES];
    for (int k = 0; k < LANES; k++) {
        low[k] = high[k] = x[k];
        zero[k] = 0;
    }
    for (size_t i = 0; i < n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            TYPE v = x[i + k];
            low[k] = v < low[k] ? v : low[k];
            high[k] = v > high[k] ? v : high[k];
            zero[k] += v - v;
        }
    for (int k = 1; k < LANES; k++) {
        low[0] = low[k] < low[0] ? low[k] : low[0];
        high[0] = high[k] > high[0] ? high[k] : high[0];
        zero[0] += zero[k];
    }
    if (zero[0] != 0) /* NaN */
        return false;
    o->min = low[0] < o->min ? low[0] : o->min;
    o->max = high[0] > o->max ? high[0] : o->max;
    o->finite += n;
    return true;
}

TQ_BODY void LOCAL(body)(const TYPE *x, size_t n, tq_observed *o)
{
    while (n) {
        size_t block = n >= BLOCK ? BLOCK : n >= LANES ? n - n % LANES : n;
        if (block < LANES || !LOCAL(clean)(x, block, o))
            for (size_t i = 0; i < block; i++)
                LOCAL(one)(x[i], o);
        x += block;
        n -= block;
    }
}

#undef LOCAL__
#undef LOCAL_
#undef LOCAL
#undef NAME
#undef TYPE
#undef ABSOLUTE
#undef GREATEST
