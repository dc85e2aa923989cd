/* The state of the page is in its address, after the #, so that a view can be shared. A text that is too long for the
   address is kept in memory, for each history entry. */

export const MAX_SHARED = 4000; // characters of a text in the address

const readAddress = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const longTexts = new Map();
const listeners = [];
let state = readAddress();
let entry = history.state ?? Date.now(); // the key of the entry in the history

export function get(name, otherwise = "") {
  return state[name] ?? (name === "text" ? longTexts.get(entry) : null) ?? otherwise;
}

/* A number from 0 to `most`. */
export function getNumber(name, most) {
  return Math.max(0, Math.min(most, Number.parseInt(state[name], 10) || 0));
}

/* Change the state. Empty values are removed. `push` creates a history entry. */
export function set(changes, push = false) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined || value === false) delete state[name];
    else state[name] = value === true ? "1" : String(value);
  }
  const address = `#${new URLSearchParams(state)}`;
  if (push) {
    const text = longTexts.get(entry);
    entry = Math.max(entry + 1, Date.now());
    if (text !== undefined) longTexts.set(entry, text);
    history.pushState(entry, "", address);
  } else history.replaceState(entry, "", address);
}

/* The changes that sort a list by another column, or by the same in the other direction. Sizes start with the largest. */
export function sorting(key) {
  const isSame = get("sort", "id") === key;
  const descending = isSame ? get("descending") !== "1" : key === "bytes" || key === "count";
  return { sort: key === "id" ? "" : key, descending };
}

/* Change the text, which can be empty; null is the initial text. */
export function setText(text) {
  longTexts.delete(entry);
  delete state.text;
  if (text?.length > MAX_SHARED) longTexts.set(entry, text);
  else if (text !== null) state.text = text;
  set({});
}

/* Call a function when the user navigates the history or edits the address. */
export function onChange(listener) {
  listeners.push(listener);
}

addEventListener("popstate", (event) => {
  state = readAddress();
  entry = event.state ?? Date.now();
  listeners.forEach((listener) => listener());
});
