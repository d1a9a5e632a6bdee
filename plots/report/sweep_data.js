/* A sweep's data, as plots/page/page_sweep.c wrote it: a column of numbers per figure; a point is an index into them. */
const data = JSON.parse(document.getElementById("data").textContent);
const sweep = data.sweep, names = data.names, columns = data.columns;
const N = columns.batch.length;
const failures = new Map(data.failures); /* point: why it could not be computed */

/* Pools, images and links are axes like the others: names, and an index per point. */
function nameNumbers(key, column, text) {
  const values = [...new Set(column)];
  names[key] = values.map(text);
  columns[key] = column.map((value) => values.indexOf(value));
}

/* A GPU's memories, in the order in which they come; what is another one for another GPU is their own. */
function nameMemories() {
  const found = names.gpu.map(() => []);
  columns.memory_size = columns.memory.map((value, i) => {
    const values = found[columns.gpu[i]];
    if (!values.includes(value)) values.push(value);
    return values.indexOf(value);
  });
  const most = found.reduce((a, b) => (b.length > a.length ? b : a));
  names.memory_size = most.map((value, k) => (found.every((values) => values[k] === undefined || values[k] === value) ? bytes(value) : "own"));
}

nameNumbers("pool_limit", columns.limit, (limit) => (limit ? bytes(limit) : "all"));
const OF_TOKENS = sweep.grid.includes("\"sequences\":["); /* then the images' sizes are lengths of sequences */
const UNIT = sweep.unit;
const IMAGE = OF_TOKENS ? "sequence" : "image";
nameNumbers("image_size", columns.image, (size) => (!size ? "own" : OF_TOKENS ? size + " tokens" : size + " x " + size));
nameNumbers("batches", columns.accumulate, String);
nameNumbers("link", columns.shared, (shared) => (shared ? "shared" : "own"));
nameMemories();

/* GPUs of a mesh, and its scheme: the mesh without the number of its slowest axis, which stands last; "": there is one. */
const SIZES = /(^|,)(tp|fsdp|dp|pp)=(\d+)/g;
const worldOf = (mesh) => [...mesh.matchAll(SIZES)].reduce((world, size) => world * Number(size[3]), 1);
function schemeOf(mesh) {
  const last = [...mesh.matchAll(SIZES)].pop();
  return last ? mesh.slice(0, last.index) + last[1] + last[2] + mesh.slice(last.index + last[0].length) : "";
}
columns.world = columns.parallel.map((mesh) => worldOf(names.parallel[mesh]));
names.scheme = [...new Set(names.parallel.map(schemeOf))].filter((scheme) => scheme);
columns.scheme = columns.parallel.map((mesh) => names.scheme.indexOf(schemeOf(names.parallel[mesh]))); /* -1: one GPU */
names.parallel = names.parallel.map((mesh) => mesh || "one");

/* What points are told apart by, besides batch and strategy. */
const AXES = [["net", "network"], ["gpu", "GPU"], ["parallel", "GPUs"], ["image_size", IMAGE], ["memory_size", "memory"], ["link", "link"], ["workspace", "workspace"], ["external", "external memory"],
              ["allocator", "allocator"], ["optimizer", "optimizer"], ["batches", "batches an update"], ["precision", "precision"], ["pool_limit", "pool"]];
const OPTIONS = AXES.slice(2).filter(([key]) => names[key].length > 1); /* those that differ */

const name = (key, point) => names[key][columns[key][point]];
const fits = (point) => columns.fits[point] === 1;
const memory = (point) => columns.memory[point];

/* What the charts are over: the batch, or where all points have one, another number that differs. A pool of all and an
 * image of the network's own stand to the right of the numbers. Over GPUs a scheme is chosen, of which one GPU is any's. Of batches and images one looks for the largest that
 * fits, of what is given to it for the smallest. */
const X = (() => {
  const over = (key, word, column, text, other) => {
    const most = column.reduce((a, b) => Math.max(a, b), 0), beyond = 1.15 * most || 1, sought = key === "batch" || key === "image_size" ? 1 : -1;
    return {key, word, best: sought > 0 ? "largest" : "smallest", gain: (to, from) => sought * (to - from),
            of: (i) => column[i] || beyond, text: (value) => (value === beyond ? other : text(value)),
            at: (value) => (key === "world" ? "on " + several(value, "GPU") : "with " + word + " " + (value === beyond ? other : text(value)))};
  };
  const batch = over("batch", "batch", columns.batch, String, "");
  if (new Set(columns.batch).size > 1) return batch;
  if (new Set(columns.world).size > 1) return over("world", "number of GPUs", columns.world, String, "");
  if (names.pool_limit.length > 1) return over("pool_limit", "pool", columns.limit, bytes, "all");
  if (names.memory_size.length > 1) return over("memory_size", "memory", columns.memory, bytes, "");
  return names.image_size.length > 1 ? over("image_size", IMAGE, columns.image, String, "own") : batch;
})();
/* What is chosen for the charts. */
const CHOSEN = [...AXES.filter(([key]) => key !== X.key && (X.key !== "world" || key !== "parallel")), ...(X.key === "world" ? [["scheme", "split over"]] : [])];
const speed = (point) => columns.batch[point] * columns.accumulate[point] * columns.copies[point] / (columns.iteration[point] / 1e9);

/* What is special about a point where options differ: "workspace none, pool 3.00 GiB", or nothing. */
function optionsOf(point) {
  return OPTIONS.map(([key, text]) => text + " " + name(key, point)).join(", ");
}

function several(count, one, many) {
  return count + " " + (count === 1 ? one : many || one + "s");
}
