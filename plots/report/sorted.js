/* A table whose headings sort, and that shows some rows at a time where there are many.
 *
 * new Table(id, columns, {caption, shown, most, column}): a column has a heading, `by(row)`, which it sorts by (null: behind
 * all others; `falling`: the largest first), and `cell(row)`, a text or an element. shown(row): whether the row is marked;
 * column: the one that sorts at first. `most` rows are shown at a time, with buttons in the element of that id and "-pages";
 * none: all. */
class Table {
  constructor(id, columns, options) {
    const start = {rows: [], from: 0, column: -1, down: false, most: Infinity, shown: () => false};
    Object.assign(this, start, {id, columns}, options);
  }

  /* The rows, in the order in which they stand while no column sorts. */
  set(rows) {
    this.rows = rows;
    this.sort();
  }

  sort() {
    this.from = 0;
    this.sorted = this.rows;
    if (this.column >= 0) {
      const by = this.columns[this.column].by, sign = this.down ? -1 : 1;
      const keyed = this.rows.map((row) => [by(row), row]);
      keyed.sort(([a], [b]) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -sign : sign));
      this.sorted = keyed.map(([, row]) => row);
    }
    this.draw();
  }

  sortBy(index) {
    this.down = this.column === index ? !this.down : this.columns[index].falling === true;
    this.column = index;
    this.sort();
    at(this.id).querySelectorAll("thead button")[index].focus();
  }

  heading(column, index) {
    const direction = this.column !== index ? "none" : this.down ? "descending" : "ascending";
    return element("th", {scope: "col", class: column.text ? "text" : "", "aria-sort": direction},
                   element("button", {type: "button", click: () => this.sortBy(index)}, column.head));
  }

  draw() {
    const visible = this.sorted.slice(this.from, this.from + this.most);
    const rows = visible.map((row) =>
      element("tr", {class: this.shown(row) ? "shown" : ""},
              ...this.columns.map((c) => element("td", {class: c.text ? "text" : ""}, c.cell(row)))));
    fill(this.id, element("caption", {class: "hidden"}, this.caption + "; the headings sort"),
         element("thead", {}, element("tr", {}, ...this.columns.map((c, i) => this.heading(c, i)))),
         element("tbody", {}, ...rows));
    if (this.most < Infinity) this.drawPages();
  }

  turn(to) {
    this.from = to;
    this.draw();
    at(this.id).parentElement.scrollTop = 0;
  }

  drawPages() {
    const n = this.rows.length, last = Math.max(0, Math.ceil(n / this.most) - 1) * this.most;
    const button = (text, name, to) => {
      const b = element("button", {type: "button", "aria-label": name, click: () => {
        this.turn(to);
        const pages = at(this.id + "-pages"), again = pages.querySelector("[aria-label='" + name + "']");
        (again.disabled ? pages.querySelector("button:enabled") : again).focus();
      }}, text);
      b.disabled = to < 0 || to > last || to === this.from;
      return b;
    };
    const range = n ? "rows " + (this.from + 1) + " to " + Math.min(n, this.from + this.most) + " of " + n : "no rows";
    const buttons = n <= this.most ? [] : [button("\u21e4", "first rows", 0), button("\u2190", "rows before", this.from - this.most),
      button("\u2192", "next rows", this.from + this.most), button("\u21e5", "last rows", last)];
    fill(this.id + "-pages", ...buttons, element("span", {}, range));
  }
}

/* GiB over a bar, of which all have one scale, from 0 to `most`; beyond the mark is more than there is. */
function memoryCell(value, memory, fits, most) {
  const whole = Math.max(most, memory), percentOf = (size) => (100 * size / whole).toFixed(1) + "%";
  return element("span", {}, (value / GIB).toFixed(2),
                 element("span", {class: "meter" + (fits ? "" : " over"), "aria-hidden": "true"},
                         element("i", {style: "width:" + percentOf(value)}),
                         ...(most > memory ? [element("b", {style: "left:" + percentOf(memory)})] : [])));
}
