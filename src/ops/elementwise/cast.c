/* SPDX-License-Identifier: Apache-2.0
 *
 * CAST: each element as another type; scales are not read.
 *
 * Elements are widened to int64 or float64, which hold all of them, and narrowed from there.  Integers wrap; floats are
 * truncated and saturate, and NaN becomes the greatest integer.  Float16 and bfloat16 are rounded from float32.  Of a
 * complex number the real part is cast.
 *
 * Source: LiteRT f6745779, tflite/kernels/cast.cc.
 */
#include <math.h>
#include <string.h>

#include "kernels/isa.h"
#include "ops/element.h"
#include "ops/elementwise/map.h"
#include "ops/quantized.h"

#define CHUNK 256 /* elements: widened on the stack, then narrowed */

/* ---- widening to int64 and float64 ---- */

#define WIDEN(type, W, expression)                                \
    static void widen_##type(const void *in, void *out, size_t n) \
    {                                                             \
        const TQ_C_##type *from = in;                             \
        W *to = out;                                              \
        for (size_t i = 0; i < n; i++) {                          \
            const TQ_V_##type x = TQ_LOAD_##type(from[i]);        \
            to[i] = (W)(expression);                              \
        }                                                         \
    }
WIDEN(BOOL, int64_t, x != 0)
WIDEN(INT8, int64_t, x)
WIDEN(UINT8, int64_t, x)
WIDEN(INT16, int64_t, x)
WIDEN(UINT16, int64_t, x)
WIDEN(INT32, int64_t, x)
WIDEN(UINT32, int64_t, x)
WIDEN(INT64, int64_t, x)
WIDEN(FLOAT16, double, x)
WIDEN(BFLOAT16, double, x)
WIDEN(FLOAT32, double, x)
WIDEN(FLOAT64, double, x)
WIDEN(COMPLEX64, double, x.real)

/* ---- narrowing from them ---- */

/* x truncated to an integer from low to high; beyond: high + 1, a power of two, as a float64. */
static inline int64_t truncated(double x, int64_t low, int64_t high, double beyond)
{
    if (x >= beyond || x != x)
        return high;
    return x < (double)low ? low : (int64_t)x;
}

#define NARROW_FROM(kind, W, type, expression)                              \
    static void narrow_##kind##_##type(const void *in, void *out, size_t n) \
    {                                                                       \
        const W *from = in;                                                 \
        TQ_C_##type *to = out;                                              \
        for (size_t i = 0; i < n; i++) {                                    \
            const W x = from[i];                                            \
            to[i] = expression;                                             \
        }                                                                   \
    }
#define NARROW(type, of_integer, of_real)           \
    NARROW_FROM(integer, int64_t, type, of_integer) \
    NARROW_FROM(real, double, type, of_real)
