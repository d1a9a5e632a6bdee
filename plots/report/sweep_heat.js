/* The map of a sweep: a row per strategy, a column per batch or other value of X, for the network, GPU and options chosen; a cell is green by its
 * images per second, or says that it does not fit. Strategies that come to the same everywhere share a row. */

/* Lines whose points are alike at every batch, as groups. */
function alikeLines() {
  const groups = new Map();
  for (const line of chart.lines) {
    const key = line.points.map((i) => (i < 0 ? "" : [columns.fits[i], columns.iteration[i], columns.device[i]].join(":"))).join(" ");
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(line);
  }
  return [...groups.values()];
}

function heatCell(b, i, most) {
  const choose = {click: () => moveBatch(b), class: b === chart.at ? "here" : ""};
  if (i < 0) return element("td", choose, "");
  const what = X.word + " " + X.text(chart.batches[b]) + ": " + figuresAt(i);
  if (!fits(i)) return element("td", {...choose, class: choose.class + " over", title: what}, "no");
  const value = speed(i), share = most ? value / most : 0;
  return element("td", {...choose, title: what, class: choose.class + (value === most ? " best" : ""),
                        style: "--share:" + (0.06 + 0.6 * share * share).toFixed(3)},
                 value < 100 ? value.toFixed(1) : value.toFixed(0));
}

/* The fastest of all points that fit has a frame. */
function drawHeat() {
  const all = chart.lines.flatMap((line) => line.points).filter((i) => i >= 0 && fits(i));
  const most = all.reduce((best, i) => Math.max(best, speed(i)), 0);
  const name = (group) => group.flatMap((line, k) => [...(k ? [element("br", {})] : []), ...breakable(names.strategy[line.strategy])]);
  fill("heat", element("caption", {class: "hidden"}, UNIT + " per second by strategy and " + X.word),
       element("thead", {}, element("tr", {}, element("th", {scope: "col", class: "text"}, element("span", {}, UNIT + "/s with " + X.word)),
               ...chart.batches.map((batch) => element("th", {scope: "col"}, element("span", {}, X.text(batch)))))),
       element("tbody", {}, ...alikeLines().map((group) =>
         element("tr", {}, element("th", {scope: "row", class: "text"}, ...name(group)), ...group[0].points.map((i, b) => heatCell(b, i, most))))));
}
