# SPDX-License-Identifier: Apache-2.0
"""TFLite_Detection_PostProcess: what the comparison with LiteRT cannot show."""

import hashlib
import os
import subprocess
import sys

import flatbuffers.flexbuffers as flexbuffers
import numpy as np
import pytest
from interrupts import ended_by_ctrl_c
from models import build_model, operator, tensor
from repository import import_path

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


def overlap(a, b):
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), np.float32(0))
    both = sides[0] * sides[1]
    return both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both)


def suppressed(boxes, scores, options, most):
    """The first `most` boxes that overlap none before them, in the order of scores."""
    chosen = []
    for i in sorted(np.flatnonzero(scores >= options["nms_score_threshold"]), key=lambda i: (-scores[i], i)):
        if len(chosen) < most and all(overlap(boxes[i], boxes[j]) <= options["nms_iou_threshold"] for j in chosen):
            chosen.append(i)
    return chosen


def expected(boxes, scores, options):
    """Boxes, classes and scores, as one suppression after the other finds them."""
    most = options["max_detections"]
    if not options["use_regular_nms"]:
        chosen = suppressed(boxes, np.fmax.reduce(scores, axis=1), options, most)
        pairs = [(i, np.nanargmax(scores[i])) for i in chosen]
    else:
        pairs = []
        for c in range(scores.shape[1]):
            each = min(most, options["detections_per_class"])
            pairs += [(i, c) for i in suppressed(boxes, scores[:, c], options, each)]
        pairs = sorted(pairs, key=lambda pair: -scores[pair])[:most]
    rows, columns = np.intp(pairs).reshape(-1, 2).T
    return boxes[rows], columns, scores[rows, columns]


def random_models():
    """name, model, quantized or float scores, real scores, real boxes, options.  Of few different scores many are
    equal, and zeros have both signs."""
    for number, classes in enumerate([1, 5, 15, 16, 17, 70] * 6):
        rng = np.random.default_rng(number)
        count, background = 150, number % 2
        anchors = np.float32(rng.integers(1, 40, (count, 4)) / 4)
        kind = ("FLOAT32", "UINT8", "INT8")[number // 6 % 3]
        options = {
            "use_regular_nms": number < 18,
            "num_classes": classes,
            "max_detections": int(rng.choice([2, 30, 90])),
            "detections_per_class": int(rng.choice([5, 90])),
            "nms_score_threshold": float(np.float32(rng.choice([-np.inf, 0, 0.8]))),
        }
        shape = (1, count, classes + background)
        if kind == "FLOAT32":
            values = np.float32(rng.choice([-2, -1, -0.0, 0.0, 1, 1.5, np.nan], shape)) * (rng.random(shape) < 0.3)
            real = values
        else:
            values = rng.choice([3, 4, 20, 21, 100], shape, p=[0.5, 0.4, 0.08, 0.01, 0.01]).astype(kind.lower())
            anchors = np.round(anchors / 0.05).clip(1, 120) * np.float32(0.05)
            real = (np.float32(values) - 3) * np.float32(0.05)
        data = model(anchors=anchors, boxes=(1, count, 4), scores=shape, kind=kind, **options)
        half = anchors[:, 2:] * np.float32(0.5)
        boxes = np.concatenate([anchors[:, :2] - half, anchors[:, :2] + half], axis=1)
        yield number, data, kind, values, real[0, :, background:], boxes, {**NUMBERS, **options}


def run_random(data, kind, values, threads=1):
    interpreter = tq.Interpreter(model_content=data, num_threads=threads)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.full((1, values.shape[1], 4), 0 if kind == "FLOAT32" else 3, kind.lower()))
    interpreter.set_tensor(1, values)
    interpreter.invoke()
    return [interpreter.get_tensor(3 + k) for k in range(4)]


@pytest.mark.parametrize("case", [*random_models()], ids=lambda case: f"{case[0]}-{case[2]}")
def test_random_scores_are_found_as_one_after_the_other(case):
    _, data, kind, values, real, boxes, options = case
    found, classes, best, count = run_random(data, kind, values)
    few, columns, scores = expected(boxes, real, options)
    assert count == [len(few)]
    np.testing.assert_array_equal(classes[0, : len(few)], columns)
    np.testing.assert_array_equal(best[0, : len(few)], scores)
    np.testing.assert_allclose(found[0, : len(few)], few, rtol=1e-6)


def digest(threads):
    results = [run_random(data, kind, values, threads) for _, data, kind, values, *_ in random_models()]
    return hashlib.sha256(b"".join(part.tobytes() for outputs in results for part in outputs)).hexdigest()


@pytest.mark.parametrize("mask", ["avx512", "avx512,avx2,neon"])
def test_instruction_sets_and_threads_agree(mask):
    environment = {**os.environ, "TQ_DISABLE_CPU": mask, "PYTHONPATH": os.pathsep.join(import_path(__file__))}
    script = "import test_detection as t; print(t.digest(1))"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest(2)


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
