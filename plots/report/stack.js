/* Everything on the device: an SVG of all its memory over the steps as one stack, by what it is of, against what the GPU
 * has; the step that sets the memory is marked, and the legend says what is in the stack at the step under the cursor.
 * data.parts: names and colours from the bottom of the stack to its top, the same as in the pictures of snsim plot. */

const PARTS = {context: 0, parameters: 1, gradients: 2, momentum: 3, data: 4, workspace: data.parts.length - 2,
               holes: data.parts.length - 1};
const stack = {step: 0};

/* The first step whose moment is not before `moment`; moments do not fall. */
function stepFrom(moments, moment) {
  let low = 0, high = moments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (moments[middle] < moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Bytes of every part at every step (a column of the axis), [part][step], where the step's highest address is in use; see
 * sim/play/footprint.h. */
function makeStack(r) {
  const n = r.shown, all = data.parts.map(() => new Float64Array(n + 1));
  const moments = Float64Array.from({length: n}, (_, i) => r.first[i] + r.needs.moment[i]);
  for (const rect of r.rects) {
    if (rect.tensor < 0) {
      const step = Math.floor(rect.x0) - 1;
      if (moments[step] === rect.from) all[PARTS.workspace][step] += rect.bytes;
      continue;
    }
    const sums = all[data.part[rect.tensor]];
    sums[stepFrom(moments, rect.from + 1)] += rect.bytes;
    sums[stepFrom(moments, rect.to + 1)] -= rect.bytes;
  }
  const stays = [r.context, r.parameter_bytes, r.gradient_bytes, r.optimizer_bytes, r.auxiliary_bytes + r.input_bytes];
  for (let i = 0; i < n; i++) {
    let used = all[PARTS.workspace][i];
    for (let p = stays.length; p < PARTS.workspace; p++) {
      if (i > 0) all[p][i] += all[p][i - 1];
      used += all[p][i];
    }
    stays.forEach((size, p) => { all[p][i] = size; });
    all[PARTS.holes][i] = r.needs.top[i] * BLOCK - used;
  }
  const top = Array.from({length: n}, (_, i) => all.reduce((sum, part) => sum + part[i], 0));
  const own = top.map((height, i) => (r.stepOf[i] === r.pool_step - 1 ? height : 0)), seen = r.pool_step ? own : top;
  return {bytes: all, top, peak: seen.indexOf(seen.reduce((most, height) => Math.max(most, height), 0))};
}

function stackOf(r) {
  return r.stack || (r.stack = makeStack(r));
}

/* Where the GPU has more than three times what is needed, its line would flatten everything. */
function stackFrame(k) {
  const width = Math.max(280, at("device").clientWidth), height = width < 500 ? 300 : 400, need = k.top[k.peak];
  const limit = run.memory <= 3 * need ? run.memory : 0, most = Math.max(need, limit);
  const unit = most >= 2 * GIB ? GIB : most >= 2 * MIB ? MIB : KIB, left = 58, right = 18, top = 40, bottom = 40, n = shown.result.shown;
  const close = limit && limit > 0.95 * need && limit < 1.2 * need; /* the peak's name stands above the line */
  const high = (close ? limit * 1.16 : Math.max(need * 1.16, limit * 1.08));
  return {width, height, left, right, top, bottom, n, unit, most, live: 0, limit, need, close, high,
          x: (step) => left + step * (width - left - right) / n,
          y: (value) => height - bottom - value / high * (height - top - bottom)};
}

function stackAxes(f) {
  const unit = f.unit === GIB ? "GiB" : f.unit === MIB ? "MiB" : "KiB", half = f.x(shown.result.divide);
  const heights = marks(f.high / f.unit, f.height < 350 ? 4 : 6), step = heights[1] || 1;
  return [...heights.flatMap((m) => [svg("line", {class: "grid", x1: f.left, x2: f.width - f.right, y1: f.y(m * f.unit), y2: f.y(m * f.unit)}),
                                     label(f.left - 6, f.y(m * f.unit) + 4, "end", digits(m, step))]),
          ...wholeMarks(f.n, f.width < 500 ? 4 : 9).filter((m) => m > 0).map((m) => label(f.x(m - 0.5), f.height - f.bottom + 16, "middle", String(m))),
          label(2, 14, "start", unit), label((f.left + f.width - f.right) / 2, f.height - 6, "middle", columnWord(shown.result)),
          ...(f.limit ? [] : [label(f.width - 2, 14, "end", "usable on " + run.gpu + ": " + bytes(run.memory), "fill:var(--bad)")]),
          label(half - 8, f.top - 10, "end", "forward \u2190"), label(half + 8, f.top - 10, "start", "\u2192 backward")];
}

/* The parts from the whole down, each over the one before: lower ones cover what is not theirs. */
function stackAreas(f, k) {
  const sum = Float64Array.from(k.top), areas = [];
  for (let p = data.parts.length - 1; p >= 0; p--) {
    const heights = Float64Array.from(sum);
    areas.push(svg("path", {d: area(f, (i) => heights[i]), style: "fill:" + data.parts[p][1]}));
    for (let i = 0; i < f.n; i++) sum[i] -= k.bytes[p][i];
  }
  return areas;
}

/* Of a long name the end says more. */
function ending(name, most) {
  return name.length <= most ? name : "\u2026" + name.slice(name.length - most);
}

function stackMarks(f, k) {
  const half = f.x(shown.result.divide), step = shown.result.stepOf[k.peak], x = f.x(k.peak + 0.5), share = (k.peak + 0.5) / f.n, peak = f.y(f.need);
  const anchor = share < 0.35 ? "start" : share > 0.65 ? "end" : "middle", text = (f.close ? f.y(f.limit) : peak) - 14;
  const parts = [svg("line", {class: "axis", x1: half, x2: half, y1: peak, y2: f.height - f.bottom, "stroke-dasharray": "4 3"})];
  if (f.limit)
    parts.push(svg("line", {x1: f.left, x2: f.width - f.right, y1: f.y(f.limit), y2: f.y(f.limit), style: "stroke:var(--bad);stroke-width:2"}),
               f.close ? label(f.left + 4, f.y(f.limit) + 15, "start", "usable on " + ending(run.gpu, 16) + ": " + bytes(run.memory), "fill:var(--bad)")
                       : label(f.left + 4, f.y(f.limit) - 6, "start", "usable on " + ending(run.gpu, 16) + ": " + bytes(run.memory), "fill:var(--bad)"));
  parts.push(svg("line", {x1: x, x2: x, y1: text + 4, y2: peak - 1, style: "stroke:var(--ink);stroke-width:1.2"}),
             svg("path", {d: "M" + (x - 4) + " " + (peak - 7) + "h8l-4 7z", style: "fill:var(--ink)"}),
             label(x, text, anchor, bytes(f.need) + " at step " + (step + 1) +
                   (f.width < 500 ? "" : ", " + ending(data.layers[step], 40) + " " + PASSES[data.passes[step]]),
                   "fill:var(--ink);font-weight:600"));
  return parts;
}

function drawStack() {
  const k = stackOf(shown.result), f = stackFrame(k);
  stack.frame = f;
  const drawing = svg("svg", {width: f.width, height: f.height, viewBox: "0 0 " + f.width + " " + f.height, tabindex: 0,
                              role: "slider", "aria-label": "Step", "aria-valuemin": 1, "aria-valuemax": f.n},
    ...stackAxes(f), ...stackAreas(f, k), ...stackMarks(f, k),
    svg("rect", {class: "step", x: f.x(stack.step), width: Math.max(1.5, f.x(1) - f.x(0)), y: f.top, height: f.height - f.top - f.bottom,
                 style: "fill:var(--ink);fill-opacity:.2"}));
  follow(drawing, {count: f.n, at: () => stack.step, move: moveStack,
                   index: (x) => Math.floor((x - f.left) / (f.width - f.left - f.right) * f.n)});
  const had = at("device").contains(document.activeElement);
  fill("device", drawing);
  if (had) drawing.focus();
  readStack();
}

function moveStack(step) {
  stack.step = step;
  at("device").querySelector("rect.step").setAttribute("x", stack.frame.x(step));
  readStack();
}

/* The legend, the stack's top first, with what is there at the step. */
function readStack() {
  const k = stackOf(shown.result), i = stack.step, used = k.bytes.map((part) => part.some((value) => value > 0));
  const rows = data.parts.map(([name, color], p) => element("li", {class: k.bytes[p][i] > 0 ? "" : "none"},
    element("i", {class: "key", style: "background-color:" + color}), element("span", {}, name),
    element("span", {}, k.bytes[p][i] > 0 ? bytes(k.bytes[p][i]) : "-"))).filter((_, p) => used[p]).reverse();
  const r = shown.result, word = columnWord(r);
  const title = word[0].toUpperCase() + word.slice(1) + " " + (i + 1) + " of " + r.shown + ": " + columnName(r, i + 1), sum = bytes(k.top[i]);
  fill("device-step", element("h3", {}, title),
       element("p", {}, sum + " on the device" + (i === k.peak ? ": the most of all " + word + "s" : "")),
       element("ol", {class: "stacked", "aria-label": "What is on the device, from the top of the stack"}, ...rows));
  const drawing = at("device").querySelector("svg");
  drawing.setAttribute("aria-valuenow", i + 1);
  drawing.setAttribute("aria-valuetext", title + ", " + sum);
}

/* What sets the memory, in a sentence. */
function stackSentence(r) {
  const k = stackOf(r), i = k.peak, tensors = k.bytes.slice(PARTS.data + 1, PARTS.workspace).reduce((sum, part) => sum + part[i], 0);
  const stays = k.bytes.slice(0, PARTS.data + 1).reduce((sum, part) => sum + part[i], 0);
  const parts = [[stays, "that stay for the whole training"], [tensors, "of tensors"], [k.bytes[PARTS.workspace][i], "of convolution workspace"],
                 [k.bytes[PARTS.holes][i], "of holes between them"]].filter(([size]) => size > 0).map(([size, what]) => bytes(size) + " " + what);
  return r.strategy + " needs " + bytes(k.top[i]) + ", which step " + (r.stepOf[i] + 1) + ", " + stepName(r.stepOf[i] + 1) + ", sets: " +
         parts.slice(0, -1).join(", ") + " and " + parts[parts.length - 1] + ". " + bytes(run.memory) + " are usable on " + run.gpu + "." + (r.pool_advice ? " What would lower it: " + r.pool_advice + "." : "");
}
