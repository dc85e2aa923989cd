/* The view of chunk counts: count by rank, and the chunks themselves. */

import { chart } from "./chart.js";
import { choice, debounced, formatNumber, h, labeled } from "./dom.js";
import { chip } from "./details.js";
import { VirtualList } from "./list.js";
import { getChunks } from "./source.js";
import { get, getNumber, set } from "./state.js";

export class Counts {
  constructor(app) {
    this.app = app;
    this.files = h("div", {});
    this.stats = h("dl", { class: "stats" });
    this.figure = h("figure", { class: "curve" });
    const searched = debounced(() => {
      set({ chunk: this.search.value });
      app.reset(this.list);
    }, 120);
    const attributes = { type: "search", id: "chunk", placeholder: "Part of a chunk", class: "wide", oninput: searched };
    this.search = h("input", attributes);
    this.list = new VirtualList({
      label: "Chunks",
      noun: "chunk",
      columns: [
        ["rank", "number", (row) => formatNumber(row.rank), null],
        ["chunk", "token", (row) => chip(row), null],
        ["bytes", "number", (row) => row.bytes, null],
        ["count", "number count", (row) => formatNumber(row.count), null],
        ["fraction", "number", (row) => `${((100 * row.count) / this.total).toPrecision(2)}%`, null],
      ],
      fetchPage: (start, rows) => getChunks({ file: this.file, search: get("chunk"), start, rows }),
    });
    const chunks = h("div", {}, h("div", { class: "tools" }, labeled("Search", this.search)), this.list.root);
    const halves = h("div", { class: "halves" }, this.figure, chunks);
    this.root = h("div", { class: "counts" }, this.files, this.stats, halves);
  }

  async show() {
    const { counts } = this.app.workspace;
    this.file = getNumber("counts", counts.length - 1);
    const chosen = choice("Counts", counts.map(({ name }) => name), this.file, (file) => {
      set({ counts: file });
      this.show();
    });
    const { name, total, unique, pattern, curve, ...more } = counts[this.file];
    this.total = total;
    this.files.replaceChildren(chosen ?? h("h2", {}, name));
    const fractions = Object.entries(more.share_of_most_frequent).map(([n, fraction]) =>
      [`${formatNumber(100 * fraction, 1)}%`, `in the ${formatNumber(Number(n))} most frequent`]);
    const numbers = [
      [formatNumber(total), "chunks"],
      [formatNumber(unique), "unique"],
      ...fractions,
      [formatNumber(more.longest_chunk), "bytes in the longest"],
      [pattern.length > 24 ? "custom" : pattern, "pattern"],
    ];
    this.stats.replaceChildren(...numbers.map(([value, unit]) => h("div", {}, h("dd", {}, value), h("dt", {}, unit))));
    const axes = { xs: curve.rank, ys: curve.count, xLabel: "rank", logX: true, logY: true };
    const width = Math.min(520, this.figure.clientWidth); // so that labels keep their size
    const { element } = chart({ title: "Count", ...axes, width, height: 360 });
    this.figure.replaceChildren(h("figcaption", {}, "Count of each chunk, by rank"), element);
    this.search.value = get("chunk");
    await this.app.reset(this.list);
  }
}
