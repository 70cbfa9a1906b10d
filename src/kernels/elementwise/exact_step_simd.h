/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the function step of walk_simd.h for kernels that compute each vector by the exact rule.  The
 * includer defines KERNEL, IN, OUT, PARAMS and lane_t for walk_simd.h, which it includes next; result_t, which this
 * file undefines; and the functions
 *
 *   lane_t load_KERNEL(p, at)              the parameters of entries from `at` on, one a lane
 *   result_t vector_KERNEL(x, &lane, p)    a vector of results, which store4_OUT stores
 */
INLINE void NAMED(step)(const in_t *x, out_t *y, const PARAMS *p, const lane_t *row, size_t at, const bool lanes,
                        const bool stream, int rule)
{
    result_t result[4];
    (void)rule;
    for (size_t k = 0; k < 4; k++) {
        const lane_t c = lanes ? NAMED(load)(p, at + k * LANES) : *row;
        result[k] = NAMED(vector)(x + k * LANES, &c, p);
    }
    GLUE(store4, OUT)(y, result, stream);
}
#undef result_t
