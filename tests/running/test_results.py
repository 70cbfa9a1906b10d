# SPDX-License-Identifier: Apache-2.0
"""Results as text, page, dict and DataFrame; each in the same way."""

import inspect
import json
import sys
import types
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from models import build_model, operator, tensor

import tq
from tq.inspection.plots import plot_tensor
from tq.pages.tables import Result, Table

DEMO = Path(tq.__file__).with_name("demo.tflite")
SAMPLES = np.random.default_rng(1).normal(size=(2, 1, 8, 8, 3)).astype(np.float32)
X = np.random.default_rng(1).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)


def run():
    made = tq.Interpreter(DEMO)
    made.allocate_tensors()
    made.set_tensor(0, X)
    made.invoke()
    return made


def ranked():
    w = np.linspace(-1, 1, 12, dtype=np.float32)
    tensors = [tensor("x", [1, 4]), tensor("w", [3, 4], data=w), tensor("h", [1, 3]), tensor("y", [1, 3])]
    operators = [operator("FULLY_CONNECTED", [0, 1, -1], [2]), operator("SOFTMAX", [2], [3], beta=1.0)]
    exact = build_model(tensors, operators, inputs=[0], outputs=[3])
    return tq.sensitivity(exact, np.eye(4, dtype=np.float32)[:, None], min_elements=0)


def changed():
    editor = tq.edit(DEMO)
    editor.tensors["image"].name = "picture"
    return tq.diff(DEMO, editor.to_bytes())


def misquantized():
    """The demonstration with another scale of a bias."""
    with tq.edit(DEMO) as e:
        bias = next(tensor for tensor in e.tensors if tensor.name.endswith("bias"))
        bias.quantization.scale = bias.quantization.scale * 2
        return e.to_bytes()


RESULTS = {
    "compare": (lambda: tq.compare(DEMO, tq.dequantize_model(DEMO), samples=SAMPLES), "Comparison"),
    "profile": (lambda: run().profile(3), "Profile"),
    "memory_plan": (lambda: run().memory_plan(), "MemoryPlan"),
    "backends": (lambda: run().backends(), "Backends"),
    "diff": (changed, "Differences"),
    "explain_requantize": (lambda: tq.explain_requantize(1000, 0.01, 3), "RequantizeExplanation"),
    "sensitivity": (ranked, "Sensitivity"),
    "check": (lambda: tq.check(tq.Model(misquantized())), "Findings"),
    "evaluate": (lambda: tq.evaluate(DEMO, [(X, 1)]), "Evaluation"),
}


@pytest.fixture(scope="module", params=RESULTS)
def result(request):
    make, name = RESULTS[request.param]
    found = make()
    assert type(found).__name__ == name
    return found


class Cells(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.rows = [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.rows += tag == "tr"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_short_texts_of_pages_do_not_wrap():
    """A notebook on a phone broke FLOAT32 and CONV_2D over two lines."""
    page = RESULTS["diff"][0]()._repr_html_()
    assert '<th scope="col" class="tq-fit">kind</th>' in page and '<th scope="col">place</th>' in page


def test_repr_is_short_and_str_has_all_rows(result):
    """The repr of a profile of a thousand operators had a thousand rows."""
    assert repr(result).startswith(f"<tq.{type(result).__name__}: ") and len(repr(result)) < 500
    assert len(str(result).splitlines()) >= len(result.table().rows)


def test_a_notebook_shows_every_row(result):
    page = Cells(result._repr_html_())
    assert page.open == [] and page.rows == 1 + len(result.table().rows)


def test_to_dict_holds_plain_values(result):
    found = result.to_dict()
    assert json.loads(json.dumps(found)) and found
    if "rows" in found:
        assert [list(row) for row in found["rows"]] == [list(found["rows"][0])] * len(result.table().rows)


def test_to_pandas_has_a_row_for_each_and_columns_by_name(result, monkeypatch):
    class DataFrame:
        def __init__(self, rows, columns):
            self.rows, self.columns = rows, columns

    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=DataFrame))
    frame = result.to_pandas()
    assert len(frame.rows) == len(result.table().rows) > 0
    assert not any(name.startswith("#") for name in frame.columns)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        result.to_pandas()


def test_a_page_bounds_its_rows_and_escapes_names():
    class Many(Result):
        def table(self):
            return Table(("#n", "name"), [(n, "<script>") for n in range(1000)])

        def summary(self):
            return ["<b>"]

    page = Many()._repr_html_()
    assert page.count("<tr>") == 201 and "The first 200 of 1,000 are listed" in page
    assert "<script>" not in page and "<b>&lt;" not in page and "&lt;b&gt;" in page


def test_lists_stay_lists():
    found = changed()
    assert isinstance(found, list) and found == list(found) and len(found) == 5
    assert tq.diff(DEMO, DEMO) == [] and str(tq.diff(DEMO, DEMO)) == "no differences"
    assert isinstance(run().backends(), list)


# ---- profile ----


def test_a_profile_tells_median_spread_preparation_and_memory():
    """Two runs said 2,053 us of an operator that takes 18: the mean, after one run."""
    found = run().profile(runs=9, warm_up=2)
    times = found.times
    assert (found.runs, found.warm_up) == (9, 2)
    assert 0 < times.least <= times.median <= times.most and times.least <= times.mean <= times.most
    assert times.first > 0 and times.deviation >= 0 and found.init > 0 and found.memory > 0
    for row in found.rows:
        assert row.least <= row.microseconds <= row.most and row.least <= row.mean <= row.most
    assert "median" in str(found) and "standard deviation" in str(found)


def test_an_outlier_leaves_the_median():
    from tq.running.profile import RunTimes

    assert RunTimes.of(5.0, [1.0, 1.0, 100.0]).median == 1.0


def test_warming_up_takes_at_least_a_run_and_is_bounded():
    assert 1 <= run().profile(1).warm_up <= 50
    assert run().profile(1, warm_up=0).times.first == 0


# ---- pictures ----


@pytest.mark.parametrize("of", ["profile", "memory_plan"])
def test_a_picture_without_matplotlib_is_told_in_a_line(of, monkeypatch):
    result = getattr(run(), of)()
    for name in ("matplotlib", "matplotlib.patches"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"^drawing needs matplotlib, .*: pip install matplotlib .it is in tq.plot"):
        result.plot()


def test_the_arenas_picture_names_tensors():
    pytest.importorskip("matplotlib").use("Agg")
    words = [text.get_text() for text in run().memory_plan().plot().texts]
    assert words == ["edges", "image"]


def test_help_of_plot_names_its_keywords():
    """It had `**kwargs`."""
    shown, taken = (list(inspect.signature(item).parameters) for item in (tq.Tensor.plot, plot_tensor))
    assert shown[1:] == taken[1:]
