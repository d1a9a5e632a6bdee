/* The charts over the batch, or what X is: memory and images per second, a line per strategy, for one network, GPU and options. */

const COLORS = ["forward", "backward", "out", "live", "stall", "in", "rerun", "alloc"];
const DASHES = ["", "7 4", "2 3", "10 3 2 3"];
const MARKED = 60; /* the most batches whose points have marks */

/* choice: a value of every axis; batches: the values of X that it has points of; lines: a strategy's point per value, -1 where there is none. */
const chart = {choice: {}, batches: [], lines: [], at: 0, hidden: new Set()};

function lineStyle(strategy) {
  return {stroke: "var(--" + COLORS[strategy % COLORS.length] + ")", dash: DASHES[Math.floor(strategy / COLORS.length) % DASHES.length]};
}

function isChosen(pair) {
  return pair.net === chart.choice.net && pair.gpu === chart.choice.gpu;
}

function choosePoints() {
  const keys = CHOSEN.map(([key]) => key), points = [];
  const isOf = (i) => (key) => columns[key][i] === chart.choice[key] || (key === "scheme" && columns.world[i] === 1);
  for (let i = 0; i < N; i++)
    if (!failures.has(i) && keys.every(isOf(i))) points.push(i);
  chart.batches = [...new Set(points.map(X.of))].sort((a, b) => a - b);
  const place = new Map(chart.batches.map((batch, b) => [batch, b])), lines = new Map();
  for (const i of points) {
    const strategy = columns.strategy[i];
    if (!lines.has(strategy)) lines.set(strategy, {strategy, points: new Array(chart.batches.length).fill(-1), ...lineStyle(strategy)});
    lines.get(strategy).points[place.get(X.of(i))] = i;
  }
  chart.lines = [...lines.values()].sort((a, b) => a.strategy - b.strategy);
}

const visibleLines = () => chart.lines.filter((line) => !chart.hidden.has(line.strategy));

/* ---- axes ---- */

/* Batches that grow by a factor stand on a logarithmic axis: then most are small. */
function batchScale(left, width) {
  const all = chart.batches, low = all[0], high = all[all.length - 1];
  const log = all[all.length >> 1] < (low + high) / 4, f = log ? Math.log : (x) => x;
  const span = f(high) - f(low) || 1;
  return (batch) => left + (high === low ? 0.5 : (f(batch) - f(low)) / span) * width;
}

/* Batches to write below the axis: not over each other. */
function batchMarks(x) {
  const shown = [];
  let free = -Infinity;
  for (const batch of chart.batches) {
    const half = 4 + 3.7 * X.text(batch).length;
    if (x(batch) - half < free) continue;
    shown.push(batch);
    free = x(batch) + half;
  }
  return shown;
}

function chartFrame(id, most) {
  const width = Math.max(280, at(id).clientWidth), height = width < 500 ? 250 : 350;
  const left = 58, right = 18, top = 26, bottom = 40;
  return {width, height, left, right, top, bottom, most, x: batchScale(left + 8, width - left - right - 16),
          y: (value) => height - bottom - value / (most * 1.04) * (height - top - bottom)};
}

function chartAxes(f, unit, scale) {
  const heights = marks(f.most / scale, 5), step = heights[1] || 1, base = f.y(0);
  return [...heights.flatMap((m) => [svg("line", {class: "grid", x1: f.left, x2: f.width - f.right, y1: f.y(m * scale), y2: f.y(m * scale)}),
                                     label(f.left - 6, f.y(m * scale) + 4, "end", digits(m, step))]),
          ...batchMarks(f.x).map((batch) => label(f.x(batch), base + 16, "middle", X.text(batch))),
          label(2, 14, "start", unit), label((f.left + f.width - f.right) / 2, f.height - 6, "middle", X.word)];
}

/* ---- lines ---- */

/* The points of a line that `has`, joined where they are neighbours. */
function linePath(f, line, has, value) {
  let path = "", joined = false;
  line.points.forEach((i, b) => {
    const here = i >= 0 && has(i);
    if (here) path += (joined ? "L" : "M") + f.x(chart.batches[b]).toFixed(1) + " " + f.y(value(i)).toFixed(1);
    joined = here;
  });
  return path;
}

