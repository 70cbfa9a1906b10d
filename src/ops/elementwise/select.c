/* SPDX-License-Identifier: Apache-2.0
 *
 * SELECT and SELECT_V2: input 1 where input 0 is true, else input 2.
 *
 * SELECT_V2 broadcasts all three.  SELECT takes a condition of the others' shape, of one element, or of rank 1, which
 * then chooses along their first dimension.
 * Source: LiteRT f6745779, tflite/kernels/select.cc, internal/reference/select.h.
 */
#include <string.h>

#include "kernels/isa.h"
#include "ops/elementwise/broadcast.h"

/* ---- elements of 1, 2, 4, 8 bytes ---- */

/* One condition for a whole run: n elements of input 1 or 2. */
static inline void copy_chosen(const tq_broadcast_run *run, size_t bytes)
{
    const int chosen = *(const uint8_t *)run->in[0] ? 1 : 2;
    const size_t step = run->scalar[chosen] ? 0 : bytes;
    const char *from = run->in[chosen];
    char *out = run->out;
    if (step)
        tq_copy(out, from, run->n * bytes);
    for (size_t i = 0; !step && i < run->n; i++)
        memcpy(out + i * bytes, from, bytes);
}

/* Both inputs are read and masked: a choice of one by a branch is mispredicted at every second element of a random
   condition. */
#define CHOOSE_LOOP(T, first, second)                               \
    for (size_t i = 0; i < n; i++) {                                \
        const T a = first, b = second;                              \
        out[i] = (T)(b ^ ((a ^ b) & (T) - (T)(condition[i] != 0))); \
    }
#define CHOOSE(name, target, T)                          \
    target static void name(const tq_broadcast_run *run) \
    {                                                    \
        const uint8_t *condition = run->in[0];           \
        const T *x = run->in[1], *y = run->in[2];        \
        const T first = *x, second = *y;                 \
        const size_t n = run->n;                         \
        T *out = run->out;                               \
        if (run->scalar[0])                              \
            copy_chosen(run, sizeof(T));                 \
        else if (run->scalar[1] && run->scalar[2])       \
            CHOOSE_LOOP(T, first, second)                \
        else if (run->scalar[1])                         \
            CHOOSE_LOOP(T, first, y[i])                  \
        else if (run->scalar[2])                         \
            CHOOSE_LOOP(T, x[i], second)                 \
        else                                             \
            CHOOSE_LOOP(T, x[i], y[i])                   \
    }
TQ_ISA_DEFINE(CHOOSE, choose_1, uint8_t)
TQ_ISA_DEFINE(CHOOSE, choose_2, uint16_t)
TQ_ISA_DEFINE(CHOOSE, choose_4, uint32_t)
TQ_ISA_DEFINE(CHOOSE, choose_8, uint64_t)

static tq_broadcast_fn choose_for(size_t bytes)
{
    static const struct {
        size_t bytes;
        tq_broadcast_fn run[TQ_ISAS];
    } rows[] = {
        {1, TQ_ISA_FUNCTIONS(choose_1)},
        {2, TQ_ISA_FUNCTIONS(choose_2)},
        {4, TQ_ISA_FUNCTIONS(choose_4)},
        {8, TQ_ISA_FUNCTIONS(choose_8)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].bytes == bytes)
            return rows[i].run[tq_isa()];
    return NULL;
}

/* ---- along the first dimension ---- */

static tq_status eval_rows(tq_node *node, tq_error *error)
{
    (void)error;
    const uint8_t *condition = node->in[0]->data;
    const char *x = node->in[1]->data, *y = node->in[2]->data;
    char *out = node->out[0]->data;
    size_t rows = tq_tensor_count(node->in[0]), bytes = rows ? node->out[0]->bytes / rows : 0;
    for (size_t i = 0; i < rows; i++)
        memcpy(out + i * bytes, (condition[i] ? x : y) + i * bytes, bytes);
    return TQ_OK;
}

/* SELECT's shapes that SELECT_V2 does not take, or broadcasts otherwise. */
static tq_status prepare_rows(tq_node *node, tq_error *error)
{
    const tq_shape *condition = &node->in[0]->shape, *shape = &node->in[1]->shape;
    if (!tq_shape_equal(shape, &node->in[2]->shape))
        return tq_input_fail(node, 2, error, "has another shape than input 1, which SELECT does not take");
    bool fits =
        condition->rank == 0 || (condition->rank == 1 && shape->rank > 0 && condition->dims[0] == shape->dims[0]);
    if (!fits)
        return tq_input_fail(node, 0, error,
                             "has a shape that SELECT does not take: it needs that of input 1, "
                             "no dimensions, or the first dimension of input 1");
    node->eval = eval_rows;
    return tq_output_shape(node, 0, shape, error);
}

/* Whether all inputs and the output's shape in the file have one element; the output then has that shape. */
static bool has_one_element(const tq_node *node, tq_shape *shape)
{
    for (int i = 0; i < 3; i++)
        if (tq_tensor_count(node->in[i]) != 1)
            return false;
    tq_vector dims = tq_get_vector(&node->out[0]->table, TQ_Tensor_shape);
    shape->rank = (int32_t)(dims.count <= TQ_DIMS ? dims.count : TQ_DIMS);
    for (int i = 0; i < shape->rank; i++)
        shape->dims[i] = tq_vector_i32(&dims, (size_t)i);
    return tq_shape_size(shape) == 1;
}

static bool all_equal(const tq_node *node)
{
    return tq_shape_equal(&node->in[0]->shape, &node->in[1]->shape) &&
           tq_shape_equal(&node->in[1]->shape, &node->in[2]->shape);
}

tq_status tq_prepare_select(tq_node *node, tq_error *error)
{
    tq_broadcast *walk;
    tq_shape shape = {0};
    TQ_TRY(tq_check_input(node, 0, TQ_T(BOOL), error));
    TQ_TRY(tq_check_input_like(node, 2, 1, error));
    TQ_TRY(tq_check_output_like(node, 0, 1, error));
    tq_broadcast_fn run = choose_for(tq_element_bytes(node->in[1]->type));
    if (!run)
        return tq_input_fail(node, 1, error, "is %s, which cannot be selected", tq_type_name(node->in[1]->type));
    bool one = has_one_element(node, &shape);
    if (node->row.code == TQ_BuiltinOperator_SELECT && !one && !all_equal(node))
        return prepare_rows(node, error);
    TQ_TRY(tq_node_state(node, sizeof *walk, &walk, error));
    TQ_TRY(tq_broadcast_prepare(node, 0, 3, walk, error));
    walk->run = run;
    node->eval = tq_broadcast_eval;
    return one ? tq_output_shape(node, 0, &shape, error) : TQ_OK;
}
