/* Details of a token: a hint next to it, and a panel with its merge tree. */

import { formatNumber, h, plural } from "./dom.js";
import { displayToken, hexBytes } from "./pieces.js";
import { getToken } from "./source.js";
import { get, set } from "./state.js";

const GAP = 8; // pixels around a hint
const MAX_HINTS = 12; // tokens of a piece
const OPEN_LEVELS = 3; // of the merge tree

export class Details {
  /* `names` are those of the models. `corpus()` returns the key of the text in which tokens are counted: "data", or that
     of the text in the text box. `fail(message)` shows an error. */
  constructor(names, corpus, fail) {
    Object.assign(this, { names, corpus, fail });
    this.tip = h("div", { id: "tip", role: "tooltip", hidden: true });
    this.body = h("div", { class: "panel-body" });
    const shut = { class: "quiet", type: "button", "aria-label": "Close", onclick: () => this.close() };
    const about = { id: "panel", "aria-label": "Token", tabindex: "-1", hidden: true };
    this.panel = h("aside", about, h("button", shut, "✕"), this.body);
    document.body.append(this.tip, this.panel);
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.hide();
      if (!this.panel.hidden) this.close();
    });
    addEventListener("scroll", () => this.hide(), { passive: true });
  }

  /* Show the tokens of a piece next to it. */
  async hint(piece, model, ids) {
    this.hinted = piece;
    const asked = ids.slice(0, MAX_HINTS).map((id) => getToken(model, id, this.corpus()));
    const answers = await Promise.all(asked).catch(() => []);
    if (this.hinted !== piece || !piece.isConnected || !answers.length) return;
    const rows = answers.map(({ token }) => h("li", {}, chip(token), h("span", {}, facts(token).join(" · "))));
    const rest = ids.length - answers.length;
    this.tip.replaceChildren(h("ul", {}, rows, rest > 0 && h("li", {}, `… and ${plural(rest, "token")} more`)));
    this.tip.hidden = false;
    piece.setAttribute("aria-describedby", "tip");
    const place = piece.getClientRects()[0];
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const isBelow = place.bottom + GAP + height < innerHeight;
    const left = Math.max(GAP, Math.min(place.left, document.body.clientWidth - width - GAP));
    const top = isBelow ? place.bottom + GAP : Math.max(GAP, place.top - height - GAP);
    this.tip.style.setProperty("left", `${left}px`);
    this.tip.style.setProperty("top", `${top}px`);
  }

  hide() {
    this.hinted?.removeAttribute("aria-describedby");
    this.hinted = null;
    this.tip.hidden = true;
  }

  /* Open the panel. When it is closed, the focus returns to `origin`. */
  async open(model, ids, origin) {
    this.hide();
    this.origin = origin ?? this.origin;
    try {
      await this.#show(model, ids, 0);
    } catch (error) {
      this.fail(error.message);
      return;
    }
    set({ token: [model, ...ids].join("-") });
    this.panel.hidden = false;
    this.panel.focus();
  }

  /* Open the tokens in the address. */
  async restore() {
    this.panel.hidden = true;
    const [model, ...ids] = get("token").split("-").map(Number);
    if (ids.length) await this.open(model, ids);
  }

  close() {
    set({ token: "" });
    const hasFocus = this.panel.contains(document.activeElement);
    this.panel.hidden = true;
    if (hasFocus) this.origin?.focus();
  }

  /* Update the counts after the text has changed. */
  async refresh() {
    if (!this.panel.hidden) await this.#show(...this.shown).catch((error) => this.fail(error.message));
  }

  async #show(model, ids, place) {
    this.shown = [model, ids, place];
    const corpus = this.corpus();
    const { token, parts, built, built_total: total } = await getToken(model, ids[place], corpus);
    const go = (other) => this.open(model, [other]);
    const rows = [
      ["id", String(token.id)],
      ["kind", token.kind],
      token.rank !== null && ["rank", formatNumber(token.rank)],
      ["bytes", `${hexBytes(token)} (${formatNumber(token.bytes)})`],
      token.parts.length > 0 && ["made of", token.parts.map((part) => button(parts[part], go))],
      token.count !== null && ["count", `${formatNumber(token.count)} in the ${corpus === "data" ? "data" : "text"}`],
    ];
    this.panel.setAttribute("aria-label", `Token of ${this.names[model]}`);
    const body = h("div", { class: "panel-body" },
      h("p", { class: "note model" }, "Token of ", h("bdi", {}, this.names[model])),
      ids.length > 1 && this.#siblings(model, ids, place),
      h("h2", { class: "token-title" }, chip(token)),
      h("dl", { class: "facts" }, rows.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      token.parts.length > 0 && [h("h3", {}, "Merge tree"), h("ul", { class: "tree" }, branch(parts, token.id, 0))],
      total > 0 && [
        h("h3", {}, `Part of ${plural(total, "token")}`),
        h("div", { class: "chips" }, built.map((each) => button(each, go))),
      ]);
    this.body.replaceWith(body);
    this.body = body;
  }

  /* The tokens of a piece, to choose from. */
  #siblings(model, ids, chosen) {
    const buttons = ids.map((id, place) => {
      const attributes = { class: "chip", type: "button", "aria-pressed": String(place === chosen) };
      return h("button", { ...attributes, onclick: () => this.#show(model, ids, place) }, `${place + 1}: ${id}`);
    });
    const note = `${plural(ids.length, "token")} share this character:`;
    return [h("p", { class: "note" }, note), h("div", { class: "chips" }, buttons)];
  }
}

/* A token as text in a frame. */
export function chip(token) {
  return h("bdi", { class: chipClass(token) }, displayToken(token));
}

function chipClass(token) {
  return token.text === null ? "chip hex" : "chip";
}

function button(token, go) {
  const attributes = { class: chipClass(token), type: "button", title: `${token.id}, ${token.kind}` };
  return h("button", { ...attributes, onclick: () => go(token.id) }, h("bdi", {}, displayToken(token)));
}

/* The facts in a hint. */
function facts(token) {
  const rank = token.rank === null ? [] : [`rank ${formatNumber(token.rank)}`];
  const count = token.count === null ? [] : [`${formatNumber(token.count)}×`];
  return [`id ${token.id}`, token.kind, ...rank, hexBytes(token), ...count];
}

/* A token and its parts. Deeper levels are created when they are unfolded, because a tree can be large. */
function branch(parts, id, depth) {
  const token = parts[id];
  if (!token) return h("li", {}, "…");
  const label = [chip(token), h("span", { class: "note" }, token.id)];
  if (!token.parts.length) return h("li", { class: "leaf" }, label);
  const list = h("ul", { class: "tree" });
  const fold = h("details", { open: depth < OPEN_LEVELS }, h("summary", {}, label), list);
  const unfold = () => {
    if (fold.open && !list.hasChildNodes()) list.append(...token.parts.map((part) => branch(parts, part, depth + 1)));
  };
  fold.addEventListener("toggle", unfold);
  unfold();
  return h("li", {}, fold);
}
