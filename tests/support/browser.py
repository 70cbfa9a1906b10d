# SPDX-License-Identifier: Apache-2.0
"""Pages in headless Chromium, by Playwright: what their consoles say, what axe-core finds."""

import contextlib
import os
import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Widths of the pages that tests look at: a desktop's, a phone's.
SIZES = {"wide": (1400, 900), "narrow": (375, 740)}


@contextlib.contextmanager
def chromium():
    """A browser; skips the test without Playwright or Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if "LD_PRELOAD" in os.environ:
        pytest.skip("the preloaded library would be in the browser too")
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except playwright.Error:
            pytest.skip("no Chromium")
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def opened(browser, path, size="wide", scheme="light"):
    """A page that was opened from a file, and the list of what its console says."""
    width, height = SIZES[size]
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
    page, said = context.new_page(), []
    page.set_default_timeout(20_000)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if not request.url.startswith("file:") else None)
    try:
        page.goto(path.as_uri())
        yield page, said
    finally:
        context.close()


def faults(page):
    """The findings of axe-core, as lines."""
    axe = pytest.importorskip("axe_core_python.sync_playwright", reason="needs axe-core-python")
    found = axe.Axe().run(page)["violations"]
    return [f"{item['id']}: {node['html'][:160]}" for item in found for node in item["nodes"]]
