/* The map of the pool: address against step, or against operation where they run side by side, one rectangle a tensor.
 * Where PyTorch's allocator serves a strategy, addresses are its own (sim/play/caching_map.h). */

const POOL_HEIGHT = 420, POOL_TOP = 10, POOL_BOTTOM = 34;

/* What of the pool's height is shown, as shares of it. */
const tall = {low: 0, high: 1};

function poolEnd(r) {
  return r.served ? r.served.end : r.pool;
}

function poolY(r, address) {
  const share = (address / Math.max(1, poolEnd(r)) - tall.low) / (tall.high - tall.low);
  return POOL_HEIGHT - POOL_BOTTOM - share * (POOL_HEIGHT - POOL_TOP - POOL_BOTTOM);
}

/* Zooms by a factor around a share of the pool, or moves by one of what is shown. */
function stretch(view, factor, middle = (tall.low + tall.high) / 2) {
  const width = Math.min(1, Math.max(0.001, (tall.high - tall.low) * factor));
  tall.low = Math.max(0, Math.min(1 - width, middle - (middle - tall.low) * width / (tall.high - tall.low)));
  tall.high = tall.low + width;
  view.redraw();
}
function lift(view, share) {
  const width = tall.high - tall.low;
  tall.low = Math.max(0, Math.min(1 - width, tall.low + share * width));
  tall.high = tall.low + width;
  view.redraw();
}

function rectColor(rect) {
  return rect.tensor < 0 ? "work" : kindOf(rect.tensor)[1];
}

function paintRect(view, context, r, rect) {
  const from = Math.max(view.left, view.x(rect.x0)), to = Math.min(view.right, view.x(rect.x1));
  const top = poolY(r, rect.at + rect.size), height = poolY(r, rect.at) - top, width = to - from;
  if (rect.size === 0) return; /* a workspace that the allocator refused */
  context.fillStyle = view.color(rectColor(rect));
  context.fillRect(from, top, width > 3 ? width - 0.8 : Math.max(width, 0.5), height > 3 ? height - 0.8 : Math.max(height, 0.5));
  context.fillStyle = view.color("on-bar");
  if (height > 14) fit(context, rectName(rect), from, top + height / 2 + 4, width);
}

/* Offsets and sizes, one behind the other, from the first step to the last. */
function paintExtents(view, context, r, extents, color) {
  context.fillStyle = view.color(color);
  for (let i = 0; i < extents.length; i += 2) {
    const top = poolY(r, extents[i] + extents[i + 1]), height = poolY(r, extents[i]) - top;
    context.fillRect(view.left, top, view.right - view.left, height > 3 ? height - 0.8 : Math.max(height, 0.5));
  }
}

function paintPoolAxes(view, context, r) {
  const end = poolEnd(r), unit = end >= 2 * GIB ? GIB : end >= 2 * MIB ? MIB : KIB;
  const step = marks(end * (tall.high - tall.low) / unit, 6)[1] || 1, all = [];
  for (let m = Math.ceil(tall.low * end / unit / step - 1e-9); m * step * unit <= tall.high * end * (1 + 1e-9); m++) all.push(m * step);
  context.fillStyle = view.color("panel");
  context.fillRect(view.left, POOL_TOP, view.right - view.left, POOL_HEIGHT - POOL_TOP - POOL_BOTTOM);
  context.textAlign = "right";
  for (const m of all) {
    context.fillStyle = view.color("grid");
    context.fillRect(view.left, poolY(r, m * unit), view.right - view.left, 1);
    context.fillStyle = view.color("soft");
    context.fillText(digits(m, step), view.left - 6, Math.max(poolY(r, m * unit) + 4, 12));
  }
  context.textAlign = "left";
  context.fillText(unit === GIB ? "GiB" : unit === MIB ? "MiB" : "KiB", 0, POOL_HEIGHT - POOL_BOTTOM + 18);
  context.textAlign = "center";
  const steps = Math.max(1, marks(view.high - view.low, view.width < 500 ? 4 : 9)[1] || 1);
  for (let m = Math.ceil(view.low / steps) * steps; m < view.high; m += steps)
    if (m >= 1) context.fillText(String(m), Math.min(view.x(m + 0.5), view.right - 12), POOL_HEIGHT - POOL_BOTTOM + 18);
  context.textAlign = "left";
}

