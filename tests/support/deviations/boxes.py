# SPDX-License-Identifier: Apache-2.0
"""Which boxes are chosen."""

import numpy as np

from deviations.table import UNPROMISED, deviation
from deviations.values import is_known


def flat_boxes(m):
    corners = np.float32([[0, 0, 0, 0], [0, 0, 1, 1], [2, 2, 3, 3], [0, 0, 0.9, 1]])  # the first is as padding is
    boxes = m.input("float32", [4, 4], draw=lambda: corners)
    scores = m.input("float32", [4], draw=lambda: np.float32([0.9, 0.8, 0.7, 0.6]))
    limits = [m.constant("int32", np.int32(3)), *(m.constant("float32", np.float32(x)) for x in (0.5, 0.1))]
    outputs = [m.output("int32", [3], scale=None), m.output("int32", [], scale=None)]
    m.operator("NON_MAX_SUPPRESSION_V4", [boxes, scores, *limits], outputs)
    m.fixed = True


def area(box):
    return abs(box[2] - box[0]) * abs(box[3] - box[1])


def overlap(a, b):
    """Intersection over union; 0 where a box has no area."""
    if area(a) <= 0 or area(b) <= 0:
        return np.float32(0)
    low = np.maximum(np.minimum(a[:2], a[2:]), np.minimum(b[:2], b[2:]))
    high = np.minimum(np.maximum(a[:2], a[2:]), np.maximum(b[:2], b[2:]))
    both = np.prod(np.maximum(high - low, np.float32(0)))
    return both / (area(a) + area(b) - both)


def chosen(boxes, scores, room, limit, least, sigma):
    """Places, greatest scores first."""
    waiting = {i: (score, 0) for i, score in enumerate(scores) if score > least}
    picked = []
    scale = np.float32(-0.5 / np.float64(sigma)) if sigma > 0 else np.float32(0)
    while waiting and len(picked) < room:
        i = max(waiting, key=lambda k: waiting[k][0])
        before, since = waiting.pop(i)
        score, gone = before, False
        for index in reversed(picked[since:]):
            iou = overlap(boxes[i], boxes[index])
            gone = iou >= limit
            if gone:
                break
            if sigma > 0:
                score = score * np.exp(scale * iou * iou)
            if score <= least:
                break
        if not gone and score == before:
            picked.append(i)
        elif not gone and score > least:
            waiting[i] = (score, len(picked))
    return picked


@deviation(
    "NON_MAX_SUPPRESSION_V4",
    "NON_MAX_SUPPRESSION_V5",
    when="a box without area, or one of NaN, is chosen, or iou_threshold is above 1",
    litert="goes on choosing the same box",
    tq="chooses it once, as TensorFlow does",
    example=flat_boxes,
)
def chosen_again(node):
    if not is_known(node):
        return None
    boxes, scores, room, limit, least, *sigma = (operand.value for operand in node.inputs)
    with np.errstate(all="ignore"):
        picked = chosen(boxes, scores, int(room), limit, least, sigma[0] if sigma else np.float32(0))
        if all(overlap(boxes[i], boxes[i]) >= limit for i in picked):
            return None
    able = scores[scores > least]
    if len(set(able.tolist())) < len(able) or sigma:  # which of equals comes first; exponentials' last bits
        return [UNPROMISED] * len(node.outputs)
    padding = [0] * (int(room) - len(picked))
    return [np.int32([*picked, *padding]), np.int32(len(picked))]
