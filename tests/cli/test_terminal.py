# SPDX-License-Identifier: Apache-2.0
"""Tables fit the terminal; colors only where they are wanted."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from commands import DEMO, TQ, environment
from models import build_model, operator, tensor

from tq.cli import terminal
from tq.pages.tables import aligned

NAME = "a_long_name_of_a_tensor_as_converters_write_them/with/folders/and/a/number_1234567890"
ESCAPE = re.compile(r"\x1b\[\d+m")
UNDECIDED = {"NO_COLOR": "", "FORCE_COLOR": "", "TERM": "xterm"}


@pytest.fixture(scope="module")
def long_names(tmp_path_factory):
    path = tmp_path_factory.mktemp("long") / "f.tflite"
    tensors = [tensor(f"{NAME}{i}", [1, 16, 16, 100]) for i in range(3)]
    operators = [operator("RELU", [0], [1]), operator("ABS", [1], [2])]
    path.write_bytes(build_model(tensors=tensors, operators=operators, inputs=[0], outputs=[2]))
    return path


def on_terminal(columns, *words, **changes):
    """Standard output of a command on a terminal of so many columns."""
    ours, its = pty.openpty()
    try:
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        settings = environment(**UNDECIDED | changes)
        settings.pop("COLUMNS", None)
        with subprocess.Popen([*TQ, *map(str, words)], stdout=its, stderr=subprocess.PIPE, env=settings) as process:
            os.close(its)
            its, parts = -1, []
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # Linux: the other end is closed
                    break
                if not part:
                    break
                parts.append(part)
            assert process.wait(60) in (0, 1) and process.stderr.read() == b""
        return b"".join(parts).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        if its >= 0:
            os.close(its)


@pytest.mark.parametrize(
    "words",
    [["summary"], ["profile", "--runs", "1"], ["compare", "--numerics", "reference,xnnpack"], ["backends"]],
    ids=lambda words: words[0],
)
def test_tables_fit_the_terminal(words, long_names):
    wide, narrow = (ESCAPE.sub("", on_terminal(n, words[0], long_names, *words[1:])) for n in (200, 80))
    rows = [line for line in narrow.split("\n") if re.match(r" *\d", line) and "runs after" not in line]
    assert len(rows) >= 2 and all(len(row) <= 80 for row in rows)
    if words[0] in ("profile", "compare"):
        assert NAME[-4:] in narrow and "…" in narrow and NAME[:28] in wide


def test_a_terminal_has_colors_and_a_pipe_has_none():
    words = ("backends", DEMO)
    shown = on_terminal(100, *words)
    assert "\x1b[1m   # operator" in shown
    for changes in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"FORCE_COLOR": "0"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}):
        assert "\x1b" not in on_terminal(100, *words, **changes)
    piped = [
        subprocess.run(
            [*TQ, *map(str, words), *more], env=environment(**UNDECIDED | changes), capture_output=True
        ).stdout
        for more, changes in (([], {}), ([], {"FORCE_COLOR": "1"}), (["--json"], {"FORCE_COLOR": "1"}))
    ]
    assert b"\x1b" not in piped[0] and b"\x1b" not in piped[2]
    assert ESCAPE.sub("", piped[1].decode()).encode() == piped[0] != piped[1]
    assert ESCAPE.sub("", shown) == piped[0].decode()  # it fits


def test_messages_have_a_color_on_a_terminal_only():
    for changes, expected in (({}, b"tq: "), ({"FORCE_COLOR": "1"}, b"\x1b[31mtq:\x1b[0m ")):
        words = [sys.executable, "-m", "tq", "show", "missing"]
        found = subprocess.run(words, env=environment(**UNDECIDED | changes), capture_output=True)
        assert found.returncode == 2 and found.stderr.startswith(expected)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("level     rule  operator\nviolates  bias-scale  1 CONV_2D", "violates"),
        ("error tensor-index: place: text", "error"),
        ("warning: a note", "warning"),
        ("subgraph 0, tensor 4 'x': tensor: only in the first model", "only in the first model"),
        ("Subgraph#0 main(T#0) -> [T#1]\n  Op#0 ADD(T#0) -> [T#1]", "0 ADD"),
        ("SQNR dB  part        #  operator", "SQNR dB  part        #  operator"),
        ("      -1.5 ≤ 0.0125 * (q - 3) ≤ 1.5", "      -1.5 ≤ 0.0125 * (q - 3) ≤ 1.5"),
    ],
)
def test_colored_parts(text, part, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    colored = terminal.colored(text)
    assert re.search(r"\x1b\[\d+m" + re.escape(part) + r"\x1b\[0m", colored) and ESCAPE.sub("", colored) == text


def test_columns_of_numbers_stand_right_and_wide_ones_lose_their_middle():
    rows = [["1", "short", "x" * 30 + "end"], ["12", "y" * 40, "b"]]
    assert aligned(("#n", "one", "two"), rows)[1] == f" 1  short{' ' * 35}  {'x' * 30}end"
    narrow = aligned(("#n", "one", "two"), rows, width=40)
    assert max(map(len, narrow)) == 40 and narrow[1].endswith("xxend") and "…" in narrow[1] and narrow[2][:3] == "12 "
