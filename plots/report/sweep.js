/* The report of a sweep: what it says in words, and what its charts show. */

const SENTENCES = 6; /* beyond that the table says it */

function fitText() {
  if (sweep.fit === 0) return "None of " + several(N, "point") + " fits";
  if (sweep.fit === N) return N === 1 ? "The point fits" : "All " + N + " points fit";
  return sweep.fit + " of " + N + " points " + (sweep.fit === 1 ? "fits" : "fit");
}

function drawVerdict() {
  const missing = sweep.points - N;
  const more = [missing ? several(missing, "point") + " of the grid " + (missing === 1 ? "is" : "are") + " not computed yet" : "",
                sweep.failed ? several(sweep.failed, "point") + " could not be computed" : ""].filter((x) => x).join("; ");
  const none = pairs.filter((p) => p.fit === 0);
  const lines = pairs.length <= SENTENCES ? pairs.map(pairSentence)
    : [none.length === 0
         ? "Each of the " + pairs.length + " combinations of network and GPU has a " + X.word + " and a strategy that fit; the " + X.best + " are in the table below."
         : "Nothing fits for " + none.length + " of " + pairs.length + " combinations of network and GPU: " +
           none.slice(0, SENTENCES).map(pairName).join(", ") + (none.length > SENTENCES ? " and others" : "") + "."];
  const alone = pairs.length === 1 && pairs[0].fit > 0; /* then its sentence is the answer */
  fill("verdict", element("strong", {}, alone ? lines.shift() : fitText()), ...(alone ? [element("p", {}, fitText() + ".")] : []), ...(more ? [element("p", {}, more + ".")] : []), ...lines.map((line) => element("p", {}, line)));
  at("verdict").className = sweep.fit ? "fits" : "fails";
}

/* ---- what was tried ---- */

const SHOWN_VALUES = 16;

function listed(values) {
  if (values.length <= SHOWN_VALUES) return values.join(", ");
  return values.slice(0, SHOWN_VALUES - 2).join(", ") + " .. " + values[values.length - 1];
}

/* The stored text of the grid; what it lacks, or all of it where it cannot be read, is taken from the points. */
function gridValues() {
  let grid = null;
  try { grid = JSON.parse(sweep.grid); } catch (problem) { /* the points say enough */ }
  const batches = [...new Set(columns.batch)].sort((a, b) => a - b);
  const of = (key, otherwise) => (grid && Array.isArray(grid[key]) ? grid[key].map(String) : otherwise.map(String));
  return {rows: [["networks", of("nets", names.net)], ["batches", of("batches", batches)], ["GPUs", of("gpus", names.gpu)], ["split over", names.parallel],
                 ["strategies", of("strategies", names.strategy)], ["workspaces", of("workspaces", names.workspace)],
                 ["external memories", of("externals", names.external)], ["allocators", of("allocators", names.allocator)],
                 ["optimizers", names.optimizer], ["batches an update", names.batches], ["precisions", names.precision], ["frozen", grid?.freeze ? [grid.freeze] : []],
                 ["pools", names.pool_limit], [IMAGE + "s", names.image_size], ["memories", names.memory_size], ["links", names.link]]};
}

function drawGrid() {
  const grid = gridValues(), row = (term, text) => element("div", {}, element("dt", {}, term), element("dd", {}, ...breakable(text)));
  const plain = {images: "own", sequences: "own", links: "own", "split over": "one", optimizers: "momentum", "batches an update": "1", precisions: "fp32"}; /* not worth a line */
  const shown = grid.rows.filter(([term, values]) => values.length > 1 || (term !== "memories" && values[0] !== plain[term]));
  fill("grid", ...shown.map(([term, values]) => row(term + (values.length > 1 ? " (" + values.length + ")" : ""), listed(values))));
  fill("facts", ["sweep " + sweep.id, "begun " + sweep.created + " UTC", sweep.stored + " of " + several(sweep.points, "point") + " computed",
                 sweep.fit + " fit", sweep.failed + " failed"].join(" \u00b7 "));
  fill("made", "Simulated by snsim " + sweep.version + (sweep.created ? " from " + sweep.created + " UTC on" : "") +
       ". Sizes are powers of 1024. Times are of the simulator's model of the GPU, not measured.");
}

/* ---- what is shown ---- */

const CHOOSERS = CHOSEN.filter(([key], i) => i < 2 || names[key].length > 1);

function drawChooser() {
  fill("chooser", ...CHOOSERS.map(([key, text]) => element("span", {}, element("label", {for: "choose-" + key}, text),
    element("select", {id: "choose-" + key, change: (event) => choose({...chart.choice, [key]: Number(event.target.value)}, chart.batches[chart.at])},
            ...names[key].map((value, i) => element("option", {value: String(i)}, value))))));
}

/* Shows the charts of a choice, a value of every axis, at this batch, if it is there. */
function choose(choice, batch) {
  chart.choice = choice;
  choosePoints();
  chart.at = Math.max(0, chart.batches.indexOf(batch));
  for (const [key] of CHOOSERS) at("choose-" + key).value = String(choice[key]);
  const pair = pairs.find(isChosen);
  fill("explained", pair && pairs.length > 1 ? pairSentence(pair) : ""); /* of one the answer above says it */
  drawCharts();
  pairTable.draw();
}

/* The pair with the options of its largest batch, or best value of X, that fits. */
function showPair(pair) {
  const had = at("pairs").contains(document.activeElement);
  const like = pair.best >= 0 ? pair.best : columns.net.findIndex((net, i) => net === pair.net && columns.gpu[i] === pair.gpu);
  const choice = Object.fromEntries(CHOSEN.map(([key]) => [key, columns[key][like]]));
  if (choice.scheme < 0) choice.scheme = columns.scheme.find((scheme, i) => scheme >= 0 && columns.net[i] === pair.net && columns.gpu[i] === pair.gpu) ?? 0;
  choose(choice, X.of(like));
  if (had) at("pairs").querySelector("tr.shown button").focus();
}

function start() {
  drawVerdict();
  drawGrid();
  fill("charts-title", "Over the " + X.word);
  fill("pairs-text", "The " + X.best + " " + X.word + (X.best === "largest" ? " that fits at all" : " with which anything fits") + ", and where the most " + UNIT + " per second are. A heading sorts; a network's name shows its charts.");
  drawChooser();
  pairTable.set(pairs);
  showPair(pairs.find((pair) => pair.fit && pair.fit < pair.count) || pairs.find((pair) => pair.fit) || pairs[0]); /* where there is most to see */
  drawFilters();
  applyFilters();
  onResize(drawCharts);
}

start();
