"use strict";
// One body of the table for each layer: its row, and a row with the other candidates.
const table = document.getElementById("layers"), layers = [...table.tBodies], heads = [...table.tHead.rows[0].cells];
const filter = document.getElementById("filter"), shown = document.getElementById("shown");
function value(layer, column, isNumber) {
  const cell = layer.rows[0].cells[column];
  return isNumber ? Number(cell.dataset.value) : cell.textContent;
}
heads.forEach((head, column) => {
  const isNumber = "number" in head.dataset;
  head.tabIndex = 0;
  function sort() {
    const falls = head.getAttribute("aria-sort") === (isNumber && column ? "descending" : "ascending");
    const sign = (isNumber && column ? !falls : falls) ? -1 : 1;
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
    layers.sort((a, b) => {
      const [x, y] = [value(a, column, isNumber), value(b, column, isNumber)];
      return sign * (isNumber ? x - y : x.localeCompare(y)) || value(a, 0, true) - value(b, 0, true);
    });
    table.append(...layers);
  }
  head.addEventListener("click", sort);
  head.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
});
for (const layer of layers) {
  const button = layer.querySelector("button"), more = layer.rows[1];
  if (!button) continue;
  function toggle() {
    more.hidden = !more.hidden;
    button.setAttribute("aria-expanded", !more.hidden);
  }
  button.addEventListener("click", toggle);
  toggle();
}
function narrow() {
  const wanted = filter.value.trim().toLowerCase();
  let count = 0;
  for (const layer of layers) {
    const row = layer.rows[0];
    layer.hidden = wanted !== "" && !`${row.textContent} ${row.cells[1].title}`.toLowerCase().includes(wanted);
    count += !layer.hidden;
  }
  shown.value = wanted ? `${count} of ${layers.length}` : "";
}
filter.addEventListener("input", narrow);
if (matchMedia("(max-width: 1300px)").matches) document.querySelector(".network").open = false;
addEventListener("hashchange", openTerms);
function openTerms() {
  const target = location.hash.startsWith("#term-") && document.getElementById(location.hash.slice(1));
  if (!target) return;
  target.closest("details").open = true;
  target.scrollIntoView();
}
openTerms();
