/* The view that compares two vocabularies: tokens that only one of them has, and tokens whose id differs. */

import { choice, debounced, formatNumber, h, labeled, plural } from "./dom.js";
import { chip } from "./details.js";
import { VirtualList } from "./list.js";
import { getDiff } from "./source.js";
import { get, getNumber, set, sorting } from "./state.js";

const PARTS = ["removed", "added", "moved"];

export class Diff {
  constructor(app) {
    this.app = app;
    this.names = app.workspace.models.map(({ name }) => name);
    this.models = h("div", { class: "pair" });
    this.stats = h("dl", { class: "stats" });
    this.search = h("input", { type: "search", id: "diff-search", placeholder: "Text, 0x6162 or #300", class: "wide",
      oninput: debounced(() => this.#change({ search: this.search.value }), 120) });
    this.part = h("select", { id: "part", onchange: () => this.#change({ part: this.part.value }) });
    this.list = new VirtualList({
      label: "Different tokens",
      noun: "token",
      columns: [
        ["id", "number", (row) => row.id, "id"],
        ["token", "token", (row) => chip(row), "text"],
        ["kind", "kind", (row) => row.kind, null],
        ["bytes", "number", (row) => row.bytes, "bytes"],
        ["in the other model", "others", (row) => this.#others(row), null],
      ],
      fetchPage: (start, rows) => this.#fetch(start, rows),
      onopen: (row, origin) => app.details.open(this.own, [row.id], origin),
      onsort: (key) => this.#change(sorting(key)),
    });
    this.root = h("div", { class: "diff" },
      h("div", { class: "tools" }, this.models, labeled("Show", this.part), labeled("Search", this.search)),
      this.stats, this.list.root);
  }

  async show() {
    this.before = getNumber("before", this.names.length - 1);
    this.after = get("after") === "" ? 1 : getNumber("after", this.names.length - 1);
    const pick = (name, label) => choice(label, this.names, this[name], (model) => {
      set({ [name]: model, token: "" });
      this.app.show();
    });
    const swap = h("button", { type: "button", "aria-label": "Swap the models", onclick: () => {
      set({ before: this.after, after: this.before, token: "" });
      this.app.show();
    } }, "⇄");
    this.models.replaceChildren(pick("before", "From"), swap, pick("after", "to"));
    this.search.value = get("search");
    await this.#reset();
  }

  #change(changes) {
    set(changes);
    this.app.details.close();
    this.#reset();
  }

  async #reset() {
    this.#choose(PARTS.includes(get("part")) ? get("part") : PARTS[0]);
    await this.app.reset(this.list);
  }

  #choose(part) {
    this.shown = part;
    this.own = part === "removed" ? this.before : this.after;
  }

  async #fetch(start, rows) {
    const { before, after, shown: part } = this;
    const sort = ["text", "bytes"].includes(get("sort")) ? get("sort") : "";
    const query = { search: get("search"), sort, descending: get("descending") };
    const answer = await getDiff({ ...query, before, after, part, start, rows });
    const first = PARTS.find((each) => answer.counts[each] > 0);
    if (!get("part") && first && first !== part) { // do not start with an empty list
      this.#choose(first);
      return this.#fetch(start, rows);
    }
    if (start === 0) this.#count(answer.counts);
    return answer;
  }

  #count({ kept, moved, added, removed }) {
    const [before, after] = [this.names[this.before], this.names[this.after]];
    const options = {
      removed: [`only in ${before}`, removed],
      added: [`only in ${after}`, added],
      moved: ["another id", moved],
    };
    this.part.replaceChildren(...Object.entries(options).map(([value, [name, number]]) =>
      h("option", { value, selected: value === this.shown }, `${name} (${formatNumber(number)})`)));
    const numbers = [["the same id", kept], ...Object.values(options)];
    this.stats.replaceChildren(...numbers.map(([name, number]) =>
      h("div", {}, h("dd", {}, formatNumber(number)), h("dt", {}, name))));
  }

  /* The tokens of the other model that replace a token, or its id there. */
  #others({ others, others_total: total }) {
    if (this.shown === "moved") return `id ${others[0].id}`;
    const rest = total - others.length;
    return [others.map((other) => chip(other)), rest > 0 && ` and ${plural(rest, "more token")}`].flat();
  }
}
