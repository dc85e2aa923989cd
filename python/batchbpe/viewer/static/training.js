/* The view that replays the training of a model. */

import { chart } from "./chart.js";
import { choice, formatNumber, h, latest, plural } from "./dom.js";
import { encode } from "./source.js";
import { get, getNumber, set } from "./state.js";
import { TokenColumns } from "./tokens.js";

const FRAME = 60; // milliseconds between the steps of an animation
const STEPS = 200; // of an animation

export class Training {
  constructor(app) {
    this.app = app;
    this.columns = new TokenColumns(app);
    this.models = h("div", {});
    this.charts = h("div", { class: "charts" });
    this.slider = h("input", { type: "range", id: "step", min: 0, step: 1, oninput: () => this.#moved() });
    this.play = h("button", { type: "button", id: "play", onclick: () => this.#animate() }, "Play");
    this.readout = h("p", { class: "readout", role: "status" });
    this.note = h("p", { class: "note" });
    this.encode = latest(() => this.#encode());
    this.root = h("div", { class: "training" },
      h("div", { class: "tools" }, this.models, this.play, this.slider),
      this.readout, this.charts, this.note, this.columns.root);
  }

  async show() {
    const { models } = this.app.workspace;
    this.playing = false;
    this.model = getNumber("model", models.length - 1);
    const chosen = choice("Model", models.map(({ name }) => name), this.model, (model) => {
      set({ model, step: "", token: "" });
      this.app.show();
    });
    this.models.replaceChildren(...(chosen ? [chosen] : []));
    const { log, merges, phrases } = models[this.model];
    this.steps = log ? stepsOf(log, merges) : null; // merges after each batch
    this.merged = this.steps ? this.steps.length - 1 : merges; // the step after which all merges were made
    this.slider.max = this.merged + (phrases > 0 ? 1 : 0);
    this.slider.value = get("step", this.slider.max);
    this.slider.setAttribute("aria-label", this.steps ? "Batches" : "Merges");
    this.#drawCharts(log, merges);
    await this.#moved();
  }

  #drawCharts(log, merges) {
    this.note.textContent = log
      ? "The text as encoded at this point in the training:"
      : "This model has no training log, so there are no charts. The text, encoded with the first merges only:";
    if (!log) {
      this.moves = [];
      this.charts.replaceChildren();
      return;
    }
    const xs = this.steps.slice(1);
    const [xLabel, steps] = ["merges", true];
    const charts = [
      { title: "Batch size", ys: log.size, logY: true },
      { title: "Pairs searched", ys: log.searched, logY: true },
      { title: "Merges left", ys: xs.map((done) => merges - done) },
      { title: "Count of the last pair", ys: log.last_count, logY: true },
    ].map((each) => ({ title: each.title, ...chart({ ...each, xs, xLabel, steps, width: 260, height: 150 }) }));
    this.moves = charts.map(({ move }) => move);
    this.charts.replaceChildren(...charts.map(({ title, element }) =>
      h("figure", {}, h("figcaption", {}, title), element)));
  }

  async #moved() {
    const step = Number(this.slider.value);
    const isLast = step === Number(this.slider.max);
    const { log, merges: total, phrases } = this.app.workspace.models[this.model];
    const merges = this.steps ? this.steps[Math.min(step, this.merged)] : Math.min(step, total);
    set({ step: isLast ? "" : step });
    const facts = [`${formatNumber(merges)} of ${formatNumber(total)} merges`];
    if (phrases > 0) facts.push(`${formatNumber(isLast ? phrases : 0)} of ${plural(phrases, "phrase")}`);
    if (this.steps && step > 0 && step <= this.merged) {
      const columns = [log.size, log.searched, log.last_count];
      const [size, searched, count] = columns.map((column) => formatNumber(column[step - 1]));
      facts.push(`batch ${formatNumber(step)} of ${formatNumber(this.steps.length - 1)}`);
      facts.push(`${size} merged of ${searched} searched`, `last pair occurred ${count} times`);
    }
    this.readout.textContent = facts.join(" · ");
    this.slider.setAttribute("aria-valuetext", this.readout.textContent);
    this.moves.forEach((move) => move(Math.max(merges, this.steps[1] ?? 0)));
    this.merges = isLast ? null : merges; // phrases are added after all merges, in a last step
    await this.encode();
  }

  async #encode() {
    const { text } = this.app;
    try {
      const { model, merges } = this;
      const encoded = await encode(text, { model, merges });
      this.app.fail("");
      this.columns.show(text, encoded, { models: [model], spaces: get("spaces") === "1" });
    } catch (error) {
      this.app.fail(error.message);
    }
  }

  /* Play the training from here, or from the beginning if this is the end. A second press stops it. */
  async #animate() {
    this.playing = !this.playing;
    this.play.textContent = this.playing ? "Stop" : "Play";
    const last = Number(this.slider.max); // another model stops the animation
    if (this.playing && Number(this.slider.value) === last) this.slider.value = 0;
    while (this.playing && this.root.isConnected && Number(this.slider.value) < last) {
      this.slider.value = Number(this.slider.value) + Math.max(1, Math.round(last / STEPS));
      await Promise.all([this.#moved(), new Promise((done) => setTimeout(done, FRAME))]);
    }
    this.playing = false;
    this.play.textContent = "Play";
  }
}

/* The number of merges before the first batch and after each batch. A base model has merges before the first. */
function stepsOf(log, merges) {
  const steps = [merges - log.size.reduce((sum, size) => sum + size, 0)];
  for (const size of log.size) steps.push(steps.at(-1) + size);
  return steps;
}
