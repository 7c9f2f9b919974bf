"use strict";
{
  const said = [];
  const say = (name, value) => said.push(`${name} ${value}`);
  const plots = [...document.querySelectorAll("svg.plot")];
  say("plots", plots.length);
  const isEmpty = (plot) => plot.getBoundingClientRect().height < 40 || !plot.querySelector(".mark");
  say("empty-plots", plots.filter(isEmpty).length);
  say("unnamed", plots.filter((plot) => !document.getElementById(plot.getAttribute("aria-labelledby").split(" ")[0])).length);
  const tables = [...document.querySelectorAll("table")];
  say("tables", tables.length);
  let unsorted = 0;
  for (const table of tables) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      for (const direction of ["ascending", "descending"]) {
        head.querySelector("button").click();
        const cells = [...table.tBodies[0].rows].map((row) => row.cells[column]);
        const values = cells.map((cell) => Number(cell.dataset.value ?? NaN));
        const ascends = values.every((value, n) => n === 0 || !(value < values[n - 1]));
        const descends = values.every((value, n) => n === 0 || !(value > values[n - 1]));
        const isSorted = direction === "ascending" ? ascends : descends;
        if (head.getAttribute("aria-sort") !== direction || (!values.some(Number.isNaN) && !isSorted)) unsorted += 1;
      }
    });
  }
  say("unsorted", unsorted);
  document.querySelector("svg .mark").dispatchEvent(new PointerEvent("pointerenter"));
  const tip = document.getElementById("tip");
  say("tip", !tip.hidden && tip.textContent.length > 3 ? 1 : 0);
  say("too-wide", document.documentElement.scrollWidth > innerWidth ? 1 : 0);
  say("cut-off", [...document.querySelectorAll(".scroll")].filter((box) => box.scrollWidth > box.clientWidth).length);
  for (const error of window.errors) say("error", error);
  const verdict = document.createElement("pre");
  verdict.id = "verdict";
  verdict.textContent = said.join("\n");
  document.body.append(verdict);
}
