/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of constants that steer an operator: the CONSTANT rows of option_checks.def, and the indices of gathers,
 * scatters and segments.  Each check reports the first bad value of a constant.
 */
#include "base/checked.h"
#include "model/problems/checks.h"

typedef enum rule { RANGE, AXIS, COUNT, INDEX, PRODUCT, PERMUTATION, NOT_ZERO } rule;

typedef struct row {
    uint16_t op;
    uint8_t rule, input;
    uint8_t of;
    int64_t a, b;
} row;

static const row rows[] = {
#define CONSTANT_RANGE(op, input, low, high) {TQ_BuiltinOperator_##op, RANGE, input, 0, low, high},
#define CONSTANT_AXIS(op, input, of, extra) {TQ_BuiltinOperator_##op, AXIS, input, of, extra, 0},
#define CONSTANT_COUNT(op, input, times, of, plus) {TQ_BuiltinOperator_##op, COUNT, input, of, times, plus},
#define CONSTANT_INDEX(op, input, of, dimension) {TQ_BuiltinOperator_##op, INDEX, input, of, dimension, 0},
#define CONSTANT_PRODUCT(op, input) {TQ_BuiltinOperator_##op, PRODUCT, input, 0, 0, 0},
#define CONSTANT_PERMUTATION(op, input, of) {TQ_BuiltinOperator_##op, PERMUTATION, input, of, 0, 0},
#define CONSTANT_NOT_ZERO(op, input) {TQ_BuiltinOperator_##op, NOT_ZERO, input, 0, 0, 0},
#include "model/problems/option_checks.def"
};

/* Reports the first value outside [low, high], and returns whether there is one. */
static bool check_range(tq_checker *checker, tq_problem_code code, tq_location location, const tq_integers *values,
                        int64_t low, int64_t high)
{
    for (uint64_t i = 0; i < values->count; i++) {
        int64_t value = tq_integer(values, i);
        if (value >= low && value <= high)
            continue;
        tq_report(checker, code, location, "value %llu is %lld; it needs to be from %lld to %lld",
                  (unsigned long long)i, (long long)value, (long long)low, (long long)high);
        return true;
    }
    return false;
}

static void check_permutation(tq_checker *checker, tq_location location, const tq_integers *values, int64_t rank)
{
    uint64_t found = 0;
    if (rank > 64 || check_range(checker, TQ_PROBLEM_AXIS_RANGE, location, values, -rank, rank - 1))
        return;
    for (uint64_t i = 0; i < values->count; i++) {
        int64_t axis = tq_integer(values, i);
        uint64_t bit = UINT64_C(1) << (axis < 0 ? axis + rank : axis);
        if (found & bit) {
            tq_report(checker, TQ_PROBLEM_AXIS_DUPLICATE, location,
                      "value %llu is %lld, which names an axis for the second time", (unsigned long long)i,
                      (long long)axis);
            return;
        }
        found |= bit;
    }
}

static void check_product(tq_checker *checker, tq_location location, const tq_integers *values)
{
    uint64_t product = 1;
    for (uint64_t i = 0; i < values->count; i++) {
        int64_t value = tq_integer(values, i);
        if (value < 0)
            return;
        if (!tq_mul_u64(product, (uint64_t)value, &product))
            product = value ? UINT64_MAX : 0;
    }
    if (product > INT32_MAX)
        tq_report(checker, TQ_PROBLEM_OUTPUT_SIZE, location,
                  "the output's dimensions multiply to more than 2^31 - 1 elements");
}

static void check_not_zero(tq_checker *checker, tq_problem_code code, tq_location location, const tq_integers *values)
{
    for (uint64_t i = 0; i < values->count; i++)
        if (tq_integer(values, i) == 0) {
            tq_report(checker, code, location, "value %llu is 0", (unsigned long long)i);
            return;
        }
}

