/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalar rows of depthwise.def: the definition that every other row equals bit for bit.
 */
#include <math.h>

#include "kernels/depthwise/depthwise_parts.h"

#define LANES 8 /* channels of a vector; compilers vectorize over them */

#define ZERO(bias) 0
#define SAME(bias) bias
#define PLUS(sum, bias) ((sum) + (bias))
#define DONE(sum, bias) sum
#define ROUND_TWICE(x, w, sum) ((sum) + (x) * (w))

#define AS_IT_IS(t, sum) sum
#define WITHIN(t, sum) tq_bounded(sum, (t)->floor, (t)->ceiling)
#define WRAPPING(x, w, sum) ((sum) + (uint32_t)((x) * (w)))

#define IN i8
#define in_t int8_t
#define weight_t int16_t
#define sum_t uint32_t
#define FIRST SAME
#define LAST DONE
#define MULTIPLY_ADD WRAPPING
#define FINISH AS_IT_IS
#include "kernels/depthwise/depthwise_scalar_body.h"

#define IN u8
#define in_t uint8_t
#define weight_t int16_t
#define sum_t uint32_t
#define FIRST SAME
#define LAST DONE
#define MULTIPLY_ADD WRAPPING
#define FINISH AS_IT_IS
#include "kernels/depthwise/depthwise_scalar_body.h"

#define IN i16
#define in_t int16_t
#define weight_t int16_t
#define sum_t uint32_t
#define FIRST SAME
#define LAST DONE
#define MULTIPLY_ADD WRAPPING
#define FINISH AS_IT_IS
#include "kernels/depthwise/depthwise_scalar_body.h"

#define IN f32
#define in_t float
#define weight_t float
#define sum_t float
#define FIRST ZERO
#define LAST PLUS
#define MULTIPLY_ADD ROUND_TWICE
#define FINISH WITHIN
#include "kernels/depthwise/depthwise_scalar_body.h"

#define IN f32_fused
#define in_t float
#define weight_t float
#define sum_t float
#define FIRST SAME
#define LAST DONE
#define MULTIPLY_ADD fmaf
#define FINISH WITHIN
#include "kernels/depthwise/depthwise_scalar_body.h"
