/* The lanes: bars of computing, copies, collectives and stalls over time, and the pool's content below on the same axis. */

const LANE_TOP = 20, LANE_HEIGHT = 34, LANE_GAP = 8, LEVEL_HEIGHT = 90;
const LANE_NAMES = ["compute", "copy out", "copy in", "compute2", "compute3", "compute4", "compute5", "compute6",
  "tp", "fsdp", "dp", "send", "receive"];

/* The lanes from top to bottom: where operations run side by side those that have any. */
function laneRows(r) {
  const used = new Set(r.bars.filter((bar) => bar.kind !== "stall").map((bar) => bar.lane));
  if (!r.corun) return [0, 1, 2, ...[...used].filter((lane) => lane >= FIRST_LINK).sort((a, b) => a - b)];
  return [0, 3, 4, 5, 6, 7, 1, 2].filter((lane) => used.has(lane));
}

function rowY(row) {
  return LANE_TOP + row * (LANE_HEIGHT + LANE_GAP);
}

function laneY(r, lane) {
  return rowY(r.rows.indexOf(lane));
}

function levelTop(r) {
  return rowY(r.rows.length) + 12;
}

function barColor(bar) {
  if (isCollective(bar)) return "link";
  if (bar.kind !== "compute") return bar.kind === "release" ? "alloc" : bar.kind;
  return bar.rerun ? "rerun" : PASSES[data.passes[bar.what]];
}

/* A copy lane that waits has nothing to do, nor has one of several that compute: it stays empty. */
function isIdle(r, bar) {
  return bar.kind === "stall" && (bar.lane > 0 || r.corun);
}

function hatch(context, x, y, width, height, color) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = color;
  context.lineWidth = 2;
  context.beginPath();
  for (let at = Math.max(x, 0) - height - (Math.max(x, 0) - height) % 7; at < Math.min(x + width, 4000); at += 7) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

function paintBar(view, context, r, bar) {
  const from = Math.max(view.left, view.x(bar.begin)), to = Math.min(view.right, view.x(bar.end)), y = laneY(r, bar.lane);
  const width = to - from, color = view.color(barColor(bar));
  if (bar.kind === "stall") return hatch(context, from, y, width, LANE_HEIGHT, color);
  context.fillStyle = color;
  context.fillRect(from, y, width > 3 ? width - 0.6 : width, LANE_HEIGHT);
  context.fillStyle = view.color("on-bar");
  const text = isCollective(bar) ? data.ops[bar.what] : bar.kind === "compute" ? data.layers[bar.what] + (bar.team ? PARTS_OF_STEPS[bar.team.part] : "") : bar.of ? "workspace" : data.tensors[bar.what];
  return fit(context, text, from, y + 21, width);
}

/* Round marks on a time axis between low and high, with a unit that suits them. */
function timeAxis(view, context, y) {
  const span = view.high - view.low, [unit, name] = span >= 2e9 ? [1e9, "s"] : span >= 2e6 ? [1e6, "ms"] : [1e3, "\u00b5s"];
  const step = marks(span / unit, view.width < 500 ? 3 : 7)[1] || 1;
  context.textAlign = "center";
  for (let m = Math.ceil(view.low / unit / step) * step; m * unit <= view.high; m += step) {
    const x = view.x(m * unit);
    context.fillStyle = view.color("grid");
    context.fillRect(x, LANE_TOP, 1, y - LANE_TOP - 14);
    context.fillStyle = view.color("soft");
    context.fillText(digits(m, step) + " " + name, Math.min(x, view.right - 24), y);
  }
  context.textAlign = "left";
}

function paintLevels(view, context, r, most) {
  const levels = r.levels, y = (value) => levelTop(r) + LEVEL_HEIGHT - value / most * (LEVEL_HEIGHT - 4);
  const draw = (color, alpha, value) => {
    context.globalAlpha = alpha;
    context.fillStyle = view.color(color);
    context.beginPath();
    context.moveTo(view.left, y(0));
    let last = 0, x = view.left;
    for (let i = 0; i < levels.ns.length; i++) {
      const next = Math.max(view.left, Math.min(view.right, view.x(levels.ns[i])));
      if (next > x) {
        context.lineTo(x, y(last));
        context.lineTo(next, y(last));
        x = next;
      }
      last = value(i);
    }
    context.lineTo(x, y(0));
    context.fill();
    context.globalAlpha = 1;
  };
  draw("work", 0.6, (i) => levels.bytes[i] + levels.workspace[i]);
  draw("forward", 0.7, (i) => levels.bytes[i]);
}

