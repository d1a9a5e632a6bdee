/* A canvas that zooms along its x axis: what the lanes and the map of the pool have in common.
 *
 * new View(id, {range: [low, high], height, paint, find, read}): `paint(view, context)` draws what is between view.low and
 * view.high; `find(view, x, y)` gives the index of what is there, or -1; `read(index)` says what it is; `count()` is how
 * many there are, for the keyboard. A view that zooms upwards too has `more` buttons, `keys`, `upright(view, factor, y)` for
 * the wheel with Shift, and `whole()`, which shows all of the height. */
class View {
  constructor(id, options) {
    Object.assign(this, options);
    [this.low, this.high] = this.range;
    this.chosen = -1;
    this.canvas = element("canvas", {tabindex: 0, role: "img", "aria-label": this.title});
    fill(id, this.tools(), this.canvas, keys(this.legend));
    this.fingers = new Map();
    for (const name of ["pointerdown", "pointermove", "pointerup", "pointercancel", "wheel", "keydown"])
      this.canvas.addEventListener(name, (event) => this[name](event), {passive: false});
    this.canvas.addEventListener("pointerleave", () => this.fingers.clear());
    this.draw();
  }

  tools() {
    const button = (text, name, act) => element("button", {type: "button", "aria-label": name, click: act}, text);
    this.position = element("span", {});
    return element("div", {class: "tools"}, button("\u2212", "zoom out", () => this.zoom(2)),
                   button("+", "zoom in", () => this.zoom(0.5)), button("\u2190", "move left", () => this.pan(-0.25)),
                   button("\u2192", "move right", () => this.pan(0.25)),
                   ...(this.more || []).map(([text, name, act]) => button(text, name, () => act(this))), button("all", "show all", () => this.all()), this.position);
  }

  get left() { return this.room || 58; } /* of the names on the left */
  get right() { return this.width - 8; }
  x(value) { return this.left + (value - this.low) / (this.high - this.low) * (this.right - this.left); }
  value(x) { return this.low + (x - this.left) / (this.right - this.left) * (this.high - this.low); }

  draw() {
    this.width = Math.max(280, this.canvas.parentElement.clientWidth);
    const ratio = window.devicePixelRatio || 1, context = this.canvas.getContext("2d");
    this.canvas.style.height = this.height + "px";
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(document.documentElement), known = {}; /* asking for one is slow */
    this.color = (name) => known[name] || (known[name] = style.getPropertyValue("--" + name).trim());
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = this.color("page");
    context.fillRect(0, 0, this.width, this.height);
    this.paint(this, context);
    this.position.textContent = this.where(this.low, this.high);
  }

  /* Once a frame is enough. */
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  set(low, high) {
    const [first, last] = this.range, width = Math.min(last - first, Math.max(this.least, high - low));
    const from = Math.max(first, Math.min(last - width, low));
    [this.low, this.high] = [from, from + width];
    this.redraw();
  }
  all() {
    if (this.whole) this.whole();
    this.set(...this.range);
  }
  zoom(factor, middle = (this.low + this.high) / 2) {
    this.set(middle - (middle - this.low) * factor, middle + (this.high - middle) * factor);
  }
  pan(share) {
    const by = share * (this.high - this.low);
    this.set(this.low + by, this.high + by);
  }

  choose(index) {
    if (index === this.chosen) return;
    this.chosen = index;
    if (index >= 0) {
      const text = this.read(index);
      this.canvas.setAttribute("aria-label", this.title + ": " + text);
    }
    this.redraw();
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  pointerdown(event) {
    this.fingers.set(event.pointerId, event.clientX);
    if (event.pointerType === "mouse") this.canvas.setPointerCapture(event.pointerId);
    this.choose(this.find(this, ...this.point(event)));
  }

  /* One finger or a held button moves, two zoom, a free pointer looks. */
  pointermove(event) {
    const before = this.fingers.get(event.pointerId);
    if (before === undefined) {
      const index = this.find(this, ...this.point(event));
      if (index >= 0) this.choose(index);
      return;
    }
    const scale = (this.high - this.low) / (this.right - this.left);
    if (this.fingers.size === 2) {
      const [other] = [...this.fingers].filter(([id]) => id !== event.pointerId)[0].slice(1);
      const box = this.canvas.getBoundingClientRect(), was = Math.abs(before - other), is = Math.abs(event.clientX - other);
      if (was > 0 && is > 0) this.zoom(was / is, this.value((event.clientX + other) / 2 - box.left));
    } else {
      this.set(this.low - (event.clientX - before) * scale, this.high - (event.clientX - before) * scale);
    }
    this.fingers.set(event.pointerId, event.clientX);
  }
  pointerup(event) { this.fingers.delete(event.pointerId); }
  pointercancel(event) { this.fingers.delete(event.pointerId); }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; /* the page scrolls */
    event.preventDefault();
    const [x, y] = this.point(event), factor = 2 ** ((event.deltaY || event.deltaX) / 200); /* with Shift browsers turn the wheel */
    if (event.shiftKey && this.upright) this.upright(this, factor, y);
    else this.zoom(factor, this.value(x));
  }

  keydown(event) {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (step) this.chooseNext(step);
    else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0" || event.key === "Escape") this.all();
    else if (this.keys && this.keys[event.key]) this.keys[event.key](this);
    else return;
    event.preventDefault();
  }

  /* The next one, brought into sight. */
  chooseNext(step) {
    const next = Math.max(0, Math.min(this.count() - 1, this.chosen + step)), [from, to] = this.extent(next);
    this.choose(next);
    if (to < this.low || from > this.high) this.pan(((from + to) / 2 - (this.low + this.high) / 2) / (this.high - this.low));
  }
}

/* Text where there is room for it. */
function fit(context, text, x, y, room) {
  if (room > 24 && context.measureText(text).width <= room - 8) context.fillText(text, x + 4, y);
}
