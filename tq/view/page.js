// SPDX-License-Identifier: Apache-2.0
// Draws the graph of tq.view.page on a canvas, and answers the pointer, the keyboard, the search and the overlays.
"use strict";
const get = (id) => document.getElementById(id);
const data = JSON.parse(get("data").textContent);
const stage = get("stage"), canvas = get("canvas"), pen = canvas.getContext("2d");
const lists = [...document.querySelectorAll("details.graph")];
const KIND = ["input", "operator", "output"];
const LINE = 16, PADDING = 9, LETTERS = 34, TITLE = 40, BESIDE = 80;  // as tq.pages.graph_svg; between subgraphs

// ---- the model ----

const graphs = data.graphs.map((graph) => {
  const boxes = graph.boxes.map(([kind, index, name, lines, x, y, w, h, reads, writes, calls], position) =>
    ({ graph, position, kind: KIND[kind], index, name, lines, x, y, w, h, reads, writes, calls, into: [], from: [] }));
  const arrows = graph.arrows.map(([source, target, tensor, route]) => {
    const a = boxes[source], b = boxes[target];
    a.from.push(b);
    b.into.push(a);
    const points = [a.x + a.w / 2, a.y + a.h, ...route, b.x + b.w / 2, b.y];
    const xs = points.filter((_, k) => k % 2 === 0), ys = points.filter((_, k) => k % 2 === 1);
    const least = (values) => values.reduce((p, q) => Math.min(p, q)), most = (values) => values.reduce((p, q) => Math.max(p, q));
    return { a, b, tensor, points, left: least(xs), right: most(xs), top: least(ys), bottom: most(ys) };
  });
  const operators = boxes.filter((box) => box.kind === "operator");
  return Object.assign(graph, { boxes, arrows, at: new Map(operators.map((box) => [box.index, box])) });
});
const labelOf = (graph, tensor) => graph.index ? `T#${graph.index}_${tensor}` : `T#${tensor}`;
const boxLabel = (box) => box.kind === "operator" ? `${box.index} ${box.name}` : `${box.kind} ${box.name}`;
const middle = (text, most) => text.length > most ? `${text.slice(0, most / 2)}…${text.slice(-most / 2)}` : text;
const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;

// ---- state ----

let scale = 1, left = 0, top_ = 0;  // a point x, y of the graph is drawn at (x - left) * scale, (y - top_) * scale
let fitted = {};  // what the last fit set
let chosen = null;  // a box
let overlay = 0;
let colors = {};
const isOpen = (graph) => lists[graph.index].open;

function place() {
  let x = 0;
  for (const graph of graphs) {
    graph.x = x;
    x += (isOpen(graph) ? Math.max(graph.width, 240) : 240) + BESIDE;
  }
  return x - BESIDE;
}
const bottomOf = (graph) => isOpen(graph) ? TITLE + graph.height : TITLE;

// ---- drawing ----

function readColors() {
  const style = getComputedStyle(document.documentElement);
  colors = new Proxy({}, { get: (found, role) => found[role] ??= style.getPropertyValue(`--tq-${role}`).trim() });
}
// Boxes have tints of their own for the roles of the palette.
const tint = (role) => colors[["good", "fair", "warn", "bad", "none"].includes(role) ? `box-${role}` : role];

let asked = false;
function draw() {
  if (!asked) {
    asked = true;
    requestAnimationFrame(() => { asked = false; paint(); });
  }
}

function paint() {
  const ratio = devicePixelRatio || 1, width = stage.clientWidth, height = stage.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  for (const graph of graphs) {
    const window_ = { left: left - graph.x, top: top_ - TITLE };
    window_.right = window_.left + width / scale;
    window_.bottom = window_.top + height / scale;
    pen.setTransform(ratio * scale, 0, 0, ratio * scale, (graph.x - left) * scale * ratio, (TITLE - top_) * scale * ratio);
    if (graphs.length > 1) paintTitle(graph);
    if (isOpen(graph)) { paintArrows(graph, window_); paintBoxes(graph, window_); }
  }
}

