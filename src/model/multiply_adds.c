/* SPDX-License-Identifier: Apache-2.0 */
#include "model/multiply_adds.h"

#include <string.h>

#include "base/checked.h"

/* ---- counts ---- */

/* A product that may overflow.  A factor 0 makes it 0 whatever the others are. */
typedef struct product {
    uint64_t value;
    bool huge;
} product;

static product times(product p, product q)
{
    if ((p.value == 0 && !p.huge) || (q.value == 0 && !q.huge))
        return (product){0, false};
    product out = {0, p.huge || q.huge};
    if (!out.huge && !tq_mul_u64(p.value, q.value, &out.value))
        out.huge = true;
    return out;
}

static product times_factor(product p, uint64_t factor)
{
    return times(p, (product){factor, false});
}

static product plus(product p, product q)
{
    product out = {0, p.huge || q.huge};
    if (!out.huge && !tq_add_u64(p.value, q.value, &out.value))
        out.huge = true;
    return out;
}

/* The product of all dimensions but those of the bits `ignored`. */
static product elements(const tq_extent *shape, uint64_t ignored)
{
    product out = {1, false};
    for (uint32_t i = 0; i < shape->rank; i++)
        if (!(ignored >> i & 1))
            out = times_factor(out, (uint32_t)shape->dims[i]);
    return out;
}

static bool divide(product p, uint64_t by, product *out)
{
    *out = p;
    if (by == 0 || (!p.huge && p.value % by != 0))
        return false;
    if (!p.huge)
        out->value /= by;
    return true;
}

/* ---- shapes ---- */

enum { ANY_RANK = -1 };

static bool input(const tq_extents *extents, uint32_t index, int rank, tq_extent *out)
{
    return index < extents->inputs && extents->shape(extents->context, false, index, out) == TQ_GIVEN &&
           (rank == ANY_RANK || out->rank == (uint32_t)rank);
}

static bool output(const tq_extents *extents, int rank, tq_extent *out)
{
    return extents->outputs > 0 && extents->shape(extents->context, true, 0, out) == TQ_GIVEN &&
           (rank == ANY_RANK || out->rank == (uint32_t)rank);
}

/* ---- formulas; false: the count is unknown ---- */

static bool by_output(const tq_extents *extents, int rank, uint32_t axis, uint64_t ignored, product *out)
{
    tq_extent weights, y;
    if (!input(extents, 1, rank, &weights) || !output(extents, rank, &y) || y.dims[rank - 1] != weights.dims[axis])
        return false;
    *out = times(elements(&y, 0), elements(&weights, ignored));
    return true;
}

static bool by_input(const tq_extents *extents, uint32_t data, uint32_t weights, int rank, uint32_t axis, product *out)
{
    tq_extent x, w;
    if (!input(extents, data, rank, &x) || !input(extents, weights, rank, &w) || x.dims[rank - 1] != w.dims[axis])
        return false;
    *out = times(elements(&x, 0), elements(&w, UINT64_C(1) << axis));
    return true;
}

/* Batches times time steps: the number of evaluations of a recurrent cell. */
static bool steps(const tq_extents *extents, product *out)
{
    tq_extent x;
    if (!input(extents, 0, ANY_RANK, &x))
        return false;
    *out = x.rank ? elements(&x, UINT64_C(1) << (x.rank - 1)) : (product){0, false};
    return true;
}

/* Each step multiplies with every element of the inputs of `mask`; input `needed` is not optional. */
static bool recurrent(const tq_extents *extents, uint32_t needed, uint64_t mask, product *out)
{
    tq_extent shape;
    product count, all = {0, false};
    if (!input(extents, needed, ANY_RANK, &shape) || !steps(extents, &count))
        return false;
    for (uint32_t i = 0; i < extents->inputs && i < 64; i++) {
        const tq_given given = mask >> i & 1 ? extents->shape(extents->context, false, i, &shape) : TQ_LEFT_OUT;
        if (given == TQ_NO_SHAPE)
            return false;
        if (given == TQ_GIVEN)
            all = plus(all, elements(&shape, 0));
    }
    *out = times(count, all);
    return true;
}

