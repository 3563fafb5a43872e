"use strict";

// An active pan tool would hold a finger that only wants to scroll past the figure.
function letFingersScroll(views) {
  if (!matchMedia("(pointer: coarse)").matches) return;
  for (const view of views) {
    for (const model of view.model.document.all_models) {
      if (model.type === "PanTool") model.active = false;
    }
  }
}

// A link into something folded opens it.
function unfold() {
  const name = decodeURIComponent(location.hash.slice(1));
  const target = name && document.getElementById(name);
  if (!target) return;
  for (let node = target; node; node = node.parentElement) {
    if (node.tagName === "DETAILS") node.open = true;
  }
  target.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();

// On paper nothing can be opened, so everything is; afterwards it is as it was.
let opened = [];
addEventListener("beforeprint", () => {
  // A plot keeps the pixels that it has on the screen; those of a sheet are about 640.
  for (const plot of document.querySelectorAll(".plot")) {
    plot.style.setProperty("--paper", Math.min(1, 640 / Math.max(plot.offsetWidth, 1)));
  }
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const part of opened) part.open = true;
});
addEventListener("afterprint", () => {
  for (const part of opened) part.open = false;
  opened = [];
});

for (const button of document.querySelectorAll("button[data-unfold]")) {
  const parts = [...document.querySelectorAll(`details${button.dataset.unfold}`)];
  const closed = () => parts.some((part) => !part.open);
  const name = () => { button.textContent = closed() ? "Open all" : "Close all"; };
  button.closest("[hidden]").hidden = false;
  button.addEventListener("click", () => {
    const wanted = closed();
    for (const part of parts) part.open = wanted;
  });
  for (const part of parts) part.addEventListener("toggle", name);
}

let moved = false;
for (const kind of ["wheel", "touchstart", "keydown", "pointerdown"]) {
  addEventListener(kind, () => { moved = true; }, {once: true, passive: true});
}
const drawn = [...document.querySelectorAll("script[data-plot]")].map((data) => {
  const place = document.getElementById(data.dataset.plot);
  return Bokeh.embed.embed_item(JSON.parse(data.textContent), place.id).then(letFingersScroll).catch((error) => {
    place.textContent = "This figure could not be drawn here; its numbers are in the CSV file below.";
    console.error(error);
  });
});
// Figures above the target of a link push it away while they are drawn.
Promise.all(drawn).then(() => requestAnimationFrame(() => { if (drawn.length && !moved) unfold(); }));

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
