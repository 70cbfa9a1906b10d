/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of two inputs that read no scales: the rows of binary.def.
 *
 * The runtime's C++ leaves some results undefined.  Here integers wrap, the least integer divided by -1 is itself, and
 * shifts stop at the last bit.  A divisor of 0 is an error for integers (and for FLOOR_DIV of floats, as in the
 * runtime), found before anything is computed.
 */
#include "ops/elementwise/binary.h"

#include <float.h>
#include <math.h>

#include "kernels/isa.h"
#include "ops/element.h"
#include "ops/elementwise/fixed_point_lanes.h"
#include "ops/quantized.h"

/* Bounds of a fused activation, as in the runtime's reference kernels: without an activation, infinities become the
   largest finite float. */
typedef struct bounds {
    float low, high;           /* of floats */
    int64_t int_low, int_high; /* of integers, cast to each type */
} bounds;

typedef struct state {
    tq_broadcast walk;
    bounds limits;
    tq_broadcast_fn general; /* POW: walk.run where run_whole_power does not apply */
} state;

/* ---- the functions and macros of binary.def ---- */

/* C++'s min(max(v, low), high): NaN stays. */
#define BETWEEN(v, low, high) ((v) < (low) ? (low) : (high) < (v) ? (high) : (v))
#define BOUNDED_FLOAT(v) between_f32(v, p.low, p.high)
#define BOUNDED_HALF(v) between_f32(tq_half_to_float(tq_float_to_half(v)), p.low, p.high)
#define BOUNDED(T, v) BETWEEN((T)(v), (T)p.int_low, (T)p.int_high)
/* Modulo 2^64, and so modulo any smaller power of two to which the result is cast. */
#define WRAPPED(x, operator, y) ((uint64_t)(x)operator(uint64_t)(y))
#define LARGER(x, y) ((x) > (y) ? (x) : (y))
#define SMALLER(x, y) ((x) < (y) ? (x) : (y))
#define LEFT(x, y, bits) ((y) >= 0 && (y) < (bits) ? (uint64_t)(x) << (y) : 0)

static inline int shift_count(int64_t y, int last)
{
    return y < 0 ? 0 : y > last ? last : (int)y;
}

static inline float between_f32(float v, float low, float high)
{
    float raised = v < low ? low : v;
    return high < raised ? high : raised;
}

static inline tq_complex64 complex_product(tq_complex64 x, tq_complex64 y)
{
    tq_complex64 product = {x.real * y.real - x.imaginary * y.imaginary, x.real * y.imaginary + x.imaginary * y.real};
    return product;
}

/* INT64_MIN / -1 does not occur: quotient() serves at most 32 bits, and remainders of -1 are 0. */
static inline int64_t quotient(int64_t x, int64_t y)
{
    return x / y;
}