function paintLanes(r) {
  let most = 1;
  for (let i = 0; i < r.levels.ns.length; i++) most = Math.max(most, r.levels.bytes[i] + r.levels.workspace[i]);
  return (view, context) => {
    context.textBaseline = "alphabetic";
    timeAxis(view, context, view.height - 4);
    for (const lane of r.rows) {
      context.fillStyle = view.color("panel");
      context.fillRect(view.left, laneY(r, lane), view.right - view.left, LANE_HEIGHT);
      context.fillStyle = view.color("soft");
      context.fillText(LANE_NAMES[lane], 0, laneY(r, lane) + 21);
    }
    for (const bar of r.bars)
      if (bar.end > view.low && bar.begin < view.high && !isIdle(r, bar)) paintBar(view, context, r, bar);
    context.fillStyle = view.color("soft");
    context.fillText("in pool", 0, levelTop(r) + 14);
    context.fillText(bytes(most, 1), 0, levelTop(r) + 30);
    paintLevels(view, context, r, most);
    outlineBar(view, context, r, r.bars[view.chosen]);
  };
}

function outlineBar(view, context, r, bar) {
  if (!bar || bar.end < view.low || bar.begin > view.high) return;
  const from = Math.max(view.left, view.x(bar.begin)), to = Math.min(view.right, view.x(bar.end));
  context.strokeStyle = view.color("ink");
  context.lineWidth = 2;
  context.strokeRect(from, laneY(r, bar.lane) - 2, Math.max(2, to - from), LANE_HEIGHT + 4);
}

/* The bar under the pointer: of its lane the one nearest to it, within a few pixels. */
function findBar(r) {
  return (view, x, y) => {
    const lane = r.rows[Math.floor((y - LANE_TOP) / (LANE_HEIGHT + LANE_GAP))], ns = view.value(x);
    const near = 3 * (view.high - view.low) / (view.right - view.left);
    let best = -1, distance = near;
    r.bars.forEach((bar, i) => {
      if (bar.lane !== lane || isIdle(r, bar)) return;
      const away = Math.max(0, bar.begin - ns, ns - bar.end);
      if (away < distance || (away === 0 && distance > 0)) [best, distance] = [i, away];
    });
    return best;
  };
}

function readBar(r) {
  return (index) => {
    const bar = r.bars[index], name = barName(r, bar), parts = [];
    const own = bar.kind === "compute" && !bar.rerun; /* its name says where it stands */
    if (bar.kind === "compute" && !isCollective(bar)) parts.push(data.ops[bar.what]);
    if (bar.team && bar.team.cores) parts.push("on " + teamName(bar.team));
    if (bar.rerun) parts.push("its output had been dropped and is needed again");
    if (bar.kind === "out" || bar.kind === "in") parts.push(bytes(data.bytes[bar.what]));
    parts.push("at step " + bar.step + (own ? "" : ", " + stepName(bar.step)), "takes " + time(bar.end - bar.begin) + ", from " +
               moment(bar.begin) + " to " + moment(bar.end));
    fill("bar", element("h3", {}, name), element("p", {}, parts.join("; ")));
    return name;
  };
}

/* Only what the strategy has is in the legend. */
function laneLegend(r) {
  const names = [["forward", "forward"], ["backward", "backward"], ["update", "update"], ["rerun", "forward run again"],
                 ["out", "copy out, device to host"], ["in", "copy in, host to device"],
                 ["link", "collective among GPUs"], ["stall", "computing waits for " + awaited(r, true), "hatched"], ["alloc", "cudaMalloc, cudaFree"]];
  const used = new Set(r.bars.filter((bar) => !isIdle(r, bar)).map(barColor));
  return names.filter(([color]) => used.has(color)).map(([color, text, kind]) => ["var(--" + color + ")", text, kind]);
}

function drawLanes(r) {
  r.rows = laneRows(r);
  fill("beside", r.bars.some(isCollective) ? "Computing, copies to and from the host and collectives" : "Computing and copies");
  fill("bar", element("p", {}, "Point at or tap a bar to see what it is."));
  return new View("lanes", {
    title: "Lanes over time", room: r.corun ? 66 : 0, range: [0, r.iteration_ns], least: 1000, height: levelTop(r) + LEVEL_HEIGHT + 24,
    paint: paintLanes(r), find: findBar(r), read: readBar(r), count: () => r.bars.length, legend: laneLegend(r),
    extent: (i) => [r.bars[i].begin, r.bars[i].end], where: (low, high) => moment(low) + " to " + moment(high),
  });
}
