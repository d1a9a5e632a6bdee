/* The report's data: what plots/page/page_data.c wrote, with differences summed up again. */
const data = JSON.parse(document.getElementById("data").textContent);
const run = data.run, results = data.results;
let N, T; /* of the graph looked at: forward steps, and those with the backward ones behind them */
const PASSES = {f: "forward", b: "backward", u: "update"};
const BAR_KINDS = ["compute", "out", "in", "stall", "alloc", "release"];
const BLOCK = 1024, CACHING_BLOCK = 512, LANES = 13, FIRST_LINK = 8; /* from there on: lanes of links to other GPUs */
const PARTS_OF_STEPS = ["", ", filter", ", data"];

/* Steps and tensors are those of a graph, and several strategies may share one: `data` has the members of the one that
 * is looked at. */
function lookAt(r) {
  Object.assign(data, data.graphs[r.graph]);
  [N, T] = [data.forward, data.trained];
}

/* Running sums of differences. */
function summed(differences, first) {
  const all = new Float64Array(differences.length);
  let sum = first;
  for (let i = 0; i < all.length; i++) all[i] = sum += differences[i];
  return all;
}

/* The axis of columns: a step each, or where operations run side by side an operation each, in the order of their starts.
 * r.first: its first instruction; r.place: of an instruction on the axis, column c has [c + 1, c + 2). */
function unpackColumns(r) {
  const {count, dstep} = r.columns, n = count.length;
  r.first = new Float64Array(n + 1);
  for (let i = 0; i < n; i++) r.first[i + 1] = r.first[i] + count[i];
  r.place = new Float64Array(r.first[n] + 1);
  for (let i = 0, k = 0; i < n; i++)
    for (; k < r.first[i + 1]; k++) r.place[k] = i + 1 + r.places[k] / 1000;
  r.place[r.first[n]] = n + 1;
  r.stepOf = summed(dstep, 0);
  r.corun = Boolean(r.teams);
  r.divide = r.stepOf.findIndex((step) => step >= N); /* columns of forward steps; backward ones are behind them */
  r.steps.fullest = summed(r.steps.dfullest, 0);
  r.places = r.columns = null;
}

/* What an operation runs on: its part of the step, and its cores. */
function teamOf(r, i) {
  return {part: r.teams.part[i], slot: r.teams.slot[i], first: r.teams.first[i], cores: r.teams.cores[i]};
}

function unpackBars(r) {
  const n = r.bars.code.length, step = summed(r.bars.dstep, 1), end = new Float64Array(LANES);
  const counts = new Array(n).fill(null);
  r.bars = counts.map((_, i) => {
    const code = r.bars.code[i], lane = (code >> 1) % LANES, begin = end[lane] + r.gaps[i];
    end[lane] = begin + r.bars.ns[i];
    return {kind: BAR_KINDS[Math.floor(code / (2 * LANES))], lane, rerun: (code & 1) === 1, what: r.bars.what[i], step: step[i],
            begin, end: end[lane], team: r.corun ? teamOf(r, i) : null};
  });
  r.bars.forEach((bar, i) => { /* a workspace's cudaMalloc and cudaFree stand around what has it */
    if (bar.what < 0 && bar.kind === "alloc") bar.of = r.bars[i + 1];
    if (bar.what < 0 && bar.kind === "release") bar.of = r.bars[i - 1];
  });
  r.operations = r.corun ? r.bars.filter((bar) => bar.kind === "compute") : [];
  r.gaps = r.teams = null;
}

function unpackRects(r) {
  const from = summed(r.rects.dfrom, 0), columns = r.rects;
  r.rects = Array.from(from, (begin, i) => {
    const to = begin + columns.length[i];
    const offset = columns.block[i] * BLOCK, size = columns.blocks[i] * BLOCK;
    return {tensor: columns.tensor[i], from: begin, to, x0: r.place[begin], x1: r.place[to], bytes: size,
            at: r.served ? columns.at[i] * CACHING_BLOCK : offset, size: r.served ? columns.size[i] * CACHING_BLOCK : size};
  });
}

