/* Colored tokens, one column per model. Only rows near the visible part of the page have contents. */

import { formatNumber, h } from "./dom.js";
import { idList } from "./ids.js";
import { cutBlocks, cutPieces, display, isRightToLeft } from "./pieces.js";

const COLORS = 5;
const NEAR = "600px"; // how far outside the window rows are filled
const FIRST = 4; // rows that are filled at once

export class TokenColumns {
  /* `details` shows a token: hint(piece element, model, ids), hide(), open(model, ids). */
  constructor({ details, workspace }) {
    this.details = details;
    this.special = workspace.models.map((model) => new Set(model.special_tokens));
    this.root = h("div", {
      class: "columns",
      onpointerover: (event) => this.#enter(event.target),
      onpointerleave: () => this.#leave(),
      onfocusin: (event) => this.#enter(event.target),
      onfocusout: () => this.#leave(),
      onclick: (event) => this.#open(event.target),
      onkeydown: (event) => this.#press(event),
    });
    this.observer = null;
    this.opened = new Set(); // columns whose ids are shown
  }

  /* Show the server's answer for a text. `models` are the indices of the models in the answer. */
  show(text, encoded, { spaces = false, dim = false, underlined = false, models = null } = {}) {
    Object.assign(this, { encoded, spaces, models: models ?? encoded.models.map((_, place) => place) });
    this.text = text.slice(0, encoded.shown);
    const columns = encoded.models;
    this.ends = cutBlocks(this.text, columns);
    this.observer?.disconnect();
    this.observer = new IntersectionObserver((seen) => this.#scroll(seen), { rootMargin: `${NEAR} 0px` });
    this.root.classList.toggle("dim", dim);
    this.root.classList.toggle("underlined", underlined);
    this.root.classList.toggle("alone", columns.length === 1);
    this.root.style.setProperty("--columns", columns.length);
    const most = Math.max(...columns.map((model) => model.tokens));
    const heads = h("div", { class: "aligned" }, columns.map((model, column) => this.#head(model, column, most)));
    const rows = this.ends.map((end, row) => this.#row(row));
    rows.slice(0, FIRST).forEach((row) => this.#fill(row)); // now, so that typing does not flicker
    const [shown, size] = [encoded.shown, text.length].map((length) => formatNumber(length));
    const note = h("p", { class: "note shortened" }, `Shortened: only the first ${shown} of ${size} characters are shown.`);
    this.root.replaceChildren(heads, ...(shown === size ? [] : [note]), ...rows);
    rows.forEach((row) => this.observer.observe(row));
  }

  get hasSpecial() {
    return this.encoded.models.some(({ ids }, column) => {
      const special = this.special[this.models[column]];
      return special.size > 0 && ids.some((id) => special.has(id));
    });
  }

  #head(model, column, most) {
    const { ids, name, tokens } = model;
    const bar = h("span", { class: "bar-of", "aria-hidden": "true" });
    bar.style.setProperty("--share", most ? tokens / most : 0);
    const per = (size) => (tokens ? formatNumber(size / tokens, 2) : "–");
    const numbers = [
      [formatNumber(tokens), tokens === 1 ? "token" : "tokens"],
      [per(this.encoded.bytes), "bytes/token"],
      [per(this.encoded.characters), "characters/token"],
    ];
    const stats = numbers.map(([value, unit]) => h("div", {}, h("dd", {}, value), h("dt", {}, unit)));
    const onfold = (isOpen) => (isOpen ? this.opened.add(column) : this.opened.delete(column));
    const list = tokens > 0 && idList({ name, ids, total: tokens, isOpen: this.opened.has(column), onfold });
    return h("div", { class: "summary" }, h("h2", {}, name), h("dl", {}, stats), this.models.length > 1 && bar, list);
  }

  /* Part of the text in all columns, so that the same text stays side by side. */
  #row(row) {
    const element = h("div", { class: "aligned", "data-row": row }, this.models.map((model, column) => {
      const label = this.models.length > 1 && `Tokens of ${this.encoded.models[column].name}`;
      return h("div", { class: "block", dir: "auto", role: "group", "aria-label": label, "data-model": model });
    }));
    // Lines of about 50 characters; the height is known when the row has been filled once.
    element.style.setProperty("--lines", Math.ceil((this.ends[row] - this.#start(row)) / 50));
    return element;
  }

  #start(row) {
    return this.ends[row - 1] ?? 0;
  }

  #scroll(seen) {
    for (const { target, isIntersecting } of seen) {
      if (isIntersecting) this.#fill(target);
      else if (target.classList.contains("filled") && !target.contains(document.activeElement)) {
        target.style.setProperty("min-height", `${target.offsetHeight}px`);
        for (const block of target.children) block.replaceChildren();
        target.classList.remove("filled");
      }
    }
  }

  #fill(row) {
    if (row.classList.contains("filled")) return;
    row.classList.add("filled");
    row.style.removeProperty("min-height");
    const number = Number(row.dataset.row);
    for (const block of row.children) {
      const model = this.#encoded(block);
      const special = this.special[block.dataset.model];
      const pieces = cutPieces(this.text, model, this.#start(number), this.ends[number]);
      pieces.forEach((piece, place) => block.append(this.#piece(piece, place, special.has(model.ids[piece.first]))));
      // Tab reaches one piece of each block; the arrow keys reach the others.
      block.querySelector(".piece")?.setAttribute("tabindex", "0");
    }
  }

  /* The tokens of the column that contains a block. */
  #encoded(block) {
    return this.encoded.models[this.models.indexOf(Number(block.dataset.model))];
  }

  #piece({ start, end, first, last }, place, isSpecial) {
    const raw = this.text.slice(start, end);
    const text = display(raw, this.spaces);
    if (first === last) return h("span", { class: "dropped", title: "The pattern drops this text." }, text);
    const differs = this.#differs(start, end) && this.models.length > 1;
    const kinds = ["piece", `c${place % COLORS}`, differs && "differs", last - first > 1 && "several", isSpecial && "special"];
    const data = { "data-first": first, "data-last": last, "data-start": start, "data-end": end };
    const label = /^\s*$/.test(raw) ? spaceName(raw) : null;
    const attributes = { class: kinds.filter(Boolean).join(" "), role: "button", tabindex: "-1", "aria-label": label };
    const piece = h("span", { ...attributes, ...data }, text);
    if (last - first > 1) piece.style.setProperty("--tokens", last - first);
    return piece;
  }

  #differs(start, end) {
    const spans = this.encoded.differences; // start, end, start, end, …
    let low = 0;
    let high = spans.length / 2;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (spans[2 * middle + 1] > start) high = middle;
      else low = middle + 1;
    }
    return 2 * low < spans.length && spans[2 * low] < end;
  }

  #tokens(piece) {
    const block = piece.parentElement;
    const { first, last } = piece.dataset;
    return [Number(block.dataset.model), this.#encoded(block).ids.slice(Number(first), Number(last))];
  }

  #enter(target) {
    const piece = target.closest?.(".piece");
    if (!piece) return;
    this.#leave();
    const [start, end] = [Number(piece.dataset.start), Number(piece.dataset.end)];
    for (const other of piece.closest(".aligned").querySelectorAll(".piece")) {
      const overlaps = Number(other.dataset.start) < end && Number(other.dataset.end) > start;
      if (overlaps && other !== piece) other.classList.add("linked");
    }
    piece.classList.add("active");
    this.details.hint(piece, ...this.#tokens(piece));
  }

  #leave() {
    for (const piece of this.root.querySelectorAll(".linked, .active")) piece.classList.remove("linked", "active");
    this.details.hide();
  }

  #open(target) {
    const piece = target.closest(".piece");
    if (piece) this.details.open(...this.#tokens(piece), piece);
  }

  #press(event) {
    const piece = event.target.closest?.(".piece");
    if (!piece) return;
    if (event.key === "Enter" || event.key === " ") this.#open(piece);
    else {
      const next = this.#neighbor(piece, event.key);
      if (!next) return;
      piece.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    }
    event.preventDefault();
  }

