/* SPDX-License-Identifier: Apache-2.0
 *
 * ARG_MAX and ARG_MIN: the index of the greatest or least element along a dimension; of equal elements the first.
 * NaN loses to every number.
 *
 * Source: LiteRT f6745779, tflite/kernels/arg_min_max.cc and internal/reference/arg_min_max.h.
 */
#include <math.h>
#include <string.h>

#include "kernels/isa.h"
#include "ops/check.h"
#include "ops/parallel.h"
#include "ops/reductions/byte_runs.h"

#if TQ_X86
#include <immintrin.h>
#endif

/* Columns that are searched at once: their best values lie on the stack. */
#define COLUMNS 256

/* Lanes that search one contiguous column. */
#define LANES 16

/* Elements of a short column: an index fits the low bits of a rank, or a mask of 64 bits. */
#define SHORT 64

/* best[i] = the k < dim whose in[k * inner + i] has the greatest key, for each i < n <= COLUMNS; where inner is 1,
   whose in[i * dim + k] has.  dim >= 1.  The key of an integer is x ^ flip, that of a float x * flip: with flips of -1
   the least wins, and with 0x80 bytes compare as unsigned. */
typedef void (*search_fn)(const void *in, int flip, size_t dim, size_t inner, size_t n, int32_t *best);
#define INTEGER_KEY(type, x) ((type)((x) ^ flip))
#define FLOAT_KEY(type, x) ((x) * (type)flip)

typedef struct search {
    size_t outer, dim, inner, element;
    search_fn run;
    int flip;
} search;

/* The first index of a key; 0 where there is none (all NaN). */
#define FIND_KEY(target, name, type, KEY)                                                                 \
    target static inline int32_t name##_find(const type *x, const int flip, const type value, size_t dim) \
    {                                                                                                     \
        size_t k = 0;                                                                                     \
        while (k < dim && KEY(type, x[k]) != value)                                                       \
            k++;                                                                                          \
        return k < dim ? (int32_t)k : 0;                                                                  \
    }

/* One contiguous column of at least LANES elements: the best key of each of LANES lanes, the best of these, and the
   first index that holds it.  The last step may read elements again.  `worst` loses to all but NaN. */
#define SEARCH_LONG(target, name, type, KEY, worst)                                     \
    target static inline int32_t name##_long(const type *x, const int flip, size_t dim) \
    {                                                                                   \
        type lanes[LANES], value = worst;                                               \
        for (size_t l = 0; l < LANES; l++)                                              \
            lanes[l] = worst;                                                           \
        for (size_t k = 0; k < dim; k += LANES) {                                       \
            const type *now = x + (k + LANES <= dim ? k : dim - LANES);                 \
            for (size_t l = 0; l < LANES; l++)                                          \
                lanes[l] = KEY(type, now[l]) > lanes[l] ? KEY(type, now[l]) : lanes[l]; \
        }                                                                               \
        for (size_t l = 0; l < LANES; l++)                                              \
            value = lanes[l] > value ? lanes[l] : value;                                \
        return name##_find(x, flip, value, dim);                                        \
    }
#define SEARCH_LONG_BYTES(target, name)                                                   \
    target static inline int32_t name##_long(const int8_t *x, const int flip, size_t dim) \
    {                                                                                     \
        const int8_t value = tq_greatest_byte((const uint8_t *)x, flip, dim);             \
        return (int32_t)((const int8_t *)memchr(x, (uint8_t)(value ^ flip), dim) - x);    \
    }

/* One short contiguous column, of at least 1 element: the greatest rank, which holds the key and, below it, what the
   index lacks to SHORT, so that the first of equal keys wins.  A branch would be mispredicted at every second column.
 */
#define SEARCH_SHORT(target, name, type, wide, RANK)                                     \
    target static inline int32_t name##_short(const type *x, const int flip, size_t dim) \
    {                                                                                    \
        wide best = RANK(type, x[0]) * SHORT + (SHORT - 1);                              \
        for (size_t k = 1; k < dim; k++) {                                               \
            const wide now = RANK(type, x[k]) * SHORT + (wide)(SHORT - 1 - k);           \
            best = now > best ? now : best;                                              \
        }                                                                                \
        return SHORT - 1 - (int32_t)(best & (SHORT - 1));                                \
    }
