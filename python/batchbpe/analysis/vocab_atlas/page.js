"use strict";
/* Open the details that a link leads to, in browsers that do not. */
function open() {
  const target = /^#v\d+$/.test(location.hash) && document.querySelector(location.hash);
  if (target) { target.closest("details").open = true; target.scrollIntoView(); }
}
addEventListener("hashchange", open);
open();
/* Click on the label of a column to sort the rows by it; numbers start with the largest. */
for (const head of document.querySelectorAll("thead th")) {
  const label = head.firstChild;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sort";
  head.append(button);
  button.append(label);
  button.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0];
    const descending = head.getAttribute("aria-sort") !== "descending" && (head.hasAttribute("aria-sort") || head.cellIndex > 0);
    const key = (row) => {
      const cell = row.cells[head.cellIndex];
      const value = cell.dataset.v ?? (head.cellIndex ? "" : cell.textContent);
      return value !== "" && Number.isFinite(Number(value)) && cell.className ? Number(value) : value;
    };
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
      return descending ? -order : order;
    };
    body.append(...[...body.rows].sort(compare));
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  });
}
