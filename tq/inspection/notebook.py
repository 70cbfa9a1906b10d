# SPDX-License-Identifier: Apache-2.0
"""HTML for notebooks: `_repr_html_` of Model, Tensor, Quantization and Operator.

A page is self-contained: no script, nothing fetched, one style sheet whose rules apply to the page's own element.
Texts from a file are hostile until `tq.pages.html.escaped` has treated them.  Rows, names, values and pictures have
limits, so that a page is bounded for every model; where a limit cuts, the page gives the total.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from tq.inspection import histograms
from tq.inspection.graph import OPERATOR, graph_of
from tq.pages import html as h
from tq.pages.graph_svg import BoxPicture, graph_svg
from tq.pages.svg import Bar, Histogram, axis_chart, channel_strip, number, sparkline

if TYPE_CHECKING:
    from tq._core import ExternalBuffer, Model, Operator, Problem, Quantization, Signature, Subgraph, Tensor

_T = TypeVar("_T", covariant=True)

_ROWS = 1000  # operators, and tensors, that a page lists
_SUBGRAPHS = 50
_SHORT_ROWS = 200  # rows of every other table
_CHANNELS = 256  # rows of the table of channels
_COLUMNS = 128  # channels in a picture
_BINS = 72
_DRAWN = 60  # operators of a graph in a page


class _Sized(Protocol[_T]):
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_T]: ...


def _shapes(tensor: "Tensor") -> str:
    """The shape, and the shape signature where it differs."""
    shape = f'<span class="tq-fit">{h.shape_text(tensor.shape)}</span>'
    if tuple(tensor.shape_signature) == tuple(tensor.shape):
        return shape
    return f'{shape} <span class="tq-muted tq-fit">signature {h.shape_text(tensor.shape_signature)}</span>'


def _label(tensor: "Tensor") -> str:
    """The listing's name of a tensor: T#4, and T#1_4 in subgraph 1."""
    return _tensor_label(tensor.subgraph.index, tensor.index)


def _tensor_label(subgraph: int, index: int) -> str:
    return f"T#{subgraph}_{index}" if subgraph else f"T#{index}"


# Quantization


def _span(values: np.ndarray) -> str:
    """`0.001 … 0.2`, of the finite values."""
    if values.size == 0:
        return "none"
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if finite.size == 0:
        return "none finite"
    low, high = finite.min(), finite.max()
    return h.float_text(low) if low == high else f"{h.float_text(low)} … {h.float_text(high)}"


def _quantization_line(quantization: "Quantization") -> str:
    """One line for a table: Netron's for one scale, a summary for several."""
    if not quantization:
        return ""
    scales = np.asarray(quantization.scale)
    if quantization.kind in ("none", "per-tensor") and scales.size <= 1 and quantization.min.size <= 1:
        return h.escaped(str(quantization), h.LINE)
    parts = [h.escaped(quantization.kind)]
    if quantization.kind == "per-axis":
        parts.append(f"dimension {quantization.quantized_dimension}")
    if quantization.kind == "blockwise":
        parts.append(f"block size {quantization.block_size}")
    if scales.size:
        parts.append(f"{h.count(scales.size, 'scale')} {_span(_drawable(scales))}")
    return ", ".join(parts)


def _drawable(values: np.ndarray) -> np.ndarray:
    """Flat; narrow floats widened, since isfinite is not defined for all of them."""
    flat = np.asarray(values).reshape(-1)
    return flat if flat.dtype.kind in "iu" or flat.dtype == np.float32 else flat.astype(np.float32)


def _range_bars(quantization: "Quantization") -> list[Bar]:
    """The stored and the representable range, each over all channels."""
    bars = []
    pairs = (("stored", "min", "max", "stored"), ("representable", "range_min", "range_max", "range"))
    for label, low, high, role in pairs:
        ends = histograms.envelope(getattr(quantization, low), getattr(quantization, high))
        if ends:
            bars.append(Bar(label, *ends, role))
    return bars