#define SMALL_RANK(type, x) ((int32_t)INTEGER_KEY(type, x))
#define WIDE_RANK(type, x) ((int64_t)INTEGER_KEY(type, x))
#define FLOAT_RANK(type, x) rank_of(FLOAT_KEY(type, x))

/* Integers in the order of floats; NaN is below all of them, and both zeros are one. */
TQ_BODY int64_t rank_of(float x)
{
    const float sum = x + 0.0f;
    int32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return x != x ? INT32_MIN : bits ^ ((bits >> 31) & INT32_MAX);
}

/* The rank of INT64 does not fit. */
#define SEARCH_SHORT_INT64(target, name, type)                                               \
    target static inline int32_t name##_short(const type *x, const int flip, size_t dim)     \
    {                                                                                        \
        int32_t best = 0;                                                                    \
        for (size_t k = 1; k < dim; k++)                                                     \
            best = INTEGER_KEY(type, x[k]) > INTEGER_KEY(type, x[best]) ? (int32_t)k : best; \
        return best;                                                                         \
    }

/* One contiguous column of any length. */
#define SEARCH_COLUMN(target, name, type)                                                           \
    target static inline int32_t name##_column(const type *x, const int flip, size_t dim, bool few) \
    {                                                                                               \
        (void)few;                                                                                  \
        return dim < SHORT ? name##_short(x, flip, dim) : name##_long(x, flip, dim);                \
    }

/* The same in lanes.  LANES elements are read; few: fewer belong to the column.  The last step may read elements again.
 */
#define HALVE(lanes, n) \
    TQ_EACH_LANE (l, n) \
        lanes[l] = lanes[l + (n)] > lanes[l] ? lanes[l + (n)] : lanes[l];
#define SEARCH_FLOATS(target, name)                                                                         \
    target TQ_BODY int32_t name##_column(const float *x, const int flip, size_t dim, bool few)              \
    {                                                                                                       \
        float lanes[LANES];                                                                                 \
        int32_t places[LANES], first = INT32_MAX;                                                           \
        TQ_EACH_LANE (l, LANES)                                                                             \
            lanes[l] = -INFINITY, places[l] = INT32_MAX;                                                    \
        for (size_t k = 0; k < dim; k += LANES) {                                                           \
            const float *now = x + (few || k + LANES <= dim ? k : dim - LANES);                             \
            TQ_EACH_LANE (l, LANES) {                                                                       \
                const float key = few && l >= dim ? -INFINITY : FLOAT_KEY(float, now[l]);                   \
                lanes[l] = key > lanes[l] ? key : lanes[l];                                                 \
            }                                                                                               \
        }                                                                                                   \
        HALVE(lanes, 8)                                                                                     \
        HALVE(lanes, 4)                                                                                     \
        HALVE(lanes, 2)                                                                                     \
        const float value = lanes[1] > lanes[0] ? lanes[1] : lanes[0];                                      \
        for (size_t k = 0; k < dim; k += LANES) {                                                           \
            const size_t at = few || k + LANES <= dim ? k : dim - LANES;                                    \
            TQ_EACH_LANE (l, LANES) {                                                                       \
                const int32_t place = FLOAT_KEY(float, x[at + l]) == value ? (int32_t)(at + l) : INT32_MAX; \
                places[l] = place < places[l] ? place : places[l];                                          \
            }                                                                                               \
        }                                                                                                   \
        TQ_EACH_LANE (l, LANES)                                                                             \
            first = places[l] < first ? places[l] : first;                                                  \
        return (size_t)first < dim ? first : 0;                                                             \
    }

