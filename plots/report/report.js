/* The report: what it says in words, and which strategy its charts show. */

const shown = {result: null, other: null, views: []};

/* What the device leaves for the pool. */
function poolRoom(r) {
  const left = run.memory - (r.device - r.pool);
  return run.pool_limit ? Math.min(run.pool_limit, left) : left;
}

/* The strategies that the verdict is chosen from: those of its runtime; all where the run has none, or none of them. */
const answer = data.answer && results.some((r) => r.runtime === data.answer.runtime) ? data.answer : null;
const judged = answer ? results.filter((r) => r.runtime === answer.runtime) : results;

/* The fastest that fits, of equally fast ones the one that needs least: named first, and shown first. */
function fastest() {
  const before = (a, b) => a.iteration_ns < b.iteration_ns || (a.iteration_ns === b.iteration_ns && a.device < b.device);
  return judged.filter((r) => r.fits).reduce((best, r) => (!best || before(r, best) ? r : best), null);
}

/* The least memory with which a strategy runs; where none is known, what its plan takes. */
function needed(r) {
  return r.least || (judged.some((other) => other.least) ? Infinity : r.device);
}

function smallest() {
  return judged.reduce((best, r) => (needed(r) < needed(best) ? r : best));
}

function ofMemory(r) {
  return bytes(r.device) + " of " + bytes(run.memory) + " (" + percent(r.device, run.memory) + ")";
}

/* The answer in a sentence or two. */
function verdictFits(best) {
  const least = smallest(), plain = results.find((r) => r.strategy === "baseline");
  const fit = results.filter((r) => r.fits).length;
  const which = fit === results.length ? "All " + fit + " strategies tried fit" : fit + " of the " + results.length +
                                         " strategies tried " + (fit === 1 ? "fits" : "fit");
  const tried = results.length > 1 ? which + "; the fastest is " : "It was tried with the strategy ";
  let text = tried + best.strategy + ": " + time(best.iteration_ns) + " per training iteration, " +
             imagesPerSecond(best).toFixed(1) + " " + UNIT + " per second, with " + ofMemory(best) + " of GPU memory.";
  if (plain && !plain.fits) text += " Without saving memory (baseline) it would need " + bytes(plain.least || plain.device) + ", which does not fit.";
  if (least.least) text += " The least memory is needed by " + least.strategy + ", which runs with " + bytes(least.least) + ".";
  return text;
}

function verdictFails() {
  return (results.length > 1 ? "None of the " + results.length + " strategies tried fits: " : "The strategy tried does not fit: ") +
         (data.remedy || bytes(needed(smallest())) + " needed") + ".";
}

/* ---- the answer that the run was stored with, as the screen has it ---- */

const TITLES = {pytorch: "PyTorch", superneurons: "SuperNeurons' runtime", mxnet: "MXNet", singa: "SINGA"};
const HEADS = {yes: "Yes, it fits: ", tight: "Yes, barely: ", no: "Not as it stands: "};

/* "Not as it stands; it fits with 2 batches of 256, gradients added: vit_b_16 .." */
function headOf(best) {
  const first = answer && answer.changes[0];
  if (run.device) return "Measured: ";
  if (answer && answer.verdict === "no" && first) return "Not as it stands; it fits with " + first.what + ": ";
  return answer ? HEADS[answer.verdict] : best ? "Yes, it fits: " : "No, it does not fit: ";
}

function answerText() {
  const left = answer.margin_bytes;
  let text = "In " + TITLES[answer.runtime] + " it needs " + bytes(answer.needed_bytes) + " and there are " + bytes(answer.usable_bytes) + ": " +
             (left < 0 ? bytes(-left) + " too much" : bytes(left) + " are left") + ".";
  if (answer.needed_bytes === 0) text = "No memory is enough, as the host has less than is sent there.";
  if (answer.one_batch) text += " It was recorded at this batch alone.";
  if (answer.largest_batch !== null) text += answer.largest_batch ? " The largest batch as it stands is " + answer.largest_batch + (answer.largest_host_bytes ? ", with " + (answer.largest_host_bytes / 2 ** 30).toFixed(1) + " GiB of RAM." : ".") : " Not even a batch of 1 fits.";
  return text;
}

/* Two digits of times that nobody calibrated, three of others. */
function rough(value) {
  const digits = answer.bands.time.startsWith("times measured") ? 3 : 2;
  return value >= 10 ** digits ? String(Number(value.toPrecision(digits))) : value.toPrecision(digits);
}

/* What it takes where there is room may be more than what it needs. */
function taken(change) {
  const less = change.change === "none" && change.device_bytes - answer.needed_bytes >= 0.05 * 2 ** 30;
  return bytes(change.device_bytes) + " (" + percent(change.device_bytes, answer.usable_bytes) + ")" + (less ? "; " + bytes(answer.needed_bytes) + " will do" : "");
}

