/* SPDX-License-Identifier: Apache-2.0
 *
 * ADD, SUB, MUL, DIV and SQUARED_DIFFERENCE of codes; of plain numbers they are rows of binary.def.
 *
 *   ADD, SUB      T = 2 max(s1, s2), L = 20 (INT16: 15); each input MBQM((q - z) 2^L, s / T); their sum or
 *                 difference MBQM(., T / (2^L so)) + zo.  INT16 of which all scales are powers of two, where the
 *                 option pot_scale_int16 allows: one input shifted right, and saturating sums.
 *   SQUARED_DIFFERENCE   the same with L = 7, and T^2 / (2^14 so) for the square
 *   MUL           MBQM((a - z1)(b - z2), f32(f32(s1 s2) / so)) + zo; INT16 to 8 bits: the high product in Q15
 *   DIV           the reciprocal of b - z2 in fixed point, and f32(s1 / f32(s2 so))
 *
 * The optimized ADD, in whole blocks of 16 elements: an input's shift is taken off L, so that it is not rounded; of UINT8,
 * and with one element of the inner dimension beside many, blocks of 8: shifted without rounding.
 *
 * XNNPACK's, of 8 bits:
 *   ADD, SUB      r = f32(s / so) for each input, n = 20 - floor(log2(the larger)), m = even(r 2^n);
 *                 floor((m1 (a - z1) +- m2 (b - z2)) / 2^n + 1/2) + zo
 *   MUL           even(f32((a - z1)(b - z2) f32(f32(s1 s2) / so))) + zo; of a tensor with itself a table (lookup.h)
 *
 * Where the runtime aborts or loses bits because an output multiplier is 1 or more, the same formula is
 * used with the left shift that it needs (docs/deviations.md).
 * Source: LiteRT f6745779, tflite/kernels/add.cc, sub.cc, mul.cc, div.cc, squared_difference.cc,
 * internal/optimized/integer_ops/add.h; XNNPACK 75db3c09,
 * src/microparams-init.c, src/qs8-vaddc, src/qs8-vmul.
 */
#include <math.h>

#include "base/threads.h"
#include "ops/binary.h"
#include "ops/lanes.h"
#include "ops/lookup.h"
#include "quant/fixed_math.h"

/* ---- what all have ---- */

typedef struct codes {
    tq_fixed first, second, output;
    tq_lane_fixed lane_first, lane_second, lane_output;
    int32_t zero_first, zero_second, zero_output;
    int32_t left_shift; /* 2^L */
    int32_t low, high;  /* codes */
    int32_t least, most; /* the same less zero_output */
    /* XNNPACK's */
    int32_t factor_first, factor_second, offset, right;
    float by;
} codes;

typedef struct state {
    tq_broadcast walk;
    codes c;
    codes in_blocks; /* the optimized ADD: of whole blocks, where `block` is not 0 */
    size_t block;
} state;

static bool is_quantized(const tq_tensor *tensor)
{
    return tensor->quantization.count > 0;
}

