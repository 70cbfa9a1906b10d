# SPDX-License-Identifier: Apache-2.0
"""A document's examples as one program."""

from readme import blocks


def program(document):
    """The document as one Python program that prints the number of each block; its commands go through tq.cli."""
    lines = ["import shlex", "from tq.cli.arguments import main"]
    for number, (language, text) in enumerate(blocks(document)):
        if language == "python":
            lines.append(text)
        else:
            commands = [line for line in text.splitlines() if line.startswith("tq ")]
            lines += [f"assert main(shlex.split({line!r}, comments=True)[1:]) in (0, 1, None)" for line in commands]
        lines.append(f"print('block', {number})")
    return "\n".join(lines), number