function changeRow(change, first) {
  const cells = [first ? "\u2605 " + change.what : change.what, taken(change),
                 rough(change.iteration_ns / 1e6) + " ms", rough(change.images_per_s), change.host_bytes ? bytes(change.host_bytes) : "-"];
  return element("tr", {class: first ? "best" : ""}, ...cells.map((text, i) => element("td", {class: i ? "" : "text"}, text)));
}

function changesTable() {
  const heads = [answer.verdict === "yes" ? "What else there is to gain" : "What to change", "GPU memory", "A step", UNIT + "/s", "Host memory"];
  return element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": heads[0]},
                 element("table", {id: "changes"},
                         element("thead", {}, element("tr", {}, ...heads.map((text, i) => element("th", {class: i ? "" : "text"}, element("span", {}, text))))),
                         element("tbody", {}, ...answer.changes.map((change, i) => changeRow(change, i === 0 && answer.verdict !== "yes")))));
}

/* Where there is nothing to change and nothing else to gain, the sentence says all. */
function drawChanges() {
  const first = answer.changes[0], parts = [];
  if (answer.changes.length > 1 || (first && first.change !== "none")) parts.push(changesTable());
  if (first && first.calls.length) parts.push(element("p", {}, "In PyTorch:"), element("pre", {}, first.calls.join("\n")));
  if (answer.note) parts.push(...answer.note.split("\n").map((line) => element("p", {class: "soft"}, line[0].toUpperCase() + line.slice(1) + ".")));
  if (answer.where.length)
    parts.push(element("p", {}, "Where the memory is " + answer.where_moment + ": " +
                       answer.where.map((part) => part.group + " " + bytes(part.bytes) + (part.advice ? " (" + part.advice + ")" : "")).join("; ") + "."));
  if (answer.bands.memory) parts.push(element("p", {class: "soft"}, "Measured elsewhere: " + answer.bands.memory + "; " + answer.bands.time + "."));
  fill("answer", ...parts);
}

/* `value`: a name or a number, which breaks where names do, or an element. */
function tile(name, value, note) {
  const parts = typeof value === "string" ? breakable(value, true) : [value];
  return element("div", {}, element("dt", {}, name), element("dd", {}, ...parts, element("small", {}, note)));
}

const SPEED = run.recorded ? "Samples per second" : run.tokens ? "Sequences per second" : "Images per second";
const LOAD = (run.inference ? "running" : "training") + ", batch " + run.batch + (run.accumulate > 1 ? ", " + run.accumulate + " an update" : "");

/* Where the loop does not fit as it stands, what is to be done about it. */
function drawChangeTiles(change) {
  fill("tiles",
       tile("What to change", element("span", {}, change.what), change.options ? "snsim .. " + change.options : ""),
       tile("GPU memory it takes then", bytes(change.device_bytes), percent(change.device_bytes, run.memory) + " of " + bytes(run.memory)),
       tile("One iteration", rough(change.iteration_ns / 1e6) + " ms", change.accumulate > 1 ? change.accumulate + " batches of " + change.batch : "batch " + change.batch),
       tile(SPEED, rough(change.images_per_s), change.precision + ", " + change.optimizer),
       tile("Host memory", change.host_bytes ? bytes(change.host_bytes) : "none", change.host_bytes ? "for what waits there" : "nothing is offloaded"));
}

function drawTiles(best) {
  if (answer && answer.verdict === "no" && answer.changes.length) return drawChangeTiles(answer.changes[0]);
  const r = best || smallest(), stands = answer && answer.runtime === "pytorch" && r.strategy === answer.strategy;
  fill("tiles",
       tile(stands || judged.length === 1 ? "As it stands" : best ? "Fastest strategy that fits" : "Needs the least", r.strategy, best && !stands && judged.length > 1 ? "of " + judged.length + " strategies" : ""),
       tile(best ? "GPU memory its plan takes" : "GPU memory needed", bytes(best ? r.device : r.least || r.device), percent(best ? r.device : r.least || r.device, run.memory) + " of " + bytes(run.memory) + (run.nominal ? ", the nominal size" : "")),
       tile("One iteration", best ? stands ? rough(r.iteration_ns / 1e6) + " ms" : time(r.iteration_ns) : "-", !best ? "does not fit" : r.stall_ns ? percent(r.stall_ns, r.iteration_ns) + " of it waiting for " + awaited(r) : "never waiting for " + awaited(r)),
       tile(SPEED, best ? stands ? rough(imagesPerSecond(r)) : imagesPerSecond(r).toFixed(1) : "-", best ? LOAD : "does not fit"),
       tile("Copied per iteration", bytes(r.out + r.in), r.external ? bytes(r.external) + " of " + run.external + " memory" : "nothing is offloaded"));
}

function drawVerdict() {
  const best = answer ? results.find((r) => r.strategy === answer.strategy && r.fits) || fastest() : fastest();
  const fits = answer ? answer.verdict !== "no" : Boolean(best);
  const head = headOf(best) + run.net + " with batch " + run.batch + " on " + (run.device || run.on);
  fill("verdict", element("strong", {}, head), element("p", {}, answer ? answerText() : fits ? verdictFits(best) : verdictFails()));
  at("verdict").className = fits ? "fits" : "fails";
  if (answer) drawChanges();
  drawTiles(best);
}

