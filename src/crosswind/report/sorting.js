"use strict";
// Sorts the table of a leaderboard by the column whose heading is chosen; a second time the other way round.
(() => {
  const table = document.getElementById("ranks"), heads = [...table.querySelectorAll("th")], body = table.tBodies[0];
  const value = (row, nth) => {
    const cell = row.cells[nth], number = cell.dataset.v;
    return nth === 0 ? cell.textContent.toLowerCase() : number === "" ? null : Number(number);
  };
  heads.forEach((head, nth) => head.querySelector("button").addEventListener("click", () => {
    const first = nth === 0 ? "ascending" : "descending", other = nth === 0 ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? other : first, sign = order === "ascending" ? 1 : -1;
    for (const one of heads) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const rows = [...body.rows].sort((a, b) => {
      const x = value(a, nth), y = value(b, nth);
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (x < y ? -1 : x > y ? 1 : 0);
    });
    body.append(...rows);
  }));
})();
