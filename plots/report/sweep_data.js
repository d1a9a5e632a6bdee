/* A sweep's data, as plots/page_sweep.c wrote it: a column of numbers per figure; a point is an index into them. */
const data = JSON.parse(document.getElementById("data").textContent);
const sweep = data.sweep, names = data.names, columns = data.columns;
const N = columns.batch.length;
const failures = new Map(data.failures); /* point: why it could not be computed */

/* The pools are an axis like the others: names, and an index per point. */
const limits = [...new Set(columns.limit)];
names.pool_limit = limits.map((limit) => (limit ? bytes(limit) : "all"));
columns.pool_limit = columns.limit.map((limit) => limits.indexOf(limit));

/* What points are told apart by, besides batch and strategy. */
const AXES = [["net", "network"], ["gpu", "GPU"], ["workspace", "workspace"], ["external", "external memory"],
              ["allocator", "allocator"], ["pool_limit", "pool"]];
const OPTIONS = AXES.slice(2).filter(([key]) => names[key].length > 1); /* those that differ */

const name = (key, point) => names[key][columns[key][point]];
const fits = (point) => columns.fits[point] === 1;
const memory = (point) => data.memory[columns.gpu[point]];
const speed = (point) => columns.batch[point] / (columns.iteration[point] / 1e9);

/* What is special about a point where options differ: "workspace none, pool 3.00 GiB", or nothing. */
function optionsOf(point) {
  return OPTIONS.map(([key, text]) => text + " " + name(key, point)).join(", ");
}

function several(count, one, many) {
  return count + " " + (count === 1 ? one : many || one + "s");
}
