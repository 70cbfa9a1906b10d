/* SPDX-License-Identifier: Apache-2.0
 *
 * ADD, SUB and SQUARED_DIFFERENCE of quantized values.
 *
 *   ADD, SUB      T = 2 max(s1, s2), L = 20 (INT16: 15); each input MBQM((q - z) 2^L, s / T); their sum or
 *                 difference MBQM(., T / (2^L so)) + zo.  INT16 with pot_scale_int16 and scales that are all powers of
 *                 two: one input is shifted right, and sums saturate.
 *   SQUARED_DIFFERENCE   the same with L = 7, and T^2 / (2^14 so) for the square
 *
 * The optimized ADD computes whole blocks otherwise.  Blocks of 16 elements: an input's right shift is subtracted from
 * L, so that the shift does not round.  Blocks of 8, for UINT8 and where one input has stride 0 in the inner dimension:
 * the right shift truncates.
 *
 * XNNPACK's ADD and SUB of 8 bits: r = f32(s / so) for each input, n = 20 - floor(log2(the larger)), m = even(r 2^n);
 * floor((m1 (a - z1) +- m2 (b - z2)) / 2^n + 1/2) + zo
 *
 * Source: LiteRT f6745779, tflite/kernels/add.cc, sub.cc, squared_difference.cc, internal/optimized/integer_ops/add.h;
 * XNNPACK 75db3c09, src/microparams-init.c, src/qs8-vaddc.
 */
#include <math.h>
#include <stddef.h>

#include "base/sizes.h"
#include "ops/elementwise/binary_quantized.h"
#include "ops/parallel.h"
#include "quant/fixed_math.h"

typedef struct state {
    tq_pair_state pair;
    tq_pair in_blocks; /* the optimized ADD: the parameters in whole blocks */
    size_t block;      /* elements of a block; 0: no blocks */
    tq_broadcast_fn loop;  /* of these parameters, for a part of a block, too */
    const char *out;       /* the output, while eval_quick_blocks runs */
} state;

TQ_BODY int32_t input_of(int32_t q, int32_t zero_point, int32_t left_shift, tq_fixed by)
{
    return tq_multiply_fixed((q - zero_point) * left_shift, by);
}

#define INPUT(q, which) input_of(q, p->zero_##which, p->left_shift, p->which)
/* y or, for SUB, -y, with the bits of int32. */
TQ_BODY int32_t signed_term(int32_t y, const tq_pair *p)
{
    return (y ^ p->negates) - p->negates;
}

TQ_BODY int32_t add(int32_t x, int32_t y, const tq_pair *p)
{
    return tq_pair_output(INPUT(x, first) + signed_term(INPUT(y, second), p), p);
}

TQ_BODY int32_t squared_difference(int32_t x, int32_t y, const tq_pair *p)
{
    int32_t difference = INPUT(x, first) - INPUT(y, second);
    return tq_pair_output(difference * difference, p);
}

#define LANE_INPUT(q, which) tq_lane_multiply((q - p->zero_##which) * p->left_shift, p->lane_##which)
TQ_BODY int32_t lane_add(int32_t x, int32_t y, const tq_pair *p)
{
    return tq_pair_lane_output(LANE_INPUT(x, first) + signed_term(LANE_INPUT(y, second), p), p);
}

/* The inputs' terms are at most 255 2^7 by multipliers up to 1/2, and the square of their difference at most 2^30. */
TQ_BODY int32_t lane_squared_difference(int32_t x, int32_t y, const tq_pair *p)
{
    const int32_t difference = LANE_INPUT(x, first) - LANE_INPUT(y, second);
    return tq_pair_lane_output(difference * difference, p);
}

/* INT16 with power-of-two scales: at most one input is shifted, by first.shift or second.shift <= 0.  low and high lie
   within INT16, to which sums saturate. */
TQ_BODY int32_t shifted_add(int32_t x, int32_t y, const tq_pair *p)
{
    int32_t second = signed_term(tq_rounding_divide_by_pot(y, -p->second.shift), p);
    return tq_clamp_i64(tq_rounding_divide_by_pot(x, -p->first.shift) + second, p->low, p->high);
}

