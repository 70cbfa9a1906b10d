# SPDX-License-Identifier: Apache-2.0
"""The palette and the style sheet of the notebook pages: one light and one dark set of CSS custom properties.

The dark set applies where the reader's system asks for it, and where the host page says so by a marker of its own
(JupyterLab, VS Code, Colab, Sphinx themes).  A host's marker wins over the system's wish, because the host paints the
page around the output.  Every rule starts at `.tq-repr`, so that an output changes nothing outside itself, and the
same sheet twice in a page changes nothing at all.
"""

# Role -> color.  TEXT roles color text on every SURFACE; GRAPHIC roles color bars and lines.
LIGHT = {
    "bg": "#ffffff",
    "panel": "#f5f7f9",
    "line": "#d5dbe1",
    "text": "#1c2127",
    "muted": "#57606a",
    "accent": "#0a52a8",
    "good": "#17682c",
    "warn": "#8a4600",
    "bad": "#b3261e",
    "values": "#6e7f93",
    "stored": "#c2590a",
    "range": "#2f7fd1",
}
DARK = {
    "bg": "#15181c",
    "panel": "#1e2328",
    "line": "#3a424b",
    "text": "#e4e9ee",
    "muted": "#a3adb8",
    "accent": "#7db8ff",
    "good": "#6fd08a",
    "warn": "#f2b565",
    "bad": "#ff9a90",
    "values": "#8b9bb0",
    "stored": "#f08c3a",
    "range": "#4a9bf0",
}
SURFACES = ("bg", "panel")
TEXT = ("text", "muted", "accent", "good", "warn", "bad")
GRAPHIC = ("values", "stored", "range")

_LIGHT_HOSTS = (
    '[data-jp-theme-light="true"]',
    'html[theme="light"]',
    '[data-theme="light"]',
    "body.vscode-light",
    "body.vscode-high-contrast-light",
)
_DARK_HOSTS = (
    '[data-jp-theme-light="false"]',
    'html[theme="dark"]',
    '[data-theme="dark"]',
    "body.vscode-dark",
    "body.vscode-high-contrast:not(.vscode-high-contrast-light)",
)

