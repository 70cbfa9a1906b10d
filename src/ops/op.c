/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

/* ---- failing ---- */

/* "operator 3 (CONV_2D): " and the message. */
static tq_status fail(const tq_node *node, tq_error *error, tq_status status, const char *where, const char *format,
                      va_list args)
{
    char text[200];
    vsnprintf(text, sizeof text, format, args);
    return tq_fail(error, status, TQ_NO_OFFSET, "operator %u (%s): %s%s", node->index, node->op ? node->op->name : "?",
                   where, text);
}

tq_status tq_op_fail(const tq_node *node, tq_error *error, tq_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(node, error, status, "", format, args);
    va_end(args);
    return status;
}

static void name_tensor(const char *what, int i, const tq_tensor *tensor, char out[100])
{
    tq_bytes name = {NULL, 0};
    if (tensor)
        name = tq_get_string(&tensor->table, TQ_Tensor_name);
    snprintf(out, 100, "%s %d '%.*s' ", what, i, name.size > 60 ? 60 : (int)name.size,
             name.data ? (const char *)name.data : "");
}

tq_status tq_input_fail(const tq_node *node, int i, tq_error *error, const char *format, ...)
{
    char where[100];
    va_list args;
    name_tensor("input", i, i < node->in_count ? node->in[i] : NULL, where);
    va_start(args, format);
    fail(node, error, TQ_BAD_OPERATOR, where, format, args);
    va_end(args);
    return TQ_BAD_OPERATOR;
}

tq_status tq_output_fail(const tq_node *node, int i, tq_error *error, const char *format, ...)
{
    char where[100];
    va_list args;
    name_tensor("output", i, i < node->out_count ? node->out[i] : NULL, where);
    va_start(args, format);
    fail(node, error, TQ_BAD_OPERATOR, where, format, args);
    va_end(args);
    return TQ_BAD_OPERATOR;
}

/* ---- memory ---- */

/* A failed allocation; the message names the operator. */
static tq_status no_memory(const tq_node *node, tq_status status, const tq_error *why, const char *what,
                           tq_error *error)
{
    return tq_op_fail(node, error, status, "%s%s", what, why->text);
}

tq_status tq_node_memory(tq_node *node, uint64_t count, size_t size, void *out, tq_error *error)
{
    tq_host *host = node->host;
    tq_error why = {0};
    const bool small = host->in_prepare && size <= TQ_CUT_BYTES && count <= TQ_CUT_BYTES / (size ? size : 1);
    tq_status status = small ? tq_blocks_cut(&host->prepared, host->pool, count, size, out, &why)
                             : tq_blocks_add(&node->memory, host->pool, count, size, out, &why);
    return status == TQ_OK ? TQ_OK : no_memory(node, status, &why, "", error);
}

tq_status tq_node_state(tq_node *node, size_t size, void *out, tq_error *error)
{
    TQ_TRY(tq_node_memory(node, 1, size, &node->state, error));
    memcpy(out, &node->state, sizeof node->state);
    return TQ_OK;
}

tq_status tq_node_scratch(tq_node *node, uint64_t bytes, tq_error *error)
{
    if (node->host->in_prepare) {
        node->request.scratch_bytes = bytes;
        return TQ_OK;
    }
    if (!node->own_scratch || node->own_scratch->size < bytes) {
        tq_block *block;
        tq_error why = {0};
        tq_status status = tq_block_new(node->host->pool, bytes, &block, &why);
        if (status != TQ_OK)
            return no_memory(node, status, &why, "", error);
        tq_block_release(node->own_scratch);
        node->own_scratch = block;
    }
    node->scratch = node->own_scratch->data;
    return TQ_OK;
}

tq_status tq_node_prepack(tq_node *node, uint64_t bytes, tq_pack_fn pack, const int64_t *key, int count,
                          tq_error *error)
{
    (void)error;
    tq_request *request = &node->request;
    request->prepacked_bytes = bytes;
    request->pack = pack;
    request->key_count = count;
    if (count)
        memcpy(request->key, key, (size_t)count * sizeof *key);
    return TQ_OK;
}

void tq_node_work(tq_node *node, uint64_t count, uint64_t each)
{
    if (!tq_mul_u64(count, each, &node->request.work))
        node->request.work = UINT64_MAX;
}

/* ---- shapes of outputs ---- */

/* The bytes of a shape; false above 2^48 elements. */
static bool shape_bytes(const tq_shape *shape, size_t element, uint64_t *out)
{
    uint64_t bytes = element, span = 1;
    for (int i = 0; i < shape->rank; i++) {
        bytes *= (uint32_t)shape->dims[i];
        /* Kernels multiply ranges of dimensions: these products must fit even where another dimension is 0. */
        if (shape->dims[i] && !tq_mul_u64(span, (uint32_t)shape->dims[i], &span))
            return false;
        if (span > (UINT64_C(1) << 48))
            return false;
    }
    *out = bytes;
    return true;
}

