# SPDX-License-Identifier: Apache-2.0
"""tq.report: what it measures, by hand-made sums; its page, in a browser; tq report; tq demo --write."""

import contextlib
import html
import http.server
import re
import shutil
import subprocess
import threading
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from browser import chromium, faults, opened
from commands import failed, fine

import tq
from tq.accuracy.matching import match
from tq.cli import demo_float
from tq.reports import svg as report_svg
from tq.reports.report import _folded

FLOAT = demo_float.float_model()
PICTURES = demo_float.pictures(12)[0]
INT8 = tq.quantize_model(FLOAT, "int8", calibration=list(PICTURES))
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def report():
    return tq.report(FLOAT, INT8, {"picture": PICTURES})


# ---- which tensors belong together ----


def test_matches_through_quantize_and_dequantize():
    found = match(tq.Model(FLOAT), tq.Model(INT8))
    assert [(a.name, b.name) for a, b in found.operators] == [
        (name, name) for name in ("CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "MEAN", "FULLY_CONNECTED", "SOFTMAX")
    ]
    names = [(a.name, b.name) for a, b in found.activations]
    assert names[0] == ("picture", "picture_int8") and names[-1] == ("direction", "direction_int8")
    assert [a.name for a, _ in found.activations][1:-1] == ["edges", "soft", "energy", "mean", "scores"]
    constants = {a.name: b.type.name for a, b in found.constants}
    assert constants["edges/weights"] == "INT8" and constants["scores/bias"] == "INT32"


def test_matches_weights_behind_dequantize():
    data = tq.quantize_model(FLOAT, "weight_only_int8", min_elements=0)
    found = match(tq.Model(FLOAT), tq.Model(data))
    assert {b.type.name for a, b in found.constants if a.name.endswith("weights")} == {"INT8"}


def test_matches_what_is_left_where_operators_differ():
    b = tq.ModelBuilder()
    x, y, z = b.input("x", [4]), b.tensor("y", [4]), b.tensor("z", [4])
    b.operator("ABS", [x], [y])
    b.operator("RELU", [y], [z])
    b.output(z)
    short = tq.ModelBuilder()
    x, z = short.input("x", [4]), short.tensor("z", [4])
    short.operator("RELU", [x], [z])
    short.output(z)
    found = match(b.to_model(), short.to_model())
    assert [(a.name, b.name) for a, b in found.operators] == [("RELU", "RELU")]
    assert ("z", "z") in [(a.name, b.name) for a, b in found.activations]


# ---- what is measured ----


def test_errors_are_those_of_the_runs(report):
    interpreters = [
        tq.Interpreter(model_content=m, experimental_preserve_all_tensors=True, numerics="reference")
        for m in (FLOAT, INT8)
    ]
    row = next(row for row in report.activations if row.name == "soft")
    a, b, codes = [], [], []
    for picture in PICTURES:
        for interpreter in interpreters:
            interpreter.allocate_tensors()
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], picture)
            interpreter.invoke()
        a.append(interpreters[0].get_tensor(row.index).astype(np.float64))
        codes.append(interpreters[1].get_tensor(row.index_b))
        b.append((codes[-1].astype(np.float64) - row.zero_point) * row.scale)
    a, b, codes = np.array(a), np.array(b), np.array(codes)
    assert row.sqnr_db == pytest.approx(10 * np.log10((a**2).sum() / ((a - b) ** 2).sum()), abs=1e-4)
    assert row.max_error == pytest.approx(np.abs(a - b).max(), rel=1e-5)
    assert row.mean_error == pytest.approx((b - a).mean(), rel=1e-3)
    assert (row.low, row.high) == (a.min(), a.max())
    assert row.at_high == (codes == 127).mean() and row.at_low == (codes == -128).mean()
    top = (127 - row.zero_point) * row.scale
    assert row.clipped == (a > top + row.scale / 2).mean()
    assert row.values[0].sum() == row.codes[0].sum() == row.errors[0].sum() == a.size
    assert report.samples == len(PICTURES) and report.arena[0] > report.arena[1] > 0


