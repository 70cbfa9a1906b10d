/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor while a model runs: what an operator sees of its inputs and outputs.
 */
#ifndef TQ_OPS_TENSOR_H
#define TQ_OPS_TENSOR_H

#include "base/memory.h"
#include "base/status.h"
#include "flatbuffer/table.h"
#include "model/types.h"

/* Dimensions that a tensor may have; NumPy and the runtime's loops take fewer. */
#define TQ_DIMS 16

typedef struct tq_shape {
    int32_t rank;
    int32_t dims[TQ_DIMS]; /* each >= 0; those from rank on are 0 */
} tq_shape;

/* Elements of a shape that is part of a tensor: the runtime has checked that the count fits. */
static inline size_t tq_shape_size(const tq_shape *shape)
{
    size_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        count *= (size_t)shape->dims[i];
    return count;
}

/* The product of dims[begin, end). */
static inline size_t tq_shape_span(const tq_shape *shape, int begin, int end)
{
    size_t count = 1;
    for (int i = begin; i < end; i++)
        count *= (size_t)shape->dims[i];
    return count;
}

/* "FLOAT32" for a TensorType; "unknown". */
const char *tq_type_name(int64_t type);

bool tq_shape_equal(const tq_shape *a, const tq_shape *b);

/* "[1,224,224,3]"; cut short with "..." where it does not fit. */
void tq_shape_format(const tq_shape *shape, char *out, size_t size);

/* Where a tensor's bytes lie, and for how long they stay. */
typedef enum tq_storage {
    TQ_STORAGE_ARENA,    /* planned: from its operator to its last reader */
    TQ_STORAGE_CONSTANT, /* known when operators are prepared: from the file, or computed then */
    TQ_STORAGE_VARIABLE, /* keeps its value from one invoke to the next */
    TQ_STORAGE_DYNAMIC   /* its size is known when its operator runs; on the heap */
} tq_storage;

/* Affine quantization: real = scale * (quantized - zero_point). */
typedef struct tq_affine {
    uint32_t count;            /* 0: none; 1: per tensor; else one for each index of `axis` */
    int32_t axis;              /* in [0, rank) where count > 1 */
    const float *scale;        /* as the file has them: any float32 */
    const int32_t *zero_point; /* count of them */
    int32_t block_size;        /* blockwise: count is 0, and these name tensors of the subgraph */
    int32_t block_scales, block_zero_points;
} tq_affine;

typedef struct tq_tensor {
    int32_t type; /* TQ_TensorType_x */
    tq_shape shape;
    uint8_t storage; /* tq_storage */
    bool has_shape;  /* false: not before its operator has run */
    bool later;      /* its operator gives it a shape in eval, when the data is known */
    bool in_file;    /* the file has its value */
    bool unpacked;   /* see tq_backend_unpacks */
    int32_t reader;  /* the operator that reads it; < 0: none, several, or it is an output (delegate/chains.h) */
    bool resized; /* `shape` was given before anything was allocated: backends are chosen by it, not by the file's */
    bool packed; /* a constant as it stands in the file, of 4 or 2 bits (else such values take a byte each) or sparse */
    size_t bytes; /* at data */
    void *data; /* aligned to 64 bytes, constants of a file at least to their element; NULL until there
                   is memory.  STRING: the file's format (model/tensor.h) */
    tq_block *block; /* what holds data: its own, or shared with other interpreters; NULL: the arena, or the file */
    tq_affine quantization;
    tq_table table; /* its row in the file */
    uint32_t index; /* in its subgraph */
} tq_tensor;

static inline size_t tq_tensor_count(const tq_tensor *tensor)
{
    return tq_shape_size(&tensor->shape);
}

/* Gives a tensor memory of its own, of `bytes` bytes from the pool, unless its block has enough.  TQ_MEMORY_LIMIT,
   TQ_NO_MEMORY: the tensor stays as it was. */
tq_status tq_tensor_allocate(tq_tensor *tensor, tq_pool *pool, uint64_t bytes, tq_error *error);

/* Bytes of one element in memory: 1 for 4-bit and 2-bit values, 4 for RESOURCE and VARIANT handles; 0 for
   STRING and types not known. */
size_t tq_element_bytes(int32_t type);

/* Whether its value is known when operators are prepared, and does not change. */
static inline bool tq_is_constant(const tq_tensor *tensor)
{
    return tensor->storage == TQ_STORAGE_CONSTANT;
}

/* scale[channel] and zero_point[channel] of a tensor with one or many; 0 of one with none. */
static inline float tq_scale_at(const tq_tensor *tensor, size_t channel)
{
    const tq_affine *q = &tensor->quantization;
    return q->count == 0 ? 0 : q->scale[q->count == 1 ? 0 : channel];
}

static inline int32_t tq_zero_point_at(const tq_tensor *tensor, size_t channel)
{
    const tq_affine *q = &tensor->quantization;
    return q->count == 0 ? 0 : q->zero_point[q->count == 1 ? 0 : channel];
}

#endif
