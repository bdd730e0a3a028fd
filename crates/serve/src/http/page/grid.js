// A list that shows any number of rows: only those that can be seen are in
// the document. The scroll bar stands for all of them; where there are more
// rows than a browser can be high, it is a scale of its own.

import { byId, el, fill, grouped } from "./dom.js";
import { LOOKS } from "./past.js";
import { spark } from "./plot.js";
import { shown } from "./tables.js";

/** As high as any browser can scroll exactly. */
const MAX_HEIGHT = 4_000_000;
/** Rows drawn beyond those that can be seen. */
const BEYOND = 2;
/** After this without scrolling the scroll bar is put right. */
const SETTLE_MILLIS = 150;
/** Milliseconds that a change is marked. */
const MARK_MILLIS = 2_500;

export class Grid {
  #source = null;
  #table = null;
  #y = 0;
  #lastTop = 0;
  #active = 0;
  #columns = [];
  #marks = new Map();
  #settle = 0;
  #frame = 0;

  /** `on.open(row)`, `on.sort(column)`, `on.moved()`. */
  constructor(on) {
    this.on = on;
    this.scroller = byId("scroller");
    this.spacer = byId("spacer");
    this.layer = byId("layer");
    this.head = byId("grid-head");
    this.grid = byId("grid");
    this.scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.grid.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#resized()).observe(this.scroller);
  }

