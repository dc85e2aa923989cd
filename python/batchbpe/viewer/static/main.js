/* Start the page: tabs, theme, and the state that the views share. */

import { Compare } from "./compare.js";
import { Counts } from "./counts.js";
import { Details } from "./details.js";
import { Diff } from "./diff.js";
import { h } from "./dom.js";
import { getWorkspace, isStatic } from "./source.js";
import { get, onChange, set, setText } from "./state.js";
import { Training } from "./training.js";
import { Vocabulary } from "./vocabulary.js";

const VIEWS = { compare: Compare, vocabulary: Vocabulary, diff: Diff, training: Training, counts: Counts };
const TITLES = { compare: "Compare", vocabulary: "Vocabulary", diff: "Diff", training: "Training", counts: "Counts" };

class App {
  constructor(workspace) {
    this.workspace = workspace;
    this.text = this.#sharedText();
    this.key = null; // of the text that was encoded last
    const { models, counts } = workspace;
    const modelNames = models.map(({ name }) => name);
    this.details = new Details(modelNames, () => this.#corpus(), (message) => this.fail(message));
    const needed = { compare: 1, vocabulary: 1, diff: 2, training: 1 }; // models
    const ofModels = Object.keys(needed).filter((name) => models.length >= needed[name]);
    const offered = [...ofModels, ...(counts.length ? ["counts"] : [])];
    this.names = isStatic ? ["compare"] : offered;
    this.views = {};
    this.tabs = this.names.map((name) => {
      const attributes = { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "view" };
      return h("button", { ...attributes, onclick: () => this.go(name) }, TITLES[name]);
    });
    const list = document.getElementById("tabs");
    list.append(...this.tabs);
    list.addEventListener("keydown", (event) => this.#press(event));
    onChange(() => {
      this.text = this.#sharedText();
      this.key = null;
      this.show();
    });
  }

  /* The key of the text in which tokens are counted. There are no counts while training is replayed. */
  #corpus() {
    if (this.workspace.has_data) return "data";
    return get("view") === "training" ? "" : this.key;
  }

  /* The text in the address. A static page contains only the tokens of its initial text. */
  #sharedText() {
    return isStatic ? this.workspace.text : get("text", this.workspace.text);
  }

  setText(text) {
    this.text = text;
    setText(text === this.workspace.text ? null : text);
  }

  go(name) {
    set({ view: name === this.names[0] ? "" : name, token: "" }, true);
    scrollTo(0, 0);
    this.show();
  }

  async show() {
    const wanted = get("view", this.names[0]);
    const name = this.names.includes(wanted) ? wanted : this.names[0];
    for (const tab of this.tabs) {
      const isChosen = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.setAttribute("tabindex", isChosen ? "0" : "-1");
    }
    this.details.hide();
    this.views[name] ??= new VIEWS[name](this);
    const panel = document.getElementById("view");
    panel.setAttribute("aria-labelledby", `tab-${name}`);
    panel.replaceChildren(this.views[name].root);
    await this.views[name].show();
    await this.details.restore();
  }

  /* Show an error, or hide it if the message is empty. */
  fail(message) {
    const place = document.getElementById("failure");
    place.textContent = message;
    place.hidden = !message;
  }

  /* Fetch the rows of a list anew, in the order that the state contains. */
  async reset(list) {
    list.sorted(get("sort", "id"), get("descending") === "1");
    try {
      await list.reset();
      this.fail("");
    } catch (error) {
      this.fail(error.message);
    }
  }

  #press(event) {
    const place = this.tabs.indexOf(document.activeElement);
    const next = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: -1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.tabs.at(next % this.tabs.length).focus();
    document.activeElement.click();
  }
}

const THEMES = { "": ["◐", "Automatic theme"], light: ["○", "Light theme"], dark: ["●", "Dark theme"] };

function setUpTheme() {
  const button = document.getElementById("theme");
  const apply = () => {
    const theme = get("theme");
    document.documentElement.dataset.theme = theme;
    const [sign, name] = Object.hasOwn(THEMES, theme) ? THEMES[theme] : THEMES[""];
    button.setAttribute("aria-label", name);
    button.replaceChildren(sign, h("span", { class: "name" }, ` ${name}`));
  };
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    set({ theme: names[(names.indexOf(get("theme")) + 1) % names.length] });
    apply();
  });
  onChange(apply);
  apply();
}

setUpTheme();
try {
  await new App(await getWorkspace()).show();
} catch (error) {
  const place = document.getElementById("failure");
  place.textContent = `The page could not be loaded: ${error.message}`;
  place.hidden = false;
}
