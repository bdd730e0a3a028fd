// The overview: sizes of tables, traffic and changes over the last minutes,
// the busiest links.

import { byId, el, fill, grouped, plain, short } from "./dom.js";
import { LOOKS, STEP } from "./past.js";
import { Plot, spark } from "./plot.js";
import { TABLES } from "./tables.js";

let plots = null;

/** Makes the tiles, once. */
export function drawTiles() {
  fill(
    byId("tiles"),
    TABLES.map((of) =>
      el(
        "a",
        { class: "tile", href: `#/${of.id}` },
        el("div", { class: "what" }, of.title),
        el("div", { class: "many", id: `many-${of.id}` }, "…"),
        el("div", { class: "plot" }, el("canvas", { id: `spark-${of.id}`, "aria-hidden": "true" })),
        el("div", { class: "rate", id: `rate-${of.id}` }, " "),
      ),
    ),
  );
}

/** Draws what is known. */
export function drawOverview(past) {
  if (byId("overview").hidden) return;
  for (const of of TABLES) {
    const rows = past.sizes.get(of.id).at(-1);
    if (rows === undefined || rows === null) continue;
    const lacks = past.status.mirror.incomplete.includes(of.id);
    const many = byId(`many-${of.id}`);
    many.textContent = lacks ? `${grouped(rows)} +` : grouped(rows);
    many.title = lacks ? "rows are missing: the table is full" : "";
    byId(`rate-${of.id}`).textContent = `${short(past.activity.get(of.id).at(-1) ?? 0)} changes/s`;
    spark(byId(`spark-${of.id}`), past.sizes.get(of.id), past.span);
  }
  plots ??= {
    traffic: new Plot(byId("traffic"), "Traffic in bits a second", (value) => short(value)),
    activity: new Plot(byId("activity"), "Changes a second by table", (value) => short(value)),
  };
  const { rx, tx } = past.traffic;
  plots.traffic.draw([{ title: "received bit/s", values: rx }, { title: "sent bit/s", values: tx }], past.span, STEP);
  const busy = TABLES.filter((of, at) => at < 4 || past.activity.get(of.id).some((value) => value > 0));
  plots.activity.draw(busy.map((of) => ({ title: of.title.toLowerCase(), values: past.activity.get(of.id) })), past.span, STEP);
  drawBusiest(past);
}

function drawBusiest(past) {
  const cell = (value) => el("td", { class: "number" }, value);
  const rows = past.busiest(8).map((link) =>
    el(
      "tr",
      {},
      el("td", {}, el("a", { href: `#/links?${encodeURIComponent(link.name)}` }, el("bdi", {}, plain(link.name)))),
      cell(short(link.rx_bits)),
      cell(short(link.tx_bits)),
      cell(short(link.rx_packets + link.tx_packets)),
      cell(short(link.wrong)),
      el("td", { class: "spark" }, el("canvas", { "aria-hidden": "true", "data-link": link.name })),
    ),
  );
  const heads = ["Link", "Rx bit/s", "Tx bit/s", "Packets/s", "Wrong/s", "Last minutes"];
  const head = el("tr", {}, heads.map((title, at) => el("th", { scope: "col", class: at === 0 ? null : at < 5 ? "number" : "spark" }, title)));
  const body = rows.length > 0 ? rows : el("tr", {}, el("td", { colspan: 6, class: "nothing" }, "two looks at the counters make a rate …"));
  fill(byId("busiest"), el("table", {}, el("thead", {}, head), el("tbody", {}, body)));
  for (const canvas of byId("busiest").querySelectorAll("canvas")) {
    spark(canvas, past.pasts.get(canvas.dataset.link) ?? [], LOOKS, 0);
  }
  const choice = byId("traffic-link");
  if (document.activeElement !== choice) {
    const names = past.busiest(50).map((link) => link.name);
    if (choice.value && !names.includes(choice.value)) names.push(choice.value);
    const chosen = choice.value;
    fill(choice, el("option", { value: "" }, "all links"), names.sort().map((name) => el("option", { value: name }, plain(name))));
    choice.value = chosen;
  }
}
