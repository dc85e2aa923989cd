/* The ids of the tokens of a text, as a list that can be copied. */

import { formatNumber, h, plural } from "./dom.js";

const MAX_LISTED = 2000; // ids; all of them are copied

/* `ids` are those that are shown, of `total` tokens. `isOpen` and `onfold(isOpen)` keep the list open while typing. */
export function idList({ name, ids, total, isOpen, onfold }) {
  const status = h("span", { class: "note", role: "status" });
  const list = h("p", { class: "id-list", tabindex: "0", role: "group", "aria-label": `Ids of ${name}` });
  const copy = h("button", { type: "button", "aria-label": `Copy the ids of ${name}`, onclick: async () => {
    const isCopied = await copyText(`[${ids.join(", ")}]`);
    const isShort = ids.length < total;
    const number = isShort ? `the first ${plural(ids.length, "id")} of ${formatNumber(total)}` : plural(total, "id");
    status.textContent = isCopied ? `copied ${number}` : "The browser refused to copy.";
  } }, "Copy");
  const show = () => {
    const more = total - Math.min(ids.length, MAX_LISTED);
    list.textContent = ids.slice(0, MAX_LISTED).join(", ") + (more > 0 ? ` … and ${formatNumber(more)} more` : "");
  };
  const fold = h("details", { class: "ids", open: isOpen },
    h("summary", {}, "Ids"), h("p", { class: "copying" }, copy, status), list);
  fold.addEventListener("toggle", () => {
    if (fold.open && !list.textContent) show();
    onfold(fold.open);
  });
  if (isOpen) show(); // now, so that typing does not flicker
  return fold;
}

/* Copy a text. Browsers offer the clipboard only to pages from this machine or over https. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const focused = document.activeElement;
    const area = h("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return isCopied;
  }
}