function paintTitle(graph) {
  pen.fillStyle = colors.text;
  pen.font = "600 15px system-ui, sans-serif";
  pen.fillText(cut(`${isOpen(graph) ? "▾" : "▸"} Subgraph ${graph.index} ${graph.name}`, 60), 0, -TITLE / 2);
}

function trace(points) {
  pen.moveTo(points[0], points[1]);
  for (let k = 2; k < points.length; k += 2) {
    const [x, y, toX, toY] = points.slice(k - 2, k + 2);
    if (scale < 0.12 || Math.abs(toX - x) < 1) pen.lineTo(toX, toY);
    else pen.bezierCurveTo(x, (y + toY) / 2, toX, (y + toY) / 2, toX, toY);
  }
}

function paintArrows(graph, seen) {
  const own = [];
  pen.beginPath();
  for (const arrow of graph.arrows) {
    if (arrow.right < seen.left || arrow.left > seen.right || arrow.bottom < seen.top || arrow.top > seen.bottom) continue;
    if (chosen && (arrow.a === chosen || arrow.b === chosen)) own.push(arrow);
    else trace(arrow.points);
  }
  pen.strokeStyle = colors.values;
  pen.lineWidth = Math.max(1, 0.6 / scale);
  pen.stroke();
  pen.beginPath();
  own.forEach((arrow) => trace(arrow.points));
  pen.strokeStyle = colors.accent;
  pen.lineWidth = Math.max(2.5, 1.5 / scale);
  pen.stroke();
  if (scale < 0.3) return;
  pen.fillStyle = colors.values;
  for (const { b, top } of graph.arrows) {
    if (b.y < seen.top - 20 || top > seen.bottom || b.x > seen.right || b.x + b.w < seen.left) continue;
    const x = b.x + b.w / 2;
    pen.beginPath();
    pen.moveTo(x, b.y);
    pen.lineTo(x - 4, b.y - 7);
    pen.lineTo(x + 4, b.y - 7);
    pen.fill();
  }
}

function paintBoxes(graph, seen) {
  const levels = graph.levels[overlay], texts = graph.texts[overlay], legend = data.overlays[overlay]?.legend ?? [];
  pen.textBaseline = "alphabetic";
  for (const box of graph.boxes) {
    const { x, y, w, h } = box;
    if (x > seen.right || x + w < seen.left || y > seen.bottom || y + h < seen.top) continue;
    const level = levels ? levels[box.position] : -1;
    pen.fillStyle = level >= 0 ? tint(legend[level][0]) : colors.bg;
    pen.strokeStyle = box === chosen ? colors.accent : box.kind === "operator" ? colors.muted : colors.accent;
    pen.lineWidth = box === chosen ? Math.max(3, 2 / scale) : 1;
    pen.beginPath();
    if (scale < 0.25) pen.rect(x, y, w, h);
    else pen.roundRect(x, y, w, h, box.kind === "operator" ? 6 : 20);
    pen.fill();
    if (scale > 0.12 || box === chosen) pen.stroke();
    if (scale < 0.25) continue;
    pen.fillStyle = colors.text;
    pen.font = "600 13px system-ui, sans-serif";
    pen.fillText(cut(boxLabel(box), 26), x + 12, y + PADDING + 12);
    if (scale < 0.4) continue;
    pen.font = "11px system-ui, sans-serif";
    const text = texts && texts[box.position];
    const lines = text ? [...box.lines, text] : box.lines;
    lines.forEach((line, k) => pen.fillText(cut(line, LETTERS), x + 12, y + PADDING + 12 + LINE * (k + 1)));
  }
}

// ---- moving ----

function zoom(factor, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  const next = Math.min(Math.max(scale * factor, 0.005), 3);
  left += x / scale - x / next;
  top_ += y / scale - y / next;
  scale = next;
  draw();
}

