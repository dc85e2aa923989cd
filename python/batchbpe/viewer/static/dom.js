/* Create elements. Text is always set as text, never as markup. */

const SVG = "http://www.w3.org/2000/svg";

/* h("button", {class: "quiet", onclick: act}, "Open"). Attributes and children that are null or false are omitted. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function formatNumber(value, digits = 0) {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function plural(value, noun) {
  return `${formatNumber(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/* A label and a control on one line. */
export function labeled(text, control) {
  const label = h("span", {}, text);
  return h("label", { class: "labeled" }, control.type === "checkbox" ? [control, label] : [label, control]);
}

/* A choice between names, or null if there is only one. */
export function choice(label, names, value, onchoose) {
  if (names.length < 2) return null;
  const options = names.map((name, place) => h("option", { value: place, selected: place === value }, name));
  return labeled(label, h("select", { onchange: (event) => onchoose(Number(event.target.value)) }, options));
}

/* Return a function that runs only the last of several calls in quick succession. */
export function debounced(action, milliseconds) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), milliseconds);
  };
}

/* Return a function that runs one asynchronous action at a time. Of the calls made meanwhile, only the last one runs. */
export function latest(action) {
  let running = false;
  let waiting = null;
  return async function run(...given) {
    if (running) {
      waiting = given;
      return;
    }
    running = true;
    try {
      await action(...given);
    } finally {
      running = false;
      const next = waiting;
      waiting = null;
      if (next) run(...next);
    }
  };
}
