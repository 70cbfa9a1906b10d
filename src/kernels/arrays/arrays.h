/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantize, dequantize and requantize a contiguous array, with parameters per tensor, per axis or per block, on
 * threads. Results do not depend on the number of threads or the instruction set.
 */
#ifndef TQ_KERNELS_ARRAYS_H
#define TQ_KERNELS_ARRAYS_H

#include "base/status.h"
#include "kernels/kernels.h"
#include "quant/rounding.h"

/* An array as [groups][outer][channels][inner] elements; an element has the parameter set group * channels + channel.
     per tensor     [1][1][1][n]
     per axis       [1][before the axis][the axis][after it]
     blocks         last axis: [1][1][every block][block size]
                    otherwise: [every block][block size][after the axis][1]
   The product of the four fits size_t. */
typedef struct tq_layout {
    size_t groups, outer, channels, inner;
} tq_layout;

/* A parameter: one value for all sets (many false), or one for each of the groups * channels sets. */
typedef struct tq_column_f32 {
    const float *data;
    bool many;
} tq_column_f32;

typedef struct tq_column_f64 {
    const double *data;
    bool many;
} tq_column_f64;

typedef struct tq_column_i32 {
    const int32_t *data;
    bool many;
} tq_column_i32;

typedef struct tq_array_job {
    const void *in;
    void *out; /* disjoint from in, or the same where element sizes are equal */
    tq_element in_type, out_type;
    tq_layout layout;
    int threads; /* at most; 0: as many as pay, up to tq_default_threads() */
    uint8_t value_mask; /* i8, u8 with narrower values: the mask of their bits.  Other bits of `in` are ignored, those
                           of `out` are 0.  0: values fill the element */
    void *scratch; /* tq_array_scratch bytes: then nothing is allocated; or NULL */
} tq_array_job;

/* The scratch of quantizing or dequantizing an array of this layout with many scales or zero points; 0: none is needed.
   false: it exceeds the address space. */
bool tq_array_scratch(const tq_layout *layout, uint64_t *bytes);

/* tq_quantize_away or tq_quantize_even of every element.  in: f32, f64 (first rounded to float32), f16 or bf16.  out:
   i8, u8, i16, u16 or i32.  scale: finite, > 0.  low <= zero points <= high, within the output type's range.
   TQ_NO_MEMORY; TQ_BAD_ARGUMENT for other types. */
tq_status tq_quantize_array(const tq_array_job *job, tq_column_f32 scale, tq_column_i32 zero_point, int32_t low,
                            int32_t high, tq_quantize_rule rule, tq_error *error);

/* tq_dequantize of every element.  in: i8, u8, i16, u16 or i32.  out: f32; f16 and bf16 round the float32 result to
   nearest, ties to even.  scale: any float32.  zero_point: within the input type's range.  TQ_NO_MEMORY;
   TQ_BAD_ARGUMENT for other types. */
tq_status tq_dequantize_array(const tq_array_job *job, tq_column_f32 scale, tq_column_i32 zero_point, tq_error *error);

/* Requantize's columns of all parameter sets, computed once for many arrays. */
typedef struct tq_requantize_sets {
    size_t count;  /* sets */
    void *columns; /* their memory */
    bool shifts_left, has_zero_points, has_input_zero_points;
    uint8_t undecided;
} tq_requantize_sets;

/* Arguments as of tq_requantize_array, with the output type `out` and count > 0 sets.  TQ_NO_MEMORY. */
tq_status tq_requantize_sets_make(tq_column_f64 multiplier, tq_column_i32 input_zero_point, tq_column_i32 zero_point,
                                  size_t count, tq_element out, tq_requantize_rule rule, tq_requantize_sets *sets,
                                  tq_error *error);
void tq_requantize_sets_free(tq_requantize_sets *sets);

/* tq_requantize of every element.  in, out: i8, u8, i16 or i32.  multiplier: not negative, finite in float32.
   Zero points: within the types' ranges.  sets: made of the same parameters, output type and rule, or NULL.
   TQ_NO_MEMORY; TQ_BAD_ARGUMENT for other types. */
tq_status tq_requantize_array(const tq_array_job *job, tq_column_f64 multiplier, tq_column_i32 input_zero_point,
                              tq_column_i32 zero_point, tq_requantize_rule rule, const tq_requantize_sets *sets,
                              tq_error *error);

/* A multiplier in the 16.16 fixed point of kernels/fixed_simd.h, for 8-bit `out`; offset: for sums >= 0,
   offset_negative: for sums < 0; both contain half of `undecided`, 2 E.  false: the slope is denormal or infinite, and
   the exact rule must be used. */
bool tq_fixed_point_of(const tq_multiplier *multiplier, tq_requantize_rule rule, tq_element out, int32_t zero_point,
                       uint8_t undecided, float *slope, float *offset, float *offset_negative);

/* Whether integers times this factor are exact in float32 where they do not saturate. */
static inline bool tq_fixed_is_exact(double real)
{
    return real >= 0x1p-15 || real == 0;
}

#endif
