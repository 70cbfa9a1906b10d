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

/* Dimensions of a tensor, at most. */
#define TQ_DIMS 16

typedef struct tq_shape {
    int32_t rank;          /* 0 to TQ_DIMS */
    int32_t dims[TQ_DIMS]; /* each >= 0; 0 from index rank on */
} tq_shape;

/* The elements of a tensor's shape; the runtime has checked that the product fits (2^48). */
static inline size_t tq_shape_size(const tq_shape *shape)
{
    size_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        count *= (size_t)shape->dims[i];
    return count;
}

/* The product of dims[begin .. end), 0 <= begin, end <= rank; 1 where begin >= end. */
static inline size_t tq_shape_span(const tq_shape *shape, int begin, int end)
{
    size_t count = 1;
    for (int i = begin; i < end; i++)
        count *= (size_t)shape->dims[i];
    return count;
}

/* "FLOAT32" for a TensorType; "unknown" for any other value. */
const char *tq_type_name(int64_t type);

/* Same rank and same dimensions. */
static inline bool tq_shape_equal(const tq_shape *a, const tq_shape *b)
{
    bool equal = a->rank == b->rank;
    for (int i = 0; equal && i < a->rank; i++)
        equal = a->dims[i] == b->dims[i];
    return equal;
}

/* Writes "[1,224,224,3]" to out[0 .. size), size >= 5; a text that does not fit ends in "...". */
void tq_shape_format(const tq_shape *shape, char *out, size_t size);

/* Where a tensor's bytes lie, and for how long they are valid. */
typedef enum tq_storage {
    TQ_STORAGE_ARENA,    /* planned: from its operator to its last reader */
    TQ_STORAGE_CONSTANT, /* from the file, or computed in prepare */
    TQ_STORAGE_VARIABLE, /* its value stays from one invoke to the next */
    TQ_STORAGE_DYNAMIC   /* on the heap: its operator determines the size in eval */
} tq_storage;

/* Affine quantization: real = scale * (quantized - zero_point). */
typedef struct tq_affine {
    uint32_t count;            /* of scales and zero points. 0: none; 1: per tensor; else per index of `axis` */
    int32_t axis;              /* in [0, rank) where count > 1 */
    const float *scale;        /* [count], unchecked: any float32 */
    const int32_t *zero_point; /* [count], unchecked */
    int32_t block_size;        /* blockwise (count is 0): elements of a block; 0: not blockwise */
    int32_t block_scales, block_zero_points; /* blockwise: indices of tensors in the subgraph */
} tq_affine;

typedef struct tq_tensor {
    int32_t type; /* TQ_TensorType_x */
    tq_shape shape;
    uint8_t storage; /* tq_storage */
    bool has_shape;  /* `shape` is known */
    bool later;      /* its operator gives it a shape in eval (tq_output_later) */
    bool in_file;    /* the file has its value */
    bool unpacked;   /* see tq_backend_unpacks */
    int32_t reader;  /* the operator that reads it; < 0: none, several, or it is an output (delegate/chains.h) */
    bool resized;    /* `shape` was set before allocation: backends are chosen by it, not by the file's shape */
    bool packed;     /* a constant in the file's layout: sparse, or of 4 or 2 bits (else these take a byte each) */
    size_t bytes; /* at data */
    void *data; /* aligned to 64 bytes, constants of a file at least to their element; NULL until there
                   is memory.  STRING: the file's format (model/tensor.h) */
    tq_block *block; /* holds data, alone or shared with other interpreters; NULL: data is in the arena or the file */
    tq_affine quantization;
    tq_table table; /* its row in the file */
    uint32_t index; /* in its subgraph */
    /* Values of 8 bits: its bytes are map[byte] of those of the tensor mapped_from, whose shape it has.  The operator
       that writes it says so in prepare; NULL: unknown. */
    const struct tq_tensor *mapped_from;
    const uint8_t *map; /* [256] */
} tq_tensor;

/* Its elements. */
static inline size_t tq_tensor_count(const tq_tensor *tensor)
{
    return tq_shape_size(&tensor->shape);
}

/* Sets data and bytes: takes a block of `bytes` >= 0 from the pool, unless the tensor's block is large enough.
   TQ_MEMORY_LIMIT, TQ_NO_MEMORY: the tensor is unchanged. */
tq_status tq_tensor_allocate(tq_tensor *tensor, tq_pool *pool, uint64_t bytes, tq_error *error);

/* Bytes of one element in memory: 1 for 4-bit and 2-bit values, 4 for RESOURCE and VARIANT handles; 0 for STRING and
   for a value that is no TensorType. */
size_t tq_element_bytes(int32_t type);

/* Whether its value is known when operators are prepared, and does not change. */
static inline bool tq_is_constant(const tq_tensor *tensor)
{
    return tensor->storage == TQ_STORAGE_CONSTANT;
}

/* Kernels run with zero points from -most to most, also outside the type: differences from values of 8 bits stay below
   2^11, which ADD shifts by 20 bits, and those from values of 16 bits below 2^17.  Any of INT32. */
static inline bool tq_zero_point_fits(int32_t type, int32_t zero_point)
{
    const int32_t most = type == TQ_TensorType_INT16 ? 65536 : 1792;
    return type == TQ_TensorType_INT32 || (zero_point >= -most && zero_point <= most);
}

/* The scale and the zero point of a channel < its count; of any channel where the count is 1; 0 where it is 0. */
static inline float tq_scale_at(const tq_tensor *tensor, size_t channel)
{
    const tq_affine *q = &tensor->quantization;
    return q->count == 0 ? 0 : q->scale[q->count == 1 ? 0 : channel];
}

/* The scale and zero point of a tensor with one scale.  Those of other tensors are 0 for kernels that read one alone,
   as in the runtime (TfLiteTensor.params). */
static inline float tq_scale_of(const tq_tensor *tensor)
{
    const tq_affine *q = &tensor->quantization;
    return q->count == 1 ? q->scale[0] : 0;
}

static inline int32_t tq_zero_point_of(const tq_tensor *tensor)
{
    const tq_affine *q = &tensor->quantization;
    return q->count == 1 ? q->zero_point[0] : 0;
}

#endif