def test_clipping_is_counted():
    data = tq.quantize_model(FLOAT, "int8", calibration=[PICTURES[0] / 2])
    row = next(row for row in tq.report(FLOAT, data, PICTURES).activations if row.name == "edges")
    interpreter = tq.Interpreter(model_content=FLOAT, experimental_preserve_all_tensors=True, numerics="reference")
    interpreter.allocate_tensors()
    values = []
    for picture in PICTURES:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], picture)
        interpreter.invoke()
        values.append(interpreter.get_tensor(row.index).astype(np.float64))
    expected = (np.array(values) > row.range_high + row.scale / 2).mean()
    assert row.clipped == expected > 0.01 and row.range_high < row.high


def test_outputs(report):
    (row,) = report.outputs
    assert row.sqnr_db == report.sqnr_db > 25 and row.same_top == 1 and 0.99 < row.cosine < 1
    assert report.worst[0].sqnr_db == min(row.sqnr_db for row in report.activations)
    assert "outputs" in str(report)


def test_a_model_beside_itself_has_no_error():
    same = tq.report(FLOAT, FLOAT, PICTURES[:1])
    assert same.sqnr_db == np.inf and not same.constants and "exact" in same.to_html()


def test_weights(report):
    row = next(row for row in report.constants if row.name == "edges/weights")
    a, b = tq.Model(FLOAT).tensors["edges/weights"].data, tq.Model(INT8).tensors["edges/weights"].dequantized()
    noise, signal = ((a - b) ** 2).sum((1, 2, 3)), (a**2).sum((1, 2, 3))
    assert row.worst_channel == np.argmax(noise / signal)
    assert row.worst_channel_db == pytest.approx(10 * np.log10((signal / noise).min()), abs=1e-3)
    assert row.scales == 16 and row.scale is None


def test_integer_inputs_get_quantized_values():
    data = tq.quantize_model(FLOAT, "int8", calibration=list(PICTURES), io="uint8")
    assert tq.report(FLOAT, data, PICTURES).sqnr_db > 25


@pytest.mark.parametrize("recipe", ["dynamic_int8", "float16", "weight_only_int4"])
def test_other_recipes(recipe):
    made = tq.report(FLOAT, tq.quantize_model(FLOAT, recipe, min_elements=0), PICTURES[:2])
    assert made.sqnr_db > 10 and len(made.activations) == 7
    assert made.to_html().count("<article") >= 7


def test_refusals():
    with pytest.raises(ValueError, match="no samples"):
        tq.report(FLOAT, INT8, [])
    with pytest.raises(ValueError, match=r"'picture' has the shape \[1, 32, 32, 3\]"):
        tq.report(FLOAT, INT8, [np.zeros((1, 8, 8, 3), np.float32)])
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 32, 32, 3]), b.tensor("y", [1, 32, 32, 3])
    b.operator("EXP", [x], [y])
    b.output(y)
    with pytest.raises(ValueError, match="shape"):
        tq.report(FLOAT, b.to_bytes(), PICTURES)


def test_folding_keeps_every_count():
    counts = np.zeros(1024, np.int64)
    counts[[3, 500, 1023]] = [5, 7, 9]
    folded, edges = _folded(counts, np.arange(1025.0))
    assert folded.sum() == 21 and len(folded) <= 64 and len(edges) == len(folded) + 1
    assert edges[0] <= 3 and edges[-1] == 1024


def test_pictures_of_nothing():
    assert report_svg.histograms(None, None, [("x", float("nan"), 1.0, "values")]) == ""
    assert report_svg.along([]) == "" and report_svg.errors(([0], [0.0, 0.0])) == ""
    assert "NaN" not in report_svg.along([("x", float("nan"), ""), ("y", float("inf"), ""), ("z", -float("inf"), "")])


# ---- the page ----


