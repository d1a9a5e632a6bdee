/* The report's tables: the strategies, which sort, and the tensors of the peak. */

const most = results.reduce((all, r) => Math.max(all, r.device), 0);

const columns = [
  {head: "strategy", text: true, by: (r) => results.indexOf(r), cell: strategyCell},
  {head: "fits", text: true, by: (r) => (r.fits ? 0 : 1),
   cell: (r) => element("span", {class: r.fits ? "yes" : "no"}, r.fits ? "yes" : "no")},
  {head: "GPU memory\nGiB", by: (r) => r.device, cell: (r) => memoryCell(r.device, run.memory, r.fits, most)},
  {head: "tensors at\npeak, MiB", by: (r) => r.peak, cell: (r) => (r.peak / MIB).toFixed(3)},
  ...(results.some((r) => r.forks) ? [{head: "of it FORK\ncopies, %", by: (r) => r.forks / r.peak,
                                       cell: (r) => (100 * r.forks / r.peak).toFixed(0)}] : []),
  {head: "pool set\nat step", by: (r) => r.pool_step, cell: (r) => (r.pool_step ? r.pool_step + " (" + r.pool_cause + ")" : "-")},
  {head: "iteration\nms", by: (r) => (r.fits ? r.iteration_ns : null),
   cell: (r) => (r.fits ? (r.iteration_ns / 1e6).toFixed(2) : "-")},
  {head: UNIT + "\n/s", falling: true, by: (r) => (r.fits ? imagesPerSecond(r) : null),
   cell: (r) => (r.fits ? imagesPerSecond(r).toFixed(2) : "-")},
  {head: "stalled\nms", by: (r) => r.stall_ns, cell: (r) => (r.stall_ns / 1e6).toFixed(2)},
  {head: "copied out\nGiB", by: (r) => r.out, cell: (r) => (r.out / GIB).toFixed(2)},
  {head: "copied in\nGiB", by: (r) => r.in, cell: (r) => (r.in / GIB).toFixed(2)},
  ...(results.some((r) => r.host) ? [{head: "host memory\nGiB", by: (r) => r.host, cell: (r) => (r.host / GIB).toFixed(2)}] : []),
  {head: "layers\nrun again", by: (r) => r.reruns, cell: (r) => String(r.reruns)},
  {head: "workspace\nGiB", by: (r) => r.workspace, cell: (r) => (r.workspace / GIB).toFixed(2)},
];

function strategyCell(r) {
  return element("button", {type: "button", "aria-pressed": String(r === shown.result), click: () => show(r)},
                 ...breakable(r.strategy));
}

const strategies = new Table("strategies", columns, {caption: "Strategies", column: 0, shown: (r) => r === shown.result});

/* ---- what makes the peak ---- */

const PEAK_ROWS = 20;

function peakRow(r, row) {
  const [tensor, producer, size, since, next, advice] = row;
  return element("tr", {}, element("td", {}, (size / MIB).toFixed(3)), element("td", {class: "text"}, tensor),
                 element("td", {}, percent(size, r.peak)), element("td", {class: "text"}, producer),
                 element("td", {}, String(since)), element("td", {}, next ? String(next) : "-"),
                 element("td", {class: "text"}, advice));
}

function drawPeakRows(r, most) {
  const heads = [["MiB"], ["tensor", "text"], ["share"], ["made by", "text"], ["since step"], ["next use"],
                 ["what would remove it", "text"]];
  fill("peak", element("thead", {}, element("tr", {}, ...heads.map(([text, kind]) =>
         element("th", {scope: "col", class: kind || ""}, element("span", {}, text))))),
       element("tbody", {}, ...r.peak_rows.slice(0, most).map((row) => peakRow(r, row))));
  const rest = r.peak_rows.slice(most);
  if (rest.length === 0) return fill("peak-more");
  const sum = rest.reduce((total, row) => total + row[2], 0);
  return fill("peak-more", "and " + rest.length + " smaller ones, " + bytes(sum) + " in all. ",
              element("button", {type: "button", click: () => drawPeakRows(r, Infinity)}, "Show all"));
}

function drawPeak(r) {
  at("peak").parentElement.hidden = !r.peak_rows;
  if (!r.peak_rows) {
    fill("peak-text", "The run was stored without the tensors of its peaks; simulate it again with --explain to see them.");
    return fill("peak-more");
  }
  fill("peak-text", "The most that tensors take at any moment is " + bytes(r.peak) + ", at step " + r.peak_step + ", " +
       stepName(r.peak_step) + ", in " + r.peak_rows.length + (r.peak_rows.length === 1 ? " tensor" : " tensors") +
       (r.forks ? "; " + bytes(r.forks) + " of it (" + percent(r.forks, r.peak) + ") are copies that FORKs make" : "") +
       ". To need less, remove the large ones that the step does not need.");
  return drawPeakRows(r, PEAK_ROWS);
}
