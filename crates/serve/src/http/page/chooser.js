// Which columns a table shows: any that its rows have. The choice stays in
// this browser.

import { byId, el, fill } from "./dom.js";
import { keep } from "./tables.js";

/** Lists a table's columns; `changed` is called after each choice. */
export function showColumns(of, changed) {
  const boxes = of.all.map((column) => ({ column, box: el("input", { type: "checkbox", value: column.key, onchange: () => take() }) }));
  const draw = () => boxes.forEach(({ column, box }) => (box.checked = of.columns.includes(column)));
  const take = (keys = boxes.filter(({ box }) => box.checked).map(({ column }) => column.key)) => {
    keep(of, keys);
    draw();
    changed();
  };
  const items = boxes.map(({ column, box }) => el("li", {}, el("label", {}, box, el("span", {}, named(column)))));
  const find = el("input", { type: "search", placeholder: "Find", "aria-label": "Find a column", autocomplete: "off" });
  find.addEventListener("input", () => {
    const text = find.value.trim().toLowerCase();
    for (const item of items) item.hidden = !item.textContent.toLowerCase().includes(text);
  });
  const usual = el("button", { type: "button", id: "usual-columns", onclick: () => take([]) }, "The usual ones");
  const close = el("form", { method: "dialog" }, usual, " ", el("button", {}, "Close"));
  const title = el("h2", { id: "columns-title" }, `Columns of ${of.title.toLowerCase()}`);
  fill(byId("columns"), title, find, el("ul", {}, items), close);
  draw();
  byId("columns").showModal();
}

/** Its title, and its name in the daemon's list where that is another. */
function named({ title, key, from }) {
  return from.length === 1 && from[0] === key && title !== key ? `${title} (${key})` : title;
}
