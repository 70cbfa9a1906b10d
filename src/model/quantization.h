/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor's quantization as the file stores it.
 */
#ifndef TQ_MODEL_QUANTIZATION_H
#define TQ_MODEL_QUANTIZATION_H

#include "model/model.h"

typedef enum tq_quantization_kind {
    TQ_QUANTIZATION_NONE,       /* no scale: nothing maps quantized values to real values */
    TQ_QUANTIZATION_PER_TENSOR, /* one scale */
    TQ_QUANTIZATION_PER_AXIS,   /* one scale an index of quantized_dimension */
    TQ_QUANTIZATION_BLOCKWISE,  /* scales in another tensor, one a block */
    TQ_QUANTIZATION_MULTI_AXIS, /* scales in another tensor, along several dimensions */
    TQ_QUANTIZATION_CUSTOM,     /* bytes of unknown meaning */
    TQ_QUANTIZATION_KIND_COUNT
} tq_quantization_kind;

typedef struct tq_quantization {
    tq_table table; /* at == 0: the tensor has no QuantizationParameters */
    tq_quantization_kind kind;
    tq_vector scale, zero_point, min, max; /* float32, int64, float32, float32; of any counts, as stored */
    int32_t quantized_dimension;           /* any value, as stored */
    /* blockwise and multi-axis: tensors of the same subgraph that hold the parameters */
    int32_t scales_tensor, zero_points_tensor; /* -1: none.  An absent field means tensor 0 */
    int32_t block_size;                        /* 0: no blocks */
    tq_vector quantized_dimensions;            /* multi-axis: int32 dimensions */
    tq_bytes custom;                           /* TQ_QUANTIZATION_CUSTOM: its bytes */
} tq_quantization;

/* The quantization of a Tensor table, as stored. */
tq_quantization tq_tensor_quantization(const tq_table *tensor);

/* "per-tensor", "per-axis" ...; kind < TQ_QUANTIZATION_KIND_COUNT. */
const char *tq_quantization_kind_name(tq_quantization_kind kind);

#endif
