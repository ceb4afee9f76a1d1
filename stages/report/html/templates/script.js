"use strict";
const table = document.getElementById("layers"), body = table.tBodies[0], rows = [...body.rows];
const filter = document.getElementById("filter"), shown = document.getElementById("shown");
function value(row, column, isNumber) {
  const cell = row.cells[column];
  return isNumber ? Number(cell.dataset.value) : cell.textContent;
}
[...table.tHead.rows[0].cells].forEach((head, column) => {
  const isNumber = "number" in head.dataset;
  head.tabIndex = 0;
  function sort() {
    const falls = head.getAttribute("aria-sort") === (isNumber && column ? "descending" : "ascending");
    const sign = (isNumber && column ? !falls : falls) ? -1 : 1;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
    rows.sort((a, b) => {
      const [x, y] = [value(a, column, isNumber), value(b, column, isNumber)];
      return sign * (isNumber ? x - y : x.localeCompare(y)) || Number(a.cells[0].dataset.value) - Number(b.cells[0].dataset.value);
    });
    body.append(...rows);
  }
  head.addEventListener("click", sort);
  head.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
});
function narrow() {
  const wanted = filter.value.trim().toLowerCase();
  let count = 0;
  for (const row of rows) {
    const name = row.cells[1].title;
    row.hidden = wanted !== "" && !`${row.textContent} ${name}`.toLowerCase().includes(wanted);
    count += !row.hidden;
  }
  shown.value = wanted ? `${count} of ${rows.length}` : "";
}
filter.addEventListener("input", narrow);
if (matchMedia("(max-width: 900px)").matches) document.querySelector(".network").open = false;