/* Inputs of an LSTM that hold weights: 4 input matrices (of which the first may be left out), 4 recurrent ones, 3
   peepholes; then, past 4 biases, the projection. */
#define LSTM_WEIGHTS (UINT64_C(0x7ff) << 1 | UINT64_C(1) << 16)

typedef bool formula(const tq_operator *op, const tq_extents *extents, product *out);

static bool lstm(const tq_operator *op, const tq_extents *extents, product *out)
{
    tq_extent weights;
    (void)op;
    if (extents->inputs != 5)
        return recurrent(extents, 2, LSTM_WEIGHTS, out);
    /* the basic kernel: input, previous activation, weights, bias, previous state */
    if (!input(extents, 2, 2, &weights) || !steps(extents, out))
        return false;
    *out = times(*out, elements(&weights, 0));
    return true;
}

static bool fully_connected(const tq_operator *op, const tq_extents *extents, product *out)
{
    tq_extent weights, x, y;
    product rows;
    (void)op;
    if (!input(extents, 1, 2, &weights) || !output(extents, ANY_RANK, &y))
        return false;
    if (y.rank && y.dims[y.rank - 1] == weights.dims[0]) {
        *out = times_factor(elements(&y, 0), (uint32_t)weights.dims[1]);
        return true;
    }
    /* the output's shape is unknown, or joins the batch dimensions */
    if (!input(extents, 0, ANY_RANK, &x) || !divide(elements(&x, 0), (uint32_t)weights.dims[1], &rows))
        return false;
    *out = times(rows, elements(&weights, 0));
    return true;
}

/* Output elements times the size of the summed axis of input 0. */
static bool batch_matmul(const tq_operator *op, const tq_extents *extents, product *out)
{
    tq_extent x, y;
    const tq_options options = tq_operator_options(op);
    const bool adjoint =
        options.id == TQ_TABLE_BatchMatMulOptions && tq_get_int(&options.table, TQ_BatchMatMulOptions_adj_x);
    const uint32_t back = adjoint ? 2 : 1;
    if (!input(extents, 0, ANY_RANK, &x) || x.rank < back || !output(extents, ANY_RANK, &y))
        return false;
    *out = times_factor(elements(&y, 0), (uint32_t)x.dims[x.rank - back]);
    return true;
}

static bool stablehlo_convolution(const tq_operator *op, const tq_extents *extents, product *out)
{
    tq_extent kernel, y;
    const tq_options options = tq_operator_options(op);
    if (options.id != TQ_TABLE_StablehloConvolutionOptions || !input(extents, 1, ANY_RANK, &kernel))
        return false;
    const int64_t axis = tq_get_int(&options.table, TQ_StablehloConvolutionOptions_kernel_output_feature_dimension);
    if (axis < 0 || axis >= kernel.rank || !output(extents, ANY_RANK, &y) ||
        !divide(elements(&kernel, 0), (uint32_t)kernel.dims[axis], out))
        return false;
    *out = times(elements(&y, 0), *out);
    return true;
}

static bool stablehlo_dot_general(const tq_operator *op, const tq_extents *extents, product *out)
{
    tq_extent x, y;
    const tq_options options = tq_operator_options(op);
    if (!input(extents, 0, ANY_RANK, &x) || !output(extents, ANY_RANK, &y))
        return false;
    *out = elements(&y, 0);
    if (options.id != TQ_TABLE_StablehloDotGeneralOptions)
        return true;
    const tq_vector axes = tq_get_vector(&options.table, TQ_StablehloDotGeneralOptions_lhs_contracting_dimensions);
    for (uint32_t i = 0; i < axes.count; i++) {
        const int64_t axis = tq_vector_i64(&axes, i);
        if (i >= TQ_EXTENT_DIMS || axis < 0 || axis >= x.rank)
            return false;
        *out = times_factor(*out, (uint32_t)x.dims[axis]);
    }
    return true;
}