static tq_status prepare_codes(tq_node *node, state **out, tq_error *error)
{
    state *s;
    for (int i = 0; i < 2; i++)
        TQ_TRY(tq_check_input_scale(node, i, error));
    TQ_TRY(tq_check_output_scale(node, 0, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(tq_broadcast_prepare(node, 0, 2, &s->walk, error));
    codes *c = &s->c;
    c->zero_first = tq_zero_point_at(node->in[0], 0);
    c->zero_second = tq_zero_point_at(node->in[1], 0);
    c->zero_output = tq_zero_point_at(node->out[0], 0);
    tq_activation_codes(node, tq_binary_activation(node), &c->low, &c->high);
    c->least = c->low - c->zero_output;
    c->most = c->high - c->zero_output;
    s->walk.params = c;
    s->walk.cost = 2;
    node->eval = tq_broadcast_eval;
    *out = s;
    return TQ_OK;
}

static tq_status check_symmetric(const tq_node *node, tq_error *error)
{
    for (int i = 0; i < 2; i++)
        if (tq_zero_point_at(node->in[i], 0) != 0)
            return tq_input_fail(node, i, error, "has zero point %d; INT16 needs 0", tq_zero_point_at(node->in[i], 0));
    if (node->out[0]->type == TQ_TensorType_INT16 && tq_zero_point_at(node->out[0], 0) != 0)
        return tq_output_fail(node, 0, error, "has zero point %d; INT16 needs 0", tq_zero_point_at(node->out[0], 0));
    return TQ_OK;
}

/* An element function for INT8, UINT8 and INT16: plain, and by lanes for every instruction set. */
#define PLAIN(name, T) TQ_STRETCH_2(name##_##T, , T##_t, T##_t, T##_t, codes, name(x, y, &p))
#define LANES_OF(name, T, isa, target) \
    TQ_STRETCH_2(name##_##T##_##isa, target, T##_t, T##_t, T##_t, codes, name(x, y, &p))
#define TYPES(DEFINE, name) DEFINE(name, int8) DEFINE(name, uint8) DEFINE(name, int16)
#define ALL_ISAS(name, T)                                                            \
    LANES_OF(name, T, scalar, )                                                      \
    X86(LANES_OF(name, T, avx2, TQ_TARGET_AVX2) LANES_OF(name, T, avx512, TQ_TARGET_AVX512))
#if TQ_X86
#define X86(...) __VA_ARGS__
#else
#define X86(...)
#endif

/* The function for a type: of `lanes` where they fit. */
typedef struct loops {
    tq_stretch_fn plain[3], lanes[3][TQ_ISAS];
} loops;
#define LOOPS(general, fast)                                                                          \
    {                                                                                                 \
        {general##_int8, general##_uint8, general##_int16},                                           \
        {                                                                                             \
            TQ_ISA_FUNCTIONS(fast##_int8), TQ_ISA_FUNCTIONS(fast##_uint8), TQ_ISA_FUNCTIONS(fast##_int16) \
        }                                                                                             \
    }

static tq_stretch_fn choose(const loops *of, int32_t type, bool fits)
{
    int place = type == TQ_TensorType_INT8 ? 0 : type == TQ_TensorType_UINT8 ? 1 : 2;
    return fits ? of->lanes[place][tq_isa()] : of->plain[place];
}

/* ---- ADD, SUB, SQUARED_DIFFERENCE ---- */

TQ_BODY int32_t input_of(int32_t q, int32_t zero_point, int32_t left_shift, tq_fixed by)
{
    return tq_multiply_fixed((q - zero_point) * left_shift, by);
}

TQ_BODY int32_t output_of(int32_t x, const codes *c)
{
    return tq_requantize_fixed(tq_multiply_fixed(x, c->output), c->zero_output, c->low, c->high);
}

#define INPUT(q, which) input_of(q, c->zero_##which, c->left_shift, c->which)
TQ_BODY int32_t add(int32_t x, int32_t y, const codes *c)
{
    return output_of(INPUT(x, first) + INPUT(y, second), c);
}

TQ_BODY int32_t subtract(int32_t x, int32_t y, const codes *c)
{
    return output_of(INPUT(x, first) - INPUT(y, second), c);
}

TQ_BODY int32_t squared_difference(int32_t x, int32_t y, const codes *c)
{
    int32_t difference = INPUT(x, first) - INPUT(y, second);
    return output_of(difference * difference, c);
}

#define LANE_INPUT(q, which) tq_lane_multiply((q - c->zero_##which) * c->left_shift, c->lane_##which)
TQ_BODY int32_t lane_output(int32_t x, const codes *c)
{
    return tq_lane_code(tq_lane_multiply(x, c->lane_output), c->least, c->most, c->zero_output);
}

TQ_BODY int32_t lane_add(int32_t x, int32_t y, const codes *c)
{
    return lane_output(LANE_INPUT(x, first) + LANE_INPUT(y, second), c);
}

TQ_BODY int32_t lane_subtract(int32_t x, int32_t y, const codes *c)
{
    return lane_output(LANE_INPUT(x, first) - LANE_INPUT(y, second), c);
}

/* INT16 with power-of-two scales: at most one input is shifted, by first.shift or second.shift <= 0. */
TQ_BODY int32_t shifted_add(int32_t x, int32_t y, const codes *c)
{
    int32_t sum = tq_rounding_divide_by_pot(x, -c->first.shift) + tq_rounding_divide_by_pot(y, -c->second.shift);
    return tq_clamp_i64(tq_clamp_i64(sum, INT16_MIN, INT16_MAX), c->low, c->high);
}

TQ_BODY int32_t shifted_subtract(int32_t x, int32_t y, const codes *c)
{
    int32_t difference = tq_rounding_divide_by_pot(x, -c->first.shift) - tq_rounding_divide_by_pot(y, -c->second.shift);
    return tq_clamp_i64(difference, c->low, c->high);
}

TYPES(PLAIN, add)
TYPES(PLAIN, subtract)
PLAIN(squared_difference, int8)
TYPES(ALL_ISAS, lane_add)
TYPES(ALL_ISAS, lane_subtract)
PLAIN(shifted_add, int16)
PLAIN(shifted_subtract, int16)

static const loops add_loops = LOOPS(add, lane_add), subtract_loops = LOOPS(subtract, lane_subtract);

/* Bounds: |(q - z) 2^L| <= 255 2^20 < 2^28, or 2^15 2^15; each multiplier is at most 1/2. */
static bool sums_fit(const codes *c)
{
    const int64_t most = (int64_t)1 << 30;
    return tq_lane_fits(c->first, most) && tq_lane_fits(c->second, most) && tq_lane_fits(c->output, most);
}

static tq_status scale_sums(const tq_node *node, codes *c, int left_shift, int squares, tq_error *error)
{
    float first = tq_scale_at(node->in[0], 0), second = tq_scale_at(node->in[1], 0);
    double twice = 2 * (first > second ? first : second); /* doubled in float32 */
    float unit = (float)((int32_t)1 << left_shift * squares) * tq_scale_at(node->out[0], 0);
    c->left_shift = (int32_t)1 << left_shift;
    TQ_TRY(tq_fixed_find(node, first / twice, &c->first, error));
    TQ_TRY(tq_fixed_find(node, second / twice, &c->second, error));
    TQ_TRY(tq_fixed_find(node, (squares == 2 ? twice * twice : twice) / unit, &c->output, error));
    c->lane_first = tq_lane_of(c->first);
    c->lane_second = tq_lane_of(c->second);
    c->lane_output = tq_lane_of(c->output);
    return TQ_OK;
}

static bool asks_for_shifts(const tq_node *node)
{
    const tq_table *options = &node->options.table;
    tq_field_id field = node->row.code == TQ_BuiltinOperator_ADD ? TQ_AddOptions_pot_scale_int16
                                                                  : TQ_SubOptions_pot_scale_int16;
    return options->at != 0 && tq_get_int(options, field) != 0;
}

/* Whether the form with shifts alone computes this node; its shifts. */
static tq_status find_shifts(const tq_node *node, codes *c, bool *shifts, tq_error *error)
{
    int first, second, output;
    *shifts = asks_for_shifts(node) && tq_power_of_two(tq_scale_at(node->in[0], 0), &first) &&
              tq_power_of_two(tq_scale_at(node->in[1], 0), &second) && tq_power_of_two(tq_scale_at(node->out[0], 0), &output);
    if (!*shifts)
        return TQ_OK;
    c->first.shift = first - output;
    c->second.shift = second - output;
    if (c->first.shift > 0 || c->second.shift > 0 || (c->first.shift != 0 && c->second.shift != 0))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "scales that are powers of two, 2^%d and 2^%d to 2^%d, need one input's to equal the output's, "
                          "and the other's not to be greater (or pot_scale_int16 to be false)",
                          first, second, output);
    return TQ_OK;
}

/* ---- the same as XNNPACK has them, of 8 bits ---- */

/* |factor| <= 2^21 and differences of codes are below 2^8: no overflow. */
TQ_BODY int32_t lane_sum(int32_t x, int32_t y, const codes *c)
{
    int32_t sum = x * c->factor_first + y * c->factor_second + c->offset;
    return tq_lane_code(sum >> c->right, c->least, c->most, c->zero_output);
}

/* 8 bits alone. */
#define BYTES(DEFINE, name) DEFINE(name, int8) DEFINE(name, uint8)
BYTES(ALL_ISAS, lane_sum)

static const tq_stretch_fn sum_loops[2][TQ_ISAS] = {TQ_ISA_FUNCTIONS(lane_sum_int8), TQ_ISA_FUNCTIONS(lane_sum_uint8)};

static bool is_of_xnnpack(const tq_node *node)
{
    return node->numerics == TQ_NUMERICS_XNNPACK && tq_element_bytes(node->in[0]->type) == 1;
}

/* False for ratios of scales that XNNPACK does not take. */
static bool scale_factors(const tq_node *node, codes *c, bool subtracts)
{
    const float out = tq_scale_at(node->out[0], 0);
    const float first = tq_scale_at(node->in[0], 0) / out, second = tq_scale_at(node->in[1], 0) / out;
    const float larger = first > second ? first : second;
    int exponent;
    if (!(first >= 0x1p-10f && second >= 0x1p-10f && larger < 0x1p8f))
        return false;
    frexpf(larger, &exponent); /* larger < 2^exponent */
    c->right = 21 - exponent;
    c->factor_first = (int32_t)rintf(ldexpf(first, c->right));
    c->factor_second = (int32_t)rintf(ldexpf(second, c->right)) * (subtracts ? -1 : 1);
    c->offset = ((int32_t)1 << (c->right - 1)) - c->factor_first * c->zero_first - c->factor_second * c->zero_second;
    return true;
}

/* ---- the same in the optimized kernel's blocks ---- */

/* An input whose shift is taken off L; false where that is too little. */
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

/* Whether the runtime's walk of five loops fits: an input stands still in one run of dimensions, the other in a run
   outside of it, and neither inside, between and outside. */
static bool is_fivefold(const tq_broadcast *walk)
{
    int runs[TQ_DIMS], count = 0; /* 0: both move; 1, 2: the first, the second stands still */
    for (int d = 0; d < walk->rank; d++) {
        int still = walk->steps[0][d] == 0 ? 1 : walk->steps[1][d] == 0 ? 2 : 0;
        if (still != 0)
            runs[count++] = still;
    }
    return count <= 1 || (count == 2 && runs[0] != runs[1]);
}

/* Chooses the blocks, of one row of the walk at a time. */
static void prepare_blocks(const tq_node *node, state *s, int left_shift)
{
    const tq_broadcast *walk = &s->walk;
    const bool alone = walk->steps[0][0] == 0 || walk->steps[1][0] == 0;
    const int32_t type = node->in[0]->type;
    s->in_blocks = s->c;
    if ((type == TQ_TensorType_INT16 && (walk->rank > 1 || alone)) || !is_fivefold(walk) || walk->count == 1)
        return;
    if (type == TQ_TensorType_UINT8 || alone) {
        drop_rounding(&s->in_blocks.lane_first);
        drop_rounding(&s->in_blocks.lane_second);
        s->block = 8;
    } else if (fold_shift(&s->in_blocks.lane_first, left_shift) && fold_shift(&s->in_blocks.lane_second, left_shift)) {
        s->in_blocks.left_shift = 1;
        s->block = 16;
    }
}

/* Elements [begin, end) of row `row`; begin is a multiple of the block. */
static void run_part(const tq_node *node, const state *s, size_t row, size_t begin, size_t end)
{
    const tq_broadcast *walk = &s->walk;
    const size_t whole = (end - begin) / s->block * s->block, bytes = walk->out_bytes;
    tq_stretch first = {.params = &s->in_blocks, .n = whole}, rest = {.params = &s->c, .n = end - begin - whole};
    size_t outer = row;
    for (int i = 0; i < 2; i++)
        first.in[i] = (const char *)node->in[i]->data + begin * walk->steps[i][0];
    for (int d = 1; d < walk->rank; outer /= walk->dims[d], d++)
        for (int i = 0; i < 2; i++)
            first.in[i] = (const char *)first.in[i] + outer % walk->dims[d] * walk->steps[i][d];
    first.out = (char *)node->out[0]->data + (row * walk->dims[0] + begin) * bytes;
    rest.out = (char *)first.out + whole * bytes;
    for (int i = 0; i < 2; i++) {
        first.still[i] = rest.still[i] = walk->steps[i][0] == 0;
        rest.in[i] = (const char *)first.in[i] + whole * walk->steps[i][0];
    }
    walk->run(&first);
    walk->run(&rest);
}

struct part {
    const tq_node *node;
    const state *s;
};

static void run_rows(void *context, size_t begin, size_t end)
{
    const struct part *p = context;
    for (size_t row = begin; row < end; row++)
        run_part(p->node, p->s, row, 0, p->s->walk.dims[0]);
}

static void run_one_row(void *context, size_t begin, size_t end)
{
    const struct part *p = context;
    run_part(p->node, p->s, 0, begin, end);
}

static tq_status eval_blocks(tq_node *node, tq_error *error)
{
    enum { GRAIN = 64, THREAD_PAYS = 50000 };
    (void)error;
    const state *s = node->state;
    struct part p = {node, s};
    const size_t count = s->walk.count, rows = count ? count / s->walk.dims[0] : 0;
    const int threads = count > THREAD_PAYS ? node->threads : 1;
    if (rows == 1)
        tq_parallel_for(count, GRAIN, threads, run_one_row, &p);
    else if (rows)
        tq_parallel_for(rows, GRAIN, threads, run_rows, &p);
    return TQ_OK;
}

static tq_status prepare_sums(tq_node *node, tq_error *error)
{
    state *s;
    bool is_int16 = node->in[0]->type == TQ_TensorType_INT16, is_sub = node->row.code == TQ_BuiltinOperator_SUB;
    bool shifts = false;
    TQ_TRY(prepare_codes(node, &s, error));
    if (is_int16) {
        TQ_TRY(check_symmetric(node, error));
        TQ_TRY(find_shifts(node, &s->c, &shifts, error));
    }
    if (shifts) {
        s->walk.run = is_sub ? shifted_subtract_int16 : shifted_add_int16;
        return TQ_OK;
    }
    if (is_of_xnnpack(node) && scale_factors(node, &s->c, is_sub)) {
        s->walk.run = sum_loops[node->in[0]->type == TQ_TensorType_UINT8][tq_isa()];
        return TQ_OK;
    }
    TQ_TRY(scale_sums(node, &s->c, is_int16 ? 15 : 20, 1, error));
    const bool fit = sums_fit(&s->c);
    s->walk.run = choose(is_sub ? &subtract_loops : &add_loops, node->in[0]->type, fit);
    if (fit && !is_sub && node->numerics == TQ_NUMERICS_OPTIMIZED)
        prepare_blocks(node, s, is_int16 ? 15 : 20);
    if (s->block)
        node->eval = eval_blocks;
    return TQ_OK;
}

/* The types of codes; others are plain numbers.  INT16 of ADD and MUL is plain where it has no scale. */
static bool is_of_codes(const tq_node *node, int quantized_input)
{
    const tq_tensor *in = node->in_count > quantized_input ? node->in[quantized_input] : NULL;
    if (!in)
        return false;
    bool plain_int16 = node->row.code == TQ_BuiltinOperator_ADD || node->row.code == TQ_BuiltinOperator_MUL;
    return in->type == TQ_TensorType_INT8 || in->type == TQ_TensorType_UINT8 ||
           (in->type == TQ_TensorType_INT16 && (is_quantized(in) || !plain_int16));
}

static tq_status check_types(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_counts(node, 2, 2, 1, 1, error));
    return tq_check_input_like(node, 1, 0, error);
}

tq_status tq_prepare_add(tq_node *node, tq_error *error)
{
    if (!is_of_codes(node, 0))
        return tq_binary_prepare(node, error);
    TQ_TRY(check_types(node, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    return prepare_sums(node, error);
}

tq_status tq_prepare_squared_difference(tq_node *node, tq_error *error)
{
    state *s;
    if (!is_of_codes(node, 0) || node->in[0]->type != TQ_TensorType_INT8)
        return tq_binary_prepare(node, error);
    TQ_TRY(check_types(node, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(prepare_codes(node, &s, error));
    TQ_TRY(scale_sums(node, &s->c, 7, 2, error));
    s->walk.run = squared_difference_int8;
    return TQ_OK;
}

/* ---- MUL ---- */

TQ_BODY int32_t multiply(int32_t x, int32_t y, const codes *c)
{
    return output_of((x - c->zero_first) * (y - c->zero_second), c);
}

TQ_BODY int32_t lane_mul(int32_t x, int32_t y, const codes *c)
{
    return lane_output((x - c->zero_first) * (y - c->zero_second), c);
}

/* INT16 in Q15 to 8 bits: scales are not read, but for the zero point and the activation. */
TQ_BODY int32_t multiply_q15(int32_t x, int32_t y, const codes *c)
{
    int32_t high = x == INT16_MIN && y == INT16_MIN ? INT16_MAX : (x * y + (1 << 14)) >> 15;
    return tq_lane_code(tq_rounding_divide_by_pot(high, 8), c->least, c->most, c->zero_output);
}

TYPES(PLAIN, multiply)
TYPES(ALL_ISAS, lane_mul)
TQ_STRETCH_2(multiply_q15_int8, , int16_t, int16_t, int8_t, codes, multiply_q15(x, y, &p))
TQ_STRETCH_2(multiply_q15_uint8, , int16_t, int16_t, uint8_t, codes, multiply_q15(x, y, &p))

static const loops multiply_loops = LOOPS(multiply, lane_mul);

/* XNNPACK's */
TQ_BODY int32_t lane_even_mul(int32_t x, int32_t y, const codes *c)
{
    float product = (float)((x - c->zero_first) * (y - c->zero_second)) * c->by;
    return tq_lane_even(product, (float)c->least, (float)c->most) + c->zero_output;
}

BYTES(ALL_ISAS, lane_even_mul)

static const tq_stretch_fn even_mul_loops[2][TQ_ISAS] = {TQ_ISA_FUNCTIONS(lane_even_mul_int8),
                                                        TQ_ISA_FUNCTIONS(lane_even_mul_uint8)};

static float real_square(float x, const void *params)
{
    (void)params;
    return x * x;
}

/* What XNNPACK makes of MUL of a tensor with itself, but not within a table of several operators. */
static tq_status prepare_square(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input_scale(node, 0, error));
    TQ_TRY(tq_check_output_scale(node, 0, error));
    TQ_TRY(tq_lookup_real(node, real_square, NULL, error));
    int32_t low, high;
    tq_activation_codes(node, tq_binary_activation(node), &low, &high);
    tq_lookup_clamp(node, low, high);
    return TQ_OK;
}

tq_status tq_prepare_mul(tq_node *node, tq_error *error)
{
    state *s;
    const unsigned eight_bits = TQ_T(INT8) | TQ_T(UINT8);
    if (!is_of_codes(node, 0))
        return tq_binary_prepare(node, error);
    TQ_TRY(check_types(node, error));
    int32_t type = node->in[0]->type;
    TQ_TRY(tq_check_output(node, 0, type == TQ_TensorType_INT16 ? TQ_T(INT16) | eight_bits : 1u << type, error));
    if (is_of_xnnpack(node) && node->in[0] == node->in[1] && !node->tabulated)
        return prepare_square(node, error);
    TQ_TRY(prepare_codes(node, &s, error));
    if (type == TQ_TensorType_INT16)
        TQ_TRY(check_symmetric(node, error));
    if (type != node->out[0]->type) {
        s->walk.run = node->out[0]->type == TQ_TensorType_INT8 ? multiply_q15_int8 : multiply_q15_uint8;
        return TQ_OK;
    }
    if (is_of_xnnpack(node)) {
        s->c.by = tq_even_multiplier(tq_scale_at(node->in[0], 0), tq_scale_at(node->in[1], 0), tq_scale_at(node->out[0], 0));
        s->walk.run = even_mul_loops[type == TQ_TensorType_UINT8][tq_isa()];
        if (!isfinite(s->c.by))
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "its scales' ratio is %g; it needs to be finite", s->c.by);
        return TQ_OK;
    }
    float product = tq_scale_at(node->in[0], 0) * tq_scale_at(node->in[1], 0);
    TQ_TRY(tq_fixed_find(node, product / tq_scale_at(node->out[0], 0), &s->c.output, error));
    s->c.lane_output = tq_lane_of(s->c.output);
    int64_t most = type == TQ_TensorType_INT16 ? (int64_t)1 << 30 : 255 * 255;
    s->walk.run = choose(&multiply_loops, type, tq_lane_fits(s->c.output, most));
    return TQ_OK;
}

/* ---- DIV ---- */

static int32_t divide(int32_t x, int32_t y, const codes *c)
{
    int32_t dividend = x - c->zero_first, divisor = y - c->zero_second;
    int over, room;
    if (divisor < 0) {
        dividend = -dividend;
        divisor = -divisor;
    }
    int32_t inverse = tq_reciprocal((uint64_t)divisor, 31, &over);
    room = tq_leading_sign_bits(dividend);
    int32_t quotient = tq_q_mul(tq_shift_left_saturating(dividend, room), inverse);
    int32_t scaled = tq_multiply_double(quotient, c->output.multiplier, c->output.shift - over - room);
    return tq_requantize_fixed(scaled, c->zero_output, c->low, c->high);
}

TYPES(PLAIN, divide)

static tq_status eval_divide(tq_node *node, tq_error *error)
{
    const tq_tensor *by = node->in[1];
    const int32_t zero = ((state *)node->state)->c.zero_second;
    size_t count = tq_tensor_count(by);
    for (size_t i = 0; i < count; i++)
        if (tq_integer_at(by, i) == zero)
            return tq_input_fail(node, 1, error, "is 0 at element %zu (code %d), and DIV needs divisors other than 0", i,
                                 zero);
    return tq_broadcast_eval(node, error);
}

tq_status tq_prepare_div(tq_node *node, tq_error *error)
{
    state *s;
    if (!is_of_codes(node, 0))
        return tq_binary_prepare(node, error);
    TQ_TRY(check_types(node, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(prepare_codes(node, &s, error));
    float unit = tq_scale_at(node->in[1], 0) * tq_scale_at(node->out[0], 0);
    TQ_TRY(tq_fixed_find(node, tq_scale_at(node->in[0], 0) / unit, &s->c.output, error));
    s->walk.run = node->in[0]->type == TQ_TensorType_INT8    ? divide_int8
                  : node->in[0]->type == TQ_TensorType_UINT8 ? divide_uint8
                                                             : divide_int16;
    s->walk.cost = 20;
    node->eval = eval_divide;
    return TQ_OK;
}