/* Thin where it does not fit. Where marks would be a blur, only points that no line reaches have one. */
function drawLine(f, line, has, value) {
  const stroke = "stroke:" + line.stroke, dash = {"stroke-dasharray": line.dash};
  const there = (b) => line.points[b] >= 0 && has(line.points[b]);
  const marked = (b) => there(b) && (chart.batches.length <= MARKED || (!there(b - 1) && !there(b + 1)));
  const dots = line.points.flatMap((i, b) => (marked(b) ? [svg("circle", {
    cx: f.x(chart.batches[b]).toFixed(1), cy: f.y(value(i)).toFixed(1), r: 3,
    style: stroke + ";fill:" + (fits(i) ? line.stroke : "var(--page)")})] : []));
  return svg("g", {class: "line", "data-strategy": line.strategy},
             svg("path", {d: linePath(f, line, has, value), style: stroke + ";stroke-width:1;fill:none", ...dash}),
             svg("path", {d: linePath(f, line, fits, value), style: stroke + ";stroke-width:2.5;fill:none", ...dash}), ...dots);
}

function chartCursor(f) {
  const x = f.x(chart.batches[chart.at]);
  return svg("line", {class: "cursor", x1: x, x2: x, y1: f.top - 6, y2: f.height - f.bottom});
}

function nearestBatch(f, x) {
  let best = 0;
  chart.batches.forEach((batch, b) => { if (Math.abs(f.x(batch) - x) < Math.abs(f.x(chart.batches[best]) - x)) best = b; });
  return best;
}

/* A chart: what = {unit, scale, most, has, value, extra(frame)}. */
function drawChart(id, what) {
  const f = chartFrame(id, what.most), clip = id + "-clip";
  const drawing = svg("svg", {width: f.width, height: f.height, viewBox: "0 0 " + f.width + " " + f.height, tabindex: 0,
                              role: "slider", "aria-labelledby": id + "-title", "aria-valuemin": chart.batches[0],
                              "aria-valuemax": chart.batches[chart.batches.length - 1]},
    svg("clipPath", {id: clip}, svg("rect", {x: 0, y: f.top - 8, width: f.width, height: f.height - f.top - f.bottom + 12})),
    ...chartAxes(f, what.unit, what.scale), chartCursor(f),
    svg("g", {"clip-path": "url(#" + clip + ")"}, ...visibleLines().map((line) => drawLine(f, line, what.has, what.value))),
    ...what.extra(f));
  follow(drawing, {count: chart.batches.length, at: () => chart.at, move: moveBatch, index: (x) => nearestBatch(f, x)});
  drawing.frame = f;
  const had = at(id).contains(document.activeElement);
  fill(id, drawing);
  if (had) drawing.focus();
}

/* With a limit of the pool memory is the pool's, else the GPU's: what a point needs, and what there is; 0: no limit. */
const ofPool = () => chart.lines.some((line) => line.points.some((i) => i >= 0 && columns.limit[i] > 0));
const need = (point) => (ofPool() ? columns.pool : columns.device)[point];
const limitAt = (b) => {
  const line = chart.lines.find((any) => any.points[b] >= 0);
  return line ? (ofPool() ? columns.limit : columns.memory)[line.points[b]] : 0;
};
const limitName = () => (ofPool() ? "limit of the pool" : "memory of the GPU");

/* Where it differs from value to value. */
function limitPath(f, limits) {
  const path = limits.map((limit, b) => (limit ? (b && limits[b - 1] ? "L" : "M") + f.x(chart.batches[b]).toFixed(1) + " " + f.y(limit).toFixed(1) : "")).join("");
  return [svg("path", {class: "limit", d: path, style: "fill:none"}), label(f.width - f.right, 14, "end", "dash-dotted: " + limitName(), "fill:var(--ink)")];
}

function limitLine(f, limit) {
  const y = f.y(limit);
  return [svg("line", {class: "limit", x1: f.left, x2: f.width - f.right, y1: y, y2: y}),
          label(f.left + 6, y - 5, "start", limitName() + ": " + bytes(limit), "fill:var(--ink)")];
}

/* Beyond twice the memory there is lines leave the chart: what fits would be too low to be told apart. */
function drawMemory() {
  const limits = chart.batches.map((batch, b) => limitAt(b)), limit = Math.max(...limits), pooled = ofPool();
  const needs = pooled ? columns.pool : columns.device, varies = limits.some((other) => other !== limit);
  let most = 0;
  for (const line of visibleLines()) for (const i of line.points) if (i >= 0) most = Math.max(most, needs[i]);
  const far = most >= 0.6 * limit;
  most = Math.max(far ? limit * 1.1 : 0, Math.min(most, 2 * limit)) || limit;
  const scale = most >= 2 * GIB ? GIB : MIB;
  drawChart("memory", {unit: scale === GIB ? "GiB" : "MiB", scale, most, has: () => true, value: (i) => needs[i],
                       extra: (f) => (varies ? limitPath(f, limits) : far ? limitLine(f, limit) : [label(f.width - f.right, 14, "end", (pooled ? "the pool may have " : "memory of the GPU: ") + bytes(limit), "fill:var(--ink)")])});
}