#if TQ_X86
/* A column of at most SHORT bytes: the index of an element is that of a bit. */
TQ_TARGET_AVX2 TQ_BODY int32_t short_bytes(const int8_t *x, const int flip, size_t dim, bool few)
{
    const __m128i flips = _mm_set1_epi8((char)flip), worst = _mm_set1_epi8(INT8_MIN);
    const __m128i lane = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i within = few ? _mm_cmpgt_epi8(_mm_set1_epi8((char)dim), lane) : _mm_set1_epi8(-1);
    __m128i most = worst;
    uint64_t found = 0;
    for (size_t k = 0; k < dim; k += LANES) {
        const void *now = x + (few || k + LANES <= dim ? k : dim - LANES);
        const __m128i key = _mm_xor_si128(_mm_loadu_si128(now), flips);
        most = _mm_max_epi8(most, few ? _mm_blendv_epi8(worst, key, within) : key);
    }
    /* the least of 127 - most, of pairs and then of words */
    const __m128i lacks = _mm_xor_si128(most, _mm_set1_epi8(INT8_MAX));
    const __m128i least = _mm_minpos_epu16(_mm_min_epu8(lacks, _mm_srli_epi16(lacks, 8)));
    const __m128i value = _mm_set1_epi8((char)(_mm_cvtsi128_si32(least) ^ INT8_MAX ^ flip));
    for (size_t k = 0; k < dim; k += LANES) {
        const size_t at = few || k + LANES <= dim ? k : dim - LANES;
        const __m128i equal = _mm_cmpeq_epi8(_mm_loadu_si128((const void *)(x + at)), value);
        found |= (uint64_t)(uint32_t)_mm_movemask_epi8(equal) << at;
    }
    return __builtin_ctzll(found);
}
#define SEARCH_BYTES(target, name)                                                              \
    target TQ_BODY int32_t name##_column(const int8_t *x, const int flip, size_t dim, bool few) \
    {                                                                                           \
        return dim <= SHORT ? short_bytes(x, flip, dim, few) : name##_long(x, flip, dim);       \
    }
#endif

