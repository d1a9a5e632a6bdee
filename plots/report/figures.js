/* What the pages share: how figures are written, elements, and what follows the window. */
const KIB = 1024, MIB = 1024 * 1024, GIB = 1024 * MIB;

/* ---- figures ---- */

function bytes(value, decimals = 2) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  for (; value >= 1024 && power < 4; power++) value /= 1024;
  return value.toFixed(power ? decimals : 0) + "\u00a0" + units[power];
}

function time(ns) {
  if (ns >= 60e9) return (ns / 60e9).toFixed(1) + "\u00a0min";
  if (ns >= 1e9) return (ns / 1e9).toFixed(2) + "\u00a0s";
  if (ns >= 1e6) return (ns / 1e6).toFixed(2) + "\u00a0ms";
  if (ns >= 1e3) return (ns / 1e3).toFixed(2) + "\u00a0\u00b5s";
  return ns + "\u00a0ns";
}

function count(value) {
  if (value >= 1e9) return (value / 1e9).toFixed(2) + " G";
  if (value >= 1e6) return (value / 1e6).toFixed(2) + " M";
  return String(value);
}

function percent(part, whole) {
  return (100 * part / whole).toFixed(part < whole / 100 ? 1 : 0) + "\u00a0%";
}

/* ---- elements ---- */

/* element("p", {class: "note"}, "text", child ...): names are only ever text. */
function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const key in attributes || {}) {
    if (key === "style") e.style.cssText = attributes[key];
    else if (typeof attributes[key] === "function") e.addEventListener(key, attributes[key]);
    else e.setAttribute(key, attributes[key]);
  }
  e.append(...children);
  return e;
}

function at(id) {
  return document.getElementById(id);
}

function fill(id, ...children) {
  at(id).replaceChildren(...children);
  return at(id);
}

function keys(rows) { /* [colour, text, class] */
  return element("ul", {class: "keys"}, ...rows.map(([color, text, kind]) =>
    element("li", {}, element("i", {class: kind || "",
                                    style: kind === "dash" || kind === "rule" ? "border-color:" + color : "background-color:" + color}), text)));
}

/* A name of parts may be broken behind each plus, and where there is little room (`tight`) behind each equals sign. */
function breakable(name, tight) {
  const parts = name.match(tight ? /[^+=]*[+=]|[^+=]+/g : /[^+]*\+|[^+]+/g) || [];
  return parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part]));
}

function options(id, all, chosen) {
  fill(id, ...all.map(([value, text]) => element("option", value === chosen ? {value, selected: ""} : {value}, text)));
}

/* Draws again when the width or the colours have changed. */
function onResize(draw) {
  let size = "";
  window.addEventListener("resize", () => {
    const now = window.innerWidth + " " + window.devicePixelRatio;
    if (now === size) return; /* a phone's bars come and go */
    size = now;
    draw();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
