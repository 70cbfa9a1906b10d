# SPDX-License-Identifier: Apache-2.0
"""Pages of the site that stand outside docs/: a hook of mkdocs.yml.

Documents link to one another as files of the repository, so that they read there too.  The site has three of them under
names of its own, and a page that the command line's parser makes.
"""

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tq.cli import main

COMMANDS = "reference/command-line.md"
PAGES = {"benchmarks/README.md": "benchmarks.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}


def help_of(*command: str) -> str:
    """`tq COMMAND --help`."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([*command, "--help"])
    return said.getvalue()


def command_line() -> str:
    os.environ["COLUMNS"] = "100"
    text = help_of()
    parts = [
        "# Command line",
        "[The guide](../guide.md#on-the-command-line) has an example of each.",
        f"```text\n{text}```",
    ]
    for name in re.findall(r"^    ([a-z]+)\b", text, re.MULTILINE):
        parts.append(f"## tq {name}\n\n```text\n{help_of(name)}```")
    return "\n\n".join(parts) + "\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    root = Path(config.docs_dir).parent
    for path, name in PAGES.items():
        files.append(File.generated(config, name, content=(root / path).read_text("utf-8")))
    files.append(File.generated(config, COMMANDS, content=command_line()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    here = page.file.src_uri
    above = "../" * here.count("/")
    for path, name in PAGES.items():
        markdown = markdown.replace(f"]({above}../{path}", f"]({above}{name}")
    if here in PAGES.values():  # written in the repository's root
        markdown = re.sub(r"\]\(docs/", "](", markdown)
    return markdown