#define COLUMNS_OF_TYPES(isa, target)                                      \
    FIND_KEY(target, search_i16_##isa, int16_t, INTEGER_KEY)               \
    FIND_KEY(target, search_i32_##isa, int32_t, INTEGER_KEY)               \
    FIND_KEY(target, search_i64_##isa, int64_t, INTEGER_KEY)               \
    SEARCH_SHORT(target, search_f32_##isa, float, int64_t, FLOAT_RANK)     \
    SEARCH_SHORT(target, search_i8_##isa, int8_t, int32_t, SMALL_RANK)     \
    SEARCH_SHORT(target, search_i16_##isa, int16_t, int32_t, SMALL_RANK)   \
    SEARCH_SHORT(target, search_i32_##isa, int32_t, int64_t, WIDE_RANK)    \
    SEARCH_SHORT_INT64(target, search_i64_##isa, int64_t)                  \
    SEARCH_LONG_BYTES(target, search_i8_##isa)                             \
    SEARCH_LONG(target, search_i16_##isa, int16_t, INTEGER_KEY, INT16_MIN) \
    SEARCH_LONG(target, search_i32_##isa, int32_t, INTEGER_KEY, INT32_MIN) \
    SEARCH_LONG(target, search_i64_##isa, int64_t, INTEGER_KEY, INT64_MIN) \
    SEARCH_COLUMN(target, search_i16_##isa, int16_t)                       \
    SEARCH_COLUMN(target, search_i32_##isa, int32_t)                       \
    SEARCH_COLUMN(target, search_i64_##isa, int64_t)
TQ_EVERY_ISA(COLUMNS_OF_TYPES)

/* Without AVX2 vectors are too short for floats, and have no least word. */
FIND_KEY(, search_f32_scalar, float, FLOAT_KEY)
SEARCH_LONG(, search_f32_scalar, float, FLOAT_KEY, -INFINITY)
SEARCH_COLUMN(, search_f32_scalar, float)
SEARCH_COLUMN(, search_i8_scalar, int8_t)
#if TQ_X86
SEARCH_FLOATS(TQ_TARGET_AVX2, search_f32_avx2)
SEARCH_FLOATS(TQ_TARGET_AVX512, search_f32_avx512)
SEARCH_BYTES(TQ_TARGET_AVX2, search_i8_avx2)
SEARCH_BYTES(TQ_TARGET_AVX512, search_i8_avx512)
#endif

/* n columns side by side, `inner` elements from row to row.  A number wins against NaN. */
#define SEARCH_ROWS(target, name, type, KEY)                                                                         \
    target static void name##_rows(const type *x, const int flip, size_t dim, size_t inner, size_t n, int32_t *best) \
    {                                                                                                                \
        type values[COLUMNS];                                                                                        \
        for (size_t i = 0; i < n; i++)                                                                               \
            values[i] = KEY(type, x[i]);                                                                             \
        memset(best, 0, n * sizeof *best);                                                                           \
        for (size_t k = 1; k < dim && !tq_stop_after(n / 8); k++)                                                    \
            for (size_t i = 0; i < n; i++) {                                                                         \
                type now = KEY(type, x[k * inner + i]), held = values[i];                                            \
                bool wins = (now > held) | ((held != held) & (now == now));                                          \
                values[i] = wins ? now : held;                                                                       \
                best[i] = wins ? (int32_t)k : best[i];                                                               \
            }                                                                                                        \
    }
#define SHORT_COLUMNS(name, count) \
    for (size_t i = 0; i < n; i++) \
        best[i] = name##_short(x + i * count, flip, count);
#define SEARCH(name, target, type, KEY)                                                                  \
    SEARCH_ROWS(target, name, type, KEY)                                                                 \
    target static void name(const void *in, int flip, size_t dim, size_t inner, size_t n, int32_t *best) \
    {                                                                                                    \
        size_t work = 0, i = 0;                                                                          \
        const type *x = in;                                                                              \
        if (inner != 1)                                                                                  \
            name##_rows(x, flip, dim, inner, n, best);                                                   \
        else if (dim == 2)                                                                               \
            SHORT_COLUMNS(name, 2)                                                                       \
        else if (dim == 3)                                                                               \
            SHORT_COLUMNS(name, 3)                                                                       \
        else if (dim < LANES) {                                                                          \
            for (; i * dim + LANES <= n * dim; i++)                                                      \
                best[i] = name##_column(x + i * dim, flip, dim, true);                                   \
            for (; i < n; i++)                                                                           \
                best[i] = name##_short(x + i * dim, flip, dim);                                          \
        } else                                                                                           \
            for (; i < n && !tq_stop_count(&work, dim); i++, x += dim)                                   \
                best[i] = name##_column(x, flip, dim, false);                                            \
    }
#define SEARCHES(isa, target)                              \
    SEARCH(search_f32_##isa, target, float, FLOAT_KEY)     \
    SEARCH(search_i8_##isa, target, int8_t, INTEGER_KEY)   \
    SEARCH(search_i16_##isa, target, int16_t, INTEGER_KEY) \
    SEARCH(search_i32_##isa, target, int32_t, INTEGER_KEY) \
    SEARCH(search_i64_##isa, target, int64_t, INTEGER_KEY)
TQ_EVERY_ISA(SEARCHES)

/* BOOL is searched as UINT8. */
static void choose(search *s, int32_t type, bool greatest)
{
    static const struct {
        int32_t type;
        int flip; /* for the greatest; for the least -flip of floats, ~flip of integers */
        search_fn run[TQ_ISAS];
    } rows[] = {
        {TQ_TensorType_FLOAT32, 1, TQ_ISA_FUNCTIONS(search_f32)},
        {TQ_TensorType_INT8, 0, TQ_ISA_FUNCTIONS(search_i8)},
        {TQ_TensorType_UINT8, 128, TQ_ISA_FUNCTIONS(search_i8)},
        {TQ_TensorType_BOOL, 128, TQ_ISA_FUNCTIONS(search_i8)},
        {TQ_TensorType_INT16, 0, TQ_ISA_FUNCTIONS(search_i16)},
        {TQ_TensorType_INT32, 0, TQ_ISA_FUNCTIONS(search_i32)},
        {TQ_TensorType_INT64, 0, TQ_ISA_FUNCTIONS(search_i64)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].type == type) {
            const int least = type == TQ_TensorType_FLOAT32 ? -rows[i].flip : ~rows[i].flip;
            s->run = rows[i].run[tq_isa()];
            s->flip = greatest ? rows[i].flip : least;
        }
}

static void store(const tq_tensor *out, size_t at, const int32_t *best, size_t n)
{
    if (out->type == TQ_TensorType_INT32)
        memcpy((int32_t *)out->data + at, best, n * sizeof *best);
    else
        for (size_t i = 0; i < n; i++)
            ((int64_t *)out->data)[at + i] = best[i];
}

/* Columns of one node's search, in blocks of up to COLUMNS.  With an inner of 1, columns are contiguous, and are
   searched together too. */
typedef struct walk {
    const tq_node *node;
    size_t width, blocks; /* columns side by side; their blocks */
} walk;

static void search_blocks(void *context, size_t begin, size_t end)
{
    const walk *w = context;
    const search *s = w->node->state;
    int32_t best[COLUMNS];
    for (size_t i = begin; i < end && !tq_stop_after(s->dim * COLUMNS / 8); i++) {
        const size_t o = i / w->blocks, c = i % w->blocks * COLUMNS;
        const size_t n = w->width - c < COLUMNS ? w->width - c : COLUMNS;
        const size_t from = s->inner == 1 ? c * s->dim : o * s->dim * s->inner + c;
        s->run((const char *)w->node->in[0]->data + from * s->element, s->flip, s->dim, s->inner, n, best);
        store(w->node->out[0], o * w->width + c, best, n);
    }
}

static tq_status eval_search(tq_node *node, tq_error *error)
{
    enum { COST = 150 }; /* picoseconds an element */
    (void)error;
    const search *s = node->state;
    walk w = {.node = node, .width = s->inner == 1 ? s->outer : s->inner};
    w.blocks = (w.width + COLUMNS - 1) / COLUMNS;
    const size_t least = w.width < COLUMNS ? w.width : COLUMNS;
    tq_parallel_work((s->inner == 1 ? 1 : s->outer) * w.blocks, 1, s->dim * least * COST, node->threads, search_blocks,
                     &w);
    return TQ_OK;
}

static tq_status search_shape(tq_node *node, tq_error *error)
{
    search *s = node->state;
    const tq_shape *in = &node->in[0]->shape;
    tq_shape shape = {0, {0}};
    int axis = 0;
    TQ_TRY(tq_check_axis(node, tq_integer_at(node->in[1], 0), in->rank, "axis", &axis, error));
    if (in->dims[axis] == 0)
        return tq_input_fail(node, 0, error, "has no elements in dimension %d, which is searched", axis);
    for (int d = 0; d < in->rank; d++)
        if (d != axis)
            shape.dims[shape.rank++] = in->dims[d];
    s->outer = tq_shape_span(in, 0, axis);
    s->dim = (size_t)in->dims[axis];
    s->inner = tq_shape_span(in, axis + 1, in->rank);
    return tq_output_shape(node, 0, &shape, error);
}

tq_status tq_prepare_arg_min_max(tq_node *node, tq_error *error)
{
    search *s = NULL;
    TQ_TRY(tq_check_input(
        node, 0, TQ_T(FLOAT32) | TQ_T(UINT8) | TQ_T(INT8) | TQ_T(INT16) | TQ_T(INT32) | TQ_T(INT64) | TQ_T(BOOL),
        error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT32) | TQ_T(INT64), error));
    const bool greatest = node->row.code == TQ_BuiltinOperator_ARG_MAX;
    int64_t said =
        tq_get_int(&node->options.table, greatest ? TQ_ArgMaxOptions_output_type : TQ_ArgMinOptions_output_type);
    TQ_TRY(tq_check_index_output(node, 0, said, error));
    if (tq_tensor_count(node->in[1]) != 1)
        return tq_input_fail(node, 1, error, "has %zu elements; it needs 1", tq_tensor_count(node->in[1]));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->element = tq_element_bytes(node->in[0]->type);
    choose(s, node->in[0]->type, greatest);
    node->eval = eval_search;
    return tq_shape_from_values(node, 1u << 1, search_shape, error);
}