class Page(HTMLParser):
    """Well-formedness, and everything that could be fetched."""

    VOID = ("meta", "link", "br", "img", "input")

    def __init__(self, page):
        super().__init__()
        self.open, self.fetched, self.ids, self.links = [], [], set(), set()
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "data", "action") and not value.startswith(("#", "data:,")):
                self.fetched.append(value)
            if name == "href" and value.startswith("#"):
                self.links.add(value[1:])
            if name == "id":
                assert value not in self.ids
                self.ids.add(value)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_well_formed_and_fetches_nothing(report):
    text = report.to_html()
    page = Page(text)
    assert not page.fetched and page.links <= page.ids
    assert not re.search(r"https?://|@import|url\(", text)
    for words in ("soft", "energy/weights", "DEPTHWISE_CONV_2D", "SQNR", "6 of 6"):
        assert words in text
    assert len(text) < 200_000


def test_a_notebook_shows_the_page(report):
    shown = re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts"[^>]*></iframe>', report._repr_html_())
    assert html.unescape(shown[1]) == report.to_html()
    assert repr(report).startswith("<tq report: 7 tensors") and len(repr(report)) < 100
    assert len(repr(tq.sensitivity(FLOAT, PICTURES[:1]))) < 200


def test_hostile_names():
    with tq.edit(FLOAT) as e:
        e.tensors["soft"].name = "</style><script>alert(1)</script>\u202e"
        data = e.to_bytes()
    text = tq.report(data, tq.quantize_model(data, "int8", calibration=list(PICTURES[:2])), PICTURES[:1]).to_html()
    Page(text)
    assert "alert(1)</script>" not in text and "\u202e" not in text


