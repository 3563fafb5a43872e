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

for (const data of document.querySelectorAll("script[data-plot]")) {
  const place = document.getElementById(data.dataset.plot);
  Bokeh.embed.embed_item(JSON.parse(data.textContent), place.id).then(letFingersScroll).catch((error) => {
    place.textContent = "This figure could not be drawn here; its numbers are in the CSV file below.";
    console.error(error);
  });
}

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