  /* The piece that a key leads to. Up and Down lead to the previous and next block. */
  #neighbor(piece, key) {
    const block = piece.parentElement;
    const right = isRightToLeft(this.text, Number(piece.dataset.start)) ? -1 : 1;
    const step = { ArrowLeft: -right, ArrowUp: -1, ArrowRight: right, ArrowDown: 1 }[key];
    if (key === "Home") return block.querySelector(".piece");
    if (key === "End") return [...block.querySelectorAll(".piece")].at(-1);
    if (!step) return null;
    let next = key.endsWith("Left") || key.endsWith("Right") ? piece : null;
    do next = next && (step > 0 ? next.nextElementSibling : next.previousElementSibling);
    while (next && !next.matches(".piece"));
    if (next) return next;
    const row = step > 0 ? block.parentElement.nextElementSibling : block.parentElement.previousElementSibling;
    if (!row?.dataset.row) return null;
    this.#fill(row);
    const pieces = [...row.children[[...block.parentElement.children].indexOf(block)].querySelectorAll(".piece")];
    return step > 0 || key === "ArrowUp" ? pieces[0] : pieces.at(-1);
  }
}

/* Name whitespace for a screen reader. */
function spaceName(text) {
  const names = { " ": "space", "\n": "line break", "\t": "tab" };
  return Array.from(text, (character) => names[character] ?? "whitespace").join(", ");
}
