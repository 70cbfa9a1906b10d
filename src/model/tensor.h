/* SPDX-License-Identifier: Apache-2.0
 *
 * The shape, size and bytes of a tensor.
 */
#ifndef TQ_MODEL_TENSOR_H
#define TQ_MODEL_TENSOR_H

#include "model/model.h"
#include "model/types.h"

/* The number of elements of a shape (int32), at most 2^62; 1 for rank 0.  TQ_BAD_SHAPE: a negative dimension, or more
   elements. */
tq_status tq_shape_count(const tq_vector *shape, uint64_t *out, tq_error *error);

/* The bytes of a tensor in its buffer, by shape and type: its bits, rounded up.  TQ_BAD_TYPE: an unknown type, or one
   without a fixed element size; TQ_BAD_SHAPE. */
tq_status tq_tensor_size(const tq_table *tensor, uint64_t *out, tq_error *error);

/* Whether LiteRT treats the tensor as a constant: its buffer stores data, even data of 0 bytes. */
bool tq_tensor_is_constant(const tq_model *model, const tq_table *tensor);

/* The bytes of the tensor's buffer in the file; data NULL: none.  Not for external buffers.  TQ_BAD_INDEX: the buffer's
   index is out of range; the failures of tq_model_buffer. */
tq_status tq_tensor_bytes(const tq_model *model, const tq_table *tensor, tq_bytes *out, tq_error *error);

/* ---- packed data ---- */

/* Unpacks `count` elements of `bits` (4 or 2) bits, low bits first, to one byte each.  packed: ceil(count * bits / 8)
   bytes; out: count bytes, apart from packed. */
void tq_unpack_bits(const uint8_t *packed, unsigned bits, bool is_signed, uint64_t count, uint8_t *out);

/* The strings of a STRING tensor: i32 count, count + 1 i32 offsets from the buffer's start, the characters. */
typedef struct tq_strings {
    tq_bytes bytes;
    uint32_t count;
} tq_strings;

/* Checks that the count fits `bytes`, and that the offsets ascend and lie in `bytes`.  TQ_BAD_STRINGS. */
tq_status tq_strings_open(tq_bytes bytes, tq_strings *out, tq_error *error);

/* The string at any index; empty where it is out of range, or the bytes have changed. */
tq_bytes tq_strings_item(const tq_strings *strings, uint32_t index);

#endif
