/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: a scalar body of depthwise_scalar.c, which defines, and this file undefines at its end:
 *
 *   IN                       the row's name in depthwise.def
 *   in_t, weight_t, sum_t    elements, weights and sums
 *   FIRST(bias)              the start of a sum
 *   MULTIPLY_ADD(x, w, sum)
 *   LAST(sum, bias)          the sum with its bias
 *   FINISH(t, sum)           the sum, clamped to the bounds of tile t
 */
#define LOCAL__(name, in) name##_##in
#define LOCAL_(name, in) LOCAL__(name, in)
#define LOCAL(name) LOCAL_(name, IN)
#define KERNEL_NAME LOCAL_(LOCAL(tq_depthwise), _scalar)

static void LOCAL(depthwise)(const tq_depthwise_tile *t)
{
    for (size_t r = 0; r < t->rows; r++)
        for (size_t v = 0; v < t->vectors; v++) {
            const weight_t *weights = (const weight_t *)(const void *)(t->weights + v * t->vector_bytes);
            sum_t sums[LANES];
            const sum_t *bias = (const sum_t *)t->bias + v * LANES;
            for (size_t c = 0; c < LANES; c++)
                sums[c] = FIRST(bias[c]);
            for (size_t tap = 0; tap < t->taps; tap++, weights += LANES) {
                const char *pixel = (const char *)t->row[tap * t->step + r] + t->offset;
                const in_t *x = (const in_t *)(const void *)pixel + v * LANES;
                for (size_t c = 0; c < LANES; c++)
                    sums[c] = MULTIPLY_ADD(x[c], weights[c], sums[c]);
            }
            sum_t *to = (sum_t *)(void *)((char *)t->sums + r * t->sums_stride) + v * LANES;
            for (size_t c = 0; c < LANES; c++)
                to[c] = FINISH(t, LAST(sums[c], bias[c]));
        }
}
const tq_depthwise_kernel KERNEL_NAME = {
    .isa = "scalar",
    .lanes = LANES,
    .group = 1,
    .weight_bytes = sizeof(weight_t),
    .tile = LOCAL(depthwise),
    .stores = &tq_stores__scalar,
};

#undef LOCAL__
#undef LOCAL_
#undef LOCAL
#undef KERNEL_NAME
#undef IN
#undef in_t
#undef weight_t
#undef sum_t
#undef FIRST
#undef LAST
#undef MULTIPLY_ADD
#undef FINISH