  get #rowHeight() {
    return Number.parseFloat(getComputedStyle(this.grid).getPropertyValue("--row")) || 32;
  }

  get #view() {
    return this.scroller.clientHeight;
  }

  get #height() {
    return this.#source.length * this.#rowHeight;
  }

  /** Shows a source from its first row on. */
  show(source) {
    const same = this.#table === source.table;
    this.#source = source;
    this.#table = source.table;
    source.onload = () => this.draw();
    if (!same) this.#marks.clear();
    this.#active = 0;
    this.#resized();
    this.go(0);
  }

  /** The same source has other rows, or the table other columns. */
  changed() {
    this.#active = Math.min(this.#active, Math.max(0, this.#source.length - 1));
    this.#resized();
  }

  /** Marks a row as just changed. */
  mark(key) {
    this.#marks.set(key, performance.now());
    if (this.#marks.size > 5_000) this.#marks.delete(this.#marks.keys().next().value);
  }

  /** The row that the keyboard is at. */
  get active() {
    return this.#active;
  }

  /** The first and the last row that can be seen. */
  get range() {
    const first = Math.floor(this.#y / this.#rowHeight);
    const last = Math.ceil((this.#y + this.#view) / this.#rowHeight) - 1;
    return [first, Math.max(first, Math.min(last, this.#source.length - 1))];
  }

  /** Goes to a row, and shows it at the top or as near to it as there are rows. */
  go(row) {
    this.#active = Math.max(0, Math.min(row, this.#source.length - 1));
    this.#move(this.#active * this.#rowHeight);
  }

  #move(y) {
    this.#y = Math.max(0, Math.min(y, this.#height - this.#view));
    this.#syncBar();
    this.draw();
  }

  #syncBar() {
    const high = this.spacer.offsetHeight - this.#view;
    const real = this.#height - this.#view;
    const top = real <= 0 ? 0 : Math.round((this.#y / real) * high);
    this.scroller.scrollTop = top;
    this.#lastTop = this.scroller.scrollTop;
  }

  #scrolled() {
    if (!this.#source) return;
    const top = this.scroller.scrollTop;
    const step = top - this.#lastTop;
    if (step === 0) return;
    this.#lastTop = top;
    const high = this.spacer.offsetHeight - this.#view;
    const real = this.#height - this.#view;
    const isExact = real <= high + 1;
    if (isExact) this.#y = top;
    else if (top <= 0) this.#y = 0;
    else if (top >= high - 1) this.#y = real;
    else if (Math.abs(step) < this.#view * 2) this.#y += step;
    else this.#y = (top / high) * real;
    this.#y = Math.max(0, Math.min(this.#y, real));
    clearTimeout(this.#settle);
    if (!isExact) this.#settle = setTimeout(() => this.#settled(), SETTLE_MILLIS);
    this.draw();
  }

  /** The bar goes where the rows are, unless it was moved meanwhile. */
  #settled() {
    if (this.scroller.scrollTop === this.#lastTop) this.#syncBar();
    else this.#scrolled();
  }

  #resized() {
    if (!this.#source) return;
    this.spacer.style.height = `${Math.min(this.#height, MAX_HEIGHT)}px`;
    // It takes no room: the spacer alone says how far can be scrolled.
    // The heading is as wide as the rows beside the scroll bar.
    this.head.style.marginRight = `${this.scroller.offsetWidth - this.scroller.clientWidth}px`;
    this.layer.style.height = `${this.#view}px`;
    this.layer.style.marginBottom = `${-this.#view}px`;
    this.#columns = this.#fitting();
    this.grid.style.setProperty("--columns", this.#columns.map((column) => column.width).join(" "));
    this.#drawHead();
    this.#move(this.#y);
  }

  /** The columns that there is room for, the ones to keep first. */
  #fitting() {
    const character = 8.2;
    let room = this.scroller.clientWidth - 24;
    const needed = (column) => Number(/(\d+)ch/.exec(column.width)[1]) * character + 16;
    const kept = new Set();
    for (const column of [...this.#table.columns].sort((a, b) => a.keep - b.keep)) {
      if (room < needed(column) && kept.size > 0) continue;
      room -= needed(column);
      kept.add(column);
    }
    return this.#table.columns.filter((column) => kept.has(column));
  }

  #drawHead() {
    const { order, sortable } = this.#source;
    const cells = this.#columns.map((column, at) => {
      const is = order.column === column.key;
      const arrow = is ? (order.down ? "▼" : "▲") : "";
      const inner = sortable
        ? el("button", { type: "button", onclick: () => this.on.sort(column), title: `Sort by ${column.title}` }, column.title, el("span", { class: "arrow", "aria-hidden": "true" }, arrow))
        : el("span", {}, column.title);
      return el(
        "div",
        {
          role: "columnheader",
          class: column.number ? "cell number" : "cell",
          "aria-colindex": at + 1,
          "aria-sort": is ? (order.down ? "descending" : "ascending") : sortable ? "none" : null,
        },
        inner,
      );
    });
    const focused = [...this.head.querySelectorAll("button")].indexOf(document.activeElement);
    fill(this.head, cells);
    if (focused >= 0) this.head.querySelectorAll("button")[focused]?.focus();
    this.grid.setAttribute("aria-colcount", String(this.#columns.length));
  }

  /** Draws at the next frame. */
  draw() {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#drawNow();
    });
  }

  #drawNow() {
    if (!this.#source) return;
    const height = this.#rowHeight;
    const [first, last] = this.range;
    this.#source.want(first, last);
    this.grid.setAttribute("aria-rowcount", String(this.#source.length + 1));
    const rows = [];
    for (let at = first; at <= last + BEYOND && at < this.#source.length; at += 1) {
      rows.push(this.#row(at, at * height - this.#y));
    }
    fill(this.layer, rows);
    this.#drawSparks(first);
    this.grid.setAttribute("aria-activedescendant", rows.length > 0 ? `row-${this.#active}` : "");
    this.on.moved();
  }

  #row(at, top) {
    const row = this.#source.row(at);
    const attributes = {
      role: "row",
      id: `row-${at}`,
      class: "row",
      "aria-rowindex": at + 2,
      "aria-selected": at === this.#active ? "true" : null,
      onclick: () => {
        this.#active = at;
        this.draw();
        if (row) this.on.open(row);
      },
    };
    if (!row) attributes.class += " missing";
    else if (this.#isMarked(this.#table.key(row))) attributes.class += " marked";
    const cells = this.#columns.map((column, index) => this.#cell(column, row, index));
    const element = el("div", attributes, cells);
    element.style.transform = `translateY(${top}px)`;
    return element;
  }

  /** Canvases have their size once they are in the document. */
  #drawSparks(first) {
    for (const column of this.#columns.filter((one) => one.spark)) {
      const index = this.#columns.indexOf(column);
      [...this.layer.children].forEach((row, at) => {
        const canvas = row.children[index]?.querySelector("canvas");
        const values = canvas && column.spark(this.#source.row(first + at));
        if (values) spark(canvas, values, LOOKS, 0);
      });
    }
  }

  #isMarked(key) {
    const since = this.#marks.get(String(key));
    if (since === undefined) return false;
    if (performance.now() - since < MARK_MILLIS) return true;
    this.#marks.delete(String(key));
    return false;
  }

  #cell(column, row, index) {
    if (column.spark && row) {
      const drawn = el("canvas", { role: "img", "aria-label": `${column.title}: ${shown(column, row) || "not known yet"}` });
      return el("div", { role: "gridcell", class: "cell", "aria-colindex": index + 1 }, drawn);
    }
    const text = row ? shown(column, row) : index === 0 ? "…" : "";
    const names = ["cell"];
    for (const name of ["number", "mono", "strong"]) if (column[name]) names.push(name);
    const state = column.state && text ? text.split(",")[0] : null;
    return el(
      "div",
      { role: "gridcell", class: names.join(" "), "aria-colindex": index + 1, title: text.length > 12 ? text : null, "data-state": state },
      el("bdi", {}, text),
    );
  }

  #key(event) {
    if (event.target !== this.grid || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.#view / this.#rowHeight) - 1);
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page };
    const last = this.#source.length - 1;
    if (event.key in steps) this.#activate(this.#active + steps[event.key]);
    else if (event.key === "Home") this.#activate(0);
    else if (event.key === "End") this.#activate(last);
    else if (event.key === "Enter" && this.#source.row(this.#active)) this.on.open(this.#source.row(this.#active));
    else return;
    event.preventDefault();
  }

  /** Makes a row the active one and moves just as far as it takes to see it. */
  #activate(row) {
    this.#active = Math.max(0, Math.min(row, this.#source.length - 1));
    const top = this.#active * this.#rowHeight;
    if (top < this.#y) this.#move(top);
    else if (top + this.#rowHeight > this.#y + this.#view) this.#move(top + this.#rowHeight - this.#view);
    else this.draw();
  }

  /** What can be seen of what, in words. */
  get position() {
    if (this.#source.length === 0) return "no rows";
    const [first, last] = this.range;
    return `${grouped(first + 1)}–${grouped(last + 1)} of ${grouped(this.#source.length)}`;
  }
}
