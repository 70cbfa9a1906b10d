# SPDX-License-Identifier: Apache-2.0
"""The style sheet and the script of the report's page.  Colors are those of the notebook pages.

The script sorts tables by a click on a head, and filters their rows; the page is complete without it.
"""

from tq.pages.style import DARK, LIGHT
from tq.pages.theme import palettes

_RULES = """
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 3.2rem; }
body { margin: 0; background: var(--tq-bg); color: var(--tq-text);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main, header > div, nav > div { max-width: 80rem; margin: 0 auto; padding: 0 1.4rem; }
header { padding: 1.7rem 0 1.2rem; background: var(--tq-panel); border-bottom: 1px solid var(--tq-line); }
h1 { margin: 0 0 .1rem; font-size: 1.55rem; letter-spacing: -.01em; }
h2 { margin: 2.2rem 0 .2rem; font-size: 1.15rem; letter-spacing: -.005em; }
p { margin: .25rem 0 .7rem; max-width: 62rem; }
a { color: var(--tq-accent); text-decoration: none; }
a:hover { text-decoration: underline; }
nav { position: sticky; top: 0; z-index: 2; background: var(--tq-bg); border-bottom: 1px solid var(--tq-line); }
nav > div { display: flex; flex-wrap: wrap; gap: .2rem 1.3rem; padding-top: .5rem; padding-bottom: .5rem; }
code, .mono { font: 12.5px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.muted { color: var(--tq-muted); }
.files { overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.6rem, 1fr)); gap: .8rem;
  margin: 1.1rem 0 0; }
.card { padding: .7rem .9rem .75rem; background: var(--tq-bg); border: 1px solid var(--tq-line);
  border-radius: .55rem; }
.card .what { color: var(--tq-muted); font-size: 12.5px; }
.card .big { font-size: 1.45rem; font-weight: 650; line-height: 1.35; font-variant-numeric: tabular-nums; }
.card .note { color: var(--tq-muted); font-size: 12.5px; }
/* Shadows at the sides to which there is more: gradients that stay, under ones that scroll along. */
.scroll { overflow-x: auto; border: 1px solid var(--tq-line); border-radius: .5rem; margin: .5rem 0;
  background: linear-gradient(to right, var(--tq-bg) 40%, transparent) 0 0 / 3rem 100% no-repeat local,
    linear-gradient(to left, var(--tq-bg) 40%, transparent) 100% 0 / 3rem 100% no-repeat local,
    linear-gradient(to right, #0006, transparent) 0 0 / .8rem 100% no-repeat scroll,
    linear-gradient(to left, #0006, transparent) 100% 0 / .8rem 100% no-repeat scroll, var(--tq-bg); }
.scroll:focus-visible { outline: 2px solid var(--tq-accent); outline-offset: 1px; }
.high { max-height: 34rem; overflow-y: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { padding: .28rem .55rem; text-align: left; vertical-align: top; }
thead th { position: sticky; top: 0; z-index: 1; background: var(--tq-panel); color: var(--tq-muted); font-weight: 600;
  white-space: nowrap; border-bottom: 1px solid var(--tq-line); }
tbody tr + tr > * { border-top: 1px solid var(--tq-panel); }
tbody tr:hover { background: var(--tq-panel); }
.num { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.fit { white-space: nowrap; }
.name { min-width: 15rem; max-width: 30rem; overflow-wrap: anywhere; }
.name > div { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; line-clamp: 2;
  overflow: hidden; }
.sorts th { cursor: pointer; user-select: none; }
.sorts th:hover { color: var(--tq-text); }
.sorts th:focus-visible, summary:focus-visible, a:focus-visible { outline: 2px solid var(--tq-accent);
  outline-offset: -2px; }
.sorts th[aria-sort]::after { content: " \\2193"; }
.sorts th[aria-sort="ascending"]::after { content: " \\2191"; }
.t-good { color: var(--tq-good); } .t-fair { color: var(--tq-text); } .t-warn { color: var(--tq-warn); }
.t-bad { color: var(--tq-bad); } .t-none { color: var(--tq-muted); }
.big.t-good, .big.t-warn, .big.t-bad, td.t-warn, td.t-bad { font-weight: 650; }
svg { display: block; max-width: 100%; height: auto; }
svg text { fill: var(--tq-muted); font: 11px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
svg.along { width: 100%; min-width: 52rem; margin: .4rem 0 0; }
svg.tq-graph { max-width: none; margin: .5rem; }
.tq-label { font-weight: 600; } svg .tq-label, svg .tq-line { fill: var(--tq-text); }
.tq-arrow { fill: none; stroke: var(--tq-values); }
.tq-box { fill: var(--tq-bg); stroke: var(--tq-muted); }
.b-good { stroke: var(--tq-good); stroke-width: 3; } .b-fair { stroke: var(--tq-range); stroke-width: 3; }
.b-warn { stroke: var(--tq-stored); stroke-width: 3; } .b-bad { stroke: var(--tq-bad); stroke-width: 3;
  fill: var(--tq-panel); }
#filters { margin-left: auto; } #left { color: var(--tq-muted); }
input, button { font: inherit; color: var(--tq-text); background: var(--tq-bg); border: 1px solid var(--tq-muted);
  border-radius: .35rem; padding: .1rem .4rem; }
input { width: 11rem; max-width: 60vw; } button { cursor: pointer; }
svg.along a:hover rect { opacity: .65; }
svg.small { width: 110px; height: 12px; margin-top: .25rem; }
.g-good { fill: var(--tq-good); } .g-fair { fill: var(--tq-range); } .g-warn { fill: var(--tq-stored); }
.g-bad { fill: var(--tq-bad); }
.tq-grid { stroke: var(--tq-line); fill: none; }
.tq-axis { stroke: var(--tq-muted); fill: none; }
.tq-values { fill: var(--tq-values); } .tq-range { fill: var(--tq-range); } .tq-stored { fill: var(--tq-stored); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .3rem 0 .6rem; color: var(--tq-muted);
  font-size: 12.5px; overflow-wrap: anywhere; }
.legend i { display: inline-block; width: .75rem; height: .75rem; margin-right: .4rem; border-radius: 2px;
  vertical-align: -1px; }
.legend .tq-values { background: var(--tq-values); } .legend .tq-range { background: var(--tq-range); }
.legend .tq-stored { background: var(--tq-stored); }
.legend .g-good { background: var(--tq-good); } .legend .g-fair { background: var(--tq-range); }
.legend .g-warn { background: var(--tq-stored); } .legend .g-bad { background: var(--tq-bad); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: .8rem; }
.pair > div { min-width: 0; } .pair h3 { margin: .3rem 0 0; overflow-wrap: anywhere; }
.tensors { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 30rem), 1fr)); gap: .8rem; }
.tensor { border: 1px solid var(--tq-line); border-radius: .55rem; padding: .65rem .85rem; min-width: 0; }
.tensor:target { border-color: var(--tq-accent); box-shadow: 0 0 0 1px var(--tq-accent); }
.tensor h3 { margin: 0; font-size: 13px; font-weight: 600; overflow-wrap: anywhere; }
.tensor .line { display: flex; flex-wrap: wrap; gap: 0 1rem; margin: .1rem 0 .35rem; font-size: 12.5px;
  color: var(--tq-muted); }
details { margin: .7rem 0; }
summary { cursor: pointer; color: var(--tq-accent); font-weight: 600; padding: .2rem 0; }
details > .tensors { margin-top: .6rem; }
footer { margin: 3rem 0 2rem; padding-top: .8rem; border-top: 1px solid var(--tq-line); color: var(--tq-muted);
  font-size: 12.5px; }
@media (max-width: 600px) { svg.tq-chart text { font-size: 20px; } nav { position: static; } }
@media print { nav { display: none; } .high { max-height: none; overflow: visible; } .tensor { break-inside: avoid; } }
"""

