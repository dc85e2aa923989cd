/* A list of any length. Only the visible rows exist; they are fetched in pages. */

import { formatNumber, h, plural } from "./dom.js";

const PAGE = 100;
const SPARE = 5; // rows outside the visible part
const MAX_ROWS = 500000; // browsers limit the height of an element

export class VirtualList {
  /* `columns` are [title, class, cell(row), sort key or null]; `fetchPage(start, rows)` answers {total, rows}. */
  constructor({ label, columns, fetchPage, onopen = null, onsort = null, noun = "row" }) {
    Object.assign(this, { columns, fetchPage, onopen, noun });
    this.head = h("div", { class: "row head", role: "row" }, columns.map(([title, kind, , sort]) => {
      const cell = h("span", { class: kind, role: "columnheader" });
      cell.append(sort ? h("button", { type: "button", "data-sort": sort, onclick: () => onsort(sort) }, title) : title);
      return cell;
    }));
    this.space = h("div", { class: "space", role: "rowgroup" });
    this.status = h("p", { class: "note", role: "status" });
    this.table = h("div", { class: "table", role: "grid", tabindex: "0", "aria-label": label,
      onscroll: () => this.draw(), onkeydown: (event) => this.#press(event) }, this.head, this.space);
    this.root = h("div", { class: "list" }, this.status, this.table);
    this.version = 0;
    new ResizeObserver(() => this.draw()).observe(this.table);
  }

  /* Fetch the rows anew and start at the top. */
  async reset() {
    const version = ++this.version;
    this.active = 0;
    this.pages = new Map();
    this.fetched = new Map();
    const answer = await this.fetchPage(0, PAGE);
    if (version !== this.version) return;
    this.pages.set(0, answer.rows);
    this.fetched.set(0, null);
    this.count = Math.min(answer.total, MAX_ROWS);
    const rest = this.count < answer.total ? `; search to see those after the first ${formatNumber(this.count)}` : "";
    this.status.textContent = (answer.has_more ? "the first " : "") + plural(answer.total, this.noun) + rest;
    this.table.setAttribute("aria-rowcount", this.count);
    this.table.scrollTop = 0;
    this.space.style.setProperty("--rows", this.count);
    this.draw();
  }

  /* Mark the column by which rows are sorted. */
  sorted(key, descending) {
    for (const button of this.head.querySelectorAll("button")) {
      const isKey = button.dataset.sort === key;
      button.parentElement.setAttribute("aria-sort", isKey ? (descending ? "descending" : "ascending") : "none");
    }
  }

  /* Rename the column with a sort key. */
  rename(key, title) {
    this.head.querySelector(`[data-sort="${key}"]`).textContent = title;
  }

  draw() {
    if (this.count === undefined) return;
    const height = this.#rowHeight();
    const { scrollTop, clientHeight } = this.table;
    const first = Math.max(0, Math.floor(scrollTop / height) - SPARE);
    const last = Math.min(this.count, Math.ceil((scrollTop + clientHeight) / height) + SPARE);
    const rows = [];
    for (let place = first; place < last; place++) {
      const row = this.pages.get(Math.floor(place / PAGE))?.[place % PAGE];
      if (!row) this.#fetch(Math.floor(place / PAGE));
      rows.push(this.#row(place, row));
    }
    this.space.replaceChildren(...rows);
    this.table.setAttribute("aria-activedescendant", `row-${this.active}`);
  }

  #rowHeight() {
    return Number.parseFloat(getComputedStyle(this.space).getPropertyValue("--row"));
  }

  #row(place, row) {
    const isActive = place === this.active;
    const attributes = {
      class: `row${isActive ? " active" : ""}${this.onopen ? " opens" : ""}`,
      role: "row",
      id: `row-${place}`,
      "aria-rowindex": place + 1,
      "aria-selected": String(isActive),
      onclick: () => {
        this.active = place;
        this.#open();
      },
    };
    const element = h("div", attributes, this.columns.map(([, kind, cell]) =>
      h("span", { class: kind, role: "gridcell" }, row ? cell(row) : "…")));
    element.style.setProperty("--place", place);
    return element;
  }

  /* Fetch a page unless it was fetched or requested before. */
  #fetch(page) {
    const { version } = this;
    if (!this.fetched.has(page)) {
      this.fetched.set(page, this.fetchPage(page * PAGE, PAGE).then(({ rows }) => {
        if (version !== this.version) return;
        this.pages.set(page, rows);
        this.draw();
      }, () => this.fetched.delete(page)));
    }
    return this.fetched.get(page);
  }

  async #open() {
    const { active } = this;
    this.draw();
    await this.#fetch(Math.floor(active / PAGE));
    const row = this.pages.get(Math.floor(active / PAGE))?.[active % PAGE];
    if (row && this.onopen) this.onopen(row, this.table);
  }

  #press(event) {
    if (event.target !== this.table) return; // a button in the head
    const height = this.#rowHeight();
    const room = this.table.clientHeight - this.head.offsetHeight;
    const page = Math.floor(room / height);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count };
    if (event.key === "Enter") this.#open();
    else if (event.key in steps) {
      this.active = Math.max(0, Math.min(this.count - 1, this.active + steps[event.key]));
      const top = this.active * height;
      if (top < this.table.scrollTop) this.table.scrollTop = top;
      else if (top + height > this.table.scrollTop + room) this.table.scrollTop = top + height - room;
      this.draw();
    } else return;
    event.preventDefault();
  }
}
