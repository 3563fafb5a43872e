"use strict";

// The filter of the lists: a row stays if it has every word; "m = 7" is one word, and means just 7.
// It is kept in the address.
(function () {
  const box = document.getElementById("filter");
  if (!box) return;
  let rows = [...document.querySelectorAll("main tbody tr")];
  const SHOWN = 100;
  let texts = null;
  const shown = document.getElementById("shown");
  const compare = document.getElementById("compare");
  const more = document.getElementById("more");
  // A browser takes seconds to lay out a thousand rows, and nobody reads them all.
  let most = more ? SHOWN : Infinity;

  const plain = (text) => text.toLowerCase().replace(/\s*=\s*/g, "=");

  function textOf(row) {
    const parts = [...row.cells].flatMap((cell) => [...cell.childNodes]);
    return ` ${plain(parts.map((part) => part.textContent).join(" ")).replaceAll(",", " ")} `;
  }

  function filter() {
    const words = plain(box.value).split(/[\s,]+/).filter(Boolean)
      .map((word) => word.includes("=") ? ` ${word} ` : word);
    if (words.length) texts ??= rows.map(textOf);
    let count = 0;
    rows.forEach((row, place) => {
      const fits = words.every((word) => texts[place].includes(word));
      count += fits ? 1 : 0;
      const hidden = !fits || count > most;
      if (row.hidden !== hidden) row.hidden = hidden;
    });
    if (more) {
      more.hidden = count <= most;
      more.textContent = `Show all ${count.toLocaleString("en")}`;
    }
    for (const table of document.querySelectorAll("main table")) {
      const empty = ![...table.tBodies[0].rows].some((row) => !row.hidden);
      const block = table.closest(".card");
      if (block.previousElementSibling?.tagName === "H2") {
        block.hidden = block.previousElementSibling.hidden = empty;
      }
    }
    const all = rows.length.toLocaleString("en");
    shown.textContent = words.length ? `${count.toLocaleString("en")} of ${all}` : "";
    const address = new URL(location.href);
    if (box.value) address.searchParams.set("q", box.value); else address.searchParams.delete("q");
    history.replaceState(null, "", address);
  }

  function ticks() {
    if (!compare) return;
    const count = document.querySelectorAll("input[name=run]:checked").length;
    compare.disabled = count < 2;
    compare.textContent = count < 2 ? "Draw over each other" : `Draw ${count} over each other`;
  }

  box.value = new URL(location.href).searchParams.get("q") ?? "";
  box.addEventListener("input", filter);
  // Enter in the filter must not send the form.
  box.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  document.addEventListener("change", ticks);
  more?.addEventListener("click", (event) => {
    event.preventDefault();
    most = Infinity;
    filter();
  });
  filter();
  ticks();
  if (more) {
    fetch("/runs?part=rest").then((answer) => answer.text()).then((text) => {
      document.querySelector(".runs tbody").insertAdjacentHTML("beforeend", text);
      rows = [...document.querySelectorAll("main tbody tr")];
      texts = null;
      filter();
      document.body.dataset.whole = String(rows.length);
    });
  }
})();
