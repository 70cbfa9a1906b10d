# SPDX-License-Identifier: Apache-2.0
"""model.view() and `tq view`: the graph, its overlays, the page in a browser, exports."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import zoo
from browser import chromium, faults, opened
from commands import failed, fine
from interpreter_models import counter

import tq
from tq.cli import demo_float
from tq.inspection.graph import graph_of
from tq.pages import layout as layouts
from tq.view import dot, model_explorer

FLOAT = demo_float.float_model()
PICTURES = demo_float.pictures(6)[0]
INT8 = tq.quantize_model(FLOAT, "int8", calibration=list(PICTURES))


def chain(length):
    b = tq.ModelBuilder()
    last = b.input("x", [1, 8])
    first = last
    for number in range(length):
        y = b.tensor(f"layer{number}/out", [1, 8])
        inputs = [last, first] if number % 5 == 4 else [last]
        b.operator("ADD" if len(inputs) == 2 else "RELU", inputs, [y])
        last = y
    b.output(last)
    return b.to_bytes()


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    other = tmp_path_factory.mktemp("float") / ("name_" * 40 + ".tflite")  # longer than a phone's line
    other.write_bytes(FLOAT)
    return tq.Model(INT8).view(other, samples=list(PICTURES), profile=True)


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


# ---- the graph and its layout ----


def test_boxes_are_inputs_operators_and_outputs_with_types_and_quantization():
    graph = graph_of(tq.Model(INT8).subgraphs[0])
    names = [box.name for box in graph.boxes if box.kind == "operator"]
    assert names == [op.name for op in tq.Model(INT8).operators]
    box = graph.boxes[2]
    assert (box.kind, box.index, box.name) == ("operator", 1, "CONV_2D")
    tensor = tq.Model(INT8).operators[1].outputs[0]
    assert box.lines[0] == "INT8 [1, 16, 16, 16]"
    assert box.lines[1].startswith(f"{tensor.quantization.scale[0]:.6g} ×")
    assert box.lines[2] == "constant INT8 16×5×5×3, 16 scales"
    assert [(a.source, a.target) for a in graph.arrows] == [(k, k + 1) for k in range(len(graph.boxes) - 1)]


def test_operators_name_the_subgraphs_that_they_run():
    model = tq.Model(counter())
    box = next(box for box in graph_of(model.subgraphs[0]).boxes if box.name == "WHILE")
    assert box.calls == [1, 2] and "runs subgraph 1, 2" in box.lines


def test_a_list_of_subgraphs_that_the_file_does_not_store_is_no_subgraph():
    with tq.edit(counter()) as e:
        loop = next(op for op in e.operators if op.name == "WHILE")
        loop.store("builtin_options", None)
        loop.store("builtin_options_2", {"type": "StablehloCaseOptions"})
        model = e.to_model()
    box = next(box for box in graph_of(model.subgraphs[0]).boxes if box.name == "WHILE")
    assert box.calls == []


@pytest.mark.parametrize("layered", [False, True], ids=["column", "igraph"])
def test_boxes_never_overlap_and_arrows_lead_downwards(layered):
    if layered:
        pytest.importorskip("igraph")
    random = np.random.default_rng(0)
    sizes = [(200.0, float(40 + 10 * random.integers(4))) for _ in range(60)]
    arrows = [(int(random.integers(max(0, k - 9), k)), k) for k in range(1, 60) for _ in range(2)]
    made = layouts.layout(sizes, arrows, layered=None if layered else False)
    assert made.is_layered == layered
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(made.corners, sizes, strict=True)]
    for k, (left, top, right, bottom) in enumerate(boxes):
        assert left >= -0.01 and top >= 0 and right <= made.width + 0.01 and bottom <= made.height + 0.01
        for other in boxes[:k]:
            assert left >= other[2] or right <= other[0] or top >= other[3] or bottom <= other[1]
    assert all(boxes[target][1] >= boxes[source][3] for source, target in arrows)
    if layered:
        # The points where arrows bend lie in no box.
        points = [point for route in made.routes for point in route]
        assert points
        for x, y in points:
            assert not any(left < x < right and top < y < bottom for left, top, right, bottom in boxes)


@pytest.mark.parametrize("layered", [None, False])
def test_layouts_of_odd_graphs(layered):
    assert layouts.layout([], [], layered).height == 0
    made = layouts.layout([(10, 10)] * 3, [(2, 0), (1, 1), (0, 2), (0, 2)], layered)
    assert len(made.corners) == 3 and len(made.routes) == 4


def test_long_arrows_are_laid_out_in_bounded_time():
    count = 4000
    arrows = [(k, k + 1) for k in range(count - 1)] + [(k, count - 1 - k) for k in range(0, count // 2, 2)]
    assert len(layouts.layout([(10, 10)] * count, arrows).corners) == count


# ---- overlays ----


def test_overlays_have_the_figures_of_their_sources(view):
    found = {overlay.key: overlay for overlay in view.overlays}
    assert list(found) == ["time", "sqnr", "kind", "bytes", "macs", "backend", "findings"]
    model = view.model
    rows = model.summary().operators
    assert found["macs"].values == {(0, row.index): row.macs for row in rows if row.macs is not None}
    assert found["bytes"].values == {(0, row.index): row.constant_bytes for row in rows}
    backends = tq.Interpreter(model=model, numerics="xnnpack").backends()
    assert all(found["backend"].texts[0, row.index] == f"{row.numerics}: {row.rule}" for row in backends)
    report = tq.report(FLOAT, INT8, list(PICTURES))
    expected = {row.name: row.sqnr_db for row in report.activations}
    conv = model.operators[1]
    assert found["sqnr"].values[0, 1] == expected[conv.outputs[0].name]
    assert found["kind"].texts[0, 1] == "integer" and found["kind"].texts[0, 0] == "integer"
    assert found["time"].values.keys() == {(0, k) for k in range(len(model.operators))}


def test_findings_color_their_operators():
    with tq.edit(INT8) as e:
        e.tensors[-1].quantization = tq.Quantization(0.5, 3, dtype="int8")
        softmax = next(op for op in e.operators if op.name == "SOFTMAX")
        softmax.outputs[0].quantization = tq.Quantization(0.5, 3, dtype="int8")
        data = e.to_bytes()
    model = tq.Model(data)
    overlay = next(overlay for overlay in model.view().overlays if overlay.key == "findings")
    wrong = {(finding.subgraph, finding.operator) for finding in tq.check(model)}
    assert wrong and {place for place, text in overlay.texts.items() if text != "no finding"} == wrong


def test_sqnr_is_the_same_seen_from_both_models():
    one = tq.Model(INT8).view(FLOAT, samples=list(PICTURES))
    two = tq.Model(FLOAT).view(INT8, samples=list(PICTURES))
    assert one.report.sqnr_db == two.report.sqnr_db
    assert min(one.overlays[0].values.values()) == min(two.overlays[0].values.values())


def test_refusals():
    with pytest.raises(ValueError, match="no effect without a second model"):
        tq.Model(FLOAT).view(samples=list(PICTURES))
    with pytest.raises(TypeError):
        tq.Model(FLOAT).view(colour=1)
    strangers = r"the two models do not belong together: input 0 has the shape \[1, 8\] in one, \[1, 32, 32, 3\] in"
    with pytest.raises(ValueError, match=strangers):
        tq.Model(FLOAT).view(chain(3))


# ---- the page ----


class Texts(HTMLParser):
    """The texts of a page, without scripts and style sheets."""

    def __init__(self, page):
        super().__init__()
        self.stack, self.found = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.stack.append(tag)

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.stack):
            self.found.append(data)


def test_operators_stand_in_the_pages_text_by_their_schema_names(view):
    texts = "".join(Texts(view.to_html()).found)
    assert [
        name for name in re.findall(r"\d+ ([A-Z_0-9]+)\b", texts) if name in {op.name for op in view.model.operators}
    ]
    for op in view.model.operators:
        assert f"{op.index} {op.name}" in texts


def test_hostile_names():
    with tq.edit(FLOAT) as e:
        e.tensors["soft"].name = "</script><script>alert(1)</script>\u202e"
        data = e.to_bytes()
    text = tq.Model(data).view().to_html()
    assert "<script>alert(1)" not in text and "\u202e" not in text
    text.encode("utf-8")


def test_saves_whole_and_never_over_an_input(view, tmp_path):
    (tmp_path / "m.tflite").write_bytes(FLOAT)
    shown = tq.Model(tmp_path / "m.tflite").view(output=tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == shown.to_html()
    with pytest.raises(OSError, match="overwritten"):
        shown.save(tmp_path / "m.tflite")
    with pytest.raises(OSError, match="overwritten"):
        dot.save(shown, tmp_path / "m.tflite")


def test_notebooks_show_the_page_and_small_models_their_graph(view):
    assert view._repr_html_().startswith("<iframe")
    page = tq.Model(FLOAT)._repr_html_()
    assert 'class="tq-graph" role="img"' in page and "1 DEPTHWISE_CONV_2D" in page
    assert "tq-graph" not in tq.Model(chain(200))._repr_html_().split("</style>")[1]


def test_every_kind_of_model_has_a_page_and_exports():
    for name, data in zoo.all_models().items():
        view = tq.Model(data).view()
        view.to_html().encode("utf-8")
        dot.text(view).encode("utf-8")
        json.dumps(model_explorer.collection(view), allow_nan=False)
        assert len(view.graphs) == len(view.model.subgraphs), name


def test_options_may_be_called_like_facts():
    """StableHLO composites have a version of their own."""
    b = tq.ModelBuilder()
    x, y = b.input("x", [4]), b.tensor("y", [4])
    b.operator("STABLEHLO_COMPOSITE", [x], [y], name="f", version=7)
    b.output(y)
    (graph,) = model_explorer.collection(b.to_model().view())["graphs"]
    attributes = {item["key"]: item["value"] for node in graph["nodes"] for item in node.get("attrs", ())}
    assert (attributes["operator version"], attributes["version"]) == ("7", "0")


# ---- in a browser ----


@pytest.fixture(scope="module")
def page(view, tmp_path_factory):
    path = tmp_path_factory.mktemp("view") / "page.html"
    view.save(path)
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_the_page_opens_without_errors_and_axe_finds_nothing(browser, page, size, scheme):
    with opened(browser, page, size, scheme) as (shown, said):
        assert faults(shown) == []
        shown.fill("#search", "1")
        assert faults(shown) == []
        shown.keyboard.press("Enter")
        shown.wait_for_selector("#details table")
        assert faults(shown) == []
        assert said == []
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_button_chooses_the_colors(browser, page, scheme):
    with opened(browser, page, scheme=scheme) as (shown, said):
        other = {"light": "dark", "dark": "light"}[scheme]
        look = "getComputedStyle(document.body).backgroundColor"
        was, button = shown.evaluate(look), shown.locator("#theme")
        assert button.text_content() == f"{other.capitalize()} colors"
        button.click()
        now = shown.evaluate(look)
        assert now != was and button.text_content() == f"{scheme.capitalize()} colors"
        assert faults(shown) == [] and said == []
        button.click()
        assert shown.evaluate(look) == was


def test_the_graph_is_fitted_to_a_new_size_until_it_is_moved(browser, page):
    """In a notebook the frame gets its width late: half of the graph lay outside."""
    from_middle = "(graphs[0].boxes[0].x + graphs[0].boxes[0].w / 2 - left) * scale - stage.clientWidth / 2"
    frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"  # two are drawn
    with opened(browser, page, "narrow") as (shown, _):
        shown.set_viewport_size({"width": 1300, "height": 900})
        shown.evaluate(frames)
        assert abs(shown.evaluate(from_middle)) < 2
        shown.focus("#stage")
        shown.keyboard.press("+")
        moved = shown.evaluate("[scale, left, top_]")
        shown.set_viewport_size({"width": 1000, "height": 900})
        shown.evaluate(frames)
        assert shown.evaluate("[scale, left, top_]") == moved


def test_search_finds_names_types_and_indices(browser, page):
    with opened(browser, page) as (shown, said):
        shown.keyboard.press("Tab")
        assert shown.evaluate("document.activeElement.id") == "search"

        def results(text):
            shown.fill("#search", text)
            return shown.locator("#results button").all_inner_texts()

        assert results("softmax")[0].startswith("Op#6 SOFTMAX")
        assert any(line.endswith("energy/bias INT32 [8]") for line in results("int32"))
        assert [line.split()[0] for line in results("4")][:2] == ["Op#4", "T#4"]
        assert results("T#4")[0].startswith("T#4 ") and len(results("op4")) == 1
        assert results("no such name") == [] and "nothing found" in shown.inner_text("#found")
        results("energy/weights")
        shown.keyboard.press("Enter")
        shown.wait_for_selector("#details svg.tq-chart")
        assert "tq.Tensor" in shown.inner_text("#details") and "3 CONV_2D" in shown.inner_text("#details")
        assert said == []


def test_overlays_color_boxes_and_explain_themselves(browser, page, view):
    with opened(browser, page) as (shown, said):
        for overlay in view.overlays:
            shown.select_option("#overlay", overlay.key)
            legend = shown.inner_text("#legend")
            assert all(text in legend for _, text in overlay.legend) and overlay.note in legend
        assert said == []
        color = """(text) => { const box = graphs[0].at.get(1);
            const x = (box.graph.x + box.x + 5 - left) * scale, y = (TITLE + box.y + 12 - top_) * scale;
            paint(); const found = pen.getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data;
            return [...found].slice(0, 3); }"""  # which may ask for another kind of canvas on the console
        seen = set()
        for key in ("time", "kind"):
            shown.select_option("#overlay", key)
            shown.wait_for_timeout(50)
            seen.add(tuple(shown.evaluate(color)))
        assert len(seen) == 2 and (0xEF, 0x83, 0x54) in seen  # the convolution takes most of the time


def test_the_keyboard_goes_along_the_graph(browser, page):
    with opened(browser, page) as (shown, said):
        shown.focus("#stage")
        for key, expected in (("ArrowDown", "T#"), ("ArrowDown", "0 QUANTIZE"), ("ArrowDown", "1 CONV_2D"),
                              ("ArrowUp", "0 QUANTIZE")):  # fmt: skip
            shown.keyboard.press(key)
            shown.wait_for_function("(text) => document.querySelector('#details h2')?.textContent.startsWith(text)",
                                    arg=expected)  # fmt: skip
        assert shown.inner_text("[aria-current]").startswith("0")
        before = shown.evaluate("scale")
        shown.keyboard.press("+")
        assert shown.evaluate("scale") > before
        shown.keyboard.press("Enter")
        assert shown.evaluate("document.activeElement.id") == "panel"
        shown.click("#lists button >> nth=4")
        shown.wait_for_selector("#details h2:has-text('4 MEAN')")
        assert shown.evaluate("location.hash") == "#operator-0-4" and said == []


def test_subgraphs_open_and_close(browser, tmp_path):
    path = tmp_path / "page.html"
    tq.Model(counter()).view(output=path)
    with opened(browser, path) as (shown, said):
        assert shown.evaluate("graphs.map(isOpen)") == [True, False, False]
        narrow = shown.evaluate("place()")
        shown.click("details.graph >> nth=2 >> summary")
        assert shown.evaluate("graphs.map(isOpen)") == [True, False, True]
        assert shown.evaluate("place()") >= narrow
        shown.fill("#search", "while")
        shown.keyboard.press("Enter")
        shown.click("#details .chips >> text=subgraph 1")
        shown.wait_for_function("graphs.map(isOpen).every(Boolean)")
        assert said == []


def test_ten_thousand_operators_open(browser, tmp_path):
    path = tmp_path / "page.html"
    tq.Model(chain(10_000)).view(output=path)
    with opened(browser, path) as (shown, said):
        shown.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert shown.evaluate("graphs[0].boxes.length") == 10_002
        assert shown.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") > 0
        assert said == []


# ---- exports ----


def test_model_explorer_gets_a_graph_and_node_data(view, tmp_path):
    files = model_explorer.save(view, tmp_path / "graph.json")
    assert [name.rpartition("/")[2] for name in files] == ["graph.json", "graph.time.json", "graph.sqnr.json"]
    (graph,) = json.loads((tmp_path / "graph.json").read_text())["graphs"]
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert nodes["0/1"]["label"] == "CONV_2D"
    assert nodes["0/1"]["incomingEdges"] == [
        {"sourceNodeId": "0/0", "sourceNodeOutputId": "0", "targetNodeInputId": "0"}
    ]
    assert {edge["sourceNodeId"] for node in nodes.values() for edge in node["incomingEdges"]} <= nodes.keys()
    assert {"key": "tensor_name", "value": "edges"} in nodes["0/1"]["outputsMetadata"][0]["attrs"]
    for key in ("sqnr", "time"):
        data = json.loads((tmp_path / f"graph.{key}.json").read_text())
        overlay = next(overlay for overlay in view.overlays if overlay.key == key)
        assert data[graph["id"]]["results"]["0/1"] == {"value": overlay.values[0, 1]}


def test_model_explorers_subgraphs_are_named_by_their_operators():
    made = model_explorer.collection(tq.Model(counter()).view())
    ids = {graph["id"] for graph in made["graphs"]}
    called = [name for graph in made["graphs"] for node in graph["nodes"] for name in node.get("subgraphIds", ())]
    assert len(ids) == 3 and len(called) == 2 and set(called) <= ids


def test_dot_has_every_operator_and_tensor(view):
    text = dot.text(view)
    assert len(re.findall(r"^ +g0_\d+ \[", text, re.MULTILINE)) == len(view.model.operators) + 2
    assert text.count(" -> ") == len(view.model.operators) + 1
    clusters = dot.text(tq.Model(counter()).view())
    assert clusters.count("subgraph cluster_") == 3 and clusters.count("{") == clusters.count("}")


def test_dot_quotes_names():
    with tq.edit(FLOAT) as e:
        e.tensors["picture"].name = 'a "b" \\ \n'
        text = dot.text(tq.Model(e.to_bytes()).view())
    assert r'label="input a \"b\" \\ \\n\n' in text


# ---- the command ----


def test_command(run, tmp_path):
    (tmp_path / "f.tflite").write_bytes(FLOAT)
    (tmp_path / "q.tflite").write_bytes(INT8)
    np.savez(tmp_path / "s.npz", picture=PICTURES)
    text = fine(run("view", "q.tflite", "f.tflite", "--samples", "s.npz", "--profile", "-o", "page.html"))
    assert text.startswith("page.html: 8 operators, colored by Time, SQNR")
    assert "Over 6 samples" in (tmp_path / "page.html").read_text("utf-8")
    done = run("view", "q.tflite", "--export", "dot", "-o", "-")
    assert done.returncode == 0 and done.stdout.startswith("digraph") and "8 operators" in done.stderr
    text = fine(run("view", "q.tflite", "f.tflite", "--export", "model-explorer", "-o", "g.json"))
    assert text.startswith("g.json, g.sqnr.json: 8 operators")


def test_command_without_output_opens_a_browser(run, tmp_path):
    (tmp_path / "f.tflite").write_bytes(FLOAT)
    text = fine(run("view", "f.tflite", BROWSER="true", TMPDIR=str(tmp_path)))
    path, _, about = text.partition(": ")
    assert about.startswith("6 operators") and path.startswith(str(tmp_path))
    with open(path, encoding="utf-8") as page:
        assert page.read() == tq.Model(tmp_path / "f.tflite").view().to_html()


def test_command_refusals(run, tmp_path):
    (tmp_path / "f.tflite").write_bytes(FLOAT)
    (tmp_path / "g.sqnr.json").write_bytes(INT8)
    np.savez(tmp_path / "s.npz", picture=PICTURES)
    failed(run("view", "f.tflite", "-o", "f.tflite"), "overwritten")
    failed(run("view", "f.tflite", "--export", "dot"), "-o OUT")
    failed(run("view", "f.tflite", "--samples", "s.npz", "-o", "x.html"), "no effect without OTHER")
    failed(run("view", "f.tflite", "g.sqnr.json", "--export", "model-explorer", "-o", "g.json"), "overwritten")
    assert not (tmp_path / "g.json").exists() and (tmp_path / "g.sqnr.json").read_bytes() == INT8
    failed(run("view", "f.tflite", "g.sqnr.json", "--export", "model-explorer", "-o", "-"), "OUT must be a file")