TQ_PAIR_DEFINE(add, lane_add)
TQ_PAIR_8BIT(squared_difference_8bit, , squared_difference)
#define LANE_SQUARES(isa, target) TQ_PAIR_8BIT(lane_squares_##isa, target, lane_squared_difference)
TQ_EVERY_ISA_TO_AVX2(LANE_SQUARES)
static const tq_broadcast_fn lane_squares[TQ_ISAS] = TQ_ISA_FUNCTIONS_TO_AVX2(lane_squares);
TQ_BROADCAST_2_SMALL(shifted_add_16bit, int16_t, int16_t, int16_t, tq_pair, shifted_add(x, y, &p))

/* Whether |q - z| < 2^10 for the values q of 8 bits. */
static bool is_near(int32_t zero_point)
{
    return zero_point >= -768 && zero_point <= 768;
}

/* Bounds: |(q - z) 2^L| < 2^10 2^20, or 2^15 2^15; each multiplier is at most 1/2. */
static bool sums_fit(const tq_pair *p)
{
    const int64_t most = (int64_t)1 << 30;
    return is_near(p->zero_first) && is_near(p->zero_second) && tq_lane_fits(p->first, most) &&
           tq_lane_fits(p->second, most) && tq_lane_fits(p->output, most);
}

static tq_status scale_sums(const tq_node *node, tq_pair *p, int left_shift, int squares, tq_error *error)
{
    float first = tq_scale_of(node->in[0]), second = tq_scale_of(node->in[1]);
    double twice = 2 * (first > second ? first : second); /* doubled in float32 */
    float unit = (float)((int32_t)1 << left_shift * squares) * tq_scale_of(node->out[0]);
    p->left_shift = (int32_t)1 << left_shift;
    TQ_TRY(tq_fixed_find(node, first / twice, &p->first, error));
    TQ_TRY(tq_fixed_find(node, second / twice, &p->second, error));
    TQ_TRY(tq_fixed_find(node, (squares == 2 ? twice * twice : twice) / unit, &p->output, error));
    p->lane_first = tq_lane_fixed_of(p->first);
    p->lane_second = tq_lane_fixed_of(p->second);
    p->lane_output = tq_lane_fixed_of(p->output);
    return TQ_OK;
}

static bool may_shift(const tq_node *node)
{
    const tq_table *options = &node->options.table;
    tq_field_id field =
        node->row.code == TQ_BuiltinOperator_ADD ? TQ_AddOptions_pot_scale_int16 : TQ_SubOptions_pot_scale_int16;
    return options->at != 0 && tq_get_int(options, field) != 0;
}

/* *shifts: whether the form of powers of two computes this node, whose shifts are then set. */
static tq_status find_shifts(const tq_node *node, tq_pair *p, bool *shifts, tq_error *error)
{
    int first, second, output;
    *shifts = may_shift(node) && tq_power_of_two(tq_scale_of(node->in[0]), &first) &&
              tq_power_of_two(tq_scale_of(node->in[1]), &second) && tq_power_of_two(tq_scale_of(node->out[0]), &output);
    if (!*shifts)
        return TQ_OK;
    p->first.shift = first - output;
    p->second.shift = second - output;
    if (p->first.shift > 0 || p->second.shift > 0 || (p->first.shift != 0 && p->second.shift != 0))
        return tq_op_fail(
            node, error, TQ_BAD_OPERATOR,
            "scales that are powers of two, 2^%d and 2^%d to 2^%d, need one input's to equal the output's, "
            "and the other's not to be greater (or pot_scale_int16 to be false)",
            first, second, output);
    return TQ_OK;
}

/* ---- XNNPACK's rule, of 8 bits ---- */

/* |factor| <= 2^21 and |q - z| < 2^8: no overflow. */
TQ_BODY int32_t lane_sum(int32_t x, int32_t y, const tq_pair *p)
{
    int32_t sum = x * p->factor_first + y * p->factor_second + p->offset;
    return tq_lane_quantized(sum >> p->right, p->least, p->most, p->zero_output);
}

TQ_ISA_DEFINE(TQ_PAIR_8BIT, lane_sum, lane_sum)
static const tq_broadcast_fn sum_loops[TQ_ISAS] = TQ_ISA_FUNCTIONS(lane_sum);

