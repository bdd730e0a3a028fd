// Elements out of values. Whatever a router's neighbours chose (names of
// links, aliases) comes in as text and stays text: nothing here or anywhere
// else on the page reads it as markup.

/**
 * Makes an element. Attributes that are `undefined`, `null` or `false` are
 * left out; those that begin with `on` are listeners.
 */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return element;
}

/** Replaces what is in an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== undefined && child !== null));
}

/** An element of the document, which must be there. */
export const byId = (id) => document.getElementById(id);

// Controls, and what turns the direction of writing round.
const TRICKY = /[\p{Cc}\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu;

/** A text that somebody else chose, with what cannot be seen made visible. */
export const plain = (text) => String(text).replace(TRICKY, "\ufffd");

const WHOLE = new Intl.NumberFormat("en");

/** A whole number with its thousands apart. */
export const grouped = (number) => WHOLE.format(number);

/** A number in few characters: `0.4`, `37`, `1.25k`, `12.5M`. */
export function short(number) {
  if (!Number.isFinite(number) || number < 0.05) return "0";
  if (number < 9.95) return number.toFixed(1).replace(/\.0$/, "");
  const units = ["", "k", "M", "G", "T", "P"];
  let unit = 0;
  while (number >= 999.5 && unit + 1 < units.length) {
    number /= 1000;
    unit += 1;
  }
  const digits = unit === 0 ? 0 : number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
  return number.toFixed(digits) + units[unit];
}

/** Octets for people. */
export function octets(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (number >= 1024 && unit + 1 < units.length) {
    number /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? number : number.toFixed(1)} ${units[unit]}`;
}

/** A span of time for people. */
export function span(secs) {
  if (secs < 60) return `${Math.floor(secs)} s`;
  if (secs < 3600) return `${Math.floor(secs / 60)} min`;
  if (secs < 86400) return `${Math.floor(secs / 3600)} h ${Math.floor((secs / 60) % 60)} min`;
  return `${Math.floor(secs / 86400)} d ${Math.floor((secs / 3600) % 24)} h`;
}

const COLLATOR = new Intl.Collator("en", { numeric: true });

/** Compares values of a column: numbers by size, texts as people count. */
export function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return COLLATOR.compare(String(a ?? ""), String(b ?? ""));
}