# The value of a cell is its data-v, or its text; columns of numbers are compared as numbers.
SCRIPT = """
for (const table of document.querySelectorAll("table.sorts")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, at) => { const cell = row.cells[at]; return cell.dataset.v ?? cell.textContent.trim(); };
  const sort = (at) => {
    const numbers = heads[at].classList.contains("num");
    const now = heads[at].getAttribute("aria-sort");
    const sign = now ? (now === "ascending" ? -1 : 1) : (numbers && !heads[at].dataset.up ? -1 : 1);
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[at].setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const missing = (text) => text === "" || text === "NaN" || text === "\\u2013";
    const rows = [...body.rows].map((row) => [value(row, at), row]);
    rows.sort(([a], [b]) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      return sign * (numbers ? Number(a) - Number(b) : a.localeCompare(b));
    });
    body.append(...rows.map(([, row]) => row));
  };
  heads.forEach((head, at) => {
    head.tabIndex = 0;
    head.title = "sort";
    head.addEventListener("click", () => sort(at));
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(at); }
    });
  });
}
const filter = document.getElementById("filter"), tables = [...document.querySelectorAll("table.sorts")];
if (tables.length) document.getElementById("filters").hidden = false;
filter.addEventListener("input", () => {
  const wanted = filter.value.trim().toLowerCase();
  let shown = 0;
  for (const row of tables.flatMap((table) => [...table.tBodies[0].rows])) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
    shown += !row.hidden;
  }
  document.getElementById("left").textContent = wanted ? `${shown} rows` : "";
});
const open = () => {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (target && target.closest("details")) { target.closest("details").open = true; target.scrollIntoView(); }
};
addEventListener("hashchange", open);
open();
"""


def style_sheet() -> str:
    """The contents of the page's `<style>`."""
    return f"{palettes(LIGHT, DARK)}\n{_RULES.strip()}"
