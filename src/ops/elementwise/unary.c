/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of one input: the rows of unary.def, which read no scales; quantized values by unary_quantized.c.
 */
#include "ops/elementwise/map.h"

#include <math.h>

#include "kernels/float_arrays.h"
#include "kernels/isa.h"
#include "ops/element.h"
#include "ops/elementwise/fixed_point_lanes.h"
#include "ops/elementwise/float_functions.h"
#include "ops/elementwise/unary_quantized.h"
#include "ops/elementwise/xnnpack_functions.h"

typedef struct options {
    float alpha;      /* LEAKY_RELU */
    bool approximate; /* GELU */
    float zero;       /* 0, unknown to the compiler: see xnnpack_functions.h */
} options;

typedef struct state {
    tq_map map;
    options o;
} state;

/* ---- the functions of unary.def that float_functions.h lacks ---- */

#define SIXTH (1.0f / 6.0f)

TQ_BODY float gate(float x, options p)
{
    float raised = p.zero < x + 3 ? x + 3 : p.zero;
    return raised < 6 + p.zero ? raised : 6 + p.zero;
}

/* Float16 GELU rounds after every operation, as the runtime's half arithmetic does. */
#define HALF(v) tq_half_to_float(tq_float_to_half(v))

static float half_gelu_by_erfc(float x)
{
    float scaled = HALF(x * HALF(-TQ_SQRT_HALF));
    return HALF(HALF(0.5f * x) * HALF(erfcf(scaled)));
}

static float half_gelu_by_tanh(float x)
{
    float cube = HALF(HALF(x * x) * x);
    float inner = HALF(x + HALF(HALF(0.044715f) * cube));
    float tangent = HALF(tanhf(HALF(HALF(0.797884560802865f) * inner)));
    return HALF(HALF(0.5f * x) * HALF(1 + tangent));
}

/* ---- the rows ---- */

#define ELEMENT(operator, type, expression)                               \
    TQ_BODY TQ_C_##type operator##_##type(TQ_C_##type element, options p) \
    {                                                                     \
        const TQ_V_##type x = TQ_LOAD_##type(element);                    \
        (void)p;                                                          \
        return TQ_STORE_##type(expression);                               \
    }
