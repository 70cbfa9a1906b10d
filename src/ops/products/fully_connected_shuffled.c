/* SPDX-License-Identifier: Apache-2.0
 *
 * FULLY_CONNECTED with weights_format SHUFFLED4x16INT8: UINT8 rows, 1 or 4 of them, UINT8 weights and INT32 bias to
 * INT16.
 *
 *     acc = sum (x ^ 128) * w', + bias; out = clamp(MBQM(acc, f32(s_x * s_w) / s_out))
 *
 * Zero points of input and weights count as 128, whatever the file says, and the output's as 0 but in the bounds of the
 * reference's activation; the weights' bytes are stored less 128.  w' is stored in blocks of 4 units
 * by 16 columns: [unit / 4][column / 16][unit % 4][column % 16].  Output 1 is the reordered input, x ^ 128; 4 rows are
 * stored in blocks [column / 16][row][column % 16].
 *
 * Numerics: XNNPACK does not run these weights.  The optimized kernel ignores the activation and clamps to INT16.  It
 * adds the products of columns k and k + 8 of a block in 16 bits, so that -128 * -128 twice gives -2^15.
 *
 * Source: LiteRT f6745779, tflite/kernels/fully_connected.cc, internal/reference/fully_connected.h,
 * internal/optimized/optimized_ops.h (ShuffledFullyConnected).
 */
#include "ops/products/fully_connected_shuffled.h"

#include "ops/check.h"
#include "ops/products/dot.h"
#include "ops/parallel.h"
#include "ops/quantized.h"

enum { UNITS = 4, COLUMNS = 16, HALF = COLUMNS / 2, ROWS = 4 };

typedef struct shuffled {
    size_t rows, columns, units;
    tq_fixed by;
    int32_t low, high;
    int32_t wrapping_pair; /* a sum of two products that 16 bits wrap to its negative; 0: sums do not wrap */
    const tq_node *node; /* set by eval */
} shuffled;

/* x ^ 128 as int8: x less the zero point. */
static int8_t flipped(uint8_t x)
{
    return (int8_t)(x - 128);
}

static void shuffle(const shuffled *s, const uint8_t *x, uint8_t *to)
{
    for (size_t block = 0; block < s->columns; block += COLUMNS)
        for (size_t row = 0; row < s->rows && !tq_stop_after(COLUMNS); row++)
            for (size_t k = 0; k < COLUMNS; k++)
                *to++ = (uint8_t)(x[row * s->columns + block + k] ^ 0x80);
}

static int32_t sum_of(const shuffled *s, size_t row, size_t unit)
{
    const uint8_t *x = (const uint8_t *)s->node->in[0]->data + row * s->columns;
    const int8_t *w = (const int8_t *)s->node->in[1]->data + unit / UNITS * UNITS * s->columns + unit % UNITS * COLUMNS;
    const tq_tensor *bias = s->node->in_count > 2 ? s->node->in[2] : NULL;
    int64_t sum = bias ? ((const int32_t *)bias->data)[unit] : 0; /* |sum| <= columns * 2^14, columns < 2^31 */
    for (size_t block = 0; block < s->columns; block += COLUMNS)
        for (size_t k = 0; k < HALF; k++) {
            const int32_t pair = flipped(x[block + k]) * w[block * UNITS + k] +
                                 flipped(x[block + k + HALF]) * w[block * UNITS + k + HALF];
            sum += pair == s->wrapping_pair ? -pair : pair;
        }
    return tq_wrap_i32(sum);
}

static void eval_units(void *context, size_t begin, size_t end)
{
    size_t work = 0;
    const shuffled *s = context;
    int16_t *out = s->node->out[0]->data;
    for (size_t row = 0; row < s->rows; row++)
        for (size_t unit = begin; unit < end && !tq_stop_count(&work, s->columns); unit++)
            out[row * s->units + unit] =
                (int16_t)tq_clamp_i64(tq_multiply_fixed(sum_of(s, row, unit), s->by), s->low, s->high);
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    shuffled s = *(const shuffled *)node->state;
    s.node = node;
    if (node->out[1])
        shuffle(&s, node->in[0]->data, node->out[1]->data);
    tq_parallel_for(s.units, tq_grain(s.rows * s.columns), node->threads, eval_units, &s);
    return TQ_OK;
}

static tq_status check(const tq_node *node, tq_error *error)
{
    for (int i = 0; i < 2; i++) {
        TQ_TRY(tq_check_input(node, i, TQ_T(UINT8), error));
        TQ_TRY(tq_check_input_scale(node, i, error));
    }
    TQ_TRY(tq_check_rank(node, 1, 2, 2, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT16), error));
    TQ_TRY(tq_check_output_scale(node, 0, error));
    if (node->out[1])
        TQ_TRY(tq_check_output(node, 1, TQ_T(UINT8), error));
    if (node->in_count < 3 || !node->in[2])
        return TQ_OK;
    TQ_TRY(tq_check_input(node, 2, TQ_T(INT32), error));
    if (tq_tensor_count(node->in[2]) != (size_t)node->in[1]->shape.dims[0])
        return tq_input_fail(node, 2, error, "has %zu elements; the weights have %d units",
                             tq_tensor_count(node->in[2]), node->in[1]->shape.dims[0]);
    return TQ_OK;
}

tq_status tq_prepare_fully_connected_shuffled(tq_node *node, const tq_product_plan *plan, tq_error *error)
{
    TQ_TRY(check(node, error));
    if (plan->depth == 0 || plan->depth % COLUMNS || plan->channels % UNITS)
        return tq_input_fail(node, 1, error,
                             "has %zu units of %zu columns; shuffled weights have multiples of 4 and 16",
                             plan->channels, plan->depth);
    if (plan->rows != 1 && plan->rows != ROWS)
        return tq_input_fail(node, 0, error, "has %zu rows; shuffled weights take 1 or 4", plan->rows);
    shuffled *s;
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->rows = plan->rows;
    s->columns = plan->depth;
    s->units = plan->channels;
    const float product = tq_scale_of(node->in[0]) * tq_scale_of(node->in[1]);
    TQ_TRY(tq_fixed_find(node, (double)product / (double)tq_scale_of(node->out[0]), &s->by, error));
    tq_activation_range(node, tq_get_int(&node->options.table, TQ_FullyConnectedOptions_fused_activation_function),
                        &s->low, &s->high);
    if (!tq_is_reference(node)) {
        s->low = INT16_MIN;
        s->high = INT16_MAX;
        s->wrapping_pair = 1 << 15;
    }
    if (node->out[1])
        TQ_TRY(tq_output_shape(node, 1, &node->in[0]->shape, error));
    node->eval = eval;
    return TQ_OK;
}
