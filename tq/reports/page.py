# SPDX-License-Identifier: Apache-2.0
"""The page of a tq.report: one HTML document that links to nothing outside itself.

Names come from files; tq.pages.html.escaped treats them first.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from tq.accuracy.matching import BETWEEN, is_computed, type_kind
from tq.enums import name_of
from tq.inspection.graph import OPERATOR, graph_of
from tq.pages.graph_svg import BoxPicture, graph_svg
from tq.pages.html import count, escaped, shape_text, size_text
from tq.reports import svg as report_svg
from tq.reports.advice import OPTIONS, POOR
from tq.reports.elements import (
    DASH,
    card,
    cell,
    decibels_text,
    frame,
    grades,
    number_text,
    percent_text,
    short_text,
    sqnr_cell,
    table,
)
from tq.version import __version__

if TYPE_CHECKING:
    from tq._core import Model, Operator
    from tq.reports.records import Figures, TensorReport

OPEN = 12  # tensors whose pictures are visible at first, the worst ones
PICTURES = 120  # activations with pictures, the worst ones
WEIGHTS = 60  # constants with pictures, the worst ones
ROWS = 1000  # of a table
DRAWN = 1000  # operators of a graph


def document(report: Figures) -> str:
    """The document of a report."""
    names = f"{escaped(report.float_name)} and {escaped(report.quantized_name)}"
    sections = [
        ("outputs", "Outputs", _outputs(report)),
        ("advice", "Advice", _advice(report)),
        ("network", "Along the network", _network(report)),
        ("graph", "Graph", _graph(report)),
        ("worst", "Worst tensors", _pictures(report)),
        ("activations", "Activations", _activations(report)),
        ("constants", "Weights and biases", _constants(report)),
        ("operators", "Operators", _operators(report)),
        ("size", "Size", _size(report)),
    ]
    title = f"Quantization report: {names}"
    return frame(title, _header(report), sections, _footer())


# ---- sections ----


def _header(report: Figures) -> str:
    a, b = report.float_model, report.quantized
    kinds = Counter(kind_of(op) for op in b.subgraphs[0].operators if is_computed(op))
    total = sum(kinds.values())
    cards = [
        card(
            "SQNR of the outputs",
            decibels_text(report.sqnr_db) + (" dB" if math.isfinite(report.sqnr_db) else ""),
            "signal to quantization noise",
            report_svg.grade(report.sqnr_db),
        )
    ]
    tops = [row.same_top for row in report.outputs if not math.isnan(row.same_top)]
    if tops:
        cards.append(card("Same greatest output", f"{100 * tops[0]:.1f} %", f"of {count(report.samples, 'sample')}"))
    ratio = a.nbytes / max(b.nbytes, 1)
    change = f"{ratio:.2f} times smaller" if ratio >= 1 else f"{1 / ratio:.2f} times larger"
    cards.append(card("File", size_text(b.nbytes), f"{size_text(a.nbytes)} before; {change}"))
    if all(report.arena):
        cards.append(card("Memory of activations", size_text(report.arena[1]), f"{size_text(report.arena[0])} before"))
    note = ", ".join(f"{kinds[kind]} {kind}" for kind in ("hybrid", "float") if kinds[kind]) or "all of them"
    cards.append(card("Operators on integers", f"{kinds['integer']} of {total}", note))
    if report.activations:
        worst = report.worst[0]
        cards.append(
            card("Lowest tensor", f"{decibels_text(worst.sqnr_db)} dB", escaped(worst.operator_name),
                  report_svg.grade(worst.sqnr_db))
        )  # fmt: skip
    return (
        '<header><div><h1>Quantization report</h1><div class="files muted"><code>'
        f"{escaped(report.float_name)}</code> beside <code>{escaped(report.quantized_name)}</code> on "
        f'{count(report.samples, "sample")}</div><div class="cards">{"".join(cards)}</div></div></header>'
    )


def _outputs(report: Figures) -> str:
    rows = [
        f'<tr><td class="name mono">{escaped(row.name)}</td><td class="fit">{shape_text(row.shape)}</td>'
        f"<td>{escaped(row.type)}</td>{sqnr_cell(row.sqnr_db)}{cell(short_text(row.max_error))}"
        f"{cell(short_text(row.mean_error))}{cell(short_text(row.cosine))}"
        f"{cell(DASH if math.isnan(row.same_top) else f'{100 * row.same_top:.1f}')}</tr>"
        for row in report.outputs
    ]
    heads = ("Output", "Shape", "Type", "#SQNR dB", "#Largest error", "#Mean error", "#Cosine", "#Same greatest %")
    return table("outputs", heads, rows, sorts=False, high=False) if rows else ""


def _advice(report: Figures) -> str:
    """Where results are poor, the options to try; with their gains where they were tried."""
    if report.advice:
        return _tried(report)
    if not report.sqnr_db < POOR:
        return ""
    items = "".join(f"<li><code>tq quantize {option.text}</code>: {option.why}</li>" for option in OPTIONS)
    return (
        f"<p>The outputs have less than {POOR:g} dB. Options of <code>tq quantize</code> to try; "
        f"<code>tq report --advise</code> tries them on these samples:</p><ul>{items}"
        "<li><code>tq quantize --target-sqnr DB</code>: the operators with the most error stay float</li></ul>"
    )


def _tried(report: Figures) -> str:
    rows = []
    for tried in sorted(report.advice, key=lambda row: (math.isnan(row.sqnr_db), -row.sqnr_db)):
        gain = tried.sqnr_db - report.sqnr_db
        note = escaped(tried.reason, 200) if tried.reason else tried.option.why
        size = cell(f"{tried.nbytes:,}" if tried.nbytes else DASH, tried.nbytes)
        rows.append(
            f'<tr>{sqnr_cell(tried.sqnr_db)}{cell(_gain(gain), gain)}<td class="mono fit">{tried.option.text}</td>'
            f'{size}<td class="name">{note}</td></tr>'
        )
    heads = ("#SQNR dB", "#Gain dB", "tq quantize", "#Bytes", "Why")
    return (
        f"<p>The float model, quantized with other options, on these samples; this model has "
        f"{decibels_text(report.sqnr_db)} dB and {report.quantized.nbytes:,} bytes. "
        "<code>--target-sqnr DB</code> leaves the operators with the most error float.</p>"
        + table("advice", heads, rows, high=False)
    )


def _gain(decibels: float) -> str:
    return decibels_text(decibels) if not decibels > 0 else f"+{decibels_text(decibels)}"


def _graph(report: Figures) -> str:
    """The quantized model's graph, in the colors of its outputs' SQNR."""
    subgraph = report.quantized.subgraphs[0]
    if not 0 < len(subgraph.operators) <= DRAWN:
        return ""
    graph, pictured = graph_of(subgraph), _pictured(report)
    found = {row.index_b: row for row in report.activations}
    boxes = []
    for box in graph.boxes:
        row = next((found[index] for index in box.writes if index in found), None)
        title = f"{box.index} {box.name}" if box.kind == OPERATOR else f"{box.kind} {box.name}"
        if row is None or box.kind != OPERATOR:
            boxes.append(BoxPicture(title, [*box.lines, DASH] if box.kind == OPERATOR else box.lines))
            continue
        grade, link = f"b-{report_svg.grade(row.sqnr_db)}", f"a{row.index}" if row.index in pictured else ""
        boxes.append(BoxPicture(title, [*box.lines, f"{decibels_text(row.sqnr_db)} dB"], grade, link))
    arrows = [(arrow.source, arrow.target) for arrow in graph.arrows]
    label = f"graph of {count(len(subgraph.operators), 'operator')} with their SQNR"
    picture = graph_svg(boxes, graph.sizes(1), arrows, graph.layout(1), label)
    return (
        f'<p><code>tq view</code> shows the graph with more figures.</p><div class="legend">{grades()}</div>'
        f'<div class="scroll high" tabindex="0" role="region" aria-label="Graph">{picture}</div>'
    )


def _network(report: Figures) -> str:
    pictured = _pictured(report)
    rows = [
        (
            f"{escaped(row.operator_name)} {escaped(row.name, 80)}: {decibels_text(row.sqnr_db)} dB",
            row.sqnr_db,
            f"a{row.index}" if row.index in pictured else "",
        )
        for row in report.activations
    ]
    legend = grades()
    lost = f" {count(len(report.unmatched), 'tensor')} of the float model have no partner." if report.unmatched else ""
    return (
        "<p>Each bar is an activation, in the order of execution: its ratio of signal to noise against the float "
        f"model, with all errors that came before it. A step down shows where accuracy goes.{lost}</p>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="Chart along the network">'
        f'{report_svg.along(rows)}</div><div class="legend">{legend}</div>'
    )


def _pictured(report: Figures) -> set[int]:
    return {row.index for row in report.worst[:PICTURES]}


def _pictures(report: Figures) -> str:
    worst = report.worst[:PICTURES]
    if not worst:
        return ""
    legend = (
        '<div class="legend"><span><i class="tq-values"></i>float values, upwards</span>'
        '<span><i class="tq-range"></i>quantized values, as real values, downwards</span>'
        "<span>bars below: the ranges of both</span>"
        '<span><i class="tq-stored"></i>errors</span><span>heights are square roots of counts</span></div>'
    )
    shown = f'<div class="tensors">{"".join(_picture(row, "a") for row in worst[:OPEN])}</div>'
    more = worst[OPEN:]
    rest = (
        f'<details><summary>{count(len(more), "more tensor")}</summary><div class="tensors">'
        f"{''.join(_picture(row, 'a') for row in more)}</div></details>"
        if more
        else ""
    )
    return legend + shown + rest


def _picture(row: TensorReport, prefix: str) -> str:
    operator = row.operator_name if row.operator is None else f"{row.operator_name} {row.operator}"
    line = [
        f'<span class="t-{report_svg.grade(row.sqnr_db)}">{decibels_text(row.sqnr_db)} dB</span>',
        escaped(operator),
    ]
    line.append(f"{escaped(row.type)} {shape_text(row.shape)}")
    if row.scale is not None:
        line.append(f"scale {number_text(row.scale)}, zero point {row.zero_point}")
    elif row.scales:
        line.append(count(row.scales, "scale"))
    line.append(f"largest error {short_text(row.max_error)}")
    if row.clipped:
        line.append(f'<span class="t-warn">{percent_text(row.clipped)} % clipped</span>')
    if row.worst_channel is not None:
        line.append(f"channel {row.worst_channel}: {decibels_text(row.worst_channel_db)} dB")
    ranges = [("values", row.low, row.high, "values"), ("representable", row.range_low, row.range_high, "range")]
    values = None if row.values is None else (row.values[0].tolist(), row.values[1].tolist())
    quantized = None if row.codes is None else (row.codes[0].tolist(), row.codes[1].tolist())
    errors = "" if row.errors is None else report_svg.errors((row.errors[0].tolist(), row.errors[1].tolist()))
    return (
        f'<article class="tensor" id="{prefix}{row.index}"><h3 class="mono">{escaped(row.name)}</h3>'
        f'<div class="line">{"".join(f"<span>{part}</span>" for part in line)}</div>'
        f"{report_svg.histograms(values, quantized, ranges)}{errors}</article>"
    )


def _activations(report: Figures) -> str:
    pictured = _pictured(report)
    rows = []
    for row in report.worst[:ROWS]:
        name = escaped(row.name) or f"tensor {row.index}"
        link = f'<a href="#a{row.index}">{name}</a>' if row.index in pictured else name
        rows.append(
            f"<tr>{sqnr_cell(row.sqnr_db)}{cell('' if row.operator is None else str(row.operator))}"
            f'<td class="fit">{escaped(row.operator_name)}</td><td class="name mono"><div>{link}</div></td>'
            f"<td>{escaped(row.type)}</td>{cell(short_text(row.max_error), row.max_error)}"
            f"{cell(short_text(row.mean_error), row.mean_error)}{_range_cell(row)}"
            f"{cell(percent_text(row.clipped), row.clipped)}{cell(percent_text(row.at_low), row.at_low)}"
            f"{cell(percent_text(row.at_high), row.at_high)}</tr>"
        )
    heads = ("^SQNR dB", "^Op", "Operator", "Tensor", "Type", "#Largest error", "#Mean error", "Values, range",
             "#Clipped %", "#Lowest %", "#Highest %")  # fmt: skip
    cut = _cut(len(report.activations))
    text = (
        "<p>Clipped values lie outside the representable range. Lowest and highest count quantized values at its ends, "
        "which are saturated unless an activation function ends there.</p>"
    )
    return text + table("activations", heads, rows) + cut if rows else ""


def _range_cell(row: TensorReport) -> str:
    ends = f"{short_text(row.low)} … {short_text(row.high)}"
    if not math.isfinite(row.range_low):
        return f'<td class="fit">{ends}</td>'
    title = f"values {ends}; representable {short_text(row.range_low)} … {short_text(row.range_high)}"
    picture = report_svg.small_range(row.low, row.high, row.range_low, row.range_high)
    return f'<td class="fit" title="{title}">{ends}{picture}</td>'


def _cut(total: int) -> str:
    return f'<p class="muted">The worst {ROWS:,} of {total:,} are listed.</p>' if total > ROWS else ""


def _constants(report: Figures) -> str:
    worst = sorted(report.constants, key=lambda row: row.sqnr_db)
    if not worst:
        return ""
    pictured = {row.index for row in worst[:WEIGHTS]}
    rows = []
    for row in worst[:ROWS]:
        name = escaped(row.name) or f"tensor {row.index}"
        link = f'<a href="#c{row.index}">{name}</a>' if row.index in pictured else name
        reader = "" if row.operator is None else str(row.operator)
        channel = "" if row.worst_channel is None else f"{row.worst_channel}: {decibels_text(row.worst_channel_db)}"
        rows.append(
            f'<tr>{sqnr_cell(row.sqnr_db)}{cell(reader)}<td class="fit">{escaped(row.operator_name)}</td>'
            f'<td class="name mono"><div>{link}</div></td><td>{escaped(row.type)}</td>'
            f'<td class="fit">{shape_text(row.shape)}</td>'
            f"{cell(f'{row.scales}')}{cell(short_text(row.max_error), row.max_error)}{_range_cell(row)}"
            f"{cell(channel, row.worst_channel_db)}</tr>"
        )
    heads = ("^SQNR dB", "^Op", "Read by", "Tensor", "Type", "Shape", "#Scales", "#Largest error", "Values, range",
             "^Worst channel")  # fmt: skip
    pictures = "".join(_picture(row, "c") for row in worst[:WEIGHTS])
    return (
        table("weights and biases", heads, rows)
        + _cut(len(worst))
        + f'<details><summary>Pictures</summary><div class="tensors">{pictures}</div></details>'
    )


# ---- operators and size ----


def kind_of(operator: Operator) -> str:
    """ "integer": reads or writes quantized values; "hybrid": only its weights are quantized; "float"; "other"."""
    tensors = [tensor for tensor in (*operator.inputs, *operator.outputs) if tensor is not None]
    moving = [tensor for tensor in tensors if not tensor.is_constant]
    if any(type_kind(tensor) in ("i", "u") and len(tensor.quantization.scale) for tensor in moving):
        return "integer"
    if not any(type_kind(tensor) == "f" for tensor in moving):
        return "other"
    return "hybrid" if any(tensor.is_constant and tensor.quantization for tensor in tensors) else "float"


def _operators(report: Figures) -> str:
    before = Counter(op.name for graph in report.float_model.subgraphs for op in graph.operators)
    after = Counter(op.name for graph in report.quantized.subgraphs for op in graph.operators)
    kinds: dict[str, Counter[str]] = {}
    versions: dict[str, set[int]] = {}
    for graph in report.quantized.subgraphs:
        for op in graph.operators:
            kinds.setdefault(op.name, Counter())[kind_of(op)] += 1
            versions.setdefault(op.name, set()).add(op.version)
    times = {group.name: group.macs for group in report.float_model.summary().groups}
    rows = []
    for name in sorted(before | after, key=lambda name: (-times.get(name, 0), -after[name], name)):
        found = kinds.get(name, Counter())
        cells = [before[name], after[name], *(found[kind] for kind in ("integer", "hybrid", "float"))]
        between = ["", "", *[DASH] * 3] if name in BETWEEN else [""] * 5
        counts = "".join(cell(dash or str(number)) for dash, number in zip(between, cells, strict=True))
        found_versions = ", ".join(map(str, sorted(versions.get(name, ()))))
        rows.append(
            f'<tr><td class="mono">{escaped(name)}</td>{counts}<td>{found_versions}</td>'
            f"{cell(f'{times.get(name, 0):,}', times.get(name, 0))}</tr>"
        )
    heads = ("Operator", "#Before", "#After", "#Integer", "#Hybrid", "#Float", "Versions", "#Multiply-adds")
    return table("operators", heads, rows)


def _bytes(model: Model) -> Counter[str]:
    """Bytes of constants by type; a buffer that several tensors share counts once."""
    found: Counter[str] = Counter()
    counted: set[int] = set()
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            if tensor.is_constant and tensor.buffer not in counted:
                counted.add(tensor.buffer)
                found[name_of(tensor.type)] += tensor.nbytes
    return found


def _size(report: Figures) -> str:
    before, after = _bytes(report.float_model), _bytes(report.quantized)
    rows = [(f"constants of {escaped(kind)}", before[kind], after[kind]) for kind in sorted(before | after)]
    rest = [model.nbytes - sum(sizes.values()) for model, sizes in
            ((report.float_model, before), (report.quantized, after))]  # fmt: skip
    if min(rest) >= 0:
        rows.append(("structure, names, metadata", rest[0], rest[1]))
    rows.append(("the file", report.float_model.nbytes, report.quantized.nbytes))
    if all(report.arena):
        rows.append(("memory of activations when it runs", *report.arena))
    cells = [
        f"<tr><td>{what}</td>{cell(f'{x:,}', x)}{cell(f'{y:,}', y)}{cell(f'{y / x:.3f}' if x else DASH)}</tr>"
        for what, x, y in rows
    ]
    return table("sizes", ("Bytes of", "#Before", "#After", "#Ratio"), cells, sorts=False, high=False)


def _footer() -> str:
    return (
        f"<footer>Made by tq {__version__}. SQNR is 10 log10(Σ float² / Σ (float − quantized)²) over all samples; "
        "the outputs' is of the mean of their ratios. Both models ran in tq, integers with the bits of TFLite's "
        "reference kernels.</footer>"
    )
