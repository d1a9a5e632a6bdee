/* The step curve: an SVG of memory over the steps, with a cursor for pointer, finger and keyboard. */

const curve = {step: 0, result: null, live: false}; /* live: live tensors too, on a right axis */

/* Sizes and scales of the drawing. Steps stand in the middle of their column. */
function curveFrame(r) {
  const width = Math.max(280, at("curve").clientWidth), height = width < 500 ? 260 : 340;
  const n = T, s = r.steps, other = shown.other;
  let most = 0, live = 0;
  for (let i = 0; i < n; i++) {
    most = Math.max(most, s.bytes[i] + s.workspace[i], other ? other.steps.bytes[i] : 0);
    live = Math.max(live, s.live[i]);
  }
  const room = poolRoom(r), limit = room > 0 && room <= 1.4 * most;
  if (limit) most = Math.max(most, room);
  const unit = most >= 2 * GIB ? GIB : most >= 2 * MIB ? MIB : KIB;
  const left = 58, right = 46, top = 26, bottom = 40;
  return {width, height, left, right, top, bottom, n, unit, most, live, limit: limit ? room : 0,
          x: (step) => left + step * (width - left - right) / n,
          y: (value) => height - bottom - value / (most * 1.12) * (height - top - bottom),
          yLive: (value) => height - bottom - value / (live * 1.04) * (height - top - bottom)};
}

/* A stepped line: value(i) over column i. */
function stepped(f, y, value) {
  let path = "";
  for (let i = 0; i < f.n; i++)
    path += (i ? "L" : "M") + f.x(i).toFixed(1) + " " + y(value(i)).toFixed(1) + "H" + f.x(i + 1).toFixed(1);
  return path;
}

function area(f, value) {
  return stepped(f, f.y, value) + "V" + f.y(0).toFixed(1) + "H" + f.x(0).toFixed(1) + "Z";
}

function curveAxes(f) {
  const parts = [], unit = f.unit === GIB ? "GiB" : f.unit === MIB ? "MiB" : "KiB";
  const heights = marks(f.most / f.unit, f.height < 300 ? 4 : 6), step = heights[1] || 1;
  for (const m of heights) {
    const y = f.y(m * f.unit);
    parts.push(svg("line", {class: "grid", x1: f.left, x2: f.width - f.right, y1: y, y2: y}));
    parts.push(label(f.left - 6, y + 4, "end", digits(m, step)));
  }
  for (const m of curve.live ? wholeMarks(f.live, f.height < 300 ? 3 : 5) : [])
    parts.push(label(f.width - f.right + 6, f.yLive(m) + 4, "start", String(m), "fill:var(--live)"));
  for (const m of wholeMarks(f.n, f.width < 500 ? 4 : 9))
    if (m > 0) parts.push(label(f.x(m - 0.5), f.height - f.bottom + 16, "middle", String(m)));
  parts.push(label(2, 14, "start", unit));
  if (curve.live) parts.push(label(f.width - 2, 14, "end", "live tensors", "fill:var(--live)"));
  parts.push(label((f.left + f.width - f.right) / 2, f.height - 6, "middle", "step"));
  const half = f.x(N);
  parts.push(svg("line", {class: "axis", x1: half, x2: half, y1: f.top - 8, y2: f.height - f.bottom, "stroke-dasharray": "4 3"}));
  parts.push(label(half - 8, f.top - 6, "end", "forward \u2190"), label(half + 8, f.top - 6, "start", "\u2192 backward"));
  return parts;
}

function curveLimit(f) {
  if (!f.limit) return [];
  const y = f.y(f.limit);
  return [svg("line", {x1: f.left, x2: f.width - f.right, y1: y, y2: y, style: "stroke:var(--bad);stroke-width:1.5", "stroke-dasharray": "7 4"}),
          label(f.left + 6, y - 5, "start", "room for tensors: " + bytes(f.limit), "fill:var(--bad)")];
}

/* The most that tensors take, named where it is. */
function curvePeak(f, r) {
  const x = f.x(r.peak_step - 0.5), share = (r.peak_step - 0.5) / f.n;
  return label(x, f.y(r.peak) - 7, share < 0.3 ? "start" : share > 0.7 ? "end" : "middle",
               "tensors: " + bytes(r.peak) + " at step " + r.peak_step, "fill:var(--ink);font-weight:600");
}

