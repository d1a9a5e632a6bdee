/* All points in a table that sorts, filters and turns pages. */

function outcome(point) {
  return failures.has(point) ? "failed" : fits(point) ? "fits" : "does not fit";
}

function outcomeCell(point) {
  const kind = {fits: "yes", "does not fit": "no", failed: "failed"}[outcome(point)];
  return element("span", {class: kind}, {yes: "yes", no: "no", failed: "failed"}[kind]);
}

/* A figure, which a failed point does not have; one of `timed` only a point that fits. */
function figure(head, value, text, more) {
  const has = (i) => !failures.has(i) && (!(more && more.timed) || fits(i));
  return {head, by: (i) => (has(i) ? value(i) : null), cell: (i) => (has(i) ? text(value(i), i) : "-"), ...more};
}

/* By GPU: the most memory that a point needs. */
const mostOf = names.gpu.map(() => 0);
for (let i = 0; i < N; i++) mostOf[columns.gpu[i]] = Math.max(mostOf[columns.gpu[i]], columns.device[i]);

const inGib = (value) => (value / GIB).toFixed(2);
const named = (key, head) => ({head, text: true, by: (i) => columns[key][i], cell: (i) => name(key, i)});

const pointColumns = [
  named("net", "network"), named("gpu", "GPU"), ...OPTIONS.map(([key, text]) => named(key, text.replace(" ", "\n"))),
  {head: "batch", by: (i) => columns.batch[i], cell: (i) => String(columns.batch[i])},
  named("strategy", "strategy"),
  {head: "fits", text: true, by: outcome, falling: true, cell: outcomeCell},
  figure("GPU memory\nGiB", (i) => columns.device[i], (value, i) => memoryCell(value, memory(i), fits(i), mostOf[columns.gpu[i]])),
  figure("tensors at\npeak, MiB", (i) => columns.peak[i], (value) => (value / MIB).toFixed(3)),
  figure("pool\nGiB", (i) => columns.pool[i], inGib),
  figure("iteration\nms", (i) => columns.iteration[i], (value) => (value / 1e6).toFixed(2), {timed: true}),
  figure(UNIT + "\n/s", speed, (value) => value.toFixed(2), {timed: true, falling: true}),
  figure("copied out\nGiB", (i) => columns.out[i], inGib),
  figure("copied in\nGiB", (i) => columns.in[i], inGib),
  ...(failures.size ? [{head: "why it failed", text: true, by: (i) => failures.get(i) || null, cell: (i) => failures.get(i) || ""}] : []),
];

const pointTable = new Table("points", pointColumns, {caption: "Points", most: 100});

/* ---- filters ---- */

const filters = {}; /* by key: which points pass; absent: all */

function applyFilters() {
  const tests = Object.values(filters), passing = [];
  for (let i = 0; i < N; i++)
    if (tests.every((test) => test(i))) passing.push(i);
  pointTable.set(passing);
}

/* A control's test: null where it lets everything through. */
function setFilter(key, test) {
  if (test) filters[key] = test;
  else delete filters[key];
  applyFilters();
}

function labelled(text, control) {
  return element("label", {}, element("span", {}, text), control);
}

function choice(key, text, values, test) {
  const select = element("select", {id: "filter-" + key, change: () =>
    setFilter(key, select.value === "" ? null : test(Number(select.value)))}, element("option", {value: ""}, "all"),
    ...values.map((value, i) => element("option", {value: String(i)}, value)));
  return labelled(text, select);
}

function bound(key, text, test) {
  const input = element("input", {id: "filter-" + key, type: "number", min: 1, inputmode: "numeric", input: () =>
    setFilter(key, input.value === "" ? null : test(Number(input.value)))});
  return labelled(text, input);
}

/* Every word must be somewhere in the point's names or in why it failed. */
function search() {
  const input = element("input", {id: "filter-text", type: "search", autocomplete: "off", input: () => {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
    const text = (i) => [name("net", i), name("gpu", i), name("strategy", i), optionsOf(i), failures.get(i) || ""].join(" ").toLowerCase();
    setFilter("text", words.length === 0 ? null : (i) => { const all = text(i); return words.every((word) => all.includes(word)); });
  }});
  return labelled("contains", input);
}

function drawFilters() {
  const outcomes = ["fits", "does not fit", "failed"].filter((o) => o !== "failed" || failures.size);
  const axes = [...AXES, ["strategy", "strategy"]].filter(([key]) => names[key].length > 1);
  fill("filters", ...axes.map(([key, text]) => choice(key, text, names[key], (value) => (i) => columns[key][i] === value)),
       choice("outcome", "outcome", outcomes, (value) => (i) => outcome(i) === outcomes[value]),
       bound("from", "batch from", (least) => (i) => columns.batch[i] >= least),
       bound("to", "batch to", (most) => (i) => columns.batch[i] <= most), search());
  at("filters").addEventListener("submit", (event) => event.preventDefault());
}