/* A result's columns become rows when it is first looked at. */
function unpack(r) {
  if (r.ready) return r;
  unpackColumns(r);
  unpackBars(r);
  unpackRects(r);
  r.levels.ns = summed(r.levels.dns, 0);
  r.ready = true;
  return r;
}

/* The tensors that are in the pool at the fullest moment of a step (an index), largest first. */
function liveAt(r, step) {
  const moment = r.steps.fullest[step];
  return r.rects.filter((x) => x.tensor >= 0 && x.from < moment && moment <= x.to)
    .sort((a, b) => data.bytes[b.tensor] - data.bytes[a.tensor] || a.tensor - b.tensor);
}

function rectName(rect) {
  return rect.tensor >= 0 ? data.tensors[rect.tensor] : "workspace";
}

function stepName(step) { /* from 1 */
  return data.layers[step - 1] + " " + PASSES[data.passes[step - 1]];
}

function isCollective(bar) {
  return bar.kind === "compute" && bar.lane >= FIRST_LINK;
}

function barName(r, bar) {
  if (isCollective(bar)) return data.ops[bar.what] + " at " + stepName(bar.what + 1);
  if (bar.kind === "compute")
    return stepName(bar.what + 1) + (bar.team ? PARTS_OF_STEPS[bar.team.part] : "") + (bar.rerun ? ", run again" : "");
  if (bar.kind === "stall") return bar.what < 0 ? "waits" : "waits for " + barName(r, r.bars[bar.what]);
  const verb = {out: "copy out of ", in: "copy in of ", alloc: "cudaMalloc of ", release: "cudaFree of "};
  return verb[bar.kind] + (bar.of ? "the workspace of " + barName(r, bar.of) : data.tensors[bar.what]);
}

/* What computing waits for: copies to and from the host, collectives, or both; where it never waits, what it could wait for. */
function awaited(r, one) {
  const bars = unpack(r).bars, stalls = bars.filter((bar) => bar.kind === "stall" && bar.lane === 0);
  const waited = stalls.length ? stalls.map((bar) => bars[bar.what]) : bars.filter((bar) => bar.lane > 0);
  const collective = waited.some((bar) => bar && isCollective(bar)), copy = waited.some((bar) => !bar || !isCollective(bar));
  const words = [copy || !collective ? (one ? "a copy" : "copies") : "", collective ? (one ? "a collective" : "collectives") : ""];
  return words.filter((word) => word).join(one ? " or " : " and ");
}

/* Of a column of the axis, from 1: "conv1 forward"; and its number, "step 12" or "operation 12". */
function columnName(r, column) {
  return r.corun ? barName(r, r.operations[column - 1]) : stepName(column);
}

function columnWord(r) {
  return r.corun ? "operation" : "step";
}

/* The first column (from 0) of a step (from 1). */
function columnOf(r, step) {
  return r.stepOf.indexOf(step - 1);
}

/* "cores 0 to 39", "second hardware threads of cores 0 to 67", "34 threads" */
function teamName(team) {
  if (team.slot === 2) return team.cores + " threads, which float over all cores";
  return (team.slot ? "second hardware threads of " : "") +
         (team.cores === 1 ? "core " + team.first : "cores " + team.first + " to " + (team.first + team.cores - 1));
}

/* A moment of the iteration, fine enough to tell short bars apart. */
function moment(ns) {
  return (ns / 1e6).toFixed(3) + "\u00a0ms";
}

/* What a batch is of. */
const UNIT = run.recorded ? "samples" : run.tokens ? "sequences" : "images";

/* What a tensor is by its letter: how it is called, and its colour. */
const KINDS = {o: ["layer output", "forward"], s: ["saved for backward", "in"], g: ["gradient", "backward"],
               p: ["gradient of parameters", "stall"], x: ["scratch", "alloc"], c: ["carried over", "out"]};
function kindOf(tensor) { return KINDS[data.kinds[tensor]] || KINDS.o; }

/* Of all GPUs. */
function imagesPerSecond(r) {
  return run.batch * run.accumulate * run.copies / (r.iteration_ns / 1e9);
}