/* ---- rows ---- */

/* Whether a row has the operator; *known: its count is known. */
static bool by_row(const tq_operator *op, const tq_extents *extents, bool *known, product *out)
{
#define COUNT(call)    \
    {                  \
        *known = call; \
        return true;   \
    }
    switch (op->code) {
#define BY_OUTPUT(op, rank, axis, ignored) \
    case TQ_BuiltinOperator_##op: COUNT(by_output(extents, rank, axis, ignored, out))
#define BY_INPUT(op, x, w, rank, axis) \
    case TQ_BuiltinOperator_##op: COUNT(by_input(extents, x, w, rank, axis, out))
#define RECURRENT(op, needed, mask) \
    case TQ_BuiltinOperator_##op: COUNT(recurrent(extents, needed, mask, out))
#define OWN(code, function) \
    case TQ_BuiltinOperator_##code: COUNT(function(op, extents, out))
#include "model/multiply_adds.def"
    default: break;
    }
    if (op->code != TQ_BuiltinOperator_CUSTOM)
        return false;
#define CUSTOM_BY_INPUT(name, x, w, rank, axis)                                                                 \
    if (op->custom_name.size == sizeof #name - 1 && memcmp(op->custom_name.data, #name, sizeof #name - 1) == 0) \
    COUNT(by_input(extents, x, w, rank, axis, out))
#include "model/multiply_adds.def"
#undef COUNT
    return false;
}

tq_count_kind tq_multiply_adds(const tq_operator *op, const tq_extents *extents, uint64_t *out)
{
    product count = {0, false};
    bool known;
    if (!by_row(op, extents, &known, &count))
        known = op->code != TQ_BuiltinOperator_CUSTOM && tq_builtin(op->code);
    *out = count.value;
    return !known ? TQ_COUNT_UNKNOWN : count.huge ? TQ_COUNT_HUGE : TQ_COUNT_KNOWN;
}

const char *tq_multiply_adds_name(size_t row)
{
    static const char *const names[] = {
#define BY_OUTPUT(op, rank, axis, ignored) #op,
#define BY_INPUT(op, data, weights, rank, axis) #op,
#define RECURRENT(op, needed, mask) #op,
#define OWN(op, function) #op,
#define CUSTOM_BY_INPUT(name, data, weights, rank, axis) #name,
#include "model/multiply_adds.def"
    };
    return row < sizeof names / sizeof *names ? names[row] : NULL;
}

/* ---- shapes of a file ---- */

typedef struct stored {
    const tq_subgraph *subgraph;
    tq_vector inputs, outputs;
} stored;

static tq_given stored_shape(const void *context, bool is_output, uint32_t index, tq_extent *out)
{
    const stored *file = context;
    const int32_t tensor = tq_vector_i32(is_output ? &file->outputs : &file->inputs, index);
    if (tensor < 0 || (uint32_t)tensor >= file->subgraph->tensors.count)
        return TQ_LEFT_OUT;
    const tq_table table = tq_vector_table(&file->subgraph->tensors, (uint32_t)tensor);
    const tq_vector dims = tq_get_vector(&table, TQ_Tensor_shape);
    if (dims.count > TQ_EXTENT_DIMS)
        return TQ_NO_SHAPE;
    out->rank = dims.count;
    for (uint32_t i = 0; i < dims.count; i++) {
        out->dims[i] = tq_vector_i32(&dims, i);
        if (out->dims[i] < 0)
            return TQ_NO_SHAPE;
    }
    return TQ_GIVEN;
}

tq_count_kind tq_multiply_adds_in_file(const tq_subgraph *subgraph, const tq_operator *op, uint64_t *out)
{
    const stored file = {subgraph, tq_get_vector(&op->table, TQ_Operator_inputs),
                         tq_get_vector(&op->table, TQ_Operator_outputs)};
    const tq_extents extents = {&file, stored_shape, file.inputs.count, file.outputs.count};
    return tq_multiply_adds(op, &extents, out);
}
