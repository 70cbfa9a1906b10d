/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantize, dequantize and requantize a contiguous array: parameters for the whole array, along an axis or
 * for blocks, any number of threads.
 */
#ifndef TQ_KERNELS_ARRAYS_H
#define TQ_KERNELS_ARRAYS_H

#include "base/status.h"
#include "kernels/kernels.h"
#include "quant/rounding.h"

/* How parameters lie over an array, seen as [groups][outer][channels][inner]: an element's are those of
   entry group * channels + channel.
     per tensor     [1][1][1][n]
     per axis       [1][before the axis][the axis][after it]
     blocks         last axis: [1][1][every block][block size]
                    otherwise: [every block][block size][after the axis][1]             */
typedef struct tq_layout {
    size_t groups, outer, channels, inner;
} tq_layout;

/* Values with one entry for all, or one for each of the groups * channels parameter sets. */
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
    uint8_t value_mask; /* of i8 and u8: the lower bits that hold a value, with zeros above in `out`, or anything above
                          in `in`; 0: all */
    void *scratch; /* as many bytes as the function below says, and nothing is allocated; or NULL */
} tq_array_job;

/* The scratch of quantizing or dequantizing an array of that layout, with a scale or zero point a set; 0 where none is
   needed.  false: more than memory has. */
bool tq_array_scratch(const tq_layout *layout, uint64_t *bytes);

/* in: f32, f64, f16 or bf16; float64 is first rounded to float32, the others convert exactly.
   out: i8, u8, i16, u16 or i32.  scale finite and > 0; low <= zero points <= high, within out's range. */
tq_status tq_quantize_array(const tq_array_job *job, tq_column_f32 scale, tq_column_i32 zero_point, int32_t low,
                            int32_t high, tq_quantize_rule rule, tq_error *error);

/* in: an integer; out: f32, or f16 and bf16, which round the float32 result to nearest, ties to even.
   Scales may be any float32: q less its zero point times NaN is NaN. */
tq_status tq_dequantize_array(const tq_array_job *job, tq_column_f32 scale, tq_column_i32 zero_point, tq_error *error);

/* Parameters as kernels read them, computed once for many arrays. */
typedef struct tq_requantize_sets {
    size_t count; /* sets */
    void *columns; /* the memory of all */
    bool shifts_left, has_zero_points, has_input_zero_points;
    uint8_t undecided;
} tq_requantize_sets;

/* For values of `out`; count > 0 sets. */
tq_status tq_requantize_sets_make(tq_column_f64 multiplier, tq_column_i32 input_zero_point, tq_column_i32 zero_point,
                                  size_t count, tq_element out, tq_requantize_rule rule, tq_requantize_sets *sets,
                                  tq_error *error);
void tq_requantize_sets_free(tq_requantize_sets *sets);

/* in and out: i8, u8, i16 or i32.  Multipliers finite, also in float32, and not negative; zero points
   within the types' ranges.  sets: made of the same parameters, output type and rule, or
   NULL. */
tq_status tq_requantize_array(const tq_array_job *job, tq_column_f64 multiplier, tq_column_i32 input_zero_point,
                              tq_column_i32 zero_point, tq_requantize_rule rule, const tq_requantize_sets *sets,
                              tq_error *error);

/* A multiplier in the 16.16 fixed point of kernels/fixed_simd.h: for values of `out`: offset for sums >= 0,
   offset_negative for others.  false where that is undecided. */
bool tq_fixed_point_of(const tq_multiplier *multiplier, tq_requantize_rule rule, tq_element out, int32_t zero_point,
                       float *slope, float *offset, float *offset_negative);

#endif
