/* SPDX-License-Identifier: Apache-2.0
 *
 * EMBEDDING_LOOKUP: inputs ids [n] of INT32, table [rows, ...]; out[i] = table[ids[i]].
 *
 * Rows are copied where table and output have the same type.  For a FLOAT32 or FLOAT16 output and an INT8, UINT8, INT4
 * or INT2 table, out = f32(q * scale); the table has one scale, one for each row, or one for each block of a row.
 *
 * Source: LiteRT f6745779, tflite/kernels/embedding_lookup.cc.  LiteRT misreads rows of 4-bit and 2-bit
 * tables that do not begin at a byte.
 */
#include <string.h>

#include "base/sizes.h"
#include "kernels/half.h"
#include "kernels/isa.h"
#include "ops/check.h"

enum { IDS, TABLE };

typedef struct lookup {
    size_t rows, columns;
    size_t block;            /* blockwise: columns that share a scale; else 0 */
    const tq_tensor *scales; /* blockwise */
} lookup;

/* The scale of a row's columns from `column` on, up to the end of its block. */
static float scale_at(const tq_node *node, const lookup *l, size_t row, size_t column)
{
    if (l->block)
        return tq_half_to_float(((const uint16_t *)l->scales->data)[(row * l->columns + column) / l->block]);
    return tq_scale_at(node->in[TABLE], row);
}

/* Rows are short: the kernels of elementwise.def take whole blocks of four vectors. */
TQ_BODY void scale_values(const uint8_t *quantized, bool is_unsigned, float scale, float *out, size_t n)
{
    if (is_unsigned)
        for (size_t i = 0; i < n; i++)
            out[i] = (float)quantized[i] * scale;
    else
        for (size_t i = 0; i < n; i++)
            out[i] = (float)(int8_t)quantized[i] * scale;
}

#define SCALE_VALUES(isa, target)                                                                                 \
    target static void scale_##isa(const uint8_t *quantized, bool is_unsigned, float scale, float *out, size_t n) \
    {                                                                                                             \
        scale_values(quantized, is_unsigned, scale, out, n);                                                      \
    }
TQ_EVERY_ISA(SCALE_VALUES)

/* n values from element `at` of the output on, which share a scale. */
static void dequantize_part(const tq_tensor *out, bool is_unsigned, const uint8_t *quantized, float scale, size_t at,
                            size_t n)
{
    static void (*const bodies[TQ_ISAS])(const uint8_t *, bool, float, float *, size_t) = TQ_ISA_FUNCTIONS(scale);
    enum { PART = 256 };
    if (out->type == TQ_TensorType_FLOAT32) {
        bodies[tq_isa()](quantized, is_unsigned, scale, (float *)out->data + at, n);
        return;
    }
    float part[PART];
    for (size_t i = 0; i < n; i += PART) {
        const size_t count = tq_min_size(n - i, PART);
        bodies[tq_isa()](quantized + i, is_unsigned, scale, part, count);
        for (size_t k = 0; k < count; k++)
            ((uint16_t *)out->data)[at + i + k] = tq_float_to_half(part[k]);
    }
}

static void dequantize_row(const tq_node *node, const lookup *l, size_t row, size_t at)
{
    const uint8_t *quantized = (const uint8_t *)node->in[TABLE]->data + row * l->columns;
    const bool is_unsigned = node->in[TABLE]->type == TQ_TensorType_UINT8;
    const size_t each = tq_min_size(l->block ? l->block : l->columns, TQ_CHUNK);
    for (size_t c = 0; c < l->columns && !tq_stop_after(each); c += each)
        dequantize_part(node->out[0], is_unsigned, quantized + c, scale_at(node, l, row, c), at * l->columns + c,
                        tq_min_size(each, l->columns - c));
}