static void check_row(tq_checker *checker, const tq_checked_node *node, const row *r)
{
    tq_integers values;
    tq_location location = tq_checked_location(checker, node, r->input);
    tq_known_shape of = tq_known_shape_of(checker, &node->inputs, r->of);
    if (!tq_checked_integers(checker, node, r->input, &values))
        return;
    int64_t rank = (int64_t)of.shape.count;
    switch ((rule)r->rule) {
    case RANGE: check_range(checker, TQ_PROBLEM_CONSTANT_VALUE, location, &values, r->a, r->b); break;
    case AXIS: /* LiteRT reduces a scalar along any axis */
        if (of.known && rank + r->a)
            check_range(checker, TQ_PROBLEM_AXIS_RANGE, location, &values, -rank - r->a, rank + r->a - 1);
        break;
    case COUNT:
        if ((!r->a || of.known) && values.count != (uint64_t)(r->a * rank + r->b))
            tq_report(checker, TQ_PROBLEM_CONSTANT_COUNT, location, "there are %llu values; there need to be %lld",
                      (unsigned long long)values.count, (long long)(r->a * rank + r->b));
        break;
    case INDEX:
        if (of.known && tq_known_dimension(&of, (uint32_t)r->a) >= 0)
            check_range(checker, TQ_PROBLEM_INDEX_RANGE, location, &values, 0,
                        tq_known_dimension(&of, (uint32_t)r->a) - 1);
        break;
    case PRODUCT: check_product(checker, location, &values); break;
    case PERMUTATION:
        if (of.known)
            check_permutation(checker, location, &values, rank);
        break;
    case NOT_ZERO: check_not_zero(checker, TQ_PROBLEM_CONSTANT_VALUE, location, &values); break;
    }
}

/* ---- indices of several dimensions ---- */

static void check_gather(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers indices;
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    int64_t axis = tq_get_int(&node->options.table, TQ_GatherOptions_axis);
    axis += axis < 0 ? (int64_t)data.shape.count : 0;
    if (!data.known || axis < 0 || axis >= (int64_t)data.shape.count ||
        !tq_checked_integers(checker, node, 1, &indices))
        return;
    int64_t dimension = tq_known_dimension(&data, (uint32_t)axis);
    check_range(checker, TQ_PROBLEM_INDEX_RANGE, tq_checked_location(checker, node, 1), &indices, 0,
                dimension < 0 ? INT64_MAX : dimension - 1);
}

/* The limit of the i-th part of an index: a dimension of a shape, or a value of a constant. */
typedef struct limits {
    const tq_known_shape *shape;
    const tq_integers *constant;
    uint64_t count;
} limits;

static int64_t limit_at(const limits *l, uint64_t i)
{
    int64_t limit = l->shape ? tq_known_dimension(l->shape, (uint32_t)i) : tq_integer(l->constant, i);
    return limit < 0 ? INT64_MAX : limit;
}

/* Each index has `width` values. */
static void check_tuples(tq_checker *checker, tq_location location, const tq_integers *indices, uint64_t width,
                         const limits *l)
{
    if (!width)
        return;
    if (width > l->count) {
        tq_report(checker, TQ_PROBLEM_SHAPE_MISMATCH, location,
                  "an index has %llu parts; the tensor has %llu dimensions", (unsigned long long)width,
                  (unsigned long long)l->count);
        return;
    }
    for (uint64_t i = 0; i < indices->count; i++) {
        int64_t value = tq_integer(indices, i), limit = limit_at(l, i % width);
        if (value >= 0 && value < limit)
            continue;
        tq_report(checker, TQ_PROBLEM_INDEX_RANGE, location, "value %llu is %lld; it needs to be from 0 to %lld",
                  (unsigned long long)i, (long long)value, (long long)limit - 1);
        return;
    }
}

static uint64_t last_dimension(const tq_known_shape *shape)
{
    int64_t last = shape->shape.count ? tq_known_dimension(shape, shape->shape.count - 1) : 0;
    return last > 0 ? (uint64_t)last : 0;
}

static void check_gather_nd(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers indices;
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0),
                   shape = tq_known_shape_of(checker, &node->inputs, 1);
    if (data.known && tq_checked_integers(checker, node, 1, &indices))
        check_tuples(checker, tq_checked_location(checker, node, 1), &indices, last_dimension(&shape),
                     &(limits){&data, NULL, data.shape.count});
}

/* shape: the input with the output's shape: 2 of SCATTER_ND, 1 of SPARSE_TO_DENSE. */
static void check_scatter(tq_checker *checker, const tq_checked_node *node, uint32_t shape_input)
{
    tq_integers indices, dims;
    tq_known_shape shape = tq_known_shape_of(checker, &node->inputs, 0);
    if (!tq_checked_integers(checker, node, shape_input, &dims) || !tq_checked_integers(checker, node, 0, &indices))
        return;
    bool scalars = shape_input == 1 && shape.shape.count < 2;
    check_tuples(checker, tq_checked_location(checker, node, 0), &indices, scalars ? 1 : last_dimension(&shape),
                 &(limits){NULL, &dims, dims.count});
}

