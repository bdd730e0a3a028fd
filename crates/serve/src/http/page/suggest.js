// What may stand next in a filter: words of the command line, and behind one
// that names a link or a table, the names that there are.

import * as api from "./api.js";
import { byId, el, fill, plain } from "./dom.js";
import { WORDS } from "./columns.js";

/** Suggestions that are shown. */
const MOST = 12;
/** Names that are asked for. */
const NAMES = 500;

/** Where names come from, by the word before them. */
const SOURCES = {
  link: { path: "/v1/links", field: "ifname", words: ["dev", "master", "br", "brport", "vrf", "name"] },
  table: { path: "/v1/rules", field: "table", words: ["table"], more: ["main", "local", "default", "all"] },
};

/** Text as it stands in a filter: the word at its end, and what is before it. */
export function split(text) {
  const [, before, last] = /^(.*?)(\S*)$/s.exec(text);
  const words = before.trim().split(/\s+/).filter(Boolean);
  return { before, last, words };
}

/** What is known of the word that waits for its value; `null`: none does. */
function waiting(of, words) {
  const two = words.slice(-2).join(" ");
  const known = WORDS[of.id];
  return known.find((one) => one.value && one.word === two) ?? known.find((one) => one.value && one.word === words.at(-1)) ?? null;
}

/** A list under the filter, driven by keys. */
export class Suggest {
  #input = byId("filter");
  #list = byId("suggestions");
  #shown = [];
  #at = -1;
  #asked = 0;

  /** `on.table()`: the table that is filtered; `on.taken()`: the text has changed. */
  constructor(on) {
    this.on = on;
    this.#input.addEventListener("input", () => this.#update());
    this.#input.addEventListener("focus", () => this.#update());
    this.#input.addEventListener("blur", () => this.close());
    // Before others: a key that chooses does nothing else.
    this.#input.addEventListener("keydown", (event) => this.#key(event), { capture: true });
  }

  get isOpen() {
    return !this.#list.hidden;
  }

  close() {
    this.#shown = [];
    this.#at = -1;
    this.#draw();
  }

  async #update() {
    const asked = (this.#asked += 1);
    const of = this.on.table();
    if (!of) return this.close();
    const { last, words } = split(this.#input.value);
    const candidates = await this.#candidates(of, words).catch(() => []);
    if (asked !== this.#asked || document.activeElement !== this.#input) return undefined;
    const fits = candidates.filter((one) => one.word.startsWith(last) && one.word !== last);
    // What was chosen stays so while more is typed.
    const chosen = this.#shown[this.#at]?.word;
    this.#shown = fits.slice(0, MOST);
    this.#at = this.#shown.findIndex((one) => one.word === chosen);
    return this.#draw();
  }

  async #candidates(of, words) {
    const word = waiting(of, words);
    if (!word) return WORDS[of.id];
    const source = Object.values(SOURCES).find((one) => one.words.includes(word.word.split(" ").at(-1)));
    if (!source) return [];
    const { rows } = await api.rows(source.path, { fields: source.field, limit: NAMES });
    const names = new Set([...(source.more ?? []), ...rows.map((row) => row[source.field]).filter(Boolean)]);
    return [...names].map((name) => ({ word: String(name), about: "" }));
  }

  #draw() {
    this.#list.hidden = this.#shown.length === 0;
    this.#input.setAttribute("aria-expanded", String(this.isOpen));
    this.#input.setAttribute("aria-activedescendant", this.#at >= 0 ? `suggestion-${this.#at}` : "");
    const lines = this.#shown.map((one, at) =>
      el(
        "li",
        {
          id: `suggestion-${at}`,
          role: "option",
          "aria-selected": at === this.#at ? "true" : "false",
          // Before the input loses the focus.
          onmousedown: (event) => {
            event.preventDefault();
            this.#take(one);
          },
        },
        el("b", {}, el("bdi", {}, plain(one.word))),
        one.value ? el("i", {}, one.value) : null,
        el("span", {}, one.about ?? ""),
      ),
    );
    fill(this.#list, lines);
  }

  #take(one) {
    const { before } = split(this.#input.value);
    this.#input.value = `${before}${one.word} `;
    this.on.taken();
    this.#update();
  }

  #key(event) {
    if (!this.isOpen) return;
    const { key } = event;
    if (key === "ArrowDown" || key === "ArrowUp") {
      const step = key === "ArrowDown" ? 1 : -1;
      this.#at = Math.max(-1, Math.min(this.#at + step, this.#shown.length - 1));
      this.#draw();
    } else if ((key === "Tab" && !event.shiftKey) || (key === "Enter" && this.#at >= 0)) {
      this.#take(this.#shown[Math.max(0, this.#at)]);
    } else if (key === "Escape" && this.#at >= 0) {
      this.close();
    } else {
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}