/* Sets XNNPACK's factors; false for ratios of scales that XNNPACK does not take. */
static bool scale_factors(const tq_node *node, tq_pair *p)
{
    const float out = tq_scale_of(node->out[0]);
    const float first = tq_scale_of(node->in[0]) / out, second = tq_scale_of(node->in[1]) / out;
    const float larger = first > second ? first : second;
    int exponent;
    if (!(first >= 0x1p-10f && second >= 0x1p-10f && larger < 0x1p8f))
        return false;
    frexpf(larger, &exponent); /* larger < 2^exponent */
    p->right = 21 - exponent;
    p->factor_first = (int32_t)rintf(ldexpf(first, p->right));
    p->factor_second = signed_term((int32_t)rintf(ldexpf(second, p->right)), p);
    p->offset = ((int32_t)1 << (p->right - 1)) - p->factor_first * p->zero_first - p->factor_second * p->zero_second;
    return true;
}

/* ---- the optimized kernel's blocks ---- */

/* Subtracts an input's right shift from L; false where L is smaller. */
static bool fold_shift(tq_lane_fixed *lane, int left_shift)
{
    const int shift = left_shift - lane->right;
    *lane = (tq_lane_fixed){.multiplier = lane->multiplier, .factor = shift < 0 ? 0 : (int32_t)1 << shift};
    return shift >= 0;
}

static void drop_rounding(tq_lane_fixed *lane)
{
    lane->half = lane->fix = 0;
}

/* Whether the runtime's walk of five loops fits: one input has stride 0 in one group of adjacent dimensions, the other
   input in one group outside of it, and no input in the groups inside, between and outside. */
static bool is_fivefold(const tq_broadcast *walk)
{
    int groups[TQ_DIMS], count = 0; /* 1, 2: the first, the second input has stride 0 */
    for (int d = 0; d < walk->rank; d++) {
        int repeated = walk->steps[0][d] == 0 ? 1 : walk->steps[1][d] == 0 ? 2 : 0;
        if (repeated != 0)
            groups[count++] = repeated;
    }
    return count <= 1 || (count == 2 && groups[0] != groups[1]);
}

/* Chooses the block and its parameters.  Blocks begin with each row of the walk. */
static void prepare_blocks(const tq_node *node, state *s, int left_shift)
{
    const tq_broadcast *walk = &s->pair.walk;
    const bool repeats = walk->steps[0][0] == 0 || walk->steps[1][0] == 0;
    const int32_t type = node->in[0]->type;
    s->in_blocks = s->pair.p;
    if ((type == TQ_TensorType_INT16 && (walk->rank > 1 || repeats)) || !is_fivefold(walk) || walk->count == 1)
        return;
    if (type == TQ_TensorType_UINT8 || repeats) {
        drop_rounding(&s->in_blocks.lane_first);
        drop_rounding(&s->in_blocks.lane_second);
        s->block = 8;
    } else if (fold_shift(&s->in_blocks.lane_first, left_shift) && fold_shift(&s->in_blocks.lane_second, left_shift)) {
        s->in_blocks.left_shift = 1;
        s->block = 16;
    }
}

/* Elements [begin, end) of row `row`; begin is a multiple of the block. */
static void run_elements(const tq_node *node, const state *s, size_t row, size_t begin, size_t end)
{
    const tq_broadcast *walk = &s->pair.walk;
    const size_t whole = (end - begin) / s->block * s->block, bytes = walk->out_bytes;
    tq_broadcast_run first = {.params = &s->in_blocks, .n = whole};
    tq_broadcast_run rest = {.params = &s->pair.p, .n = end - begin - whole};
    size_t outer = row;
    for (int i = 0; i < 2; i++)
        first.in[i] = (const char *)node->in[i]->data + begin * walk->steps[i][0];
    for (int d = 1; d < walk->rank; outer /= walk->dims[d], d++)
        for (int i = 0; i < 2; i++)
            first.in[i] = (const char *)first.in[i] + outer % walk->dims[d] * walk->steps[i][d];
    first.out = (char *)node->out[0]->data + (row * walk->dims[0] + begin) * bytes;
    rest.out = (char *)first.out + whole * bytes;
    for (int i = 0; i < 2; i++) {
        first.scalar[i] = rest.scalar[i] = walk->steps[i][0] == 0;
        rest.in[i] = (const char *)first.in[i] + whole * walk->steps[i][0];
    }
    walk->run(&first);
    walk->run(&rest);
}

struct job {
    const tq_node *node;
    const state *s;
};

static void run_rows(void *context, size_t begin, size_t end)
{
    const struct job *job = context;
    for (size_t row = begin; row < end; row++)
        run_elements(job->node, job->s, row, 0, job->s->pair.walk.dims[0]);
}

static void run_one_row(void *context, size_t begin, size_t end)
{
    const struct job *job = context;
    run_elements(job->node, job->s, 0, begin, end);
}

