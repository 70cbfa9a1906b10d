# SPDX-License-Identifier: Apache-2.0
"""`tq diff --html`: its figures, and its page in a browser."""

import json
import re

import numpy as np
import pytest
from browser import chromium, faults, opened
from commands import failed, fine

import tq
from tq.cli import demo_float
from tq.view.differences import document

FLOAT = demo_float.float_model()
INT8 = tq.quantize_model(FLOAT, "int8", calibration=list(demo_float.pictures(4)[0]))


def changed():
    """The float model with half the weights of a convolution."""
    with tq.edit(FLOAT) as e:
        e.tensors["edges/weights"].data = e.tensors["edges/weights"].data * np.float32(0.5)
        return e.to_bytes()


def page_of(a, b, names=("one.tflite", "two.tflite"), **arguments):
    a, b = tq.Model(a), tq.Model(b)
    return document(a, b, names, tq.diff(a, b), **arguments)


def test_equal_models():
    page = page_of(FLOAT, FLOAT)
    assert "The models are equal." in page and "<svg" not in page


def test_changed_weights_have_their_figures_and_a_histogram():
    page = page_of(FLOAT, changed())
    weights = tq.Model(FLOAT).tensors["edges/weights"].data
    assert "6.0 dB" in page  # 10 log10(1 / 0.5^2)
    assert f">{np.count_nonzero(weights):,}</td>" in page
    assert f">{np.abs(weights).max() / 2:.4g}</td>" in page
    assert page.count("<article") == 1 and page.count('svg class="tq-chart"') == 2
    assert len(re.findall(r"tq-box b-warn", page)) == 2  # the convolution, in both graphs


def test_operators_of_one_model_alone_are_marked():
    page = page_of(FLOAT, INT8)
    one, two = page.split('class="pair"')[1].split("</svg>")[:2]
    assert "b-bad" not in one and len(re.findall("tq-box b-bad", two)) == 2  # QUANTIZE and DEQUANTIZE


def test_rows_have_a_limit():
    page = page_of(FLOAT, INT8, limit=3)
    assert page.split('id="differences"')[1].split("</section>")[0].count("<tr>") == 4
    assert "The first 3 of" in page and "The first" not in page_of(FLOAT, INT8, limit=0)


def test_hostile_names():
    with tq.edit(FLOAT) as e:
        e.tensors["edges/weights"].name = "</style><script>alert(1)</script>\u202e"
        one = e.to_bytes()
    page = page_of(one, FLOAT)
    assert "<script>alert(1)" not in page and "\u202e" not in page


@pytest.mark.parametrize(("size", "scheme"), [("wide", "dark"), ("narrow", "light")])
def test_in_a_browser(tmp_path, size, scheme):
    path = tmp_path / "page.html"
    path.write_text(page_of(FLOAT, INT8, ("a" * 200, "b" * 200)), "utf-8")  # names that no line of a phone holds
    with chromium() as browser, opened(browser, path, size, scheme) as (shown, said):
        assert faults(shown) == [] and said == []
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_command(run, tmp_path):
    (tmp_path / "a.tflite").write_bytes(FLOAT)
    (tmp_path / "b.tflite").write_bytes(INT8)
    count = len(tq.diff(FLOAT, INT8))
    assert fine(run("diff", "a.tflite", "b.tflite", "--html", "-o", "d.html"), 1) == f"d.html: {count} differences\n"
    assert "a.tflite" in (tmp_path / "d.html").read_text("utf-8")
    assert fine(run("diff", "a.tflite", "a.tflite", "--html", "-o", "d.html"))
    failed(run("diff", "a.tflite", "b.tflite", "--html"), "-o OUT")
    failed(run("diff", "a.tflite", "b.tflite", "-o", "d.html"), "--html")
    found = fine(run("diff", "a.tflite", "b.tflite", "--html", "--json", "-o", "d.html"), 1)
    assert json.loads(found) == {"output": "d.html", "differences": count}
    failed(run("diff", "a.tflite", "b.tflite", "--html", "-o", "b.tflite"), "overwritten")
