/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor's facts and its data.
 */
#ifndef TQ_MODEL_TENSOR_H
#define TQ_MODEL_TENSOR_H

#include "model/model.h"
#include "model/types.h"

/* How many elements a shape has; a scalar (rank 0) has 1.  TQ_BAD_SHAPE for a negative dimension or a
   count over 2^62. */
tq_status tq_shape_count(const tq_vector *shape, uint64_t *out, tq_error *error);

/* The bytes that a tensor of this shape and type takes in a buffer: bits rounded up.
   TQ_BAD_TYPE for unknown types and those without a fixed element size. */
tq_status tq_tensor_size(const tq_table *tensor, uint64_t *out, tq_error *error);

/* Whether LiteRT would treat the tensor as a constant: its buffer stores data, even if that has no bytes. */
bool tq_tensor_is_constant(const tq_model *model, const tq_table *tensor);

/* The bytes of the tensor's buffer in the file; data NULL: none.  Not for external buffers.
   TQ_DATA_RANGE; TQ_BAD_INDEX for a buffer that does not exist. */
tq_status tq_tensor_bytes(const tq_model *model, const tq_table *tensor, tq_bytes *out, tq_error *error);

/* ---- what stands packed in a buffer ---- */

/* `count` elements of 4 or 2 bits, low bits first, to one byte each.  `packed` must hold
   ceil(count * bits / 8) bytes. */
void tq_unpack_bits(const uint8_t *packed, unsigned bits, bool is_signed, uint64_t count, uint8_t *out);

/* String tensors: i32 count, count + 1 i32 offsets from the buffer's start, the characters.
   tq_strings_open checks the count and that all offsets rise and lie inside. */
typedef struct tq_strings {
    tq_bytes bytes;
    uint32_t count;
} tq_strings;
tq_status tq_strings_open(tq_bytes bytes, tq_strings *out, tq_error *error);
tq_bytes tq_strings_item(const tq_strings *strings, uint32_t index);

#endif