static inline int64_t floor_quotient(int64_t x, int64_t y)
{
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static inline int64_t floor_remainder(int64_t x, int64_t y)
{
    int64_t rest = y == -1 ? 0 : x % y;
    return rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest;
}

static inline float floor_remainder_float(float x, float y)
{
    float rest = fmodf(x, y);
    return rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest;
}

static inline uint32_t wrapping_power(int32_t base, int32_t exponent)
{
    uint32_t result = 1, square = (uint32_t)base;
    for (uint32_t rest = (uint32_t)exponent; rest != 0; rest >>= 1) {
        if (rest & 1)
            result *= square;
        square *= square;
    }
    return result;
}

/* ---- the rows ---- */

/* One function of two elements a row, and its loops. */
#define ELEMENT(operator, type, result, expression)                                 \
    TQ_BODY TQ_C_##result operator##_##type(TQ_C_##type a, TQ_C_##type b, bounds p) \
    {                                                                               \
        const TQ_V_##type x = TQ_LOAD_##type(a), y = TQ_LOAD_##type(b);             \
        (void)p;                                                                    \
        return TQ_STORE_##result(expression);                                       \
    }
#define LOOPS(name, target, operator, type, result) \
    TQ_BROADCAST_2(name, target, TQ_C_##type, TQ_C_##type, TQ_C_##result, bounds, operator##_##type(x, y, p))

#define BINARY(operator, type, result, cost, expression)                                           \
    ELEMENT(operator, type, result, expression)                                                    \
    TQ_BROADCAST_2_SMALL(run_##operator##_##type, TQ_C_##type, TQ_C_##type, TQ_C_##result, bounds, \
                         operator##_##type(x, y, p))
#define FAST_BINARY(operator, type, result, cost, expression) \
    ELEMENT(operator, type, result, expression)               \
    TQ_ISA_DEFINE(LOOPS, run_##operator##_##type, operator, type, result)
#include "ops/elementwise/binary.def"

typedef struct binary_row {
    int16_t code;
    int8_t type, result;
    int cost; /* picoseconds */
    tq_broadcast_fn run[TQ_ISAS];
} binary_row;

static const binary_row rows[] = {
#define BINARY(operator, type, result, cost, expression)                                \
    {TQ_BuiltinOperator_##operator, TQ_TensorType_##type, TQ_TensorType_##result, cost, \
     TQ_ISA_SAME(run_##operator##_##type)},
#define FAST_BINARY(operator, type, result, cost, expression)                           \
    {TQ_BuiltinOperator_##operator, TQ_TensorType_##type, TQ_TensorType_##result, cost, \
     TQ_ISA_FUNCTIONS(run_##operator##_##type)},
#include "ops/elementwise/binary.def"
};

enum { ROWS = sizeof rows / sizeof *rows };

/* The row for an operator and a type, or NULL; *types: the set of types for which the operator has rows. */
static const binary_row *find(int64_t code, int32_t type, unsigned *types)
{
    const binary_row *found = NULL;
    *types = 0;
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].code != code)
            continue;
        *types |= tq_type_set(rows[i].type);
        if (rows[i].type == type)
            found = &rows[i];
    }
    return found;
}

/* ---- prepare ---- */

int64_t tq_binary_activation(const tq_node *node)
{
    switch (node->row.code) {
    case TQ_BuiltinOperator_ADD: return tq_get_int(&node->options.table, TQ_AddOptions_fused_activation_function);
    case TQ_BuiltinOperator_SUB: return tq_get_int(&node->options.table, TQ_SubOptions_fused_activation_function);
    case TQ_BuiltinOperator_MUL: return tq_get_int(&node->options.table, TQ_MulOptions_fused_activation_function);
    case TQ_BuiltinOperator_DIV: return tq_get_int(&node->options.table, TQ_DivOptions_fused_activation_function);
    }
    return TQ_ActivationFunctionType_NONE;
}

static bounds bounds_of(const tq_node *node)
{
    const int32_t type = node->in[0]->type;
    bounds b;
    float most = type == TQ_TensorType_FLOAT16 ? 65504.0f : FLT_MAX;
    tq_activation_range_f32(node, tq_binary_activation(node), &b.low, &b.high);
    bool below = b.low <= -FLT_MAX, above = b.high >= FLT_MAX;
    int64_t type_low = INT64_MIN, type_high = INT64_MAX;
    if (type != TQ_TensorType_INT64 && type != TQ_TensorType_UINT64) { /* whose bounds float64 cannot hold */
        const tq_type_row *row = tq_type(type);
        type_low = (int64_t)row->low;
        type_high = (int64_t)row->high;
    }
    b.int_low = below ? type_low : b.low < 0 && type_low == 0 ? 0 : (int64_t)b.low;
    b.int_high = above ? type_high : (int64_t)b.high;
    b.low = b.low == -FLT_MAX ? -most : b.low;
    b.high = b.high == FLT_MAX ? most : b.high;
    return b;
}

static bool takes_equal_shapes_only(int64_t code)
{
    return code == TQ_BuiltinOperator_ATAN2 ||
           (code >= TQ_BuiltinOperator_STABLEHLO_LOGISTIC && code <= TQ_BuiltinOperator_STABLEHLO_SHIFT_LEFT);
}

static tq_status check_equal_shapes(const tq_node *node, tq_error *error)
{
    char first[64], second[64];
    if (tq_shape_equal(&node->in[0]->shape, &node->in[1]->shape))
        return TQ_OK;
    tq_shape_format(&node->in[0]->shape, first, sizeof first);
    tq_shape_format(&node->in[1]->shape, second, sizeof second);
    return tq_input_fail(
        node, 1, error, "has shape %s, and needs that of input 0, %s: this operator does not broadcast", second, first);
}

/* ---- eval ---- */

/* The index of the first 0 in a tensor, or its number of elements. */
static size_t find_zero(const tq_tensor *tensor)
{
    size_t count = tq_tensor_count(tensor), i = 0;
    if (tensor->type == TQ_TensorType_FLOAT32) {
        const float *values = tensor->data;
        while (i < count && values[i] != 0)
            i++;
        return i;
    }
    while (i < count && tq_integer_at(tensor, i) != 0)
        i++;
    return i;
}

static tq_status eval_division(tq_node *node, tq_error *error)
{
    size_t zero = find_zero(node->in[1]);
    if (zero < tq_tensor_count(node->in[1]))
        return tq_input_fail(node, 1, error, "is 0 at element %zu, and %s needs divisors other than 0", zero,
                             node->op->name);
    return tq_broadcast_eval(node, error);
}

static tq_status eval_integer_power(tq_node *node, tq_error *error)
{
    const int32_t *exponents = node->in[1]->data;
    for (size_t i = 0; i < tq_tensor_count(node->in[1]); i++)
        if (exponents[i] < 0)
            return tq_input_fail(node, 1, error, "is %d at element %zu, and POW of INT32 needs exponents of 0 or more",
                                 exponents[i], i);
    return tq_broadcast_eval(node, error);
}

/* x^exponent, exponent >= 1, in the runtime's order of multiplications, each clamped to finite floats. */
static inline float whole_power(float x, int32_t exponent)
{
    float power = x;
    uint32_t bit = (uint32_t)1 << 30;
    while (!(bit & (uint32_t)exponent))
        bit >>= 1;
    for (bit >>= 1; bit != 0; bit >>= 1) {
        power = between_f32(power * power, -FLT_MAX, FLT_MAX);
        if ((uint32_t)exponent & bit)
            power = between_f32(x * power, -FLT_MAX, FLT_MAX);
    }
    return power;
}

static void run_whole_power(const tq_broadcast_run *run)
{
    const float *x = run->in[0];
    float *out = run->out;
    const int32_t exponent = (int32_t)((const bounds *)run->params)->int_high;
    for (size_t i = 0; i < run->n; i++)
        out[i] = whole_power(x[run->scalar[0] ? 0 : i], exponent);
}

/* One exponent for a tensor of another shape: where it is whole and at least 1, powers are products, as in the runtime.
 */
static tq_status eval_float_power(tq_node *node, tq_error *error)
{
    state *s = node->state;
    float exponent = *(const float *)node->in[1]->data;
    float whole = tq_round_f32(exponent);
    bool products = whole >= 1 && whole < 1e9f && fabsf(exponent - whole) < 1e-5f;
    s->walk.run = products ? run_whole_power : s->general;
    s->limits.int_high = products ? (int64_t)whole : 0;
    return tq_broadcast_eval(node, error);
}

static tq_op_fn eval_of(const tq_node *node)
{
    bool is_float = node->in[0]->type == TQ_TensorType_FLOAT32;
    switch (node->row.code) {
    case TQ_BuiltinOperator_FLOOR_DIV: return eval_division;
    case TQ_BuiltinOperator_DIV:
    case TQ_BuiltinOperator_FLOOR_MOD: return is_float ? tq_broadcast_eval : eval_division;
    case TQ_BuiltinOperator_POW:
        if (!is_float)
            return eval_integer_power;
        return tq_tensor_count(node->in[1]) == 1 && !tq_shape_equal(&node->in[0]->shape, &node->in[1]->shape)
                   ? eval_float_power
                   : tq_broadcast_eval;
    }
    return tq_broadcast_eval;
}

tq_status tq_binary_prepare(tq_node *node, tq_error *error)
{
    state *s;
    unsigned types;
    const binary_row *row = find(node->row.code, node->in[0]->type, &types);
    TQ_TRY(tq_check_input(node, 0, types, error));
    TQ_TRY(tq_check_input_like(node, 1, 0, error));
    TQ_TRY(tq_check_output(node, 0, tq_type_set(row->result), error));
    if (takes_equal_shapes_only(node->row.code))
        TQ_TRY(check_equal_shapes(node, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(tq_broadcast_prepare(node, 0, 2, &s->walk, error));
    s->limits = bounds_of(node);
    s->walk.params = &s->limits;
    s->walk.run = s->general = row->run[tq_isa()];
    s->walk.cost = row->cost;
    node->eval = eval_of(node);
    node->in_place = true;
    return TQ_OK;
}

tq_status tq_prepare_binary(tq_node *node, tq_error *error)
{
    return tq_binary_prepare(node, error);
}