#define LOOP(name, target, operator, type) \
    TQ_MAP(name, target, TQ_C_##type, TQ_C_##type, options, operator##_##type(x, p))
#define UNARY(operator, type, cost, expression) \
    ELEMENT(operator, type, expression)         \
    LOOP(run_##operator##_##type, , operator, type)
#if TQ_X86
#define FAST_UNARY(operator, type, cost, expression)                     \
    ELEMENT(operator, type, expression)                                  \
    LOOP(run_##operator##_##type##_scalar, , operator, type)             \
    LOOP(run_##operator##_##type##_avx2, TQ_TARGET_AVX2, operator, type) \
    LOOP(run_##operator##_##type##_avx512, TQ_TARGET_AVX512, operator, type)
#else
#define FAST_UNARY(operator, type, cost, expression) \
    ELEMENT(operator, type, expression)              \
    LOOP(run_##operator##_##type##_scalar, , operator, type)
#endif
#include "ops/elementwise/unary.def"

#define ARRAY_UNARY(operator, cost, function)                                                     \
    static void run_##operator##_FLOAT32(const void *in, void *out, size_t n, const void *params) \
    {                                                                                             \
        (void)params;                                                                             \
        function(in, out, n);                                                                     \
    }
#include "ops/elementwise/unary.def"

#define XNNPACK_UNARY(operator, cost, expression) \
    TQ_ISA_DEFINE(TQ_MAP, run_xnnpack_##operator, float, float, options, expression)
#include "ops/elementwise/unary.def"

/* A range begins at a multiple of 64 (map.h), and so at a whole vector. */
#define OPTIMIZED(name, target, expression, last)                                        \
    TQ_MAP(name##_whole, target, float, float, options, expression)                      \
    TQ_MAP(name##_last, target, float, float, options, last)                             \
    target static void name(const void *in, void *out, size_t n, const void *params)     \
    {                                                                                    \
        const size_t whole = n / 4 * 4;                                                  \
        name##_whole(in, out, whole, params);                                            \
        name##_last((const float *)in + whole, (float *)out + whole, n - whole, params); \
    }
#define OPTIMIZED_UNARY(operator, cost, expression, last) \
    TQ_ISA_DEFINE(OPTIMIZED, run_optimized_##operator, expression, last)
#include "ops/elementwise/unary.def"

/* FLOAT32 GELU without `approximate`. */
static void run_gelu_by_erfc(const void *in, void *out, size_t n, const void *params)
{
    (void)params;
    tq_gelus(in, out, n);
}
TQ_ISA_DEFINE(TQ_MAP, run_xnnpack_gelu_by_erf, float, float, options, tq_xnnpack_gelu_by_erf(x, p.zero))

typedef struct unary_row {
    int16_t code;
    int8_t type;
    int cost; /* picoseconds */
    tq_map_fn run[TQ_ISAS];
} unary_row;

static const unary_row rows[] = {
#define UNARY(operator, type, cost, expression) \
    {TQ_BuiltinOperator_##operator, TQ_TensorType_##type, cost, TQ_ISA_SAME(run_##operator##_##type)},
#define FAST_UNARY(operator, type, cost, expression) \
    {TQ_BuiltinOperator_##operator, TQ_TensorType_##type, cost, TQ_ISA_FUNCTIONS(run_##operator##_##type)},
#define ARRAY_UNARY(operator, cost, function) \
    {TQ_BuiltinOperator_##operator, TQ_TensorType_FLOAT32, cost, TQ_ISA_SAME(run_##operator##_FLOAT32)},
#include "ops/elementwise/unary.def"
};

/* FLOAT32 where XNNPACK's bits differ. */
static const unary_row xnnpack_rows[] = {
#define XNNPACK_UNARY(operator, cost, expression) \
    {TQ_BuiltinOperator_##operator, TQ_TensorType_FLOAT32, cost, TQ_ISA_FUNCTIONS(run_xnnpack_##operator)},
#include "ops/elementwise/unary.def"
};

/* FLOAT32 where the optimized kernels' bits differ. */
static const unary_row optimized_rows[] = {
#define OPTIMIZED_UNARY(operator, cost, expression, last) \
    {TQ_BuiltinOperator_##operator, TQ_TensorType_FLOAT32, cost, TQ_ISA_FUNCTIONS(run_optimized_##operator)},
#include "ops/elementwise/unary.def"
};

static const unary_row exact_gelu = {TQ_BuiltinOperator_GELU, TQ_TensorType_FLOAT32, 1300,
                                     TQ_ISA_SAME(run_gelu_by_erfc)};
static const unary_row xnnpack_exact_gelu = {TQ_BuiltinOperator_GELU, TQ_TensorType_FLOAT32, 600,
                                             TQ_ISA_FUNCTIONS(run_xnnpack_gelu_by_erf)};

static const struct numerics_rows {
    const unary_row *rows;
    size_t count;
} other_rows[TQ_NUMERICS_XNNPACK + 1] = {
    [TQ_NUMERICS_XNNPACK] = {xnnpack_rows, sizeof xnnpack_rows / sizeof *xnnpack_rows},
    [TQ_NUMERICS_OPTIMIZED] = {optimized_rows, sizeof optimized_rows / sizeof *optimized_rows},
};

/* The FLOAT32 row of the node's numerics; row: the reference's. */
static const unary_row *of_numerics(const tq_node *node, const unary_row *row, bool approximate)
{
    const struct numerics_rows *others = &other_rows[node->numerics];
    if (row->code == TQ_BuiltinOperator_GELU && !approximate)
        return node->numerics == TQ_NUMERICS_XNNPACK ? &xnnpack_exact_gelu : &exact_gelu;
    for (size_t i = 0; i < others->count; i++)
        if (others->rows[i].code == row->code)
            return &others->rows[i];
    return row;
}

enum { ROWS = sizeof rows / sizeof *rows };

static const unary_row *find(int64_t code, int32_t type, unsigned *types)
{
    const unary_row *found = NULL;
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

static options options_of(const tq_node *node)
{
    const tq_table *table = &node->options.table;
    options o = {.zero = 0};
    if (node->row.code == TQ_BuiltinOperator_LEAKY_RELU)
        o.alpha = (float)tq_get_scalar(table, TQ_LeakyReluOptions_alpha).f;
    if (node->row.code == TQ_BuiltinOperator_GELU)
        o.approximate = tq_get_int(table, TQ_GeluOptions_approximate) != 0;
    return o;
}

tq_status tq_prepare_unary(tq_node *node, tq_error *error)
{
    state *s;
    unsigned types;
    const unary_row *row = find(node->row.code, node->in[0]->type, &types);
    tq_op_fn prepare_quantized = tq_unary_quantized_find(node, &types);
    TQ_TRY(tq_check_input(node, 0, types, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    if (prepare_quantized)
        return prepare_quantized(node, error);
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(tq_map_prepare(node, &s->map, error));
    s->o = options_of(node);
    row = row->type == TQ_TensorType_FLOAT32 ? of_numerics(node, row, s->o.approximate) : row;
    s->map.params = &s->o;
    s->map.run = row->run[tq_isa()];
    s->map.cost = row->cost;
    node->in_place = true;
    return TQ_OK;
}
