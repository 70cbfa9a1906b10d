/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of MediaPipe's custom operators: the bytes of a C record of int32, padding first.
 */
#ifndef TQ_OPS_MEDIAPIPE_OPTIONS_H
#define TQ_OPS_MEDIAPIPE_OPTIONS_H

#include "ops/op.h"

/* Values of the padding, TfLitePadding in LiteRT f6745779, tflite/core/c/builtin_op_data.h. */
enum { TQ_MEDIAPIPE_SAME = 1, TQ_MEDIAPIPE_VALID = 2 };

/* out[0 .. count), count >= 1: the first int32 values of the options: the padding (TQ_MEDIAPIPE_x), then strides and
   filter sizes, each >= 1.  TQ_BAD_OPERATOR for fewer bytes or other values. */
tq_status tq_mediapipe_options(const tq_node *node, int32_t *out, size_t count, tq_error *error);

#endif
