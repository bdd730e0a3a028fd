// Lines over the last minutes, on a canvas. Says what they are in a legend
// and to a screen reader.

import { el, fill } from "./dom.js";

/** The colours of lines, from the style sheet. */
const COLOURS = ["--accent", "--second", "--good", "--bad", "--warn", "--soft", "--text"];

const styleOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A canvas that is as sharp as its screen. */
function context(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const drawing = canvas.getContext("2d");
  drawing.setTransform(scale, 0, 0, scale, 0, 0);
  return { drawing, width, height };
}

/** The next number of 1, 2, 5, 10, … above. */
function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function line(drawing, values, x, y) {
  drawing.beginPath();
  let is = false;
  values.forEach((value, at) => {
    if (value === null || value === undefined) {
      is = false;
    } else if (is) {
      drawing.lineTo(x(at), y(value));
    } else {
      drawing.moveTo(x(at), y(value));
      is = true;
    }
  });
  drawing.stroke();
}

/** A plot with axes and a legend. */
export class Plot {
  #canvas = el("canvas", { role: "img" });
  #legend = el("ul", { class: "legend" });

  /** `format(value)` writes a value. */
  constructor(parent, name, format) {
    this.name = name;
    this.format = format;
    parent.append(this.#canvas);
    parent.after(this.#legend);
  }

  /** Draws series `{ title, values }` of `most` points at most, `step` seconds apart, the newest last. */
  draw(series, most, step) {
    const { drawing, width, height } = context(this.#canvas);
    const left = 46;
    const bottom = 18;
    const highest = ceiling(Math.max(0, ...series.flatMap((one) => one.values.filter((value) => value !== null))));
    const x = (at, length) => left + ((most - length + at) / (most - 1)) * (width - left - 4);
    const y = (value) => height - bottom - (value / highest) * (height - bottom - 10);
    this.#axes(drawing, width, height, left, highest, y, most * step);
    drawing.lineWidth = 1.75;
    drawing.lineJoin = "round";
    series.forEach((one, at) => {
      drawing.strokeStyle = styleOf(COLOURS[at % COLOURS.length]);
      line(drawing, one.values, (index) => x(index, one.values.length), y);
    });
    this.#tell(series);
  }

  #axes(drawing, width, height, left, highest, y, secs) {
    drawing.font = "11px system-ui, sans-serif";
    drawing.lineWidth = 1;
    drawing.textBaseline = "middle";
    for (const share of [0, 0.5, 1]) {
      const at = Math.round(y(highest * share)) + 0.5;
      drawing.strokeStyle = styleOf("--line");
      drawing.beginPath();
      drawing.moveTo(left, at);
      drawing.lineTo(width, at);
      drawing.stroke();
      drawing.fillStyle = styleOf("--soft");
      drawing.textAlign = "right";
      drawing.fillText(this.format(highest * share), left - 6, at);
    }
    drawing.textBaseline = "alphabetic";
    drawing.textAlign = "left";
    drawing.fillText(`${Math.round(secs / 60)} min ago`, left, height - 3);
    drawing.textAlign = "right";
    drawing.fillText("now", width - 2, height - 3);
  }

  #tell(series) {
    const newest = (one) => this.format(one.values.at(-1) ?? 0);
    const items = series.map((one, at) => {
      const key = el("i");
      key.style.background = styleOf(COLOURS[at % COLOURS.length]);
      return el("li", {}, key, `${one.title} `, el("b", {}, newest(one)));
    });
    fill(this.#legend, items);
    const now = series.map((one) => `${one.title} ${newest(one)}`).join(", ");
    this.#canvas.setAttribute("aria-label", `${this.name}; now: ${now}`);
  }
}

/** A bar for each part of a time, `most` being the highest; of the share `unknown` at its beginning not all is known. */
export function bars(canvas, values, most, unknown) {
  const { drawing, width, height } = context(canvas);
  const step = width / values.length;
  drawing.fillStyle = styleOf("--line");
  drawing.fillRect(0, height - 1, width, 1);
  drawing.globalAlpha = 0.35;
  drawing.fillRect(0, 0, width * unknown, height);
  drawing.globalAlpha = 1;
  drawing.fillStyle = styleOf("--accent");
  values.forEach((value, at) => {
    // What is there is seen, be it ever so small.
    const high = value === 0 ? 0 : Math.max(2, (value / most) * (height - 2));
    // Whole pixels, with one between where there is room.
    const left = Math.round(at * step);
    const right = Math.round((at + 1) * step);
    drawing.fillRect(left, Math.round(height - high), Math.max(1, right - left - (step > 3 ? 1 : 0)), Math.round(high));
  });
}

/** A small line without axes, from its lowest to its highest value; `floor`: from no more than that on. */
export function spark(canvas, values, most, floor = Infinity) {
  const { drawing, width, height } = context(canvas);
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return;
  const low = Math.min(floor, ...known);
  const room = Math.max(...known) - low;
  const x = (at) => ((most - values.length + at) / (most - 1)) * width;
  const flat = floor === 0 ? height - 4 : height / 2;
  const y = (value) => (room === 0 ? flat : height - 4 - ((value - low) / room) * (height - 8));
  drawing.strokeStyle = styleOf("--accent");
  drawing.lineWidth = 1.5;
  line(drawing, values, x, y);
}