def test_saves_whole_or_not_at_all(report, tmp_path):
    report.save(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text("utf-8") == report.to_html()
    with pytest.raises(OSError):
        report.save(tmp_path / "no" / "r.html")


@contextlib.contextmanager
def served(page):
    """A page on a local server: its address, and the paths that were asked for."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.encode() if self.path == "/" else b"")

        def log_message(self, *_arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def browse(page, folder):
    """The document after its scripts ran, what the console said, what was asked for."""
    if CHROMIUM is None:
        pytest.skip("no chromium")
    with served(page) as (address, asked):
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                   "--no-first-run", f"--user-data-dir={folder}", "--enable-logging=stderr", "--dump-dom"]  # fmt: skip
        done = subprocess.run([*command, address], capture_output=True, encoding="utf-8", timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line], asked


CLICK = '<script>document.querySelectorAll("#{0} ~ div table.sorts th, h2#{0} ~ * th")[{1}].click()</script></body>'


def test_in_a_browser(report, tmp_path):
    page = report.to_html()
    document, console, asked = browse(page.replace("</body>", CLICK.format("activations", 3)), tmp_path)
    assert console == [] and asked == ["/"]
    table = document[document.index('id="activations"') : document.index('id="constants"')]
    names = re.findall(r'href="#a\d+">([^<]*)', table)
    assert names == sorted(row.name for row in report.activations)
    assert 'aria-sort="ascending"' in table and "energy/weights" in document


def test_the_browser_would_tell(tmp_path):
    """The test above can fail: a script's error and a request that the policy stops are on the console."""
    _document, console, _asked = browse("<body><script>missing()</script>", tmp_path / "a")
    assert console and "missing" in console[0]
    page = tq.report(FLOAT, FLOAT, PICTURES[:1]).to_html().replace("</main>", '<img src="/x.png"></main>')
    _document, console, asked = browse(page, tmp_path / "b")
    assert console and asked == ["/"]


@pytest.fixture(scope="module")
def poor():
    """A report of a model that was calibrated on a part of its range."""
    data = tq.quantize_model(FLOAT, "int8", calibration=[PICTURES[0] / 8])
    return tq.report(FLOAT, data, PICTURES, advise=True)


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_axe_finds_nothing(browser, poor, tmp_path, size, scheme):
    poor.save(tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html", size, scheme) as (shown, said):
        assert faults(shown) == [] and said == []
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
        # Labels of charts are legible, and what does not fit can be scrolled to, also by the keyboard.
        heights = shown.evaluate(
            "[...document.querySelectorAll('svg text')].map((t) => t.getBoundingClientRect().height)"
        )
        assert min(height for height in heights if height) >= 9
        scrolling = "[...document.querySelectorAll('.scroll')].every((box) => box.tabIndex === 0 && box.ariaLabel)"
        assert shown.evaluate(scrolling)


def test_the_filter_hides_rows(browser, report, tmp_path):
    report.save(tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as (shown, said):
        shown.get_by_label("Filter tables").fill("SOFTMAX")
        rows = shown.evaluate(
            "[...document.querySelectorAll('table.sorts tbody tr')].map((r) => [r.innerText, r.hidden])"
        )
        assert all(hidden != ("softmax" in text.lower()) for text, hidden in rows) and said == []
        assert shown.inner_text("#left") == f"{sum(not hidden for _, hidden in rows)} rows"


def test_the_chart_and_the_graph_lead_to_pictures(browser, report, tmp_path):
    report.save(tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as (shown, _said):
        assert shown.locator("svg[role=img] a").count() == 0
        assert shown.locator("svg.along[role=group] a").count() == len(report.activations)
        shown.locator("svg.tq-graph a").filter(has_text="DEPTHWISE_CONV_2D").focus()
        shown.keyboard.press("Enter")
        row = next(row for row in report.activations if row.name == "soft")
        assert shown.evaluate("location.hash") == f"#a{row.index}"


def test_advice_says_what_options_gain(poor, report):
    assert report.advice == [] and '<h2 id="advice">' not in report.to_html()
    found = {tried.option.text: tried for tried in poor.advice}
    assert found["--recipe int16x8"].sqnr_db > found["--recipe int8"].sqnr_db > poor.sqnr_db + 10
    data = tq.quantize_model(FLOAT, "int8", calibration=list(PICTURES))
    assert found["--recipe int8"].sqnr_db == pytest.approx(tq.report(FLOAT, data, PICTURES).sqnr_db)
    assert found["--recipe int8"].nbytes == len(data)
    page = poor.to_html()
    assert f"+{found['--recipe int8'].sqnr_db - poor.sqnr_db:.1f}" in page
    unasked = tq.report(FLOAT, tq.quantize_model(FLOAT, "int8", calibration=[PICTURES[0] / 8]), PICTURES).to_html()
    assert "tq quantize --recipe int16x8" in unasked and "tq report --advise" in unasked


# ---- the command line ----


def test_the_commands_of_the_readme_make_both_pages(run, tmp_path):
    """The commands that the README gives a newcomer."""
    text = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    block = re.search(r"## Thirty seconds\n.*?```sh\n(.*?)```", text, re.DOTALL)[1]
    commands = [line.split("#")[0].split() for line in block.splitlines()]
    assert all(command[0] == "tq" for command in commands)
    said = {command[1]: fine(run(*command[1:])) for command in commands}
    assert list(said) == ["demo", "quantize", "problems", "check", "view", "report", "profile"]
    assert said["demo"].split() == ["./demo_float.tflite", "./demo_samples.npz"]
    assert "32 samples" in said["report"] and said["report"].startswith("report.html")
    Page((tmp_path / "report.html").read_text("utf-8"))
    assert (tmp_path / "graph.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_command_refusals(run, tmp_path):
    run("demo", "--write", ".")
    failed(run("demo", "--write", "nowhere"), "nowhere")
    arguments = ["report", "demo_float.tflite", "demo_float.tflite", "-o", "r.html", "--samples"]
    failed(run(*arguments, "none.npz"), "none.npz")
    np.savez(tmp_path / "wrong.npz", other=np.zeros((1, 32, 32, 3), np.float32))
    failed(run(*arguments, "wrong.npz"), "'other'", "picture")
    arguments[4] = "no/r.html"
    for option in ("--samples", "--inputs"):  # its name, and its first one
        failed(run(*arguments[:-1], option, "demo_samples.npz"), "no/r.html")
    assert not (tmp_path / "r.html").exists()


def test_the_demonstration_model_tells_directions():
    pictures, labels = demo_float.pictures(60, seed=1)
    interpreter = tq.Interpreter(model_content=FLOAT)
    interpreter.allocate_tensors()
    found = []
    for picture in pictures:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], picture)
        interpreter.invoke()
        found.append(np.argmax(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])))
    assert np.array_equal(found, labels)