function drawSpeed() {
  let most = 0;
  for (const line of visibleLines()) for (const i of line.points) if (i >= 0 && fits(i)) most = Math.max(most, speed(i));
  drawChart("speed", {unit: UNIT + "/s", scale: 1, most: most || 1, has: fits, value: speed,
                      extra: (f) => (most ? [] : [label(f.width / 2, f.height / 2, "middle", chart.hidden.size ? "none of those shown fits" : "nothing fits")])});
}

/* ---- legend: what the lines are, and their figures at the cursor ---- */

function toggle(strategy) {
  if (!chart.hidden.delete(strategy)) chart.hidden.add(strategy);
  drawCharts();
  at("legend").querySelector("[data-strategy='" + strategy + "']").focus();
}

/* Only the line of this strategy stands out; null: all do. */
function spotlight(strategy) {
  for (const line of document.querySelectorAll("g.line"))
    line.classList.toggle("faint", strategy !== null && !chart.hidden.has(strategy) && line.dataset.strategy !== String(strategy));
}

function showLines(all) {
  chart.hidden = new Set(all ? [] : names.strategy.keys());
  drawCharts();
}

function figuresAt(point) {
  if (point < 0) return "no point";
  return bytes(need(point)) + (fits(point) ? ", " + speed(point).toFixed(1) + " " + UNIT + "/s" : ", does not fit");
}

function legendRow(line) {
  const off = chart.hidden.has(line.strategy), point = line.points[chart.at];
  const swatch = svg("svg", {class: "swatch", width: 26, height: 10, "aria-hidden": "true"},
                     svg("line", {x1: 0, x2: 26, y1: 5, y2: 5, style: "stroke:" + line.stroke + ";stroke-width:2.5", "stroke-dasharray": line.dash}));
  return element("li", {class: off ? "off" : "", pointerenter: () => spotlight(line.strategy), pointerleave: () => spotlight(null)},
    element("button", {type: "button", "aria-pressed": String(!off), "data-strategy": line.strategy, click: () => toggle(line.strategy)},
            swatch, element("span", {}, ...breakable(names.strategy[line.strategy]))),
    element("span", {class: point >= 0 && !fits(point) ? "no" : ""}, figuresAt(point)));
}

function drawLegend() {
  const button = (text, all) => element("button", {type: "button", click: () => showLines(all)}, text);
  const kept = at("legend").querySelector("ol");
  const scrolled = kept ? kept.scrollTop : 0;
  fill("legend", element("h3", {}, X.word[0].toUpperCase() + X.word.slice(1) + " " + X.text(chart.batches[chart.at])),
       element("div", {class: "tools"}, button("show all", true), button("show none", false)),
       element("ol", {}, ...chart.lines.map(legendRow)));
  at("legend").querySelector("ol").scrollTop = scrolled;
  const text = X.word + " " + X.text(chart.batches[chart.at]) + ": " +
    visibleLines().map((line) => names.strategy[line.strategy] + " " + figuresAt(line.points[chart.at])).join("; ");
  for (const id of ["memory", "speed"]) {
    const drawing = at(id).querySelector("svg");
    drawing.setAttribute("aria-valuenow", chart.batches[chart.at]);
    drawing.setAttribute("aria-valuetext", text);
  }
}

function moveBatch(to) {
  chart.at = to;
  for (const drawing of document.querySelectorAll("#memory svg, #speed svg")) {
    const x = drawing.frame.x(chart.batches[to]), cursor = drawing.querySelector(".cursor");
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
  }
  drawHeat();
  drawLegend();
}

function drawCharts() {
  if (chart.batches.length === 0) {
    for (const id of ["memory", "speed"]) fill(id, element("p", {class: "note"}, "No point of this choice was computed."));
    fill("heat");
    return fill("legend");
  }
  drawHeat();
  fill("memory-title", ofPool() ? "Memory of the pool" : "GPU memory");
  drawMemory();
  drawSpeed();
  return drawLegend();
}