/* Where the pool is highest: on what lies there, in the step that sets it. */
function poolMark(r) {
  const step = r.pool_step || r.peak_step;
  const top = r.rects.find((rect) => rect.at + rect.size === r.pool && r.stepOf[Math.floor(rect.x0) - 1] === step - 1);
  return top ? (top.x0 + Math.min(top.x1, Math.floor(top.x0) + 1)) / 2 : columnOf(r, step) + 1.5;
}

function paintMarks(view, context, r) {
  const line = (x, color, dash) => {
    if (x < view.left || x > view.right) return;
    context.strokeStyle = view.color(color);
    context.setLineDash(dash);
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x, POOL_TOP);
    context.lineTo(x, POOL_HEIGHT - POOL_BOTTOM);
    context.stroke();
    context.setLineDash([]);
  };
  line(view.x(r.divide + 1), "ink", [4, 3]);
  if (r.served || r.pool_step !== r.peak_step) line(view.x(columnOf(r, r.peak_step) + 1.5), "bad", [2, 3]);
  if (!r.served) line(view.x(poolMark(r)), "bad", []);
}

function paintPool(r) {
  return (view, context) => {
    context.textBaseline = "alphabetic";
    paintPoolAxes(view, context, r);
    context.save(); /* the frame cuts off what is higher or lower than is shown */
    context.beginPath();
    context.rect(view.left - 2, POOL_TOP - 2, view.right - view.left + 4, POOL_HEIGHT - POOL_TOP - POOL_BOTTOM + 4);
    context.clip();
    if (r.served) paintExtents(view, context, r, r.served.segments, "line");
    if (r.served) paintExtents(view, context, r, r.served.stays, "update");
    for (const rect of r.rects) if (rect.x1 > view.low && rect.x0 < view.high) paintRect(view, context, r, rect);
    paintMarks(view, context, r);
    outlineRect(view, context, r, r.rects[view.chosen]);
    context.restore();
  };
}

function outlineRect(view, context, r, chosen) {
  if (!chosen || chosen.x1 < view.low || chosen.x0 > view.high) return;
  const from = Math.max(view.left, view.x(chosen.x0)), to = Math.min(view.right, view.x(chosen.x1));
  const top = poolY(r, chosen.at + chosen.size);
  context.strokeStyle = view.color("ink");
  context.lineWidth = 2.5;
  context.strokeRect(from, top, Math.max(2, to - from), Math.max(2, poolY(r, chosen.at) - top));
}

/* The rectangle under the pointer, or the one within a few pixels: many are thin. */
function findRect(r) {
  return (view, x, y) => {
    let best = -1, distance = 4;
    r.rects.forEach((rect, i) => {
      if (rect.x1 < view.low || rect.x0 > view.high) return;
      const across = Math.max(0, view.x(rect.x0) - x, x - view.x(rect.x1));
      const up = Math.max(0, poolY(r, rect.at + rect.size) - y, y - poolY(r, rect.at));
      const away = Math.max(across, up);
      if (away < distance) [best, distance] = [i, away];
    });
    return best;
  };
}

