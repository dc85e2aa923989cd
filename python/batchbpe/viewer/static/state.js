/* The state of the page is in its address, after the #, so that a view can be shared. */

const MAX_TEXT = 4000; // longer texts are not put into the address

let state = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const listeners = [];

export function get(name, otherwise = "") {
  return state[name] ?? otherwise;
}

export function getNumber(name, otherwise = 0) {
  const value = Number.parseInt(state[name], 10);
  return Number.isNaN(value) ? otherwise : value;
}

/* Change the state. Values that are empty are removed. `push` makes a new entry in the history. */
export function set(changes, push = false) {
  for (const [name, value] of Object.entries(changes)) {
    const isEmpty = value === "" || value === null || value === undefined || value === false;
    if (isEmpty || (name === "text" && value.length > MAX_TEXT)) delete state[name];
    else state[name] = value === true ? "1" : String(value);
  }
  const address = `#${new URLSearchParams(state)}`;
  if (push) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

/* Call a function when the reader moves in the history or edits the address. */
export function onChange(listener) {
  listeners.push(listener);
}

addEventListener("popstate", () => {
  state = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  listeners.forEach((listener) => listener());
});
