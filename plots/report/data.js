/* The report's data: what plots/page_data.c wrote, with differences summed up again. */
const data = JSON.parse(document.getElementById("data").textContent);
const run = data.run, results = data.results;
const N = data.forward, T = data.trained; /* forward steps, and those with the backward ones behind them */
const PASSES = {f: "forward", b: "backward", u: "update"};
const BAR_KINDS = ["compute", "out", "in", "stall", "alloc", "release"];
const BLOCK = 1024;

/* Running sums of differences. */
function summed(differences, first) {
  const all = new Float64Array(differences.length);
  let sum = first;
  for (let i = 0; i < all.length; i++) all[i] = sum += differences[i];
  return all;
}

function unpackSteps(r) {
  const s = r.steps, n = s.count.length;
  s.first = new Float64Array(n + 1);
  for (let i = 0; i < n; i++) s.first[i + 1] = s.first[i] + s.count[i];
  r.place = new Float64Array(s.first[n] + 1); /* of an instruction on the step axis: step s has [s, s + 1) */
  for (let i = 0, k = 0; i < n; i++)
    for (; k < s.first[i + 1]; k++) r.place[k] = i + 1 + r.places[k] / 1000;
  r.place[s.first[n]] = n + 1;
  r.places = null;
}

function unpackBars(r) {
  const n = r.bars.code.length, step = summed(r.bars.dstep, 1), end = [0, 0, 0];
  const counts = new Array(n).fill(null);
  r.bars = counts.map((_, i) => {
    const code = r.bars.code[i], lane = (code >> 1) & 3, begin = end[lane] + r.gaps[i];
    end[lane] = begin + r.bars.ns[i];
    return {kind: BAR_KINDS[code >> 3], lane, rerun: (code & 1) === 1, what: r.bars.what[i], step: step[i], begin,
            end: end[lane]};
  });
  r.bars.forEach((bar, i) => { /* a workspace's cudaMalloc and cudaFree stand around what has it */
    if (bar.what < 0 && bar.kind === "alloc") bar.of = r.bars[i + 1];
    if (bar.what < 0 && bar.kind === "release") bar.of = r.bars[i - 1];
  });
  r.gaps = null;
}

function unpackRects(r) {
  const from = summed(r.rects.dfrom, 0), columns = r.rects;
  r.rects = Array.from(from, (begin, i) => {
    const to = begin + columns.length[i];
    return {tensor: columns.tensor[i], from: begin, to, x0: r.place[begin], x1: r.place[to], offset: columns.block[i] * BLOCK,
            bytes: columns.blocks[i] * BLOCK};
  });
}

/* A result's columns become rows when it is first looked at. */
function unpack(r) {
  if (r.ready) return r;
  unpackSteps(r);
  unpackBars(r);
  unpackRects(r);
  r.levels.ns = summed(r.levels.dns, 0);
  r.ready = true;
  return r;
}

/* The tensors that are in the pool at the fullest moment of a step (an index), largest first. */
function liveAt(r, step) {
  const moment = r.steps.first[step] + r.steps.fullest[step];
  return r.rects.filter((x) => x.tensor >= 0 && x.from < moment && moment <= x.to)
    .sort((a, b) => data.bytes[b.tensor] - data.bytes[a.tensor] || a.tensor - b.tensor);
}

function rectName(rect) {
  return rect.tensor >= 0 ? data.tensors[rect.tensor] : "workspace";
}

function stepName(step) { /* from 1 */
  return data.layers[step - 1] + " " + PASSES[data.passes[step - 1]];
}

function barName(r, bar) {
  if (bar.kind === "compute") return stepName(bar.what + 1) + (bar.rerun ? ", run again" : "");
  if (bar.kind === "stall") return bar.what < 0 ? "waits" : "waits for " + barName(r, r.bars[bar.what]);
  const verb = {out: "copy out of ", in: "copy in of ", alloc: "cudaMalloc of ", release: "cudaFree of "};
  return verb[bar.kind] + (bar.of ? "the workspace of " + barName(r, bar.of) : data.tensors[bar.what]);
}

/* A moment of the iteration, fine enough to tell short bars apart. */
function moment(ns) {
  return (ns / 1e6).toFixed(3) + "\u00a0ms";
}

function imagesPerSecond(r) {
  return run.batch * run.accumulate / (r.iteration_ns / 1e9);
}
