"use strict";
// Tables sort by a click on a heading, numbers as numbers.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const order = (a, b) => {
        const [x, y] = [key(a), key(b)];
        const [m, n] = [Number(x), Number(y)];
        return Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n;
      };
      const rows = [...body.rows].sort(order);
      body.append(...(down ? rows.reverse() : rows));
    });
  });
}
// Marks tell their value at once where they are pointed at.
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
for (const mark of document.querySelectorAll("svg .mark")) {
  const title = mark.querySelector("title");
  mark.addEventListener("pointerenter", () => {
    tip.textContent = mark.dataset.tip ??= title.textContent;
    title.textContent = "";
    tip.hidden = false;
  });
  mark.addEventListener("pointermove", (event) => {
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8);
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${top}px`;
  });
  mark.addEventListener("pointerleave", () => {
    title.textContent = mark.dataset.tip;
    tip.hidden = true;
  });
}