function fit(whole = true) {
  const width = place(), height = Math.max(...graphs.map(bottomOf));
  const all = Math.min(stage.clientWidth / (width + 40), stage.clientHeight / (height + 40));
  scale = Math.min(whole ? all : Math.max(all, 0.7), 1.2);
  left = width / 2 - stage.clientWidth / scale / 2;
  top_ = whole ? height / 2 - stage.clientHeight / scale / 2 : -20 / scale;
  const first = graphs.find((graph) => isOpen(graph) && graph.boxes.length)?.boxes[0];
  if (!whole && first) left = first.graph.x + first.x + first.w / 2 - stage.clientWidth / scale / 2;
  fitted = { whole, scale, left, top_ };
  draw();
}

// The frame of a notebook gets its size late: until the reader moves the graph, it is fitted to each size.
function resized() {
  if (Object.is(scale, fitted.scale) && Object.is(left, fitted.left) && Object.is(top_, fitted.top_)) fit(fitted.whole);
  else draw();
}

function reveal(box) {
  lists[box.graph.index].open = true;
  place();
  scale = Math.max(scale, 0.55);
  const x = (box.graph.x + box.x - left) * scale, y = (TITLE + box.y - top_) * scale;
  const margin = 30, right = stage.clientWidth - margin - box.w * scale, bottom = stage.clientHeight - margin - box.h * scale;
  if (x < margin || x > right || y < margin || y > bottom) {
    left = box.graph.x + box.x + box.w / 2 - stage.clientWidth / scale / 2;
    top_ = TITLE + box.y + box.h / 2 - stage.clientHeight / scale / 2;
  }
  draw();
}

function at(x, y) {
  const px = x / scale + left, py = y / scale + top_ - TITLE;
  for (const graph of graphs) {
    const gx = px - graph.x;
    if (py < 0 && py > -TITLE && gx >= 0 && gx < 320 && graphs.length > 1) return { graph };
    if (!isOpen(graph)) continue;
    const box = graph.boxes.find((one) => gx >= one.x && gx <= one.x + one.w && py >= one.y && py <= one.y + one.h);
    if (box) return { graph, box };
  }
  return null;
}

const pointers = new Map();
let dragged = 0;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, event);
  dragged = pointers.size > 1 ? 99 : 0;
});
canvas.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (!before) return;
  const box = canvas.getBoundingClientRect();
  if (pointers.size === 2) {
    const other = [...pointers.values()].find((one) => one.pointerId !== event.pointerId);
    const far = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    zoom(far(event) / Math.max(far(before), 1), (event.clientX + other.clientX) / 2 - box.x, (event.clientY + other.clientY) / 2 - box.y);
  }
  const share = pointers.size === 2 ? 0.5 : 1;
  left -= share * (event.clientX - before.clientX) / scale;
  top_ -= share * (event.clientY - before.clientY) / scale;
  dragged += Math.abs(event.clientX - before.clientX) + Math.abs(event.clientY - before.clientY);
  pointers.set(event.pointerId, event);
  draw();
});
for (const end of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(end, (event) => {
    pointers.delete(event.pointerId);
    if (end === "pointercancel" || dragged > 5) return;
    const box = canvas.getBoundingClientRect(), found = at(event.clientX - box.x, event.clientY - box.y);
    if (found?.box) choose(found.box);
    else if (found) lists[found.graph.index].open = !lists[found.graph.index].open;
  });
}
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = canvas.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY / (event.deltaMode ? 15 : 400)), event.clientX - box.x, event.clientY - box.y);
}, { passive: false });

// ---- the keyboard in the graph ----

const near = (boxes, box) => [...boxes].sort((p, q) => Math.abs(p.x - box.x) - Math.abs(q.x - box.x))[0];
function beside(box, sign) {
  const row = box.graph.boxes.filter((one) => Math.abs(one.y - box.y) < 1 && sign * (one.x - box.x) > 0);
  return near(row, box);
}
stage.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const first = graphs.find((graph) => isOpen(graph) && graph.boxes.length)?.boxes[0];
  const steps = {
    ArrowDown: (box) => near(box.from, box) ?? box.graph.boxes[box.position + 1],
    ArrowUp: (box) => near(box.into, box) ?? box.graph.boxes[box.position - 1],
    ArrowLeft: (box) => beside(box, -1),
    ArrowRight: (box) => beside(box, 1),
  };
  const others = { "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => fit(),
    Enter: () => chosen && get("panel").focus() };
  if (!(event.key in steps) && !(event.key in others)) return;
  event.preventDefault();
  if (event.key in others) others[event.key]();
  else {
    const next = chosen ? steps[event.key](chosen) : first;
    if (next) choose(next);
  }
});
get("closer").addEventListener("click", () => zoom(1.3));
get("farther").addEventListener("click", () => zoom(1 / 1.3));
get("fit").addEventListener("click", () => fit());

