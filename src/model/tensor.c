/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tensor.h"

#include "base/checked.h"

tq_status tq_shape_count(const tq_vector *shape, uint64_t *out, tq_error *error)
{
    uint64_t count = 1;
    bool too_many = false, empty = false;
    for (uint32_t i = 0; i < shape->count; i++) {
        int32_t dimension = tq_vector_i32(shape, i);
        if (dimension < 0)
            return tq_fail(error, TQ_BAD_SHAPE, TQ_NO_OFFSET, "dimension %u is %d", i, dimension);
        empty |= dimension == 0;
        if (dimension && !tq_mul_u64(count, (uint64_t)dimension, &count))
            too_many = true;
    }
    if (empty)
        count = 0;
    else if (too_many || count > UINT64_C(1) << 62)
        return tq_fail(error, TQ_BAD_SHAPE, TQ_NO_OFFSET, "the shape has more than 2^62 elements");
    *out = count;
    return TQ_OK;
}

tq_status tq_tensor_size(const tq_table *tensor, uint64_t *out, tq_error *error)
{
    int64_t type = tq_get_int(tensor, TQ_Tensor_type);
    const tq_type_row *row = tq_type(type);
    if (!row || !row->bits)
        return tq_fail(error, TQ_BAD_TYPE, TQ_NO_OFFSET, "tensor type %s (%d) has no fixed element size",
                       row ? row->name : "unknown", (int)type);
    tq_vector shape = tq_get_vector(tensor, TQ_Tensor_shape);
    uint64_t count, bits;
    tq_status status = tq_shape_count(&shape, &count, error);
    if (status != TQ_OK)
        return status;
    if (!tq_mul_u64(count, row->bits, &bits) || bits > UINT64_MAX - 7)
        return tq_fail(error, TQ_BAD_SHAPE, TQ_NO_OFFSET, "the shape needs more than 2^61 bytes");
    *out = (bits + 7) / 8;
    return TQ_OK;
}

bool tq_tensor_is_constant(const tq_model *model, const tq_table *tensor)
{
    tq_bytes bytes;
    int64_t index = tq_get_int(tensor, TQ_Tensor_buffer);
    return index && tq_model_buffer(model, (uint64_t)index, &bytes, NULL) == TQ_OK && bytes.data;
}

tq_status tq_tensor_bytes(const tq_model *model, const tq_table *tensor, tq_bytes *out, tq_error *error)
{
    int64_t index = tq_get_int(tensor, TQ_Tensor_buffer);
    if (index >= model->buffers.count && index)
        return tq_fail(error, TQ_BAD_INDEX, TQ_NO_OFFSET, "buffer %lld of %u", (long long)index, model->buffers.count);
    if (index == 0) {
        *out = (tq_bytes){NULL, 0};
        return TQ_OK;
    }
    return tq_model_buffer(model, (uint64_t)index, out, error);
}

static inline uint8_t unpack_one(unsigned byte, unsigned at, unsigned bits, unsigned sign)
{
    const unsigned value = byte >> (at * bits) & ((1u << bits) - 1);
    return (uint8_t)((value ^ sign) - sign); /* copies the sign bit upwards */
}

/* Whole bytes: a loop for vectors, where `bits` is a constant. */
static inline void unpack_bytes(const uint8_t *restrict packed, unsigned bits, unsigned sign, uint64_t bytes,
                                uint8_t *restrict out)
{
    const unsigned each = 8 / bits;
    for (uint64_t i = 0; i < bytes; i++)
        for (unsigned k = 0; k < each; k++)
            out[i * each + k] = unpack_one(packed[i], k, bits, sign);
}

void tq_unpack_bits(const uint8_t *packed, unsigned bits, bool is_signed, uint64_t count, uint8_t *out)
{
    const unsigned each = 8 / bits, sign = is_signed ? 1u << (bits - 1) : 0;
    const uint64_t bytes = count / each;
    if (bits == 4)
        unpack_bytes(packed, 4, sign, bytes, out);
    else if (bits == 2)
        unpack_bytes(packed, 2, sign, bytes, out);
    else
        unpack_bytes(packed, bits, sign, bytes, out);
    for (uint64_t i = bytes * each; i < count; i++)
        out[i] = unpack_one(packed[bytes], (unsigned)(i % each), bits, sign);
}

tq_status tq_strings_open(tq_bytes bytes, tq_strings *out, tq_error *error)
{
    if (bytes.size < 4)
        return tq_fail(error, TQ_BAD_STRINGS, TQ_NO_OFFSET, "%llu bytes, a string tensor needs at least 4",
                       (unsigned long long)bytes.size);
    uint32_t count = tq_load_u32(bytes.data);
    uint64_t header = 4 + 4 * ((uint64_t)count + 1);
    if (count > INT32_MAX || header > bytes.size)
        return tq_fail(error, TQ_BAD_STRINGS, TQ_NO_OFFSET, "a count of %u strings does not fit in %llu bytes", count,
                       (unsigned long long)bytes.size);
    uint64_t before = header;
    for (uint32_t i = 0; i <= count; i++) {
        uint32_t offset = tq_load_u32(bytes.data + 4 + 4 * (size_t)i);
        if (offset < before || offset > bytes.size)
            return tq_fail(error, TQ_BAD_STRINGS, TQ_NO_OFFSET, "offset %u is %u; it needs to be from %llu to %llu", i,
                           offset, (unsigned long long)before, (unsigned long long)bytes.size);
        before = offset;
    }
    *out = (tq_strings){bytes, count};
    return TQ_OK;
}

tq_bytes tq_strings_item(const tq_strings *strings, uint32_t index)
{
    tq_bytes none = {NULL, 0};
    if (index >= strings->count)
        return none;
    /* checked again: the bytes may have changed since tq_strings_open */
    const uint8_t *offsets = strings->bytes.data + 4 + 4 * (size_t)index;
    uint32_t start = tq_load_u32(offsets), end = tq_load_u32(offsets + 4);
    if (start > end || end > strings->bytes.size)
        return none;
    return (tq_bytes){strings->bytes.data + start, end - start};
}
