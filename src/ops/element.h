/* SPDX-License-Identifier: Apache-2.0
 *
 * The C types of an element of each tensor type: in memory, and as a value in arithmetic.
 *
 *   TQ_C_<type>        the C type in memory
 *   TQ_V_<type>        the C type of its value
 *   TQ_LOAD_<type>(v)  its value: float16 and bfloat16 as float32, all others unchanged
 *   TQ_STORE_<type>(v) the element of a value; float16 and bfloat16 round to nearest, ties to even
 */
#ifndef TQ_OPS_ELEMENT_H
#define TQ_OPS_ELEMENT_H

#include "kernels/half.h"

typedef struct tq_complex64 {
    float real, imaginary;
} tq_complex64;

typedef struct tq_complex128 {
    double real, imaginary;
} tq_complex128;

#define TQ_C_FLOAT16 uint16_t
#define TQ_C_BFLOAT16 uint16_t
#define TQ_C_FLOAT32 float
#define TQ_C_FLOAT64 double
#define TQ_C_BOOL uint8_t
#define TQ_C_INT8 int8_t
#define TQ_C_UINT8 uint8_t
#define TQ_C_INT16 int16_t
#define TQ_C_UINT16 uint16_t
#define TQ_C_INT32 int32_t
#define TQ_C_UINT32 uint32_t
#define TQ_C_INT64 int64_t
#define TQ_C_UINT64 uint64_t
#define TQ_C_COMPLEX64 tq_complex64
#define TQ_C_COMPLEX128 tq_complex128

#define TQ_V_FLOAT16 float
#define TQ_V_BFLOAT16 float
#define TQ_V_FLOAT32 TQ_C_FLOAT32
#define TQ_V_FLOAT64 TQ_C_FLOAT64
#define TQ_V_BOOL TQ_C_BOOL
#define TQ_V_INT8 TQ_C_INT8
#define TQ_V_UINT8 TQ_C_UINT8
#define TQ_V_INT16 TQ_C_INT16
#define TQ_V_UINT16 TQ_C_UINT16
#define TQ_V_INT32 TQ_C_INT32
#define TQ_V_UINT32 TQ_C_UINT32
#define TQ_V_INT64 TQ_C_INT64
#define TQ_V_UINT64 TQ_C_UINT64
#define TQ_V_COMPLEX64 TQ_C_COMPLEX64
#define TQ_V_COMPLEX128 TQ_C_COMPLEX128

#define TQ_LOAD_FLOAT16(v) tq_half_to_float_scalar(v)
#define TQ_LOAD_BFLOAT16(v) tq_bfloat_to_float(v)
#define TQ_LOAD_FLOAT32(v) (v)
#define TQ_LOAD_FLOAT64(v) (v)
#define TQ_LOAD_BOOL(v) (v)
#define TQ_LOAD_INT8(v) (v)
#define TQ_LOAD_UINT8(v) (v)
#define TQ_LOAD_INT16(v) (v)
#define TQ_LOAD_UINT16(v) (v)
#define TQ_LOAD_INT32(v) (v)
#define TQ_LOAD_UINT32(v) (v)
#define TQ_LOAD_INT64(v) (v)
#define TQ_LOAD_UINT64(v) (v)
#define TQ_LOAD_COMPLEX64(v) (v)
#define TQ_LOAD_COMPLEX128(v) (v)

#define TQ_STORE_FLOAT16(v) tq_float_to_half((float)(v))
#define TQ_STORE_BFLOAT16(v) tq_float_to_bfloat((float)(v))
#define TQ_STORE_FLOAT32(v) (float)(v)
#define TQ_STORE_FLOAT64(v) (double)(v)
#define TQ_STORE_BOOL(v) (uint8_t)(v)
#define TQ_STORE_INT8(v) (int8_t)(v)
#define TQ_STORE_UINT8(v) (uint8_t)(v)
#define TQ_STORE_INT16(v) (int16_t)(v)
#define TQ_STORE_UINT16(v) (uint16_t)(v)
#define TQ_STORE_INT32(v) (int32_t)(v)
#define TQ_STORE_UINT32(v) (uint32_t)(v)
#define TQ_STORE_INT64(v) (int64_t)(v)
#define TQ_STORE_UINT64(v) (uint64_t)(v)
#define TQ_STORE_COMPLEX64(v) (v)
#define TQ_STORE_COMPLEX128(v) (v)

#endif
