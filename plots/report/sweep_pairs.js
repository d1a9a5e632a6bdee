/* What the sweep comes to for each network and GPU. */

const baseline = names.strategy.indexOf("baseline");

/* Of equally fast points the one counts that takes less device memory. */
function isFaster(point, than) {
  return than < 0 || speed(point) > speed(than) ||
         (speed(point) === speed(than) && columns.device[point] < columns.device[than]);
}

/* Of points with the same batch, or what X is, the faster one counts. */
function isBetter(point, than) {
  const gain = than < 0 ? 1 : X.gain(X.of(point), X.of(than));
  return gain > 0 || (gain === 0 && isFaster(point, than));
}

const better = (value, than) => (than === null || X.gain(value, than) > 0 ? value : than);

function addToPair(pair, point) {
  pair.count++;
  pair.tried = better(X.of(point), pair.tried);
  if (!fits(point)) return;
  pair.fit++;
  if (isBetter(point, pair.best)) pair.best = point;
  if (isFaster(point, pair.fastest)) pair.fastest = point;
  if (columns.strategy[point] === baseline) pair.plain = better(X.of(point), pair.plain);
}

/* All pairs of a network and a GPU that have points; best and fastest are points, -1: none fits; tried and plain are values of X. */
function findPairs() {
  const pairs = new Map(), gpus = names.gpu.length;
  for (let i = 0; i < N; i++) {
    const key = columns.net[i] * gpus + columns.gpu[i];
    if (!pairs.has(key))
      pairs.set(key, {net: columns.net[i], gpu: columns.gpu[i], count: 0, fit: 0, tried: null, best: -1, fastest: -1, plain: null});
    addToPair(pairs.get(key), i);
  }
  return [...pairs.values()];
}

const pairs = findPairs();

function pairName(pair) {
  return names.net[pair.net] + " on " + names.gpu[pair.gpu];
}

/* What else is special about a point, beside X. */
function othersOf(point) {
  const said = (key) => key === X.key || (X.key === "world" && key === "parallel" && columns.world[point] === 1);
  return OPTIONS.filter(([key]) => !said(key)).map(([key, text]) => text + " " + name(key, point)).join(", ");
}

function withOptions(point) {
  const others = othersOf(point);
  return name("strategy", point) + (others ? " (" + others + ")" : "");
}

function baselineText(pair, most) {
  if (baseline < 0 || pair.plain === most) return "";
  if (pair.plain === null) return "; baseline fits with none";
  return "; baseline fits " + (X.best === "largest" ? "up to " + X.text(pair.plain) : "from " + X.text(pair.plain) + " on");
}

/* The gist of a pair in a sentence. */
function pairSentence(pair) {
  if (pair.fit === 0) return pairName(pair) + ": nothing that was tried fits.";
  const {best, fastest} = pair, most = X.of(best);
  const beyond = most === pair.tried ? ", the " + X.best + " tried" : "";
  return pairName(pair) + ": the " + X.best + " " + X.word + (X.best === "largest" ? " that fits is " : " with which something fits is ") + X.text(most) +
         beyond + ", with " + withOptions(best) + baselineText(pair, most) + "; the most " + UNIT + " per second, " + speed(fastest).toFixed(1) +
         ", are those of " + withOptions(fastest) + " " + X.at(X.of(fastest)) + ".";
}

function pairCell(pair) {
  return element("button", {type: "button", "aria-pressed": String(isChosen(pair)), click: () => showPair(pair)}, names.net[pair.net]);
}

/* A column of a point of the pair, where there is one. */
function ofPoint(head, which, by, cell, more) {
  return {head, by: (p) => (p[which] < 0 ? null : by(p[which])), cell: (p) => (p[which] < 0 ? "-" : cell(p[which])), ...more};
}

function strategyOf(point) {
  const others = othersOf(point);
  return element("span", {}, name("strategy", point), ...(others ? [element("small", {}, others)] : []));
}

const ofX = (head, which) => ofPoint(head + "\n" + X.word, which, X.of, (i) => X.text(X.of(i)), {falling: X.best === "largest"});

const pairColumns = [
  {head: "network", text: true, by: (p) => p.net, cell: pairCell},
  {head: "GPU", text: true, by: (p) => p.gpu, cell: (p) => names.gpu[p.gpu]},
  {head: "points\nthat fit", falling: true, by: (p) => p.fit / p.count, cell: (p) => p.fit + "/" + p.count},
  ofX(X.best, "best"),
  ofPoint("with", "best", (i) => columns.strategy[i], strategyOf, {text: true}),
  ofPoint(UNIT + "\n/s there", "best", speed, (i) => speed(i).toFixed(1), {falling: true}),
  ...(baseline < 0 ? [] : [{head: X.best + "\nof baseline", falling: X.best === "largest", by: (p) => p.plain, cell: (p) => (p.plain === null ? "-" : X.text(p.plain))}]),
  ofPoint("most\n" + UNIT + "/s", "fastest", speed, (i) => speed(i).toFixed(1), {falling: true}),
  ofPoint("with", "fastest", (i) => columns.strategy[i], strategyOf, {text: true}),
  ofPoint(X.word + "\nof that", "fastest", X.of, (i) => X.text(X.of(i)), {falling: true}),
];

const pairTable = new Table("pairs", pairColumns, {caption: "Networks and GPUs", most: 50, shown: isChosen});
