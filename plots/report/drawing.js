/* SVG drawings: their elements, the marks of their axes, and a cursor for pointer, finger and keyboard. */

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const e = document.createElementNS(SVG, tag);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  e.append(...children);
  return e;
}

/* Round marks from 0 to at least `most`, about `wanted` of them. */
function marks(most, wanted) {
  const rough = Math.max(most, 1e-9) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((f) => f * power >= rough) * power;
  const all = [];
  for (let i = 0; i * step <= most * (1 + 1e-9); i++) all.push(i * step);
  return all;
}

/* Whole marks only: steps and tensors are counted. */
function wholeMarks(most, wanted) {
  return marks(most, wanted).filter((m) => Number.isInteger(m));
}

/* With as many decimals as the step needs: 2.5 has one. */
function digits(value, step) {
  let decimals = 0;
  while (decimals < 3 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6 * step * 10 ** decimals) decimals++;
  return value.toFixed(value === 0 ? 0 : decimals);
}

function label(x, y, anchor, text, style) {
  return svg("text", {x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor, style: style || ""}, text);
}

/* The cursor of a drawing of `count` columns, `at()` the one it is on: index(x) is the column at x, move(to) goes there. */
function follow(drawing, {count, at, index, move}) {
  const to = (column) => {
    const inside = Math.max(0, Math.min(count - 1, column));
    if (inside !== at()) move(inside);
  };
  const go = (event) => {
    const box = drawing.getBoundingClientRect();
    to(index((event.clientX - box.left) * drawing.viewBox.baseVal.width / box.width));
  };
  drawing.addEventListener("pointermove", go);
  drawing.addEventListener("pointerdown", go);
  drawing.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.round(count / 10)), now = at();
    const next = {ArrowLeft: now - 1, ArrowRight: now + 1, ArrowDown: now - 1, ArrowUp: now + 1, PageDown: now - page,
                  PageUp: now + page, Home: 0, End: count - 1}[event.key];
    if (next === undefined) return;
    event.preventDefault();
    to(next);
  });
}