# The class is doubled where a host's own table rules (.jp-RenderedHTMLCommon tbody tr:nth-child(odd) and the like)
# would otherwise be as specific as ours.
_RULES = """
.tq-repr { box-sizing: border-box; max-width: 70rem; margin: .25rem 0; padding: .7rem .9rem; border-radius: .5rem;
  border: 1px solid var(--tq-line); background: var(--tq-bg); color: var(--tq-text); text-align: left;
  font: 13px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.tq-repr * { box-sizing: border-box; }
.tq-repr .tq-head { display: flex; flex-wrap: wrap; align-items: center; gap: .3rem .5rem; margin: 0 0 .45rem; }
.tq-repr .tq-kind { color: var(--tq-muted); }
.tq-repr .tq-name { font-weight: 600; font-size: 14.5px; overflow-wrap: anywhere; }
.tq-repr .tq-chip { padding: 0 .5rem; border: 1px solid var(--tq-line); border-radius: 1rem; font-size: 12px;
  background: var(--tq-panel); white-space: nowrap; }
.tq-repr .tq-good { color: var(--tq-good); }
.tq-repr .tq-warn { color: var(--tq-warn); }
.tq-repr .tq-bad { color: var(--tq-bad); }
.tq-repr .tq-muted { color: var(--tq-muted); }
.tq-repr p { margin: .3rem 0; overflow-wrap: anywhere; }
.tq-repr code, .tq-repr .tq-mono { font: 12px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono",
  monospace; color: inherit; background: none; padding: 0; border: 0; }
.tq-repr details { margin: .3rem 0 0; border-top: 1px solid var(--tq-line); padding: .3rem 0 0; }
.tq-repr details details { margin-left: 1rem; }
.tq-repr summary { cursor: pointer; display: list-item; padding: .1rem 0; border-radius: .25rem; }
.tq-repr summary:hover { background: var(--tq-panel); }
.tq-repr summary:focus-visible { outline: 2px solid var(--tq-accent); outline-offset: 1px; }
.tq-repr summary b { font-weight: 600; color: var(--tq-accent); }
.tq-repr .tq-scroll { overflow: auto; max-height: 28rem; margin: .3rem 0 .2rem; border: 1px solid var(--tq-line);
  border-radius: .35rem; }
.tq-repr.tq-repr table.tq-table { border-collapse: collapse; width: 100%; margin: 0; border: 0; font-size: 12.5px;
  table-layout: auto; color: inherit; background: none; }
.tq-repr.tq-repr table.tq-facts { width: auto; }
.tq-repr.tq-repr table.tq-facts td { max-width: none; }
.tq-repr.tq-repr .tq-table tr { background: none; border: 0; }
.tq-repr.tq-repr .tq-table tbody tr:hover { background: var(--tq-panel); }
.tq-repr.tq-repr .tq-table th, .tq-repr.tq-repr .tq-table td { padding: .18rem .6rem; text-align: left; border: 0;
  vertical-align: top; max-width: 34rem; white-space: normal; overflow-wrap: anywhere; color: inherit; }
.tq-repr.tq-repr .tq-table thead th { position: sticky; top: 0; background: var(--tq-panel); font-weight: 600;
  color: var(--tq-muted); white-space: nowrap; border-bottom: 1px solid var(--tq-line); }
.tq-repr.tq-repr .tq-table tbody tr + tr > * { border-top: 1px solid var(--tq-panel); }
.tq-repr.tq-repr .tq-table tbody th { font-weight: 400; color: var(--tq-muted); white-space: nowrap; }
.tq-repr.tq-repr .tq-table .tq-num { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.tq-repr.tq-repr .tq-table .tq-long { min-width: 8.5rem; }
.tq-repr .tq-fit, .tq-repr.tq-repr .tq-table .tq-fit { white-space: nowrap; }
.tq-repr pre.tq-pre { margin: .3rem 0 .2rem; padding: .45rem .6rem; overflow: auto; max-height: 20rem; border: 0;
  border-radius: .35rem; background: var(--tq-panel); color: var(--tq-text); white-space: pre; tab-size: 8;
  font: 12px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.tq-repr svg.tq-chart { display: block; width: 100%; max-width: 640px; height: auto; margin: .35rem 0;
  overflow: hidden; }
.tq-repr svg.tq-spark { display: inline-block; vertical-align: middle; margin: 0 .4rem; }
.tq-repr svg text { fill: var(--tq-muted); font: 11px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
.tq-repr svg .tq-label { fill: var(--tq-text); font-weight: 600; }
.tq-repr svg .tq-grid { stroke: var(--tq-line); fill: none; }
.tq-repr svg .tq-zero { stroke: var(--tq-muted); fill: none; stroke-dasharray: 3 3; }
.tq-repr svg .tq-values { fill: var(--tq-values); }
.tq-repr svg .tq-stored { fill: var(--tq-stored); }
.tq-repr svg .tq-range { fill: var(--tq-range); }
.tq-repr svg .tq-line-values { stroke: var(--tq-values); fill: none; }
.tq-repr svg .tq-line-stored { stroke: var(--tq-stored); fill: none; }
.tq-repr svg .tq-line-range { stroke: var(--tq-range); fill: none; }
.tq-repr svg.tq-graph { display: block; max-width: none; }
.tq-repr svg .tq-box { fill: var(--tq-panel); stroke: var(--tq-muted); }
.tq-repr svg .tq-end { fill: var(--tq-bg); stroke: var(--tq-accent); }
.tq-repr svg .tq-line { fill: var(--tq-text); }
.tq-repr svg .tq-arrow { fill: none; stroke: var(--tq-values); }
"""


def _theme(palette: dict[str, str], scheme: str) -> str:
    colors = " ".join(f"--tq-{role}: {color};" for role, color in palette.items())
    return f"{{ color-scheme: {scheme}; {colors} }}"


def _under(hosts: tuple[str, ...]) -> str:
    return ", ".join(f"{host} .tq-repr" for host in hosts)


def style_sheet() -> str:
    """The `<style>` element that every page opens with."""
    light, dark = _theme(LIGHT, "light"), _theme(DARK, "dark")
    return (
        f"<style>\n.tq-repr {light}\n@media (prefers-color-scheme: dark) {{ .tq-repr {dark} }}\n"
        f"{_under(_LIGHT_HOSTS)} {light}\n{_under(_DARK_HOSTS)} {dark}\n{_RULES.strip()}\n</style>"
    )
