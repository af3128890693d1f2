"use strict";
// A layer that is chosen anywhere is chosen everywhere: its row, its shape, its place on the map.
(() => {
  const rows = [...document.querySelectorAll("[data-layer]")];
  let chosen = "";
  function choose(name) {
    chosen = name;
    for (const row of rows) {
      const mine = name !== "" && row.dataset.layer === name;
      row.classList.toggle("chosen", mine);
      if (row.tagName === "BUTTON") row.setAttribute("aria-pressed", mine);
    }
    document.dispatchEvent(new CustomEvent("chosen-layer", {detail: name}));
  }
  for (const row of rows) row.addEventListener("click", () => choose(row.dataset.layer === chosen ? "" : row.dataset.layer));
  document.addEventListener("layer", event => choose(event.detail));
})();
