# SPDX-License-Identifier: Apache-2.0
"""The notebook pages: well formed, escaped, bounded, self-contained, legible, and true to the model."""

import re
import time
from html.parser import HTMLParser

import numpy as np
import pytest
from models import build_model, operator, signature, subgraph, tensor

import tq
from tq.inspection import notebook
from tq.pages import html as notebook_html
from tq.pages import style as notebook_style
from tq.pages import svg as notebook_svg

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</td></table></details></div><style>*{display:none}</style>",
    "&lt;b&gt; &amp; &#60;",
    "line\nbreak\ttab\x1b[31m\x00\x7f",
    "right-to-left \u202egnp.exe\u2066",
    b"lone surrogate \xed\xa0\x80 and broken \xff\xfe utf-8",
    "x" * 5000,
    "",
]
TAGS = {
    "div", "span", "style", "p", "b", "br", "code", "pre", "details", "summary",
    "table", "thead", "tbody", "tr", "th", "td", "svg", "path", "rect", "text", "g", "title",
}  # fmt: skip
ATTRIBUTES = {
    "class", "open", "scope", "role", "aria-label", "viewbox", "width", "height",
    "fill", "stroke", "stroke-width", "d", "x", "y", "rx", "text-anchor", "tabindex",
}  # fmt: skip