static tq_status allocate_output(tq_node *node, int i, const tq_shape *shape, uint64_t bytes, tq_error *error)
{
    char text[80], what[100];
    tq_error why; /* filled by a failure alone: clearing it takes longer than a small operator */
    const tq_status status = tq_tensor_allocate(node->out[i], node->host->pool, bytes, &why);
    if (status == TQ_OK)
        return TQ_OK;
    tq_shape_format(shape, text, sizeof text);
    snprintf(what, sizeof what, "output %d of shape %s: ", i, text);
    return no_memory(node, status, &why, what, error);
}

static tq_status shape_fail(const tq_node *node, int i, const tq_shape *shape, const char *why, tq_error *error)
{
    char text[80];
    tq_shape_format(shape, text, sizeof text);
    return tq_output_fail(node, i, error, "would have shape %s, %s", text, why);
}

static tq_status set_shape(tq_node *node, int i, const tq_shape *shape, size_t element, uint64_t bytes, tq_error *error)
{
    tq_tensor *tensor = node->out[i];
    if (element && !shape_bytes(shape, element, &bytes))
        return shape_fail(node, i, shape, "more than any memory holds", error);
    for (int d = 0; d < shape->rank; d++)
        if (shape->dims[d] < 0)
            return shape_fail(node, i, shape, "with a negative dimension", error);
    if (!node->host->in_prepare)
        TQ_TRY(allocate_output(node, i, shape, bytes, error));
    if (!tq_shape_equal(&tensor->shape, shape)) {
        tensor->shape = *shape;
        for (int d = shape->rank; d < TQ_DIMS; d++)
            tensor->shape.dims[d] = 0;
        node->host->shape_changes++;
    }
    tensor->has_shape = true;
    tensor->bytes = (size_t)bytes;
    return TQ_OK;
}

tq_status tq_output_shape(tq_node *node, int i, const tq_shape *shape, tq_error *error)
{
    if (i >= node->out_count || !node->out[i])
        return TQ_OK;
    size_t element = tq_element_bytes(node->out[i]->type);
    if (element == 0 && node->out[i]->type != TQ_TensorType_STRING)
        return tq_output_fail(node, i, error, "has type %s, which tq does not run", tq_type_name(node->out[i]->type));
    if (element == 0 && node->host->in_prepare) {
        /* eval knows the strings' bytes */
        tq_output_later(node, i);
        return TQ_OK;
    }
    return set_shape(node, i, shape, element, 0, error);
}

tq_status tq_output_bytes(tq_node *node, int i, const tq_shape *shape, uint64_t bytes, tq_error *error)
{
    if (i >= node->out_count || !node->out[i])
        return TQ_OK;
    return set_shape(node, i, shape, 0, bytes, error);
}

tq_status tq_node_has_room(tq_node *node, uint64_t bytes, tq_error *error)
{
    TQ_TRY(tq_pool_borrow(node->host->pool, bytes, error));
    tq_pool_return(node->host->pool, bytes);
    return TQ_OK;
}

void tq_output_later(tq_node *node, int i)
{
    if (i >= node->out_count || !node->out[i])
        return;
    node->out[i]->later = true;
}

tq_status tq_shape_from_values(tq_node *node, unsigned inputs, tq_op_fn shape, tq_error *error)
{
    for (int i = 0; i < node->in_count && i < 32; i++)
        if ((inputs >> i & 1) && node->in[i] && !tq_is_constant(node->in[i])) {
            node->shape_later = shape;
            for (int k = 0; k < node->out_count; k++)
                tq_output_later(node, k);
            return TQ_OK;
        }
    return shape(node, error);
}

/* ---- the graph around a node ---- */

tq_tensor *tq_node_tensor(tq_node *node, int64_t index)
{
    const tq_host *host = node->host;
    return index >= 0 && index < host->tensor_count ? &host->tensors[index] : NULL;
}

int tq_node_body(const tq_node *node, int64_t subgraph, int64_t *code)
{
    const tq_model *model = node->host->model;
    if (subgraph < 0 || subgraph >= model->subgraphs.count)
        return -1;
    tq_subgraph body = tq_model_subgraph(model, (size_t)subgraph);
    if (body.operators.count > 0)
        *code = tq_model_operator(model, &body, 0).code;
    return body.operators.count > INT32_MAX ? INT32_MAX : (int)body.operators.count;
}
