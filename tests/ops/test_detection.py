# SPDX-License-Identifier: Apache-2.0
"""TFLite_Detection_PostProcess: what the comparison with LiteRT cannot show."""

import flatbuffers.flexbuffers as flexbuffers
import numpy as np
import pytest
from interrupts import ended_by_ctrl_c
from models import build_model, operator, tensor

import tq

NUMBERS = {"y_scale": 1.0, "x_scale": 1.0, "h_scale": 1.0, "w_scale": 1.0, "nms_iou_threshold": 0.5}
COUNTS = {"max_detections": 3, "max_classes_per_detection": 1, "num_classes": 2}
ANCHORS = np.float32([[0.5, 0.5, 1, 1], [2, 2, 1, 1], [2, 2.1, 1, 1], [5, 5, 1, 1]])


def model(options=None, anchors=ANCHORS, boxes=(1, 4, 4), scores=(1, 4, 3), kind="FLOAT32", custom=None, **changed):
    options = {**NUMBERS, **COUNTS, **changed} if options is None else options
    codes = {} if kind == "FLOAT32" else {"scale": 0.05, "zero_point": 3}
    if kind != "FLOAT32":
        anchors = np.clip(np.rint(anchors / 0.05) + 3, -128, 127).astype(kind.lower())
    tensors = [
        tensor("boxes", boxes, kind, **codes),
        tensor("scores", scores, kind, **codes),
        tensor("anchors", anchors.shape, kind, anchors, **codes),
        *(tensor(name, [1]) for name in ("found", "classes", "best", "count")),
    ]
    custom = flexbuffers.Dumps(options) if custom is None else custom
    nodes = [operator("TFLite_Detection_PostProcess", [0, 1, 2], [3, 4, 5, 6], custom_options=custom)]
    return build_model(tensors, nodes, [0, 1], [3, 4, 5, 6])


def run(data, boxes, scores):
    interpreter = tq.Interpreter(model_content=data)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, boxes)
    interpreter.set_tensor(1, scores)
    interpreter.invoke()
    return [interpreter.get_tensor(3 + k) for k in range(4)]


SCORES = np.float32([[[0, 0.1, 0.9], [0, 0.6, 0.2], [0, 0.7, 0.1], [0, 0.3, 0.4]]])


@pytest.mark.parametrize("regular", [False, True])
def test_overlapping_boxes_are_dropped(regular):
    data = model(use_regular_nms=regular, nms_score_threshold=0.35)
    found, classes, best, count = run(data, np.zeros((1, 4, 4), np.float32), SCORES)
    assert count.tolist() == [3] and classes.tolist() == [[1, 0, 1]]
    np.testing.assert_array_equal(best, np.float32([[0.9, 0.7, 0.4]]))
    np.testing.assert_allclose(found[0], [[0, 0, 1, 1], [1.5, 1.6, 2.5, 2.6], [4.5, 4.5, 5.5, 5.5]], rtol=1e-6)


def test_int8_boxes_and_scores_mean_their_real_values():
    zeros, scores = np.full((1, 4, 4), 3, np.int8), np.rint(SCORES / 0.05 + 3).astype(np.int8)
    found, classes, best, count = run(model(kind="INT8"), zeros, scores)
    whole = run(model(), np.zeros((1, 4, 4), np.float32), SCORES)
    assert count == whole[3] and classes.tolist() == whole[1].tolist()
    np.testing.assert_allclose(found, whole[0], atol=1e-6)
    np.testing.assert_allclose(best, whole[2], atol=1e-6)


