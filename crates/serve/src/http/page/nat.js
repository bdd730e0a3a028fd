// The translation, where one runs: how much it has and may have, what it
// refused and why, who has most, which outside addresses are nearly used up.

import * as api from "./api.js";
import { byId, el, fill, grouped, octets, plain } from "./dom.js";

/** Looks from one to the next at subscribers and addresses: that goes through tables. */
const SLOW = 5;
/** Rows of each list. */
const ROWS = 8;
/** Outside addresses that are looked at. */
const ADDRESSES = 1_000;
/** What became of packets that did not go on, in words. */
const REASONS = {
  no_mapping: "unasked, from outside",
  denied: "denied by rule or mode",
  table_full: "no room for a flow",
  ports_exhausted: "no port free",
  over_quota: "over a subscriber's quota",
  malformed: "malformed",
  fragment_waiting: "fragments held for their first",
  helper_refused: "refused by a helper",
  unsupported: "no translation for it",
};

let looks = 0;
let asking = false;

/** Draws what is told; asks for it, while somebody looks. */
export async function drawNat(status) {
  const { translation } = status;
  byId("nat-part").hidden = !translation;
  if (!translation || asking || byId("overview").hidden) return;
  if (!translation.told) {
    say("A translation runs here. Who talks to whom is told with a token (token_file in [http]), or to root at this host.");
    return;
  }
  asking = true;
  try {
    const isSlow = looks++ % SLOW === 0;
    drawCounted(await api.json("/v1/nat/statistics"));
    if (isSlow) {
      drawSubscribers((await api.rows("/v1/nat/subscribers", { top: ROWS })).rows);
      drawAddresses(await api.rows("/v1/nat/pools", { limit: ADDRESSES }));
    }
    say("");
  } catch (error) {
    if (error.name !== "AbortError") say(`The translation does not answer: ${error.message}`);
  } finally {
    asking = false;
  }
}

function say(text) {
  byId("nat-note").textContent = text;
  byId("nat-lists").hidden = text !== "";
}

const number = (value) => el("td", { class: "number" }, value);

function list(id, heads, rows, empty) {
  const head = el("tr", {}, heads.map((title, at) => el("th", { scope: "col", class: at === 0 ? null : "number" }, title)));
  const body = rows.length > 0 ? rows : el("tr", {}, el("td", { colspan: heads.length, class: "nothing" }, empty));
  fill(byId(id), el("table", {}, el("thead", {}, head), el("tbody", {}, body)));
}

function drawCounted(of) {
  const all = (counts) => Object.values(counts).reduce((sum, one) => sum + one, 0);
  const share = (is, most) => (most > 0 ? `${grouped(is)} of ${grouped(most)}` : grouped(is));
  const sizes = [
    ["Flows", share(of.flows, of.flows_max)],
    ["of strangers", grouped(of.flows_of_strangers)],
    ["Subscribers", share(of.subscribers, of.subscribers_max)],
    ["Blocks of ports", grouped(of.blocks)],
    ["Shared mappings", grouped(of.mappings)],
    ["Leases (PCP)", grouped(of.leases)],
    ["Packets out, in", `${grouped(all(of.packets.out))}, ${grouped(all(of.packets.in))}`],
    ["Records lost", grouped(of.events_lost)],
    ["Memory", octets(of.memory_bytes)],
  ];
  list("nat-sizes", ["Translation", "Now"], sizes.map(([what, many]) => el("tr", {}, el("td", {}, what), number(many))), "");
  const dropped = Object.entries(REASONS)
    .map(([name, words]) => [words, of.packets.out[name] ?? 0, of.packets.in[name] ?? 0])
    .filter(([, out, incoming]) => out + incoming > 0);
  const rows = dropped.map(([words, out, incoming]) => el("tr", {}, el("td", {}, words), number(grouped(out)), number(grouped(incoming))));
  const beside = [
    ["of these: no outside address free", of.addresses_exhausted],
    ["of held fragments: given up", of.fragments_dropped],
  ];
  for (const [words, many] of beside) {
    if (many > 0) rows.push(el("tr", {}, el("td", {}, words), number(grouped(many)), number("")));
  }
  list("nat-drops", ["Packets that did not go on", "Out", "In"], rows, "all went on");
}

function drawSubscribers(all) {
  const sum = (counts) => counts.tcp + counts.udp + counts.other;
  const rows = all.map((one) =>
    el(
      "tr",
      {},
      el("td", {}, plain(one.subscriber)),
      number(plain(one.alias ?? "")),
      number(grouped(sum(one.sessions))),
      number(grouped(sum(one.ports))),
      number(grouped(one.blocks)),
    ),
  );
  list("nat-subscribers", ["Subscribers with most", "Behind", "Sessions", "Mappings", "Blocks"], rows, "nobody is counted: `subscribers`, `limit` or `port_blocks` in the rules");
}

function drawAddresses({ rows: all, next }) {
  const inUse = all.filter((one) => one.blocks > 0).sort((a, b) => a.free_blocks / a.blocks - b.free_blocks / b.blocks);
  const rows = inUse.slice(0, ROWS).map((one) =>
    el("tr", {}, el("td", {}, plain(one.alias)), number(grouped(one.free_blocks)), number(grouped(one.blocks))),
  );
  const many = next ? `more than ${grouped(all.length)}` : grouped(all.length);
  list("nat-addresses", [`Addresses (${many})`, "Free blocks", "Of"], rows, "none of them has given a block");
}
