/* The view that compares the tokens of a text. */

import { debounced, formatNumber, h, labeled, latest, plural } from "./dom.js";
import { encode, isStatic } from "./source.js";
import { get, MAX_SHARED, set } from "./state.js";
import { TokenColumns } from "./tokens.js";

const MAX_FILE = 4 << 20;
const WAIT = 60; // milliseconds after typing
const MAX_EDITED = 50000; // characters; a browser needs seconds to lay out a text area of a megabyte

export class Compare {
  constructor(app) {
    this.app = app;
    this.columns = new TokenColumns(app);
    this.status = h("p", { class: "note", role: "status" });
    this.input = h("textarea", { id: "text", class: "text", rows: 7, spellcheck: "false", dir: "auto",
      "aria-label": "Text", oninput: debounced(() => this.#typed(), WAIT), onpaste: (event) => this.#pasted(event) });
    this.spaces = h("input", { type: "checkbox", id: "spaces", onchange: () => this.#option("spaces") });
    this.dim = h("input", { type: "checkbox", id: "dim", onchange: () => this.#option("dim") });
    const file = h("input", { type: "file", id: "file", onchange: () => this.#openFile(file.files[0]) });
    this.underline = h("input", { type: "checkbox", id: "underline", onchange: () => this.#setUnderline() });
    this.encode = latest(() => this.#encode());
    this.special = h("span", {}, h("span", { class: "sample special" }, "framed"), " special token");
    this.dropped = h("span", {}, h("span", { class: "dropped" }, "struck through"), " dropped by the pattern");
    this.differs = h("span", {}, h("span", { class: "sample differs" }, "underlined"), " cut differently");
    const isAlone = app.workspace.models.length < 2;
    this.root = h("div", { class: "compare" },
      !isStatic && this.input,
      h("div", { class: "tools" },
        !isStatic && h("label", { class: "button" }, "Open file", file),
        labeled("Show spaces and control characters", this.spaces),
        !isAlone && labeled("Underline differences", this.underline),
        !isAlone && labeled("Color only differences", this.dim),
        this.status),
      this.columns.root,
      h("p", { class: "legend underlined" },
        this.differs,
        h("span", {}, h("span", { class: "sample several" }, "dashed"), " several tokens in one character"),
        this.special, this.dropped));
    this.root.addEventListener("dragover", (event) => event.preventDefault());
    this.root.addEventListener("drop", (event) => {
      if (isStatic || !event.dataTransfer.files.length) return;
      event.preventDefault();
      this.#openFile(event.dataTransfer.files[0]);
    });
  }

  async show() {
    this.#showText();
    this.spaces.checked = get("spaces") === "1";
    this.dim.checked = get("dim") === "1";
    this.underline.checked = this.isUnderlined;
    await this.encode();
  }

  #typed() {
    this.app.setText(this.input.value);
    this.encode();
  }

  #option(name) {
    set({ [name]: this[name].checked });
    this.#draw();
  }

  /* Between two models, differences are underlined unless the user chose otherwise; among more, they are everywhere. */
  get isUnderlined() {
    return get("underline", this.app.workspace.models.length === 2 ? "1" : "0") === "1";
  }

  #setUnderline() {
    set({ underline: this.underline.checked ? "1" : "0" });
    this.#draw();
  }

  async #openFile(file) {
    if (!file) return;
    if (file.size > MAX_FILE) {
      this.app.fail(`${file.name} has ${formatNumber(file.size)} bytes; the page shows at most ${MAX_FILE >> 20} MiB`);
      return;
    }
    try { // a byte order mark (BOM) is kept, as with --text
      this.#replace(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer()));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.app.fail(`${file.name} is not valid UTF-8`);
    }
  }

  #pasted(event) {
    const text = event.clipboardData.getData("text/plain");
    if (text.length <= MAX_EDITED) return;
    event.preventDefault();
    this.#replace(text);
  }

  #replace(text) {
    this.app.setText(text);
    this.#showText();
    this.encode();
  }

  /* A long text is shown only as tokens. */
  #showText() {
    const { length } = this.app.text;
    const isLong = length > MAX_EDITED;
    this.input.value = isLong ? "" : this.app.text;
    this.input.placeholder = isLong
      ? `The text has ${formatNumber(length)} characters, too many to edit here. Type or paste to replace it.`
      : "Type or paste text";
  }

  async #encode() {
    const text = this.app.text;
    try {
      this.encoded = await encode(text);
    } catch (error) {
      this.app.fail(error.message);
      return;
    }
    this.app.fail("");
    this.app.key = this.encoded.key;
    this.shown = text;
    this.#draw();
    await this.app.details.refresh();
  }

  #draw() {
    if (!this.encoded) return;
    const { bytes, characters, differences_total: differences, models } = this.encoded;
    const sizes = [plural(characters, "character"), plural(bytes, "byte")];
    if (models.length > 1) sizes.push(plural(differences, "difference"));
    const notes = [sizes.join(", ")];
    if (this.shown !== this.app.workspace.text && this.shown.length > MAX_SHARED) notes.push("too long for the address");
    if (!isStatic && this.shown.includes("\r")) notes.push("typing turns \\r\\n into \\n");
    this.status.textContent = notes.join(" · ");
    const options = { spaces: this.spaces.checked, dim: this.dim.checked, underlined: this.underline.checked };
    this.columns.show(this.shown, this.encoded, options);
    this.differs.hidden = models.length < 2 || !this.underline.checked;
    this.special.hidden = !this.columns.hasSpecial;
    this.dropped.hidden = !models.some(({ starts }) => starts);
  }
}