function drawFacts() {
  fill("facts", [run.layers + " layers", count(run.parameters) + " parameters", run.recorded ? "as recorded from PyTorch" : run.tokens ? "sequences of " + run.image_height + " tokens" : (run.image_depth ? "volumes " + run.image_depth + " x " : "images ") + run.image_height + " x " + run.image_width,
                 "workspace " + run.workspace, "allocator " + run.allocator, run.inference ? "run, not trained" : run.optimizer === "momentum" ? "" : "optimizer " + run.optimizer, run.accumulate > 1 ? run.accumulate + " batches an update" : "", run.precision === "fp32" ? "" : run.precision, answer && answer.fp32_loss ? "loss in float32" : "", run.freeze && "frozen: " + run.freeze, "offloading to " + run.external +
                 (run.shared_link ? " over a shared link" : ""), run.pool_limit ? "pool limited to " + bytes(run.pool_limit) : "",
                 run.host_memory ? "host memory limited to " + bytes(run.host_memory) : "",
                 "run " + run.id].filter((x) => x).join(" \u00b7 "));
  fill("made", (run.device ? "Executed by snsim " : "Simulated by snsim ") + run.version + (run.created ? " on " + run.created + " UTC" : "") +
       ". Sizes are powers of 1024. " +
       (run.device ? "The table's times are medians; what runs when is the iteration that took least."
                   : "Times are of the simulator's model of the GPU, not measured."));
}

/* ---- the strategy shown ---- */

function explain(r) {
  const parts = [r.fits ? "needs " + ofMemory(r) + " of GPU memory and fits" : "needs " + bytes(r.device) + ", which does not fit in " + bytes(run.memory)];
  if (r.out) parts.push("copies " + bytes(r.out) + " out and " + bytes(r.in) + " in");
  if (r.reruns) parts.push("runs " + r.reruns + " layers' forward again");
  if (r.stall_ns) parts.push("waits " + time(r.stall_ns) + " for " + awaited(r));
  if (r.allocation_ns) parts.push("waits " + time(r.allocation_ns) + " for cudaMalloc and cudaFree");
  const times = r.fits ? "; an iteration takes " + time(r.iteration_ns) : "; times are those of a GPU with enough memory";
  fill("explained", element("strong", {}, ...breakable(r.strategy)), (r.does ? ": " + r.does + ". It " : " ") + parts.join(", ") + times + ".");
  fill("device-text", stackSentence(r) + " Point, tap or use the arrow keys to look at a step.");
}

function drawChooser() {
  const numbered = results.map((r, i) => [String(i), r.strategy + (r.fits ? "" : " (does not fit)")]);
  options("strategy", numbered, String(results.indexOf(shown.result)));
  const alike = numbered.filter((_, i) => results[i].graph === shown.result.graph); /* steps of another graph are others */
  options("other", [["", "nothing"], ...alike], shown.other ? String(results.indexOf(shown.other)) : "");
}

function drawShown() {
  const r = unpack(shown.result);
  if (shown.other) unpack(shown.other);
  explain(r);
  drawStack();
  drawCurve();
  shown.views = [drawLanes(r), drawPool(r)];
  drawPeak(r);
}

function show(r) {
  lookAt(r);
  shown.result = r;
  if (shown.other === r || (shown.other && shown.other.graph !== r.graph)) shown.other = null;
  curve.step = r.peak_step - 1;
  stack.step = stackOf(unpack(r)).peak;
  const had = at("strategies").contains(document.activeElement);
  drawChooser();
  strategies.draw();
  drawShown();
  if (had) at("strategies").querySelector("tr.shown button").focus();
}

/* A sentence for each strategy that the table has. */
function drawSentences() {
  const known = results.filter((r) => r.does);
  fill("does", ...known.flatMap((r) => [element("dt", {}, ...breakable(r.strategy)), element("dd", {}, r.does + ".")]));
  at("does").parentElement.hidden = known.length === 0;
}

function redrawAll() {
  drawStack();
  drawCurve();
  for (const view of shown.views) view.redraw();
}

function start() {
  const best = (answer && results.find((r) => r.strategy === answer.strategy)) || fastest() || smallest(), plain = results.find((r) => r.strategy === "baseline");
  shown.other = plain && plain !== best && plain.graph === best.graph && plain.peak <= 2.5 * best.peak ? plain : null; /* else it would flatten the curve */
  drawVerdict();
  drawFacts();
  strategies.set(results);
  drawSentences();
  show(best);
  at("strategy").addEventListener("change", (event) => show(results[Number(event.target.value)]));
  at("other").addEventListener("change", (event) => {
    shown.other = event.target.value === "" ? null : unpack(results[Number(event.target.value)]);
    drawCurve();
  });
  onResize(redrawAll);
}

start();