static tq_status eval_blocks(tq_node *node, tq_error *error)
{
    enum { GRAIN = 64 };
    (void)error;
    const state *s = node->state;
    struct job job = {node, s};
    const size_t count = s->pair.walk.count, rows = count ? count / s->pair.walk.dims[0] : 0;
    const size_t cost = (size_t)s->pair.walk.cost;
    if (rows == 1)
        tq_parallel_work(count, GRAIN, cost, node->threads, run_one_row, &job);
    else if (rows)
        tq_parallel_work(rows, GRAIN, cost * s->pair.walk.dims[0], node->threads, run_rows, &job);
    return TQ_OK;
}

/* Elements that tq_add_8bit leaves undecided, whose run begins anywhere in a row. */
static void exact_in_blocks(const tq_broadcast_run *run)
{
    const state *s = (const state *)(const void *)((const char *)run->params - offsetof(state, pair.p));
    const size_t length = s->pair.walk.dims[0], whole = length / s->block * s->block;
    tq_broadcast_run part = *run;
    for (size_t at = 0; at < run->n; at += part.n) {
        const size_t column = (size_t)((const char *)run->out + at - s->out) % length;
        const bool in_blocks = column < whole;
        part.n = tq_min_size((in_blocks ? whole : length) - column, run->n - at);
        part.params = in_blocks ? &s->in_blocks : &s->pair.p;
        for (int i = 0; i < 2; i++)
            part.in[i] = (const char *)run->in[i] + (run->scalar[i] ? 0 : at);
        part.out = (char *)run->out + at;
        s->loop(&part);
    }
}

static tq_status eval_quick_blocks(tq_node *node, tq_error *error)
{
    state *s = node->state;
    s->out = node->out[0]->data;
    return tq_broadcast_eval(node, error);
}

/* ---- both rules for 8 bits, by one sum ----
   The reference's rule multiplies and rounds each input, and then their sum s: t_i = (q_i - z_i) 2^L m_i + e_i with
   |e_i| <= 1, since MBQM rounds twice by 1/2 at most (3/2 in the optimized kernel's blocks, whose shift truncates); the
   result is the integer nearest to x = (t_1 + t_2) m + e, m the output's multiplier, with |e| <= 2^-(right + 1) from
   the first rounding.  So x is off from (q_1 - z_1) r_1 + (q_2 - z_2) r_2, with r_i = 2^L m_i m, by at most
   3 m + 2^-(right + 1).  XNNPACK's rule is that sum, with r_i = factor_i / 2^right.  p.exact computes blocks that
   tq_add_8bit leaves undecided. */

static void add_quickly(const tq_broadcast_run *run)
{
    const tq_pair *p = run->params;
    uint8_t repeated[2][TQ_ADD_8BIT_BLOCK];
    tq_broadcast_run part = *run;
    for (int i = 0; i < 2; i++)
        if (run->scalar[i])
            memset(repeated[i], *(const uint8_t *)run->in[i], TQ_ADD_8BIT_BLOCK);
    for (size_t at = 0; at < run->n; at += part.n) {
        const void *in[2];
        for (int i = 0; i < 2; i++) {
            part.in[i] = (const char *)run->in[i] + (run->scalar[i] ? 0 : at);
            in[i] = run->scalar[i] ? repeated[i] : part.in[i];
        }
        part.out = (char *)run->out + at;
        part.n = p->add(&p->quick, in, run->scalar, part.out, run->n - at);
        if (part.n == 0) {
            part.n = tq_min_size(TQ_ADD_8BIT_BLOCK, run->n - at);
            p->exact(&part);
        }
    }
}

static double real_of(tq_fixed by)
{
    return ldexp(by.multiplier, by.shift - 31);
}

/* Chooses add_quickly, where it computes the sum of both inputs, less their zero points, times these factors; the loop
   that was chosen before becomes `exact`.  slack: the rule's distance from that sum. */
static void choose_quickly(state *s, double first, double second, double slack)
{
    tq_pair *p = &s->pair.p;
    const int32_t center = p->flip; /* the bytes of UINT8 are values here plus 128 */
    const bool within = p->zero_first == (int8_t)p->zero_first && p->zero_second == (int8_t)p->zero_second &&
                        p->zero_output == (int8_t)p->zero_output && p->low >= INT8_MIN && p->high <= INT8_MAX;
    const double constant = p->zero_output - first * (p->zero_first + center) - second * (p->zero_second + center);
    p->add = tq_add_8bit_body();
    if (!p->add || !within || !tq_add_8bit_find(&p->quick, first, second, constant, ldexp(slack, 16)))
        return;
    p->quick.low = (int8_t)p->low, p->quick.high = (int8_t)p->high;
    p->quick.flips = p->flip;
    s->loop = s->pair.walk.run;
    p->exact = s->block ? exact_in_blocks : s->loop;
    s->pair.walk.run = add_quickly;
}

