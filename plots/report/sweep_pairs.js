/* What the sweep comes to for each network and GPU. */

const baseline = names.strategy.indexOf("baseline");

/* Of equally fast points the one counts that takes less device memory. */
function isFaster(point, than) {
  return than < 0 || speed(point) > speed(than) ||
         (speed(point) === speed(than) && columns.device[point] < columns.device[than]);
}

/* Of points with the same batch the faster one counts. */
function isLarger(point, than) {
  return than < 0 || columns.batch[point] > columns.batch[than] ||
         (columns.batch[point] === columns.batch[than] && isFaster(point, than));
}

function addToPair(pair, point) {
  pair.count++;
  pair.tried = Math.max(pair.tried, columns.batch[point]);
  if (!fits(point)) return;
  pair.fit++;
  if (isLarger(point, pair.largest)) pair.largest = point;
  if (isFaster(point, pair.fastest)) pair.fastest = point;
  if (columns.strategy[point] === baseline) pair.plain = Math.max(pair.plain, columns.batch[point]);
}

/* All pairs of a network and a GPU that have points; largest and fastest are points, -1: none fits. */
function findPairs() {
  const pairs = new Map(), gpus = names.gpu.length;
  for (let i = 0; i < N; i++) {
    const key = columns.net[i] * gpus + columns.gpu[i];
    if (!pairs.has(key))
      pairs.set(key, {net: columns.net[i], gpu: columns.gpu[i], count: 0, fit: 0, tried: 0, largest: -1, fastest: -1, plain: 0});
    addToPair(pairs.get(key), i);
  }
  return [...pairs.values()];
}

const pairs = findPairs();

function pairName(pair) {
  return names.net[pair.net] + " on " + names.gpu[pair.gpu];
}

function withOptions(point) {
  return name("strategy", point) + (OPTIONS.length ? " (" + optionsOf(point) + ")" : "");
}

/* The gist of a pair in a sentence. */
function pairSentence(pair) {
  if (pair.fit === 0) return pairName(pair) + ": nothing that was tried fits.";
  const {largest, fastest} = pair, most = columns.batch[largest];
  const beyond = most === pair.tried ? ", the largest tried" : "";
  const plain = baseline < 0 || pair.plain === most ? "" : pair.plain ? "; baseline fits up to " + pair.plain : "; baseline fits with none";
  return pairName(pair) + ": the largest batch that fits is " + most + beyond + ", with " + withOptions(largest) + plain +
         "; the most images per second, " + speed(fastest).toFixed(1) + ", are those of " + withOptions(fastest) + " with batch " +
         columns.batch[fastest] + ".";
}

function pairCell(pair) {
  return element("button", {type: "button", "aria-pressed": String(isChosen(pair)), click: () => showPair(pair)}, names.net[pair.net]);
}

/* A column of a point of the pair, where there is one. */
function ofPoint(head, which, by, cell, more) {
  return {head, by: (p) => (p[which] < 0 ? null : by(p[which])), cell: (p) => (p[which] < 0 ? "-" : cell(p[which])), ...more};
}

function strategyOf(point) {
  const options = optionsOf(point);
  return element("span", {}, name("strategy", point), ...(options ? [element("small", {}, options)] : []));
}

const pairColumns = [
  {head: "network", text: true, by: (p) => p.net, cell: pairCell},
  {head: "GPU", text: true, by: (p) => p.gpu, cell: (p) => names.gpu[p.gpu]},
  {head: "points\nthat fit", falling: true, by: (p) => p.fit / p.count, cell: (p) => p.fit + "/" + p.count},
  ofPoint("largest\nbatch", "largest", (i) => columns.batch[i], (i) => String(columns.batch[i]), {falling: true}),
  ofPoint("with", "largest", (i) => columns.strategy[i], strategyOf, {text: true}),
  ofPoint("images\n/s there", "largest", speed, (i) => speed(i).toFixed(1), {falling: true}),
  ...(baseline < 0 ? [] : [{head: "largest\nof baseline", falling: true, by: (p) => p.plain || null, cell: (p) => (p.plain ? String(p.plain) : "-")}]),
  ofPoint("most\nimages/s", "fastest", speed, (i) => speed(i).toFixed(1), {falling: true}),
  ofPoint("with", "fastest", (i) => columns.strategy[i], strategyOf, {text: true}),
  ofPoint("batch\nof that", "fastest", (i) => columns.batch[i], (i) => String(columns.batch[i]), {falling: true}),
];

const pairTable = new Table("pairs", pairColumns, {caption: "Networks and GPUs", most: 50, shown: isChosen});
