/* The view that searches the tokens of a model. */

import { choice, debounced, formatNumber, h, labeled } from "./dom.js";
import { chip } from "./details.js";
import { VirtualList } from "./list.js";
import { hexBytes } from "./pieces.js";
import { encode, getVocabulary } from "./source.js";
import { get, getNumber, set, sorting } from "./state.js";

const FIELDS = ["search", "kind", "script", "least", "most"];

export class Vocabulary {
  constructor(app) {
    this.app = app;
    const changed = debounced(() => this.#changed(), 120);
    const input = (name, attributes) => h("input", { id: name, oninput: changed, ...attributes });
    const select = (name) => h("select", { id: name, onchange: changed });
    const bytes = { type: "number", min: 0, max: 999999999 };
    const { has_data: hasData, models } = app.workspace;
    const corpora = [["", "any"], ["text", "in the text"], ...(hasData ? [["data", "in the data"]] : [])];
    this.fields = {
      search: input("search", { type: "search", placeholder: "Text, 0x6162 or #300", class: "wide" }),
      kind: select("kind"),
      script: select("script"),
      least: input("least", { ...bytes, placeholder: "0" }),
      most: input("most", { ...bytes, placeholder: "∞" }),
      unused: select("unused"),
      partial: h("input", { type: "checkbox", id: "partial", onchange: changed }),
    };
    this.fields.unused.append(...corpora.map(([value, name]) => h("option", { value }, name)));
    this.list = new VirtualList({
      label: "Tokens",
      noun: "token",
      columns: [
        ["id", "number", (row) => row.id, "id"],
        ["token", "token", (row) => chip(row), "text"],
        ["kind", "kind", (row) => row.kind, null],
        ["bytes", "number", (row) => row.bytes, "bytes"],
        ["hex", "hex", hexBytes, null],
        ["in text", "number count", (row) => formatNumber(row.count), "count"],
      ],
      fetchPage: (start, rows) => this.#fetch(start, rows),
      onopen: (row, origin) => app.details.open(this.model, [row.id], origin),
      onsort: (key) => {
        set(sorting(key));
        app.reset(this.list);
      },
    });
    this.models = h("div", {});
    this.root = h("div", { class: "vocabulary" },
      h("div", { class: "tools" }, this.models,
        labeled("Search", this.fields.search),
        labeled("Kind", this.fields.kind), labeled("Script", this.fields.script),
        labeled("Bytes, at least", this.fields.least), labeled("at most", this.fields.most),
        labeled("Unused", this.fields.unused), labeled("Only partial UTF-8", this.fields.partial)),
      this.list.root);
    this.names = models.map(({ name }) => name);
  }

  async show() {
    this.model = getNumber("model", this.names.length - 1);
    const chosen = choice("Model", this.names, this.model, (model) => {
      set({ model, kind: "", script: "", token: "" });
      this.app.show();
    });
    this.models.replaceChildren(...(chosen ? [chosen] : []));
    for (const name of [...FIELDS, "unused"]) this.fields[name].value = get(name);
    this.fields.partial.checked = get("partial") === "1";
    this.app.key ??= (await encode(this.app.text)).key;
    await this.app.reset(this.list);
  }

  #changed() {
    const values = Object.fromEntries([...FIELDS, "unused"].map((name) => [name, this.fields[name].value]));
    set({ ...values, partial: this.fields.partial.checked });
    this.app.reset(this.list);
  }

  async #fetch(start, rows) {
    const corpus = get("unused") === "data" || (!get("unused") && this.app.workspace.has_data) ? "data" : this.app.key;
    this.list.rename("count", corpus === "data" ? "in data" : "in text");
    const query = Object.fromEntries([...FIELDS, "sort", "descending", "partial"].map((name) => [name, get(name)]));
    for (const name of ["least", "most"]) if (!this.fields[name].validity.valid) delete query[name]; // marked in red
    const given = { ...query, model: this.model, unused: get("unused") && "1", corpus, start, rows };
    const answer = await getVocabulary(given).catch(async (error) => {
      if (!corpus || corpus === "data") throw error;
      this.app.key = (await encode(this.app.text)).key; // the server keeps only the counts of the last few texts
      return getVocabulary({ ...given, corpus: this.app.key });
    });
    if (start === 0) this.#offer(answer.facets);
    return answer;
  }

  /* Offer the kinds and scripts that the model has. */
  #offer(facets) {
    for (const name of ["kind", "script"]) {
      const options = Object.entries(facets[name]).map(([value, number]) =>
        h("option", { value }, `${value} (${formatNumber(number)})`));
      this.fields[name].replaceChildren(h("option", { value: "" }, "any"), ...options);
      this.fields[name].value = get(name);
    }
  }
}
