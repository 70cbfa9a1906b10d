/* SPDX-License-Identifier: Apache-2.0
 *
 * The combinations of combine.h.
 */
#include "ops/movement/combine.h"

#include <stdbool.h>
#include <string.h>

#include "flatbuffer/schema.h"
#include "kernels/half.h"
#include "model/types.h"

#define COMBINE(name, type, expression)                                        \
    static void name(void *restrict held, const void *restrict news, size_t n) \
    {                                                                          \
        type *restrict a = held;                                               \
        const type *restrict b = news;                                         \
        for (size_t i = 0; i < n; i++)                                         \
            a[i] = (type)(expression);                                         \
    }

/* Integers are added and multiplied as uint64: the low bits are the same, and nothing overflows. */
#define COMBINE_TYPE(name, type, add, multiply)            \
    COMBINE(replace_##name, type, b[i])                    \
    COMBINE(add_##name, type, add)                         \
    COMBINE(multiply_##name, type, multiply)               \
    COMBINE(max_##name, type, a[i] < b[i] ? b[i] : a[i])   \
    COMBINE(min_##name, type, b[i] < a[i] ? b[i] : a[i])   \
    COMBINE(wmax_##name, type, a[i] >= b[i] ? a[i] : b[i]) \
    COMBINE(wmin_##name, type, a[i] <= b[i] ? a[i] : b[i]) \
    COMBINE(all_##name, type, a[i] != 0 && b[i] != 0)      \
    COMBINE(any_##name, type, a[i] != 0 || b[i] != 0)
#define COMBINE_INTEGER(name, type) \
    COMBINE_TYPE(name, type, (uint64_t)a[i] + (uint64_t)b[i], (uint64_t)a[i] * (uint64_t)b[i])

COMBINE_TYPE(f32, float, a[i] + b[i], a[i] * b[i])
COMBINE_TYPE(f64, double, a[i] + b[i], a[i] * b[i])
COMBINE_TYPE(bool, uint8_t, a[i] | b[i], a[i] & b[i])
COMBINE_INTEGER(i8, int8_t)
COMBINE_INTEGER(u8, uint8_t)
COMBINE_INTEGER(i16, int16_t)
COMBINE_INTEGER(u16, uint16_t)
COMBINE_INTEGER(i32, int32_t)
COMBINE_INTEGER(u32, uint32_t)
COMBINE_INTEGER(i64, int64_t)
COMBINE_INTEGER(u64, uint64_t)

/* Each operation on float16 is one on float32, rounded. */
#define HALF(x) tq_half_to_float(x)
#define COMBINE_HALF(name, expression) COMBINE(name##_f16, uint16_t, tq_float_to_half(expression))
COMBINE(replace_f16, uint16_t, b[i])
COMBINE_HALF(add, HALF(a[i]) + HALF(b[i]))
COMBINE_HALF(multiply, HALF(a[i]) * HALF(b[i]))
COMBINE_HALF(max, HALF(a[i]) < HALF(b[i]) ? HALF(b[i]) : HALF(a[i]))
COMBINE_HALF(min, HALF(b[i]) < HALF(a[i]) ? HALF(b[i]) : HALF(a[i]))
COMBINE_HALF(wmax, HALF(a[i]) >= HALF(b[i]) ? HALF(a[i]) : HALF(b[i]))
COMBINE_HALF(wmin, HALF(a[i]) <= HALF(b[i]) ? HALF(a[i]) : HALF(b[i]))
COMBINE_HALF(all, HALF(a[i]) != 0 && HALF(b[i]) != 0)
COMBINE_HALF(any, HALF(a[i]) != 0 || HALF(b[i]) != 0)

tq_combine_fn tq_combine_of(tq_combination how, int32_t type)
{
#define ROW(TYPE, name)                                                                                                \
    {                                                                                                                  \
        TQ_TensorType_##TYPE,                                                                                          \
        {                                                                                                              \
            replace_##name, add_##name, multiply_##name, max_##name, min_##name, wmax_##name, wmin_##name, all_##name, \
                any_##name, NULL                                                                                       \
        }                                                                                                              \
    }
    static const struct {
        int32_t type;
        tq_combine_fn of[TQ_COMBINE_NONE + 1];
    } rows[] = {
        ROW(FLOAT32, f32), ROW(FLOAT64, f64), ROW(FLOAT16, f16), ROW(BOOL, bool),  ROW(INT8, i8),   ROW(UINT8, u8),
        ROW(INT16, i16),   ROW(UINT16, u16),  ROW(INT32, i32),   ROW(UINT32, u32), ROW(INT64, i64), ROW(UINT64, u64),
    };
#undef ROW
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].type == type)
            return rows[i].of[how];
    return NULL;
}

tq_combination tq_combination_of_operator(int64_t code)
{
    switch (code) {
    case TQ_BuiltinOperator_ADD:
    case TQ_BuiltinOperator_STABLEHLO_ADD: return TQ_COMBINE_ADD;
    case TQ_BuiltinOperator_MUL:
    case TQ_BuiltinOperator_STABLEHLO_MULTIPLY: return TQ_COMBINE_MULTIPLY;
    case TQ_BuiltinOperator_MAXIMUM:
    case TQ_BuiltinOperator_STABLEHLO_MAXIMUM: return TQ_COMBINE_MAX;
    case TQ_BuiltinOperator_MINIMUM:
    case TQ_BuiltinOperator_STABLEHLO_MINIMUM: return TQ_COMBINE_MIN;
    case TQ_BuiltinOperator_LOGICAL_AND:
    case TQ_BuiltinOperator_STABLEHLO_AND: return TQ_COMBINE_ALL;
    case TQ_BuiltinOperator_LOGICAL_OR:
    case TQ_BuiltinOperator_STABLEHLO_OR: return TQ_COMBINE_ANY;
    default: return TQ_COMBINE_NONE;
    }
}
