# SPDX-License-Identifier: Apache-2.0
"""Outputs that LiteRT leaves, in whole or in part, as they were in memory."""

import numpy as np

from deviations.table import UNPROMISED, deviation


def lonely_detections(m):
    import flatbuffers.flexbuffers as flexbuffers

    options = dict.fromkeys(["y_scale", "x_scale", "h_scale", "w_scale"], 1.0)
    options |= {"max_detections": 3, "max_classes_per_detection": 2, "num_classes": 2, "nms_iou_threshold": 0.5}
    points = iter([[0.0, 10.0, 20.0], [0.0, 0.0, 0.0]])  # far from each other, then all at one point
    inputs = [
        m.input("float32", [1, 3, 4], draw=lambda: np.float32([[[y, 0, 0, 0] for y in next(points)]])),
        m.input("float32", [1, 3, 3], draw=lambda: m.rng.uniform(0.1, 1, (1, 3, 3)).astype(np.float32)),
        m.constant("float32", np.tile(np.float32([0.5, 0.5, 1, 1]), (3, 1))),
    ]
    outputs = [m.output("float32") for _ in range(4)]
    m.operator("TFLite_Detection_PostProcess", inputs, outputs, custom_options=flexbuffers.Dumps(options))
    m.runs, m.fixed = 2, True


@deviation(
    "TFLite_Detection_PostProcess",
    when="fewer detections are found than there is room for",
    litert="leaves some of the rest unwritten",
    tq="0 for all of the rest",
    example=lonely_detections,
)
def unfilled_detections(node):
    boxes, classes, scores, count = (output.value for output in node.outputs)
    if count is None or boxes is None:
        return None
    each = 1 if node.options.get("use_regular_nms") else node.options["max_classes_per_detection"]
    filled = np.zeros(scores.shape[1], bool)
    for k in range(min(each, node.options["num_classes"])):
        filled[k : int(count[0]) * each : each] = True
    if filled.all():
        return None
    filled = filled[None]
    return [
        np.where(filled[..., None], boxes, np.float32(0)),
        *(np.where(filled, x, np.float32(0)) for x in (classes, scores)),
        count,
    ]


def first_frame(name, **options):
    def draw(m):
        import flatbuffers.flexbuffers as flexbuffers

        outputs = [m.output("int16", [1, 8], scale=None), m.output("bool")]
        x = m.input("int16", [4], scale=None)
        m.operator(name, [x], outputs, custom_options=flexbuffers.Dumps(options))

    return draw


@deviation(
    "SignalFramer",
    when="a frame for which there are not samples enough yet",
    litert="tflite-micro leaves it unwritten",
    tq="0",
    example=first_frame("SignalFramer", frame_size=8, frame_step=4, prefill=False),
)
@deviation(
    "SignalStacker",
    when="not frames enough yet",
    litert="tflite-micro leaves the output unwritten",
    tq="0",
    example=first_frame(
        "SignalStacker", num_channels=4, stacker_left_context=0, stacker_right_context=1, stacker_step=1
    ),
)
def incomplete_frames(node):
    frames, valid = (output.value for output in node.outputs)
    if valid is None or valid or node.options.get("prefill"):
        return None
    return [np.zeros_like(frames), valid]


def handed_on(m):
    condition, body = m.graph(), m.graph()
    i = condition.input("int32", [], scale=None)
    condition.input("float32", [6])
    limit = condition.constant("int32", 4)
    condition.operator("LESS", [i, limit], [condition.output("bool", [])])
    i, x = body.input("int32", [], scale=None), body.input("float32", [6])
    body.operator("ADD", [i, body.constant("int32", 1)], [body.output("int32", [])])
    body.outputs.append(x)
    options = {"cond_subgraph_index": m.subgraph_index(condition), "body_subgraph_index": m.subgraph_index(body)}
    inputs = [m.input("int32", [], 0), m.input("float32", [6], np.arange(1.0, 7.0))]
    m.operator("WHILE", inputs, [m.output("int32", []), m.inner("float32", [6])], **options)
    m.fixed = True


@deviation(
    "WHILE",
    when="an output that nothing reads, and whose input the body hands on",
    litert="does not write it",
    tq="the input",
    example=handed_on,
)
def handed_on_by_loops(node):
    """Whether the body hands it on is not known here."""
    if all(operand is None or operand.is_read for operand in node.outputs):
        return None
    return [operand and (operand.value if operand.is_read else UNPROMISED) for operand in node.outputs]