/* ---- segments ---- */

/* The ids of SEGMENT_SUM start at 0 and grow by 0 or 1. */
static void check_segment_sum(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers ids;
    tq_location location = tq_checked_location(checker, node, 1);
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    if (!tq_checked_integers(checker, node, 1, &ids))
        return;
    int64_t rows_of_data = data.known && data.shape.count ? tq_known_dimension(&data, 0) : -1, before = 0;
    if (rows_of_data >= 0 && (uint64_t)rows_of_data != ids.count)
        tq_report(checker, TQ_PROBLEM_CONSTANT_COUNT, location, "there are %llu segment ids; the data has %lld rows",
                  (unsigned long long)ids.count, (long long)rows_of_data);
    for (uint64_t i = 0; i < ids.count; i++) {
        int64_t id = tq_integer(&ids, i);
        if (id < before || id > before + (i > 0)) {
            tq_report(checker, TQ_PROBLEM_INDEX_RANGE, location,
                      "segment id %llu is %lld; ids need to start at 0 and rise by 0 or 1", (unsigned long long)i,
                      (long long)id);
            return;
        }
        before = id;
    }
}

static void check_unsorted_segments(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers ids, segments;
    if (!tq_checked_integers(checker, node, 1, &ids))
        return;
    bool known = tq_checked_integers(checker, node, 2, &segments) && segments.count == 1;
    /* A negative id drops its row. */
    check_range(checker, TQ_PROBLEM_INDEX_RANGE, tq_checked_location(checker, node, 1), &ids, INT64_MIN,
                known ? tq_integer(&segments, 0) - 1 : INT64_MAX);
}

static void check_reverse_sequence(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers lengths;
    tq_known_shape data = tq_known_shape_of(checker, &node->inputs, 0);
    int64_t axis = tq_get_int(&node->options.table, TQ_ReverseSequenceOptions_seq_dim);
    if (!data.known || axis < 0 || axis >= (int64_t)data.shape.count ||
        !tq_checked_integers(checker, node, 1, &lengths))
        return;
    int64_t dimension = tq_known_dimension(&data, (uint32_t)axis);
    check_range(checker, TQ_PROBLEM_INDEX_RANGE, tq_checked_location(checker, node, 1), &lengths, 0,
                dimension < 0 ? INT64_MAX : dimension);
}

static void check_divisor(tq_checker *checker, const tq_checked_node *node)
{
    tq_integers values;
    tq_table tensor = tq_checked_input(checker, node, 1);
    tq_table parameters = tq_get_table(&tensor, TQ_Tensor_quantization);
    if (!tq_get_vector(&parameters, TQ_QuantizationParameters_scale).count &&
        tq_checked_integers(checker, node, 1, &values))
        check_not_zero(checker, TQ_PROBLEM_DIVISOR_ZERO, tq_checked_location(checker, node, 1), &values);
}

void tq_check_constants(tq_checker *checker, const tq_checked_node *node)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == node->op.code)
            check_row(checker, node, &rows[i]);
    switch (node->op.code) {
    case TQ_BuiltinOperator_GATHER: check_gather(checker, node); break;
    case TQ_BuiltinOperator_GATHER_ND: check_gather_nd(checker, node); break;
    case TQ_BuiltinOperator_SCATTER_ND: check_scatter(checker, node, 2); break;
    case TQ_BuiltinOperator_SPARSE_TO_DENSE: check_scatter(checker, node, 1); break;
    case TQ_BuiltinOperator_SEGMENT_SUM: check_segment_sum(checker, node); break;
    case TQ_BuiltinOperator_UNSORTED_SEGMENT_PROD:
    case TQ_BuiltinOperator_UNSORTED_SEGMENT_MAX:
    case TQ_BuiltinOperator_UNSORTED_SEGMENT_MIN:
    case TQ_BuiltinOperator_UNSORTED_SEGMENT_SUM: check_unsorted_segments(checker, node); break;
    case TQ_BuiltinOperator_REVERSE_SEQUENCE: check_reverse_sequence(checker, node); break;
    case TQ_BuiltinOperator_DIV:
    case TQ_BuiltinOperator_FLOOR_DIV:
    case TQ_BuiltinOperator_FLOOR_MOD: check_divisor(checker, node); break;
    }
}
