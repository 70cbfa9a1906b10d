# SPDX-License-Identifier: Apache-2.0
"""Pages of the site that stand outside docs/: a hook of mkdocs.yml.

Documents link to one another as files of the repository, so that they read there too.  The site has these three under
names of its own.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES = {"benchmarks/README.md": "benchmarks.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    root = Path(config.docs_dir).parent
    for path, name in PAGES.items():
        files.append(File.generated(config, name, content=(root / path).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    here = page.file.src_uri
    above = "../" * here.count("/")
    for path, name in PAGES.items():
        markdown = markdown.replace(f"]({above}../{path}", f"]({above}{name}")
    if here in PAGES.values():  # written in the repository's root
        markdown = re.sub(r"\]\(docs/", "](", markdown)
    return markdown