class Checker(HTMLParser):
    """Checks that tags balance; collects tags, attributes and words."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.rects, self.words = [], set(), set(), [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag != "br":
            self.open.append(tag)
        self.see(tag, attributes)

    def handle_startendtag(self, tag, attributes):
        self.see(tag, attributes)

    def see(self, tag, attributes):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attributes)
        if tag == "rect":
            self.rects.append(dict(attributes))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def small_model(**changes):
    """Two operators, per-tensor and per-axis tensors, a custom operator, a string constant, a second subgraph."""
    rng = np.random.default_rng(7)
    weights = rng.integers(-127, 128, (4, 1, 1, 3), dtype=np.int8)
    scales = np.array([0.5, 0.25, 0.125, 1e-3], np.float32)
    fields = dict(
        subgraphs=[
            subgraph(
                [
                    tensor(
                        "image",
                        [1, 8, 8, 3],
                        "INT8",
                        scale=0.012566017,
                        zero_point=3,
                        min=-1.6488091,
                        max=1.5555250644683838,
                        shape_signature=[-1, 8, 8, 3],
                    ),
                    tensor("weights", [4, 1, 1, 3], "INT8", weights, scale=scales, min=-127 * scales, max=127 * scales),
                    tensor("bias", [4], "INT32", np.arange(4, dtype=np.int32) - 2, scale=scales / 80),
                    tensor("hidden", [1, 8, 8, 4], "INT8", scale=0.1, zero_point=-5),
                    tensor("out", [1, 8, 8, 4], "FLOAT32"),
                    tensor("labels", [2], "STRING", [b"cat", b"<dog>"]),
                ],
                [
                    operator("CONV_2D", [0, 1, 2], [3], stride_w=2, stride_h=3, version=3),
                    operator("MyCustom", [3, -1], [4], custom_options=bytes(range(256)) + b"<i>tail</i>" * 9),
                ],
                [0],
                [4],
            ),
            subgraph([tensor("inner", [2], "FLOAT32", np.float32([1.5, -2]))], [], [0], [0], name="second"),
        ],
        signatures=[signature("serving_default", {"x": 0}, {"y": 4})],
        metadata={"min_runtime_version": b"2.3.0" + bytes(11), "TFLITE_METADATA": b"\x18\x00\x00\x00M001<b>"},
        description="a <small> model",
    )
    return tq.Model(build_model(**{**fields, **changes}))


def pages(model):
    """Every page of a model: name -> HTML."""
    found = {"model": notebook.model_html(model)}
    for graph in model.subgraphs:
        for item in graph.tensors:
            found[f"tensor {graph.index}.{item.index}"] = notebook.tensor_html(item)
            found[f"quantization {graph.index}.{item.index}"] = notebook.quantization_html(item.quantization)
        for item in graph.operators:
            found[f"operator {graph.index}.{item.index}"] = notebook.operator_html(item)
    return found


def check_page(page):
    checker = Checker(page)
    assert checker.tags <= TAGS
    assert checker.attributes <= ATTRIBUTES
    page.encode("utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", page)
    for word in ("<script", "http:", "https:", "//", "url(", "@import", " id=", "javascript:", "nan", "inf "):
        assert word not in page.lower(), word
    return checker


def test_pages_are_well_formed_and_fetch_nothing():
    for name, page in pages(small_model()).items():
        assert check_page(page), name


def test_reprs_are_the_pages():
    model = small_model()
    assert model._repr_html_() == notebook.model_html(model)
    assert model.tensors[1]._repr_html_() == notebook.tensor_html(model.tensors[1])
    assert model.operators[0]._repr_html_() == notebook.operator_html(model.operators[0])
    quantization = model.tensors[1].quantization
    assert quantization._repr_html_() == notebook.quantization_html(quantization)


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:24])
def test_hostile_names(name):
    text = name if isinstance(name, bytes) else name.encode()
    model = tq.Model(
        build_model(
            [tensor(text, [1], "FLOAT32", np.float32([1]), scale=1.0), tensor(text, [1])],
            [operator("X", [0], [1], custom_options=text or b"\x00")],
            [0],
            [1],
            name=text,
            signatures=[signature(text, {text: 0}, {text: 1})],
            metadata={text: text},
            description=text,
        )
    )
    for page in pages(model).values():
        checker = check_page(page)
        assert "img" not in checker.tags
        assert len(page) < 60_000


def test_words():
    assert notebook_html.escaped('<a b="c">&\'') == "&lt;a b=&quot;c&quot;&gt;&amp;&#x27;"
    assert notebook_html.escaped("a\x00\n\ud800\u202eé≤") == "a\\x00\\n\\ud800\\u202eé≤"
    assert notebook_html.escaped("x" * 200, 10) == "x" * 10 + "…"


def test_model_page_tells_what_the_model_holds():
    text = check_page(notebook.model_html(small_model())).text
    for words in (
        "a <small> model", "2 operators", "7 tensors", "2 subgraphs", "min_runtime_version 2.3.0",
        "CONV_2D, MyCustom", "T#0, T#1, T#2", "T#3, –", "[1, 8, 8, 3] signature [-1, 8, 8, 3]",
        "-1.6488090753555298 ≤ 0.012566016986966133 * (q - 3) ≤ 1.5555250644683838",
        "per-axis, dimension 0, 4 scales 0.001 … 0.5", "serving_default", "x: T#0", "y: T#4", "T#1_0", "“second”",
    ):  # fmt: skip
        assert words in text, words


def test_problems_are_counted_and_shown_first():
    model = tq.Model(
        build_model([tensor("bad", [2, 3], "INT8", scale=[1.0, 2.0], quantized_dimension=7)], [], [0, 0], [0])
    )
    assert len(model.problems) > 0
    page = notebook.model_html(model)
    count = len(model.problems)
    assert {p.severity for p in model.problems} == {"error", "warning"}
    assert f"{count} problem{'s' if count > 1 else ''}" in check_page(page).text
    assert page.index("<b>Problems</b>") < page.index("<b>Inputs</b>")
    for problem in model.problems:
        assert problem.code in page and problem.severity in page
    severities = re.findall(r'class="tq-fit">(error|warning)<', page)
    assert severities == sorted(severities) and len(severities) == count
    clean = tq.Model(build_model([tensor("a", [4]), tensor("b", [4])], [operator("RELU", [0], [1])], [0], [1]))
    assert clean.problems == []
    page = notebook.model_html(clean)
    assert "no problems" in page and "<b>Problems</b>" not in page


def test_tensor_page_draws_ranges_on_one_axis():
    # The image's values reach from scale * (-128 - 3) to scale * (127 - 3); the file's range is narrower by a hair.
    item = small_model().tensors[0]
    checker = check_page(notebook.tensor_html(item))
    bars = {r["class"]: (float(r["x"]), float(r["x"]) + float(r["width"])) for r in checker.rects}
    quantization = item.quantization
    low = min(quantization.range_min[0], quantization.min[0])
    high = max(quantization.range_max[0], quantization.max[0])
    left, right = bars["tq-range"][0], bars["tq-stored"][1]
    assert low == quantization.min[0] or low == quantization.range_min[0]
    for kind, ends in (
        ("tq-stored", (quantization.min[0], quantization.max[0])),
        ("tq-range", (quantization.range_min[0], quantization.range_max[0])),
    ):
        for drawn, value in zip(bars[kind], ends, strict=True):
            plot_left = min(b[0] for b in bars.values())
            plot_right = max(b[1] for b in bars.values())
            assert drawn == pytest.approx(plot_left + (value - low) / (high - low) * (plot_right - plot_left), abs=0.25)
    assert right > left
    assert "stored" in checker.text and "representable" in checker.text
    assert "used by Op#0 CONV_2D" in checker.text


def test_tensor_page_of_a_constant():
    model = small_model()
    page = notebook.tensor_html(model.tensors[1])
    checker = check_page(page)
    assert "The histogram counts all 12 values." in checker.text
    assert "channel 0" in checker.text and "channel 3" in checker.text
    assert 'class="tq-values" d="M' in page
    assert "“cat”" not in checker.text
    labels = check_page(notebook.tensor_html(model.tensors[5])).text
    assert "“cat”, “<dog>”" in labels


def test_large_constants_are_sampled():
    data = np.zeros(1_000_000, np.int8)
    model = tq.Model(build_model([tensor("big", [1000, 1000], "INT8", data, scale=0.5)], [], [0], [0]))
    page = notebook.tensor_html(model.tensors[0])
    assert "The histogram counts a sample of 16,384 of 1,000,000 values." in check_page(page).text
    assert len(page) < 20_000


@pytest.mark.parametrize(
    "parameters",
    [
        dict(scale=0.0),
        dict(scale=float("nan"), min=float("nan"), max=float("inf")),
        dict(scale=3e38, zero_point=2**62),
        dict(scale=-0.5, zero_point=1),
        dict(scale=1e-45),
        dict(scale=1.0, zero_point=[]),
        dict(scale=[1.0, 2.0, 3.0], quantized_dimension=0),
        dict(scale=[1.0, 2.0], zero_point=[1], quantized_dimension=9),
        dict(min=-1.0, max=1.0),
        dict(min=[-1.0, -2.0], max=[1.0, 3.0]),
        dict(scale=1.0, min=5.0, max=-5.0),
    ],
)
@pytest.mark.parametrize("type", ["INT8", "FLOAT32"])
def test_invalid_quantization_is_drawn_or_left_out(parameters, type):
    data = np.array([1, 2], np.int8 if type == "INT8" else np.float32)
    pages(tq.Model(build_model([tensor("t", [2], type, data, **parameters)], [], [0], [0])))


@pytest.mark.parametrize("values", [[], [np.nan, np.inf], [3e38, -3e38], [1e-45, 0], [7, 7], [1e30, 1e30 * (1 + 1e-6)]])
def test_values_of_odd_ranges_are_drawn_or_left_out(values):
    data = np.array(values, np.float32)
    model = tq.Model(build_model([tensor("t", [len(values)], "FLOAT32", data)], [], [0], [0]))
    Checker(notebook.tensor_html(model.tensors[0]))


@pytest.mark.parametrize(
    "type", ["INT4", "UINT4", "INT2", "BFLOAT16", "FLOAT16", "BOOL", "INT64", "COMPLEX64", "UINT16"]
)
def test_every_type_has_a_page(type):
    model = tq.Model(build_model([tensor("t", [16], type, bytes(range(128)))], [], [0], [0]))
    text = Checker(notebook.tensor_html(model.tensors[0])).text
    assert type in text
    if type != "COMPLEX64":
        assert "all 16 values" in text


def test_operator_page():
    model = small_model()
    conv = check_page(notebook.operator_html(model.operators[0])).text
    for words in ("version 3", "Conv2DOptions", "stride_w 2", "stride_h 3", "padding SAME", "weights"):
        assert words in conv, words
    custom = check_page(notebook.operator_html(model.operators[1])).text
    for words in ("left out", "355 bytes", "0040 40 41 42 43", "@ABCDEFGHIJKLMNO", "… 355 bytes in all"):
        assert words in custom, words


def test_per_axis_table_is_capped_and_says_so():
    scales = np.linspace(0.1, 0.2, 3000, dtype=np.float32)
    model = tq.Model(build_model([tensor("t", [3000, 1], "INT8", scale=scales)], [], [0], [0]))
    page = notebook.quantization_html(model.tensors[0].quantization)
    assert "The first 256 of 3,000 are listed." in check_page(page).text
    assert "One channel in 24 is drawn." in page
    assert len(page) < 90_000


def wide_model(tensors):
    items = [
        tensor(f"block_{i}/some/quite/long/scope/name/<{i}>", [1, 16, 16, 32], "INT8", scale=0.0123 + i * 1e-6,
               zero_point=i % 256 - 128, min=-1.5, max=1.25)
        for i in range(tensors)
    ]  # fmt: skip
    return tq.Model(
        build_model(items, [operator("ADD", [i, i], [i + 1]) for i in range(tensors - 1)], [0], [tensors - 1])
    )


def test_large_models_are_bounded():
    model = wide_model(5000)
    # Seconds where milliseconds are expected: only a page that is not bounded takes so long.
    start = time.perf_counter()
    page = notebook.model_html(model)
    assert time.perf_counter() - start < 5
    assert len(page.encode()) < 1_500_000
    text = check_page(page).text
    assert "The first 1,000 of 5,000 are listed" in text
    assert "The first 1,000 of 4,999 are listed" in text
    assert len(page) > 0.9 * len(notebook.model_html(wide_model(7000)))


def test_many_subgraphs_share_the_rows():
    graphs = [subgraph([tensor("t", [1])] * 40, [], [0], [0], name=f"g{i}") for i in range(80)]
    page = notebook.model_html(tq.Model(build_model(subgraphs=graphs)))
    text = check_page(page).text
    assert "The first 50 of 80 subgraphs are listed." in text
    assert page.count("<b>Subgraph ") == 50
    # Inputs and outputs of 50 subgraphs, 1000 tensors, and the heads of four tables in each.
    assert page.count("<tr>") < 1000 + 50 * 2 + 50 * 4 + 10


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_formula():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("palette", [notebook_style.LIGHT, notebook_style.DARK], ids=["light", "dark"])
def test_contrast(palette):
    for surface in notebook_style.SURFACES:
        for role in notebook_style.TEXT:
            assert contrast(palette[role], palette[surface]) >= 4.5, (role, surface)
        for role in notebook_style.GRAPHIC:
            assert contrast(palette[role], palette[surface]) >= 3, (role, surface)


def test_style_stays_inside_its_pages():
    sheet = notebook_style.style_sheet().removeprefix("<style>").removesuffix("</style>")
    flat = re.sub(r"@media \([^)]*\) \{((?:[^{}]*\{[^{}]*\})*)\s*\}", r"\1", sheet)
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", flat)
    assert len(rules) > 30
    for selectors, _ in rules:
        for selector in selectors.split(","):
            assert ".tq-repr" in selector, selector
    assert set(re.findall(r"var\(--tq-([a-z]+)\)", sheet)) <= set(notebook_style.LIGHT)
    assert set(notebook_style.LIGHT) == set(notebook_style.DARK)
    # Where the host says light, light wins over the system's wish: its rules come later and are more specific.
    assert sheet.index("prefers-color-scheme: dark") < sheet.index('[data-jp-theme-light="true"]')
    for marker in ('[data-jp-theme-light="false"] .tq-repr', "body.vscode-dark .tq-repr"):
        assert marker in sheet


def test_classes_in_pages_have_rules():
    sheet = notebook_style.style_sheet()
    for page in pages(small_model()).values():
        for names in re.findall(r'class="([^"]*)"', page):
            for name in names.split():
                assert re.search(rf"\.{name}\b", sheet), name


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 1), (-1.6, 1.5), (1e-40, 2e-40), (-3e38, 3e38), (1e6, 1e6 + 1), (-7967.9, 7967.9), (0, 5e-324)],
)
def test_ticks(low, high):
    marks = notebook_svg.ticks(low, high)
    assert 1 <= len(marks) <= 6
    assert all(low - 1e-9 * abs(low) <= m <= high + 1e-9 * abs(high) for m in marks)
    assert marks == sorted(set(marks))
    assert len(marks) >= 3 or high == 5e-324


@pytest.mark.corpus
def test_corpus_pages(corpus):
    for path in corpus:
        try:
            model = tq.Model(path)
        except tq.ModelError:
            continue
        check = [notebook.model_html(model)]
        for graph in model.subgraphs:
            check += [notebook.operator_html(o) for o in graph.operators[:6]]
            for item in graph.tensors[:6]:
                check += [notebook.tensor_html(item), notebook.quantization_html(item.quantization)]
        for page in check:
            Checker(page)
            assert len(page) < 1_500_000, path