function readRect(r) {
  return (index) => {
    const rect = r.rects[index], first = Math.floor(rect.x0), last = Math.max(first, Math.ceil(rect.x1) - 1);
    const name = rect.tensor < 0 ? "workspace of " + columnWord(r) + " " + first : data.tensors[rect.tensor];
    const kind = rect.tensor < 0 ? columnName(r, first) : kindOf(rect.tensor)[0];
    const steps = first === last ? "in " + columnWord(r) + " " + first :
      "from " + columnWord(r) + " " + first + (last > r.shown ? " to the end" : " to " + columnWord(r) + " " + last);
    fill("rect", element("h3", {}, name),
         element("p", {}, kind + ", " + bytes(rect.tensor < 0 ? rect.bytes : data.bytes[rect.tensor]) + "; at " +
                 bytes(rect.at) + (r.served ? " of the allocator, " : " of the pool, ") + steps));
    return name + ", " + steps;
  };
}

/* What sets the pool, and where tensors are the most if that is somewhere else. */
function poolLegend(r) {
  if (r.served) return [["var(--update)", "parameters, states"], ["var(--line)", "segments of the caching allocator"],
                        ["var(--bad)", "the peak of the tensors: step " + r.peak_step, "dash"]];
  if (!r.pool_step) return [["var(--bad)", "the peak of the tensors", "rule"]];
  const set = ["var(--bad)", "sets the pool: step " + r.pool_step + ", " + r.pool_cause, "rule"];
  return r.pool_step === r.peak_step ? [set] : [set, ["var(--bad)", "the peak of the tensors: step " + r.peak_step, "dash"]];
}

function describePool(r) {
  if (r.served) return fill("pool-text", "PyTorch's caching allocator has reserved " + bytes(r.served.reserved) + " in " +
    r.served.segments.length / 2 + " segments, one on the other here; grey is what it holds and nobody uses.");
  if (!r.pool_step) return fill("pool-text");
  const parts = [["tensors", r.pool_tensors], ["workspace", r.pool_workspace], ["holes", r.pool_holes]].filter(([, size]) => size > 0);
  return fill("pool-text", "The pool of " + bytes(r.pool) + " is set at step " + r.pool_step + ", " + stepName(r.pool_step) + " (" +
              r.pool_cause + "): " + parts.map(([name, size]) => name + " " + bytes(size)).join(", ") +
              ". What would lower it: " + r.pool_advice + ".");
}

function drawPool(r) {
  describePool(r);
  const has = new Set(r.rects.map((rect) => data.kinds[rect.tensor]));
  const legend = [...Object.keys(KINDS).filter((k) => has.has(k)).map((k) => ["var(--" + KINDS[k][1] + ")", KINDS[k][0]]), ...poolLegend(r),
                  ["var(--ink)", "forward | backward", "dash"]];
  if (r.rects.some((rect) => rect.tensor < 0)) legend.unshift(["var(--work)", "workspace"]);
  fill("rect", element("p", {}, "Point at or tap a rectangle to see what it is."));
  [tall.low, tall.high] = [0, 1];
  return new View("pool", {
    more: [["\u2195\u2212", "zoom out vertically", (view) => stretch(view, 2)], ["\u2195+", "zoom in vertically", (view) => stretch(view, 0.5)],
           ["\u2191", "move up", (view) => lift(view, 0.25)], ["\u2193", "move down", (view) => lift(view, -0.25)]],
    keys: {ArrowUp: (view) => lift(view, 0.25), ArrowDown: (view) => lift(view, -0.25), "*": (view) => stretch(view, 0.5),
           "/": (view) => stretch(view, 2)},
    whole: () => { [tall.low, tall.high] = [0, 1]; },
    upright: (view, factor, y) => stretch(view, factor, tall.low + (POOL_HEIGHT - POOL_BOTTOM - y) / (POOL_HEIGHT - POOL_TOP - POOL_BOTTOM) * (tall.high - tall.low)),
    title: "Map of the pool", range: [1, r.shown + 1], least: 2, height: POOL_HEIGHT, paint: paintPool(r), find: findRect(r),
    read: readRect(r), count: () => r.rects.length, legend, extent: (i) => [r.rects[i].x0, r.rects[i].x1],
    where: (low, high) => columnWord(r) + "s " + Math.floor(low) + " to " + Math.max(1, Math.ceil(high) - 1),
  });
}