// ---- the panel ----

const blocks = [...document.querySelectorAll("script.pages")], opened = new Map();
async function page(number) {
  const block = Math.floor(number / data.block);
  if (!opened.has(block)) {
    const bytes = Uint8Array.from(atob(blocks[block].textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    opened.set(block, JSON.parse(await new Response(stream).text()));
  }
  return opened.get(block)[number % data.block];
}

function element(kind, role, ...parts) {
  const made = document.createElement(kind);
  if (role) made.className = role;
  made.append(...parts);
  return made;
}
function chip(text, act) {
  const made = element("button", "chip", text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}
function chips(title, items) {
  return items.length ? [element("div", "chips", element("span", "", title), ...items)] : [];
}
const tensorChip = (graph, tensor) =>
  chip(`${labelOf(graph, tensor)} ${middle(graph.tensors[tensor]?.[0] ?? "", 36)}`, () => chooseTensor(graph, tensor));
const known = (graph, tensors) => tensors.filter((tensor) => tensor >= 0 && tensor < graph.tensors.length);

let shown = 0;
async function show(title, hash, number, links) {
  const mine = ++shown;
  const details = get("details");
  get("found").textContent = title;
  try { history.replaceState(null, "", hash); } catch { /* a page in a frame has no address */ }
  let text;
  try {
    text = await page(number);
  } catch {
    text = "<p>This browser cannot open compressed parts of a page: a newer one can.</p>";
  }
  if (mine !== shown) return;
  const body = element("div");
  body.innerHTML = text;
  details.replaceChildren(element("h2", "", title), ...links, body);
  get("panel").scrollTop = 0;
  body.querySelectorAll(".tq-scroll, .tq-pre").forEach((box) => {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) {
      box.tabIndex = 0;
    }
  });
}

function mark(box) {
  document.querySelector("#lists [aria-current]")?.removeAttribute("aria-current");
  chosen = box;
  if (!box) return;
  reveal(box);
  const button = lists[box.graph.index].querySelector(`[data-box="${box.position}"]`);
  button?.setAttribute("aria-current", "true");
  const part = button?.closest("details.part");
  if (part) part.open = true;
  if (innerWidth > 800) button?.scrollIntoView({ block: "nearest" });
}

function choose(box) {
  const { graph } = box;
  if (box.kind !== "operator") {
    chooseTensor(graph, box.index, box);
    return;
  }
  mark(box);
  const links = [
    ...chips("reads", known(graph, box.reads).map((tensor) => tensorChip(graph, tensor))),
    ...chips("writes", known(graph, box.writes).map((tensor) => tensorChip(graph, tensor))),
    ...chips("runs", box.calls.map((index) => chip(`subgraph ${index}`, () => {
      lists[index].open = true;
      place();
      if (graphs[index].boxes.length) choose(graphs[index].boxes[0]);
    }))),
  ];
  show(boxLabel(box), `#operator-${graph.index}-${box.index}`, graph.page + box.index, links);
}

function chooseTensor(graph, tensor, box = null) {
  const writer = graph.boxes.find((one) => one.writes.includes(tensor));
  const readers = graph.boxes.filter((one) => one.reads.includes(tensor));
  if (box ?? writer ?? readers[0]) mark(box ?? writer ?? readers[0]);
  const link = (one) => chip(boxLabel(one), () => choose(one));
  const links = [
    ...chips("written by", writer && writer.kind === "operator" ? [link(writer)] : []),
    ...chips("read by", readers.filter((one) => one.kind === "operator").slice(0, 50).map(link)),
  ];
  const [name] = graph.tensors[tensor];
  show(`${labelOf(graph, tensor)} ${name}`, `#tensor-${graph.index}-${tensor}`, graph.page + graph.operators + tensor, links);
}

// ---- lists and subgraphs ----

get("lists").addEventListener("click", (event) => {
  const button = event.target.closest("button[data-box]");
  if (!button) return;
  const graph = graphs[button.closest("details.graph").dataset.graph];
  choose(graph.boxes[button.dataset.box]);
});
lists.forEach((item) => item.addEventListener("toggle", () => { place(); draw(); }));

// ---- overlays ----

function color() {
  overlay = get("overlay").selectedIndex;
  const { legend = [], note = "" } = data.overlays[overlay] ?? {};
  get("legend").replaceChildren(...legend.map(([role, text]) => {
    const key = element("i");
    key.style.background = tint(role);
    return element("span", "", key, text);
  }), note);
  draw();
}
get("overlay").addEventListener("change", color);

// ---- the search ----

const MOST = 60;
function* matches(text) {
  const wanted = text.toLowerCase(), index = /^(?:(?:op|t)?#?)(\d+)$/.exec(wanted);
  const number = index ? Number(index[1]) : -1;
  const only = /^t#?\d/.test(wanted) ? "tensor" : /^op/.test(wanted) && index ? "operator" : "";
  for (const graph of graphs) {
    for (const box of graph.at.values()) {
      const exact = number >= 0 && only !== "tensor" && box.index === number;
      if (exact || (!only && (box.name.toLowerCase().includes(wanted) || box.lines.some((line) => line.toLowerCase().includes(wanted))))) {
        yield [exact ? 0 : 1, `Op#${box.index} ${box.name} ${box.lines[0] ?? ""}`, () => choose(box)];
      }
    }
    for (const [tensor, [name, type]] of graph.tensors.entries()) {
      const exact = number >= 0 && only !== "operator" && tensor === number;
      if (exact || (!only && (name.toLowerCase().includes(wanted) || type.toLowerCase().includes(wanted)))) {
        yield [exact ? 0 : 2, `${labelOf(graph, tensor)} ${name} ${type}`, () => chooseTensor(graph, tensor)];
      }
    }
  }
}
function search() {
  const text = get("search").value.trim(), list = get("results");
  const found = text ? [...matches(text)].sort((p, q) => p[0] - q[0]) : [];
  list.replaceChildren(...found.slice(0, MOST).map(([, label, act]) => element("li", "", chip(label, () => { act(); close_(); }))));
  list.hidden = !found.length;
  get("found").textContent = !text ? "" : found.length > MOST
    ? `${found.length} found, the first ${MOST} are listed` : `${found.length || "nothing"} found`;
}
function close_() {
  get("results").hidden = true;
  stage.focus();
}
get("search").addEventListener("input", search);
get("search").addEventListener("focus", () => { if (get("search").value) search(); });
get("tools").addEventListener("submit", (event) => event.preventDefault());
document.querySelector("header").addEventListener("keydown", (event) => {
  const buttons = [...get("results").querySelectorAll("button")], now = buttons.indexOf(document.activeElement);
  if (event.key === "Enter" && event.target === get("search")) buttons[0]?.click();
  else if (event.key === "Escape") { get("results").hidden = true; get("search").focus(); }
  else if (event.key === "ArrowDown" && event.target !== get("overlay")) buttons[now + 1]?.focus();
  else if (event.key === "ArrowUp" && now >= 0) (buttons[now - 1] ?? get("search")).focus();
  else return;
  event.preventDefault();
});

// ---- the start ----

function follow() {
  const [, kind, graph, index] = /^#(operator|tensor)-(\d+)-(\d+)$/.exec(location.hash) ?? [];
  if (!kind || !graphs[graph]) return;
  if (kind === "tensor" && graphs[graph].tensors[index]) chooseTensor(graphs[graph], Number(index));
  else if (graphs[graph].at.has(Number(index))) choose(graphs[graph].at.get(Number(index)));
}
readColors();
color();
fit(false);
follow();
addEventListener("hashchange", follow);
addEventListener("colors", () => { readColors(); color(); });  // of tq.pages.theme
new ResizeObserver(resized).observe(stage);