static tq_status eval(tq_node *node, tq_error *error)
{
    size_t work = 0;
    const lookup *l = node->state;
    const tq_tensor *ids = node->in[IDS], *table = node->in[TABLE];
    size_t size = tq_element_bytes(table->type) * l->columns;
    const size_t count = tq_tensor_count(ids);
    for (size_t i = 0; i < count && !tq_stop_count(&work, 1 + l->columns); i++) {
        int32_t id = ((const int32_t *)ids->data)[i];
        if (id < 0 || (size_t)id >= l->rows)
            return tq_input_fail(node, IDS, error, "has index %d at position %zu; the table has %zu rows", id, i,
                                 l->rows);
        if (table->type != node->out[0]->type)
            dequantize_row(node, l, (size_t)id, i);
        else
            tq_copy((char *)node->out[0]->data + i * size, (const char *)table->data + (size_t)id * size, size);
    }
    return TQ_OK;
}

static tq_status check_blocks(tq_node *node, lookup *l, tq_error *error)
{
    const tq_affine *q = &node->in[TABLE]->quantization;
    if (node->in[TABLE]->shape.rank != 2 || q->block_size <= 0 || l->columns % (size_t)q->block_size)
        return tq_input_fail(node, TABLE, error, "has blocks of %d; rank 2 and a divisor of %zu columns are needed",
                             q->block_size, l->columns);
    l->block = (size_t)q->block_size;
    l->scales = tq_node_tensor(node, q->block_scales);
    if (!l->scales || l->scales->type != TQ_TensorType_FLOAT16 || !tq_is_constant(l->scales) ||
        tq_tensor_count(l->scales) != l->rows * (l->columns / l->block))
        return tq_input_fail(node, TABLE, error,
                             "takes its scales from tensor %d; that must be a constant of %zu FLOAT16", q->block_scales,
                             l->rows * (l->columns / l->block));
    return TQ_OK;
}

static tq_status check_scales(const tq_node *node, tq_error *error)
{
    const tq_affine *q = &node->in[TABLE]->quantization;
    if (q->count == 0)
        return tq_input_fail(node, TABLE, error, "has no scale; its values need one to be dequantized");
    if (q->count > 1 && q->axis != 0)
        return tq_input_fail(node, TABLE, error, "has scales along axis %d; they must be along 0", q->axis);
    if (tq_zero_point_of(node->in[TABLE]) != 0) /* those of rows are not read */
        return tq_input_fail(node, TABLE, error, "has the zero point %d; it must be 0",
                             tq_zero_point_of(node->in[TABLE]));
    return TQ_OK;
}

tq_status tq_prepare_embedding_lookup(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, IDS, TQ_T(INT32), error));
    TQ_TRY(tq_check_rank(node, IDS, 1, 1, error));
    const tq_tensor *table = node->in[TABLE], *output = node->out[0];
    TQ_TRY(tq_check_rank(node, TABLE, 2, TQ_DIMS, error));
    lookup *l;
    TQ_TRY(tq_node_state(node, sizeof *l, &l, error));
    l->rows = (size_t)table->shape.dims[0];
    l->columns = tq_shape_span(&table->shape, 1, table->shape.rank);
    if (table->type == output->type) {
        if (tq_element_bytes(table->type) == 0)
            return tq_input_fail(node, TABLE, error, "is %s; elements of a fixed size are needed",
                                 tq_type_name(table->type));
    } else {
        TQ_TRY(tq_check_input(node, TABLE, TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT4) | TQ_T(INT2), error));
        TQ_TRY(tq_check_output(node, 0, TQ_T(FLOAT32) | TQ_T(FLOAT16), error));
        bool blocks = table->quantization.count == 0 && table->quantization.block_size;
        TQ_TRY(blocks ? check_blocks(node, l, error) : check_scales(node, error));
    }
    tq_shape out = table->shape;
    out.dims[0] = node->in[IDS]->shape.dims[0];
    node->eval = eval;
    return tq_output_shape(node, 0, &out, error);
}