def _parameter_noun(quantization: "Quantization") -> str:
    """ "channel", "block" or "scale": the part of a tensor that has one scale."""
    return {"per-axis": "channel", "blockwise": "block"}.get(quantization.kind, "scale")


def _channel_table(quantization: "Quantization", scales: np.ndarray) -> str:
    columns = [scales] + [
        _drawable(getattr(quantization, name)) for name in ("zero_point", "min", "max", "range_min", "range_max")
    ]
    total = max(len(c) for c in columns)
    shown = min(total, _CHANNELS)
    rows = ([str(i), *(h.float_text(c[i]) if i < len(c) else h.NOTHING for c in columns)] for i in range(shown))
    heads = [f"#{_parameter_noun(quantization)}", "#scale", "#zero point", "#min", "#max", "#range min", "#range max"]
    return h.table(heads, rows, total, shown)


def _channel_picture(quantization: "Quantization", scales: np.ndarray) -> str:
    """The ranges of every channel side by side; of every nth where there are more than _COLUMNS."""
    total = max(len(scales), len(quantization.min), len(quantization.max))
    step = max(-(-total // _COLUMNS), 1)
    stored = len(quantization.min) == len(quantization.max) == total
    ranged = len(quantization.range_min) == len(quantization.range_max) == total
    columns = []
    for i in range(0, total, step):
        column = []
        if ranged:
            column.append(Bar("representable", quantization.range_min[i], quantization.range_max[i], "range"))
        if stored:
            column.append(Bar("stored", quantization.min[i], quantization.max[i], "stored"))
        columns.append(column)
    if not any(columns):
        return ""
    noun = _parameter_noun(quantization)
    note = f'<p class="tq-muted">One {noun} in {step} is drawn.</p>' if step > 1 else ""
    return channel_strip(columns, [f"{noun} 0", f"{noun} {(len(columns) - 1) * step}"], noun) + note


def _quantization_body(quantization: "Quantization", chart: bool = True) -> str:
    if not quantization:
        return '<p class="tq-muted">The file gives no quantization.</p>'
    scales = _drawable(quantization.scale)
    many = max(scales.size, quantization.min.size, quantization.max.size, quantization.zero_point.size) > 1
    facts: list[tuple[str, str] | None] = [("kind", h.escaped(quantization.kind))]
    if not many:
        line = h.escaped(str(quantization), h.LINE)
        facts.append(("line", f"<code>{line}</code>") if line else None)
        for name in ("scale", "zero_point", "min", "max", "range_min", "range_max"):
            value = _drawable(getattr(quantization, name))
            facts.append((name, f"<code>{h.float_text(value[0])}</code>" if len(value) else h.NOTHING))
    else:
        facts.append(("quantized_dimension", str(quantization.quantized_dimension)))
        step = -(-max(scales.size, 1) // _COLUMNS)
        drawn = sparkline([float(v) for v in scales[::step]], f"{scales.size} scales")
        facts.append(("scales", f"{h.count(scales.size, 'scale')} {drawn} <code>{_span(scales)}</code>"))
        facts.append(("zero points", f"<code>{_span(_drawable(quantization.zero_point))}</code>"))
    if quantization.block_size:
        facts.append(("block_size", str(quantization.block_size)))
    if quantization.details:
        facts.append(("details", f"<code>{h.value_text(quantization.details)}</code>"))
    parts = [h.facts(facts)]
    if chart:
        parts.append(axis_chart(_range_bars(quantization)))
    if many:
        parts.append(_channel_picture(quantization, scales))
        title = f"{_parameter_noun(quantization).capitalize()}s"
        parts.append(h.fold(title, f"{scales.size:,}", _channel_table(quantization, scales)))
    return "".join(parts)


def quantization_html(quantization: "Quantization") -> str:
    """The page of a Quantization: its line or its channels, with the stored and the representable range on one axis."""
    count = int(np.size(quantization.scale))
    chips = [h.chip(h.escaped(quantization.kind))] if quantization else []
    if count > 1:
        chips.append(h.chip(h.count(count, "scale")))
    return h.page("Quantization", "", chips, [_quantization_body(quantization)])


# Tensors


def _role(tensor: "Tensor", inputs: set[int], outputs: set[int]) -> str:
    roles = [
        word
        for word, holds in (
            ("input", tensor.index in inputs),
            ("output", tensor.index in outputs),
            ("variable", tensor.is_variable),
            ("constant", tensor.is_constant),
            ("external", tensor.external_buffer is not None),
            ("sparse", bool(tensor.sparsity)),
        )
        if holds
    ]
    return ", ".join(roles)


def _tensor_cells(tensor: "Tensor") -> list[str]:
    return [h.escaped(tensor.name) or h.NOTHING, h.enum_text(tensor.type), _shapes(tensor), f"{tensor.nbytes:,}"]


def _line_cell(tensor: "Tensor") -> str:
    line = _quantization_line(tensor.quantization)
    return f"<code>{line}</code>" if line else ""


def _tensor_table(subgraph: "Subgraph", shown: int) -> str:
    inputs, outputs = set(subgraph.input_indices), set(subgraph.output_indices)
    rows = (
        [_label(t), *_tensor_cells(t), _role(t, inputs, outputs), _line_cell(t)]
        for t in islice(subgraph.tensors, shown)
    )
    heads = ["|tensor", "~name", "|type", "shape", "#bytes", "|role", "~quantization"]
    return h.table(heads, rows, len(subgraph.tensors), shown, ": <code>model.tensors[i]</code> gives any other")


def _port_table(tensors: Sequence["Tensor | None"], indices: Sequence[int], marks: Sequence[bool] = ()) -> str:
    """The tensors of an operator or a subgraph.  None: an input left out (-1) or an index out of range.

    marks: of each, whether the operator writes it.
    """
    rows = []
    for position, (tensor, index) in enumerate(zip(tensors[:_SHORT_ROWS], indices, strict=False)):
        if tensor is None:
            why = "left out" if index == -1 else f'<span class="tq-warn">index {index} out of range</span>'
            rows.append([str(position), h.NOTHING, why, "", "", "", ""])
            continue
        note = " (written)" if position < len(marks) and marks[position] else ""
        rows.append([str(position), _label(tensor) + note, *_tensor_cells(tensor), _line_cell(tensor)])
    heads = ["#", "|tensor", "~name", "|type", "shape", "#bytes", "~quantization"]
    return h.table(heads, rows, len(tensors), len(rows))


def _operator_link(operator: "Operator") -> str:
    return f"Op#{operator.index} {h.escaped(operator.name)}"


def _few_values(values: Sequence[object]) -> str:
    """The first values of a tensor, in its type's own form."""
    return ", ".join(h.value_text(v) for v in values)


def _tensor_values(tensor: "Tensor") -> tuple[str, Histogram | None, str, bool]:
    """The first values as text, a histogram, its label, and whether it counts real values, which share the ranges'
    axis."""
    if tensor.data is None:
        return "", None, "", False
    taken = histograms.sample(tensor)
    if taken is None:
        if tensor.nbytes > 1 << 24 or tensor.data.size == 0:
            return "", None, "", False
        return _few_values(list(islice(tensor.data.reshape(-1), h.LIST))) + h.rest(tensor.data.size), None, "", False
    few = ", ".join(number(v) for v in taken.stored[: h.LIST]) + h.rest(taken.total)
    values = histograms.real(taken, tensor)
    label = "values" if values is not None else "quantized"
    counted = None
    if taken.is_integer and (values is None or tensor.quantization.kind in ("none", "per-tensor")):
        counts, edges = histograms.count_quantized(taken.stored, _BINS)
        if values is not None and tensor.quantization.kind == "per-tensor":
            edges = (edges - float(tensor.quantization.zero_point[0])) * float(tensor.quantization.scale[0])
        counted = counts, edges
    else:
        counted = histograms.count_values(taken.stored if values is None else values, _BINS)
    if counted is None or not np.all(np.isfinite(counted[1])):
        return few, None, "", False
    counts, edges = counted
    if edges[0] > edges[-1]:
        counts, edges = counts[::-1], edges[::-1]
    return few, Histogram(counts.tolist(), edges.tolist()), label, values is not None


def _on_one_scale(histogram: Histogram, bars: Sequence[Bar]) -> bool:
    """Whether the histogram stays legible on the ranges' axis: not where they are 25 times wider (an int32 bias)."""
    ends = [v for bar in bars for v in bar[1:3]]
    span = histogram.edges[-1] - histogram.edges[0]
    return not ends or max(*ends, histogram.edges[-1]) - min(*ends, histogram.edges[0]) < 25 * span


def _tensor_picture(tensor: "Tensor") -> str:
    """The histogram of the values and the ranges, on one axis where both are real values."""
    bars = _range_bars(tensor.quantization)
    try:
        few, histogram, label, shared = _tensor_values(tensor)
    except (ValueError, RuntimeError, OSError, ImportError) as error:
        return f'<p class="tq-warn">The values cannot be read: {h.escaped(error, h.LINE)}</p>' + axis_chart(bars)
    parts = []
    if few:
        title = "stored" if tensor.quantization else "values"
        parts.append(f'<p><span class="tq-muted">{title}</span> <code>{few}</code></p>')
    if histogram:
        total = sum(histogram.counts)
        all_of = tensor.data.size if tensor.data is not None else total
        if shared and _on_one_scale(histogram, bars):
            parts.append(axis_chart(bars, histogram, label))
        else:
            parts.append(axis_chart([], histogram, label) + axis_chart(bars))
        source = f"a sample of {total:,} of {all_of:,} values" if total < all_of else f"all {all_of:,} values"
        parts.append(f'<p class="tq-muted">The histogram counts {source}.</p>')
    else:
        parts.append(axis_chart(bars))
    return "".join(parts)


def tensor_html(tensor: "Tensor", styles: bool = True) -> str:
    """The page of a Tensor: facts, quantization, a histogram of a constant's values, producer and consumers.

    styles: whether it begins with the style sheet.
    """
    subgraph = tensor.subgraph
    role = _role(tensor, set(subgraph.input_indices), set(subgraph.output_indices))
    chips = [
        h.chip(h.enum_text(tensor.type)),
        h.chip(h.shape_text(tensor.shape)),
        h.chip(h.size_text(tensor.nbytes)),
    ]
    chips += [h.chip(role)] if role else []
    external = tensor.external_buffer
    where = f"{tensor.index} in subgraph {subgraph.index}"
    elsewhere = ""
    if external:
        elsewhere = f"{h.escaped(external.group or '')} at {external.offset:,}, {h.count(external.length, 'byte')}"
    facts = [
        ("index", where + (f" “{h.escaped(subgraph.name)}”" if subgraph.name else "")),
        ("shape", h.shape_text(tensor.shape) if tensor.has_rank or tensor.shape else "[] (no rank given)"),
        ("shape_signature", h.shape_text(tensor.shape_signature)),
        ("type", f"{h.enum_text(tensor.type)} <span class='tq-muted'>dtype {h.escaped(tensor.dtype)}</span>"),
        ("bytes", f"{tensor.nbytes:,}"),
        ("buffer", str(tensor.buffer) if tensor.buffer else "0 <span class='tq-muted'>none</span>"),
        ("is_variable", str(bool(tensor.is_variable))),
        ("external", elsewhere) if external else None,
        ("sparsity", f"<code>{h.value_text(tensor.sparsity)}</code>") if tensor.sparsity else None,
        ("variants", f"<code>{h.value_text(tensor.variant_tensors)}</code>") if tensor.variant_tensors else None,
    ]
    consumers = tensor.consumers
    made = _operator_link(tensor.producer) if tensor.producer is not None else h.NOTHING
    used = ", ".join(map(_operator_link, consumers[: h.LIST])) + h.rest(len(consumers)) if consumers else h.NOTHING
    quantization = tensor.quantization
    body = [h.fold("Facts", "", h.facts(facts), shown=True)]
    if quantization or tensor.is_constant or external:
        body.append(h.fold("Values and ranges", "", _tensor_picture(tensor), shown=True))
    if quantization:
        line = f"<code>{_quantization_line(quantization)}</code>"
        body.append(h.fold("Quantization", line, _quantization_body(quantization, chart=False)))
    links = h.facts([("made by", made), ("used by", used)])
    body.append(h.fold("Producer and consumers", h.count(len(consumers), "consumer"), links, shown=True))
    return h.page("Tensor", f"{_label(tensor)} {h.escaped(tensor.name)}", chips, body, styles)


# Operators


def _options(options: object) -> str:
    # The root of a custom operator's flexbuffer is usually a map, but may be any value.
    if not isinstance(options, Mapping):
        return f"<p><code>{h.value_text(options)}</code></p>"
    facts = [(h.escaped(k), f"<code>{h.value_text(v)}</code>") for k, v in islice(options.items(), _SHORT_ROWS)]
    cut = f'<p class="tq-warn">The first {_SHORT_ROWS} of {len(options):,} are listed.</p>'
    return h.facts(facts) + (cut if len(options) > _SHORT_ROWS else "")


def operator_html(operator: "Operator", styles: bool = True) -> str:
    """The page of an Operator: inputs, outputs, intermediates, options, and a preview of its custom options.

    styles: whether it begins with the style sheet.
    """
    chips = [h.chip(f"version {operator.version}")]
    if operator.options_type:
        chips.append(h.chip(h.escaped(operator.options_type)))
    inputs = _port_table(operator.inputs, operator.input_indices, operator.mutating_variable_inputs)
    outputs = _port_table(operator.outputs, operator.output_indices)
    body = [
        h.fold("Inputs", f"{len(operator.inputs):,}", inputs, shown=True),
        h.fold("Outputs", f"{len(operator.outputs):,}", outputs, shown=True),
    ]
    if operator.intermediates:
        table = _port_table(operator.intermediates, operator.intermediate_indices)
        body.append(h.fold("Intermediates", f"{len(operator.intermediates):,}", table))
    if operator.options:
        body.append(h.fold("Options", h.escaped(operator.options_type or ""), _options(operator.options), shown=True))
    if operator.custom_options:
        size = h.count(len(operator.custom_options), "byte")
        body.append(h.fold("Custom options", size, h.hex_dump(operator.custom_options), shown=not operator.options))
    where = f"Op#{operator.index}" + (f" in subgraph {operator.subgraph.index}" if operator.subgraph.index else "")
    return h.page("Operator", f"{where} {h.escaped(operator.name)}", chips, body, styles)


def _ports(subgraph: int, indices: Sequence[int]) -> str:
    names = ", ".join(_tensor_label(subgraph, i) if i != -1 else "–" for i in indices[: h.LIST])
    return names + h.rest(len(indices))


def _operator_table(subgraph: "Subgraph", shown: int) -> str:
    rows = []
    for op in islice(subgraph.operators, shown):
        first = op.outputs[0] if op.outputs else None
        made = f"{h.enum_text(first.type)} {h.shape_text(first.shape)}" if first is not None else ""
        version = f' <span class="tq-muted">v{op.version}</span>' if op.version != 1 else ""
        rows.append(
            [
                str(op.index),
                h.escaped(op.name) + version,
                _ports(subgraph.index, op.input_indices),
                _ports(subgraph.index, op.output_indices),
                made,
            ]
        )
    heads = ["#", "operator", "inputs", "outputs", "first output"]
    return h.table(heads, rows, len(subgraph.operators), shown, ": <code>model.operators[i]</code> gives any other")


# Models


def _census(subgraph: "Subgraph", shown: int) -> str:
    """The names of the first `shown` operators with their counts, most frequent first."""
    counts: dict[str, int] = {}
    for operator in islice(subgraph.operators, shown):
        counts[operator.name] = counts.get(operator.name, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    names = [h.escaped(name, 40) + (f" ×{n}" if n > 1 else "") for name, n in ordered[:6]]
    return ", ".join(names) + (f", {len(ordered) - 6} more" if len(ordered) > 6 else "")


def _graph(subgraph: "Subgraph") -> str:
    """A picture of a small subgraph's operators."""
    graph = graph_of(subgraph)
    boxes = [
        BoxPicture(f"{box.index} {box.name}", box.lines)
        if box.kind == OPERATOR
        else BoxPicture(f"{box.kind} {box.name}", box.lines, "tq-end")
        for box in graph.boxes
    ]
    arrows = [(arrow.source, arrow.target) for arrow in graph.arrows]
    label = f"graph of {h.count(len(subgraph.operators), 'operator')}"
    picture = graph_svg(boxes, graph.sizes(), arrows, graph.layout(), label)
    return f'<div class="tq-scroll" tabindex="0" role="group" aria-label="{label}, scrolls">{picture}</div>'


def _subgraph_sections(subgraph: "Subgraph", operators: int, tensors: int, first: bool) -> list[str]:
    """operators, tensors: the rows of each that the page may still list."""
    inputs, outputs = subgraph.inputs, subgraph.outputs
    total_operators, total_tensors = len(subgraph.operators), len(subgraph.tensors)
    operators, tensors = min(operators, total_operators), min(tensors, total_tensors)
    sections = [
        h.fold("Inputs", f"{len(inputs):,}", _port_table(inputs, subgraph.input_indices), shown=first),
        h.fold("Outputs", f"{len(outputs):,}", _port_table(outputs, subgraph.output_indices), shown=first),
    ]
    note = f"{total_operators:,}" + (f" · {_census(subgraph, operators)}" if operators == total_operators > 0 else "")
    if 0 < total_operators <= min(operators, _DRAWN):
        sections.append(h.fold("Graph", "", _graph(subgraph), shown=first))
    sections.append(h.fold("Operators", note, _operator_table(subgraph, operators)))
    constants = sum(t.nbytes for t in islice(subgraph.tensors, tensors) if t.is_constant)
    note = f"{total_tensors:,}" + (f" · {h.size_text(constants)} of constants" if tensors == total_tensors else "")
    sections.append(h.fold("Tensors", note, _tensor_table(subgraph, tensors)))
    return sections


def _subgraphs(model: "Model") -> list[str]:
    if len(model.subgraphs) == 1:
        return _subgraph_sections(model.subgraphs[0], _ROWS, _ROWS, True)
    sections, operators, tensors = [], _ROWS, _ROWS
    for subgraph in islice(model.subgraphs, _SUBGRAPHS):
        parts = _subgraph_sections(subgraph, operators, tensors, subgraph.index == 0)
        operators -= min(operators, len(subgraph.operators))
        tensors -= min(tensors, len(subgraph.tensors))
        name = f"“{h.escaped(subgraph.name)}” · " if subgraph.name else ""
        note = f"{name}{h.count(len(subgraph.operators), 'operator')}, {h.count(len(subgraph.tensors), 'tensor')}"
        sections.append(h.fold(f"Subgraph {subgraph.index}", note, "".join(parts), shown=subgraph.index == 0))
    if len(model.subgraphs) > _SUBGRAPHS:
        total = len(model.subgraphs)
        sections.append(f'<p class="tq-warn">The first {_SUBGRAPHS} of {total:,} subgraphs are listed.</p>')
    return sections


def _signature_row(signature: "Signature") -> list[str]:
    def ports(names: Mapping[str, int]) -> str:
        shown = [
            f"{h.escaped(k)}: {_tensor_label(signature.subgraph_index, i)}" for k, i in islice(names.items(), h.LIST)
        ]
        return "<br>".join(shown) + h.rest(len(names))

    return [h.escaped(signature.key), str(signature.subgraph_index), ports(signature.inputs), ports(signature.outputs)]


def _metadata_row(name: str, data: bytes) -> list[str]:
    head = bytes(data[:96])
    text = head.rstrip(b"\0").decode("ascii", "replace")
    plain = text if text and "\ufffd" not in text and text.isprintable() else head[:24].hex(" ")
    return [h.escaped(name), f"{len(data):,}", f"<code>{escape(plain)}{'…' if len(data) > 96 else ''}</code>"]


def _problem_role(problem: "Problem") -> str:
    return "bad" if problem.severity == "error" else "warn"


def _problem_row(problem: "Problem") -> list[str]:
    code = f'<span class="tq-{_problem_role(problem)}">{h.escaped(problem.code)}</span>'
    return [code, h.escaped(problem.severity), h.escaped(problem.place, h.LINE), h.escaped(problem.text, 2 * h.LINE)]


def _external_row(buffer: "ExternalBuffer") -> list[str]:
    group, packing = h.escaped(buffer.group or ""), h.escaped(buffer.packing or "")
    return [str(buffer.id), group, f"{buffer.offset:,}", f"{buffer.length:,}", packing]


def _section(
    title: str, items: _Sized[_T], heads: Sequence[str], row: Callable[[_T], list[str]], shown: bool = False
) -> str:
    """A fold with a table of `items`; "" without items."""
    total = len(items)
    if not total:
        return ""
    rows = [row(item) for item in islice(items, _SHORT_ROWS)]
    return h.fold(title, f"{total:,}", h.table(heads, rows, total, len(rows)), shown)


def _extras(model: "Model") -> list[str]:
    metadata = model.metadata
    return [
        _section("Signatures", model.signatures, ["key", "#subgraph", "inputs", "outputs"], _signature_row),
        _section(
            "Metadata", metadata, ["name", "#bytes", "begins with"], lambda name: _metadata_row(name, metadata[name])
        ),
        _section(
            "External buffers", model.external_buffers, ["#id", "file", "#offset", "#bytes", "packing"], _external_row
        ),
    ]


def model_html(model: "Model") -> str:
    """The page of a Model: its facts, problems, inputs, outputs, operators, tensors, signatures and metadata."""
    name = str(model.path).replace("\\", "/").rpartition("/")[2] if model.path else "a model in memory"
    operators = sum(len(g.operators) for g in model.subgraphs)
    tensors = sum(len(g.tensors) for g in model.subgraphs)
    # `problems` walks the whole model: once.  Errors come first, since a long list is cut.
    problems = sorted(model.problems, key=_problem_role)
    chips = [
        h.chip(h.size_text(model.nbytes)),
        h.chip(h.count(operators, "operator")),
        h.chip(h.count(tensors, "tensor")),
    ]
    if len(model.subgraphs) != 1:
        chips.append(h.chip(h.count(len(model.subgraphs), "subgraph")))
    if problems:
        chips.append(h.chip(h.count(len(problems), "problem"), _problem_role(problems[0])))
    else:
        chips.append(h.chip("no problems", "good"))
    facts = h.facts(
        [
            ("path", f"<code>{h.escaped(model.path, 2 * h.LINE)}</code>") if model.path else None,
            ("description", h.escaped(model.description, 2 * h.LINE)) if model.description else None,
            ("version", f"{model.version}" + ("" if model.has_identifier else " (the file has no identifier TFL3)")),
            ("min_runtime_version", h.escaped(model.min_runtime_version)) if model.min_runtime_version else None,
            ("bytes", f"{model.nbytes:,}"),
        ]
    )
    wrong = _section("Problems", problems, ["|code", "|severity", "~place", "what"], _problem_row, shown=True)
    return h.page("Model", h.escaped(name), chips, [facts, wrong, *_subgraphs(model), *_extras(model)])