/* choose_quickly for the reference's rule, with multipliers of which sums_fit is true. */
static void choose_reference(state *s)
{
    const tq_pair *p = &s->pair.p;
    const double by = real_of(p->output), step = by * p->left_shift, sign = p->negates ? -1 : 1;
    choose_quickly(s, real_of(p->first) * step, sign * real_of(p->second) * step,
                   3 * by + ldexp(1, -p->lane_output.right - 1));
}

/* SUB and SQUARED_DIFFERENCE refuse zero points outside the type; ADD does not. */
static tq_status check_zero_points(const tq_node *node, tq_error *error)
{
    int32_t low, high;
    tq_quantized_range(node->in[0]->type, &low, &high);
    for (int i = 0; i < 3; i++) {
        const int32_t zero_point = tq_zero_point_of(i < 2 ? node->in[i] : node->out[0]);
        if (zero_point < low || zero_point > high)
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has a zero point of %d; its type needs one from %d to %d",
                              zero_point, low, high);
    }
    return TQ_OK;
}

static tq_status prepare_sums(tq_node *node, tq_error *error)
{
    bool is_int16 = node->in[0]->type == TQ_TensorType_INT16, is_sub = node->row.code == TQ_BuiltinOperator_SUB;
    bool shifts = false;
    TQ_TRY(tq_pair_prepare(node, sizeof(state), error));
    state *s = node->state;
    s->pair.p.negates = is_sub ? -1 : 0;
    if (is_sub)
        TQ_TRY(check_zero_points(node, error));
    if (is_int16) {
        TQ_TRY(tq_pair_check_symmetric(node, error));
        TQ_TRY(find_shifts(node, &s->pair.p, &shifts, error));
    }
    if (shifts) {
        s->pair.walk.run = shifted_add_16bit;
        return TQ_OK;
    }
    if (tq_pair_is_xnnpack(node) && scale_factors(node, &s->pair.p)) {
        s->pair.walk.run = sum_loops[tq_isa()];
        choose_quickly(s, ldexp(s->pair.p.factor_first, -s->pair.p.right),
                       ldexp(s->pair.p.factor_second, -s->pair.p.right), 0);
        return tq_pair_note_map(node, error);
    }
    TQ_TRY(scale_sums(node, &s->pair.p, is_int16 ? 15 : 20, 1, error));
    const bool fit = sums_fit(&s->pair.p);
    s->pair.walk.run = tq_pair_choose(&add_loops, node->in[0]->type, fit);
    if (fit && !is_sub && node->numerics == TQ_NUMERICS_OPTIMIZED)
        prepare_blocks(node, s, is_int16 ? 15 : 20);
    if (fit && !is_int16)
        choose_reference(s);
    if (s->block)
        node->eval = s->pair.walk.run == add_quickly ? eval_quick_blocks : eval_blocks;
    return s->block ? TQ_OK : tq_pair_note_map(node, error);
}

tq_status tq_prepare_add(tq_node *node, tq_error *error)
{
    if (!tq_pair_is_quantized(node))
        return tq_binary_prepare(node, error);
    TQ_TRY(tq_pair_check_types(node, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    return prepare_sums(node, error);
}

tq_status tq_prepare_squared_difference(tq_node *node, tq_error *error)
{
    if (!tq_pair_is_quantized(node) || node->in[0]->type != TQ_TensorType_INT8)
        return tq_binary_prepare(node, error);
    TQ_TRY(tq_pair_check_types(node, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_pair_prepare(node, sizeof(tq_pair_state), error));
    TQ_TRY(check_zero_points(node, error));
    tq_pair_state *s = node->state;
    TQ_TRY(scale_sums(node, &s->p, 7, 2, error));
    s->walk.run = squared_difference_8bit;
    s->walk.cost = 5000;
    if (sums_fit(&s->p)) {
        s->walk.run = lane_squares[tq_isa()];
        s->walk.cost = 500;
    }
    return TQ_OK;
}
