/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxes of float32 as top, left, bottom, right, and their intersection over union, in the order of operations of LiteRT
 * f6745779, tflite/kernels/internal/reference/non_max_suppression.h and tflite/kernels/detection_postprocess.cc.
 */
#ifndef TQ_OPS_DETECTION_BOXES_H
#define TQ_OPS_DETECTION_BOXES_H

/* std::min and std::max: a, unless b is less or greater; so a if one is NaN. */
static inline float tq_box_min(float a, float b)
{
    return b < a ? b : a;
}

static inline float tq_box_max(float a, float b)
{
    return a < b ? b : a;
}

/* Intersection over union of two boxes, top <= bottom and left <= right; 0 if one has no area. */
static inline float tq_box_overlap(const float a[4], const float b[4])
{
    float a_area = (a[2] - a[0]) * (a[3] - a[1]), b_area = (b[2] - b[0]) * (b[3] - b[1]);
    if (a_area <= 0 || b_area <= 0)
        return 0;
    float height = tq_box_max(tq_box_min(a[2], b[2]) - tq_box_max(a[0], b[0]), 0);
    float width = tq_box_max(tq_box_min(a[3], b[3]) - tq_box_max(a[1], b[1]), 0);
    float both = height * width;
    return both / (a_area + b_area - both);
}

#endif