#define NARROW_INTEGER(type, low, high, beyond) \
    NARROW(type, (TQ_C_##type)x, (TQ_C_##type)truncated(x, low, high, beyond))
#define TQ_C_INT4 int8_t
#define TQ_C_INT2 int8_t
#define TQ_C_UINT4 uint8_t
NARROW(BOOL, x != 0, x != 0)
NARROW_INTEGER(INT8, INT8_MIN, INT8_MAX, 0x1p7)
NARROW_INTEGER(UINT8, 0, UINT8_MAX, 0x1p8)
NARROW_INTEGER(INT16, INT16_MIN, INT16_MAX, 0x1p15)
NARROW_INTEGER(UINT16, 0, UINT16_MAX, 0x1p16)
NARROW_INTEGER(INT32, INT32_MIN, INT32_MAX, 0x1p31)
NARROW_INTEGER(UINT32, 0, UINT32_MAX, 0x1p32)
NARROW_INTEGER(INT64, INT64_MIN, INT64_MAX, 0x1p63)
NARROW_FROM(real, double, INT4, (int8_t)truncated(x, -8, 7, 8))
NARROW_FROM(real, double, INT2, (int8_t)truncated(x, -2, 1, 2))
NARROW_FROM(real, double, UINT4, (uint8_t)truncated(x, 0, 15, 16))
NARROW(FLOAT16, TQ_STORE_FLOAT16(x), TQ_STORE_FLOAT16(x))
NARROW(BFLOAT16, TQ_STORE_BFLOAT16(x), TQ_STORE_BFLOAT16(x))
NARROW(FLOAT32, (float)x, (float)x)
NARROW(FLOAT64, (double)x, x)
static inline tq_complex64 complex_of(float real)
{
    tq_complex64 z = {real, 0};
    return z;
}
NARROW(COMPLEX64, complex_of((float)x), complex_of((float)x))

/* ---- the table ---- */

typedef void (*step_fn)(const void *in, void *out, size_t n);

typedef struct cast_row {
    int8_t type;
    bool is_real;      /* widen gives float64, else int64 */
    step_fn widen;     /* 4-bit and 2-bit integers are cast to and from FLOAT32 only */
    step_fn narrow[2]; /* from int64, from float64 */
} cast_row;

#define ROW(type, is_real)                            \
    {                                                 \
        TQ_TensorType_##type, is_real, widen_##type,  \
        {                                             \
            narrow_integer_##type, narrow_real_##type \
        }                                             \
    }
static const cast_row rows[] = {
    ROW(BOOL, false),
    ROW(INT8, false),
    ROW(UINT8, false),
    ROW(INT16, false),
    ROW(UINT16, false),
    ROW(INT32, false),
    ROW(UINT32, false),
    ROW(INT64, false),
    ROW(FLOAT16, true),
    ROW(BFLOAT16, true),
    ROW(FLOAT32, true),
    ROW(FLOAT64, true),
    ROW(COMPLEX64, true),
    {TQ_TensorType_INT4, false, widen_INT8, {NULL, narrow_real_INT4}},
    {TQ_TensorType_INT2, false, widen_INT8, {NULL, narrow_real_INT2}},
    {TQ_TensorType_UINT4, false, widen_UINT8, {NULL, narrow_real_UINT4}},
};

static const cast_row *find(int32_t type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type == type)
            return &rows[i];
    return NULL;
}

static unsigned all_types(void)
{
    unsigned types = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        types |= tq_type_set(rows[i].type);
    return types;
}

/* ---- prepare and eval ---- */

typedef struct state {
    tq_map map;
    step_fn widen, narrow;
    size_t bytes[2]; /* of an input element, of an output element */
} state;

static void run_steps(const void *in, void *out, size_t n, const void *params)
{
    const state *s = params;
    const char *from = in;
    char *to = out;
    union {
        int64_t integers[CHUNK];
        double reals[CHUNK];
    } wide;
    while (n > 0) {
        size_t count = n < CHUNK ? n : CHUNK;
        s->widen(from, &wide, count);
        s->narrow(&wide, to, count);
        from += count * s->bytes[0];
        to += count * s->bytes[1];
        n -= count;
    }
}

static void run_copy(const void *in, void *out, size_t n, const void *params)
{
    memcpy(out, in, n * ((const state *)params)->bytes[0]);
}

/* `truncated` of a float, as selections that compilers vectorize.  beyond: high + 1. */
#define TRUNCATED(name, type, high, beyond)                                                    \
    TQ_BODY type name(float x)                                                                 \
    {                                                                                          \
        const float held = x < (beyond) ? x : 0, raised = held < -(beyond) ? -(beyond) : held; \
        return x < (beyond) ? (type)raised : (high);                                           \
    }
TRUNCATED(truncated_32, int32_t, INT32_MAX, 0x1p31f)
TRUNCATED(truncated_64, int64_t, INT64_MAX, 0x1p63f)

/* The same to an integer from low to high, of at most 16 bits, which floats hold. */
TQ_BODY int32_t truncated_to(float x, float low, float high)
{
    const float most = x < high ? x : high;
    return (int32_t)(most < low ? low : most);
}

/* The casts that models use most, in one step. */
#define DIRECT_CASTS(CAST)                                   \
    CAST(BOOL, FLOAT32, x != 0)                              \
    CAST(INT8, FLOAT32, x)                                   \
    CAST(UINT8, FLOAT32, x)                                  \
    CAST(INT32, FLOAT32, x)                                  \
    CAST(INT64, FLOAT32, x)                                  \
    CAST(FLOAT32, BOOL, x != 0)                              \
    CAST(FLOAT32, INT8, truncated_to(x, INT8_MIN, INT8_MAX)) \
    CAST(FLOAT32, UINT8, truncated_to(x, 0, UINT8_MAX))      \
    CAST(FLOAT32, INT32, truncated_32(x))                    \
    CAST(FLOAT32, INT64, truncated_64(x))                    \
    CAST(BOOL, INT32, x != 0)                                \
    CAST(INT8, INT32, x)                                     \
    CAST(UINT8, INT32, x)                                    \
    CAST(INT64, INT32, x)                                    \
    CAST(INT32, INT64, x)                                    \
    CAST(INT32, BOOL, x != 0)
#define DIRECT(from, to, expression) TQ_ISA_DEFINE(TQ_MAP, from##_to_##to, TQ_C_##from, TQ_C_##to, state, expression)
DIRECT_CASTS(DIRECT)

static const struct {
    int8_t from, to;
    tq_map_fn run[TQ_ISAS];
} direct[] = {
#define DIRECT_ROW(from, to, expression) {TQ_TensorType_##from, TQ_TensorType_##to, TQ_ISA_FUNCTIONS(from##_to_##to)},
    DIRECT_CASTS(DIRECT_ROW)};

static tq_map_fn choose(int32_t from, int32_t to)
{
    if (from == to && from != TQ_TensorType_BOOL)
        return run_copy;
    for (size_t i = 0; i < sizeof direct / sizeof *direct; i++)
        if (direct[i].from == from && direct[i].to == to)
            return direct[i].run[tq_isa()];
    return run_steps;
}

static bool is_narrow(int32_t type)
{
    return type == TQ_TensorType_INT4 || type == TQ_TensorType_INT2 || type == TQ_TensorType_UINT4;
}

tq_status tq_prepare_cast(tq_node *node, tq_error *error)
{
    state *s;
    TQ_TRY(tq_check_input(node, 0, all_types(), error));
    int32_t type = node->in[0]->type;
    TQ_TRY(tq_check_output(node, 0, is_narrow(type) ? TQ_T(FLOAT32) | tq_type_set(type) : all_types(), error));
    const cast_row *from = find(type), *to = find(node->out[0]->type);
    if (is_narrow(to->type) && type != TQ_TensorType_FLOAT32 && type != to->type)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "casts %s to %s; 4-bit and 2-bit integers are cast from FLOAT32", tq_type_name(type),
                          tq_type_name(to->type));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(tq_map_prepare(node, &s->map, error));
    s->widen = from->widen;
    s->narrow = to->narrow[from->is_real];
    s->bytes[0] = s->map.in_bytes;
    s->bytes[1] = s->map.out_bytes;
    s->map.params = s;
    s->map.run = choose(from->type, to->type);
    return TQ_OK;
}
