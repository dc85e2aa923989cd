/* A line chart as SVG. */

import { formatNumber, svg } from "./dom.js";

const EDGE = { left: 44, right: 10, top: 10, bottom: 24 };

/* Draw ys over xs; either axis can be logarithmic. Returns the element and a function that moves a cursor to an x. */
export function chart({ title, xs, ys, xLabel, logX = false, logY = false, steps = false, width, height }) {
  const x = scale(xs, logX, EDGE.left, width - EDGE.right);
  const y = scale(logY ? ys : [0, ...ys], logY, height - EDGE.bottom, EDGE.top);
  const points = xs.map((value, place) => [x(value), y(ys[place])]);
  const path = points.map(([left, top], place) => {
    return place === 0 ? `M${left},${top}` : steps ? `H${left}V${top}` : `L${left},${top}`;
  }).join("");
  const cursor = svg("line", { class: "cursor", y1: EDGE.top, y2: height - EDGE.bottom, visibility: "hidden" });
  const grid = y.ticks.map((tick) => [
    svg("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(tick), y2: y(tick) }),
    svg("text", { class: "tick", x: EDGE.left - 6, y: y(tick) + 4, "text-anchor": "end" }, short(tick)),
  ]);
  const bottom = x.ticks.map((tick) =>
    svg("text", { class: "tick", x: x(tick), y: height - EDGE.bottom + 15, "text-anchor": "middle" }, short(tick)));
  const range = ys.length ? `from ${formatNumber(Math.min(...ys))} to ${formatNumber(Math.max(...ys))}` : "empty";
  const label = `${title} over ${xLabel}: ${range}`;
  const element = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    grid, bottom, svg("path", { class: "line", d: path }), cursor);
  const move = (value) => {
    const left = x(value);
    cursor.setAttribute("x1", left);
    cursor.setAttribute("x2", left);
    cursor.setAttribute("visibility", "visible");
  };
  return { element, move };
}

function scale(values, isLog, from, to) {
  const positive = isLog ? values.filter((value) => value > 0) : values;
  let low = positive.reduce((a, b) => Math.min(a, b), Infinity);
  let high = positive.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!(low < Infinity)) [low, high] = [isLog ? 1 : 0, 1];
  if (low === high) high = isLog ? low * 10 : low + 1;
  const on = isLog ? (value) => Math.log10(Math.max(value, low)) : (value) => value;
  const place = (value) => Math.round((from + ((on(value) - on(low)) / (on(high) - on(low))) * (to - from)) * 10) / 10;
  return Object.assign(place, { ticks: isLog ? powers(low, high) : roundNumbers(low, high) });
}

function powers(low, high) {
  const [first, last] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  const step = Math.max(1, Math.ceil((last - first) / 4));
  const ticks = [];
  for (let power = first; power <= last; power += step) ticks.push(10 ** power);
  return ticks;
}

function roundNumbers(low, high) {
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
  return ticks;
}

function short(value) {
  return value.toLocaleString("en-US", { notation: "compact", maximumFractionDigits: 1 });
}
