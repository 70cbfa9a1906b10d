/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/kernel_types.h"

enum { OUTPUTS = 1 << 30 }; /* beside a bit for each input */

/* ---- types that outputs are given ---- */

/* The first `count` outputs have the type of an input. */
static void give(const tq_node *node, int count, int input)
{
    for (int i = 0; i < count; i++)
        if (node->out[i])
            node->out[i]->type = node->in[input]->type;
}

void tq_give_output_types(const tq_node *node)
{
    switch (node->row.code) {
#define OUTPUT_LIKE(op, input) \
    case TQ_BuiltinOperator_##op: give(node, 1, input); break;
#define OUTPUTS_LIKE(op, input) \
    case TQ_BuiltinOperator_##op: give(node, node->out_count, input); break;
#include "ops/kernel_types.def"
    default: break;
    }
}

/* ---- types that others are read as ---- */

typedef struct reading {
    int32_t op;
    unsigned operands; /* a bit for each input; OUTPUTS */
    bool of_output;    /* the key is output `key`, not the input */
    int key;
    int32_t type, as; /* < 0: INT8 as INT8, and UINT8 as UINT8 */
} reading;

#define IN(i) (1u << (i))
#define KEY_IN(i) false, i
#define KEY_OUT(i) true, i
#define READS_LIKE(op, operands, ...) {TQ_BuiltinOperator_##op, operands, __VA_ARGS__, -1, -1},
#define READS(op, operands, key, type, as) \
    {TQ_BuiltinOperator_##op, operands, key, TQ_TensorType_##type, TQ_TensorType_##as},
static const reading readings[] = {
#include "ops/kernel_types.def"
};

static bool is_8_bit(const tq_tensor *tensor)
{
    return tensor && (tensor->type == TQ_TensorType_INT8 || tensor->type == TQ_TensorType_UINT8);
}

/* The type that a row says for its operands; -1: it does not hold. */
static int32_t type_of(const tq_node *node, const reading *row)
{
    if (row->op != node->row.code || row->key >= (row->of_output ? node->out_count : node->in_count))
        return -1;
    const tq_tensor *key = row->of_output ? node->out[row->key] : node->in[row->key];
    if (row->type >= 0)
        return key && key->type == row->type ? row->as : -1;
    return is_8_bit(key) ? key->type : -1;
}

/* Each bit stands for an operand: an input, or one of the first outputs. */
enum { FIRST_OUTPUT = 32, OUTPUTS_READ = 8 };

static int32_t other_type(int32_t type)
{
    return type == TQ_TensorType_INT8 ? TQ_TensorType_UINT8 : TQ_TensorType_INT8;
}

/* The bit, where the tensor is one of 8 bits that the kernel takes for `type`, which it has then. */
static uint64_t flip_to(tq_tensor *tensor, int32_t type, int bit)
{
    if (!is_8_bit(tensor) || tensor->type == type)
        return 0;
    tensor->type = type;
    return UINT64_C(1) << bit;
}

uint64_t tq_other_types(const tq_node *node)
{
    uint64_t flips = 0;
    for (size_t k = 0; k < sizeof readings / sizeof *readings; k++) {
        const reading *row = &readings[k];
        const int32_t type = type_of(node, row);
        for (int i = 0; type >= 0 && i < node->in_count && i < FIRST_OUTPUT; i++)
            if (row->operands & IN(i))
                flips |= flip_to(node->in[i], type, i);
        for (int i = 0; type >= 0 && i < node->out_count && i < OUTPUTS_READ && (row->operands & OUTPUTS); i++)
            flips |= flip_to(node->out[i], type, FIRST_OUTPUT + i);
    }
    tq_flip_types(node, flips);
    return flips;
}

void tq_flip_types(const tq_node *node, uint64_t flips)
{
    for (int bit = 0; flips >> bit; bit++)
        if (flips >> bit & 1) {
            tq_tensor *tensor = bit < FIRST_OUTPUT ? node->in[bit] : node->out[bit - FIRST_OUTPUT];
            tensor->type = other_type(tensor->type);
        }
}