BAD = [
    ({"max_detections": -1}, "max_detections -1"),
    ({"max_detections": 2**31}, "max_detections 2147483648"),
    ({"max_detections": 2**30, "max_classes_per_detection": 2**30}, "asks for 1073741824 detections"),
    ({"max_classes_per_detection": 0}, "max_classes_per_detection 0"),
    ({"num_classes": 0}, "num_classes 0"),
    ({"num_classes": 9}, "has scores of 3 classes; num_classes is 9"),
    ({"num_classes": 1}, "has scores of 3 classes; num_classes is 1"),
    ({"nms_iou_threshold": 0.0}, "nms_iou_threshold 0"),
    ({"nms_iou_threshold": float("nan")}, "nms_iou_threshold nan"),
    ({"max_detections": "many"}, "max_detections that is no number"),
    ({"use_regular_nms": True, "detections_per_class": 0}, "0 of a class"),
    ({"options": {}}, "no option max_detections"),
    ({"custom": b""}, "options that cannot be read"),
    ({"custom": b"\xff\xff\xff"}, "options that cannot be read"),
    ({"anchors": ANCHORS[:2]}, "has 2 anchors of 4 values; it needs 4 of 4"),
    ({"anchors": ANCHORS[:, :3].copy()}, "has 4 anchors of 3 values"),
    ({"boxes": (2, 4, 4)}, "has a batch of 2"),
    ({"boxes": (1, 4, 3)}, "has 3 values for a box"),
    ({"scores": (1, 5, 3)}, "has scores of 5 boxes; there are 4"),
]


@pytest.mark.parametrize(("changed", "text"), BAD, ids=[text for _, text in BAD])
def test_what_breaks_the_contract_is_named(changed, text):
    with pytest.raises(tq.RunError) as caught:
        tq.Interpreter(model_content=model(**changed)).allocate_tensors()
    assert text in str(caught.value) and "operator 0 (TFLite_Detection_PostProcess)" in str(caught.value)


def test_more_detections_than_memory_are_refused():
    data = model(max_detections=2**28, use_regular_nms=True, detections_per_class=2**28)
    with pytest.raises((tq.Error, MemoryError)):
        tq.Interpreter(model_content=data, max_memory=1 << 28).allocate_tensors()


def test_boxes_that_end_before_they_begin_are_data():
    anchors = ANCHORS.copy()
    anchors[2, 3] = -1
    with pytest.raises(tq.RunError, match="box 2 is decoded to end before it begins"):
        run(model(anchors=anchors), np.zeros((1, 4, 4), np.float32), SCORES)


def test_scores_that_are_not_numbers_are_never_found():
    scores = np.full((1, 4, 3), np.nan, np.float32)
    found, _, _, count = run(model(max_classes_per_detection=2), np.full((1, 4, 4), np.nan, np.float32), scores)
    assert count == [0] and not found.any()


MANY = 200_000  # boxes that do not overlap: each is compared with each, for minutes


@pytest.mark.parametrize("regular", [False, True])
def test_a_long_suppression_can_be_interrupted(regular):
    anchors = np.ones((MANY, 4), np.float32)
    anchors[:, 0] = np.arange(MANY) * 2
    data = model(
        anchors=anchors,
        boxes=(1, MANY, 4),
        scores=(1, MANY, 3),
        use_regular_nms=regular,
        max_detections=MANY,
        detections_per_class=MANY,
    )
    interpreter = tq.Interpreter(model_content=data)
    interpreter.allocate_tensors()
    interpreter.set_tensor(1, np.ones((1, MANY, 3), np.float32))
    with ended_by_ctrl_c():
        interpreter.invoke()


def test_a_long_non_max_suppression_can_be_interrupted():
    scalars = [tensor(name, [], "FLOAT32", np.float32(value)) for name, value in (("iou", 0.5), ("score", 0))]
    tensors = [
        tensor("boxes", [MANY, 4]),
        tensor("scores", [MANY]),
        tensor("most", [], "INT32", np.int32(MANY)),
        *scalars,
        tensor("chosen", [MANY], "INT32"),
        tensor("count", [], "INT32"),
    ]
    data = build_model(tensors, [operator("NON_MAX_SUPPRESSION_V4", [0, 1, 2, 3, 4], [5, 6])], [0, 1], [5, 6])
    interpreter = tq.Interpreter(model_content=data)
    interpreter.allocate_tensors()
    y = np.arange(MANY, dtype=np.float32) * 2
    interpreter.set_tensor(0, np.stack([y, y * 0, y + 1, y * 0 + 1], axis=1))
    interpreter.set_tensor(1, np.ones(MANY, np.float32))
    with ended_by_ctrl_c():
        interpreter.invoke()