function curveCursor(f) {
  const x = f.x(curve.step), width = Math.max(1.5, f.x(1) - f.x(0));
  return svg("rect", {id: "cursor", x, width, y: f.top, height: f.height - f.top - f.bottom,
                      style: "fill:var(--accent);fill-opacity:.35"});
}

function drawCurve() {
  const r = shown.result, s = r.steps, f = curveFrame(r), other = shown.other;
  curve.frame = f;
  const drawing = svg("svg", {width: f.width, height: f.height, viewBox: "0 0 " + f.width + " " + f.height, tabindex: 0,
                              role: "slider", "aria-label": "Step", "aria-valuemin": 1, "aria-valuemax": f.n},
    ...curveAxes(f),
    svg("path", {d: area(f, (i) => s.bytes[i] + s.workspace[i]), style: "fill:var(--work);fill-opacity:.45"}),
    svg("path", {d: area(f, (i) => s.bytes[i]), style: "fill:var(--forward);fill-opacity:.55"}),
    svg("path", {d: stepped(f, f.y, (i) => s.bytes[i]), style: "fill:none;stroke:var(--forward);stroke-width:1.5"}));
  if (other)
    drawing.append(svg("path", {d: stepped(f, f.y, (i) => other.steps.bytes[i]), "stroke-dasharray": "5 3",
                                style: "fill:none;stroke:var(--compare);stroke-width:1.5"}));
  if (curve.live)
    drawing.append(svg("path", {d: stepped(f, f.yLive, (i) => s.live[i]), style: "fill:none;stroke:var(--live);stroke-width:1.5"}));
  drawing.append(...curveLimit(f), curvePeak(f, r), curveCursor(f));
  follow(drawing, {count: f.n, at: () => curve.step, move: moveStep,
                   index: (x) => Math.floor((x - f.left) / (f.width - f.left - f.right) * f.n)});
  const legend = [["var(--forward)", "tensors"], ["var(--work)", "convolution workspace, on top"]];
  if (curve.live) legend.push(["var(--live)", "live tensors (right axis)", "rule"]);
  if (other) legend.push(["var(--compare)", "tensors of " + other.strategy, "dash"]);
  const had = document.activeElement && at("curve").contains(document.activeElement);
  const live = element("button", {type: "button", id: "live", "aria-pressed": String(curve.live), click: () => {
    curve.live = !curve.live;
    drawCurve();
    at("live").focus();
  }}, curve.live ? "hide live tensors" : "show live tensors");
  fill("curve", drawing, keys(legend), element("div", {class: "tools"}, live));
  if (had) drawing.focus();
  readStep();
}

function moveStep(step) {
  curve.step = step;
  at("cursor").setAttribute("x", curve.frame.x(step));
  readStep();
}

/* When the step computes: from its first bar's begin to the end of the one that ends last. */
function stepTimes(r, step) {
  let begin = -1, end = -1;
  for (const bar of r.bars) {
    if (bar.kind !== "compute" || bar.step !== step + 1) continue;
    if (begin < 0) begin = bar.begin;
    end = Math.max(end, bar.end);
  }
  return [begin, end];
}

function readStep() {
  const r = shown.result, s = r.steps, i = curve.step, live = liveAt(r, i), [begin, end] = stepTimes(r, i);
  const most = live.length ? data.bytes[live[0].tensor] : 1;
  const items = live.map((rect) => {
    const size = data.bytes[rect.tensor];
    return element("li", {}, element("span", {}, data.tensors[rect.tensor]), element("span", {}, bytes(size)),
                   element("i", {style: "width:" + (100 * size / most).toFixed(1) + "%;background:var(" +
                                        "--" + kindOf(rect.tensor)[1] + ")"}));
  });
  const title = "Step " + (i + 1) + " of " + T + ": " + stepName(i + 1);
  const total = bytes(s.bytes[i]) + " in " + live.length + (live.length === 1 ? " tensor" : " tensors") +
                (s.live[i] > live.length ? " (at most " + s.live[i] + " at once)" : "");
  fill("step", element("h3", {}, title),
       element("p", {}, data.ops[i] + ", " + total + (s.workspace[i] ? ", workspace " + bytes(s.workspace[i]) : "") + ", from " +
               moment(begin) + " to " + moment(end)),
       keys([["var(--forward)", "layer outputs"], ["var(--backward)", "gradients"]]),
       element("ol", {tabindex: 0, "aria-label": "Live tensors"}, ...items));
  const drawing = at("curve").querySelector("svg");
  drawing.setAttribute("aria-valuenow", i + 1);
  drawing.setAttribute("aria-valuetext", title + ", " + total);
}
