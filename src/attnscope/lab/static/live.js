"use strict";

// Fills a page with figures, and goes on asking as long as their run is going. A figure whose
// structure is the same gets new data in place, so that zoom, hidden curves and the place on the
// page stay as they are.
(function () {
  const live = document.getElementById("live");
  const figures = document.getElementById("figures");
  const status = document.getElementById("status");
  const condition = document.getElementById("condition");
  const pause = document.getElementById("pause");
  const SOON = 1500, LATER = 8000;
  let stamp = "", timer = 0, paused = false, busy = false;

  function card(name) {
    const outer = document.createElement("figure");
    outer.className = "card";
    outer.id = `figure-${name}`;
    for (const [tag, kind] of [["h3", "title"], ["div", "plot"], ["figcaption", "caption"]]) {
      const part = document.createElement(tag);
      part.className = kind;
      outer.append(part);
    }
    outer.querySelector(".plot").id = `plot-${name}`;
    return outer;
  }

  function plotsIn(model, found = []) {
    if (model.type === "Figure") found.push(model);
    for (const child of model.children ?? []) plotsIn(Array.isArray(child) ? child[0] : child, found);
    return found;
  }

  function sources(root) {
    return plotsIn(root).flatMap((plot) => plot.renderers
      .filter((each) => each.data_source)
      .map((each) => [`${plot.title?.text?.text ?? ""}/${each.glyph.type}`, each.data_source]));
  }

  // Returns whether the figure that stands there could take the new data.
  function refill(place, item) {
    const view = [...Bokeh.index].find((each) => place.contains(each.el));
    if (!view) return false;
    const fresh = view.model.document.constructor.from_json(item.doc).roots()[0];
    const [old, now] = [sources(view.model), sources(fresh)];
    const legend = (root) => plotsIn(root).flatMap((plot) => plot.center)
      .filter((each) => each.type === "Legend")
      .flatMap((each) => each.items.map((entry) => entry.label?.value ?? "")).join("\n");
    if (old.length !== now.length || old.some(([kind], i) => kind !== now[i][0])) return false;
    if (legend(view.model) !== legend(fresh)) return false;
    old.forEach(([, source], i) => { source.data = now[i][1].data; });
    return true;
  }

  async function drawFigure(figure) {
    const outer = document.getElementById(`figure-${figure.figure}`);
    if (!outer || figure.item === undefined) return;
    outer.querySelector(".title").textContent = figure.title;
    outer.querySelector(".caption").textContent = figure.caption;
    const place = outer.querySelector(".plot");
    const item = JSON.parse(figure.item);
    if (!refill(place, item)) {
      place.replaceChildren();
      await window.attnscopePlots.draw(place, item);
    }
    outer.dataset.print = figure.print;
  }

  // Makes room for the figures that will come, in their order.
  function lay(names) {
    const wanted = names.map((name) => document.getElementById(`figure-${name}`) ?? card(name));
    for (const outer of [...figures.children]) if (!wanted.includes(outer)) outer.remove();
    wanted.forEach((outer, place) => {
      if (figures.children[place] !== outer) figures.insertBefore(outer, figures.children[place] ?? null);
    });
  }

  // Calls back with every line of an answer as it comes.
  async function lines(answer, hear) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const {done, value} = await reader.read();
      rest += value ?? "";
      const parts = rest.split("\n");
      rest = parts.pop();
      for (const part of parts) if (part) await hear(JSON.parse(part));
      if (done) return;
    }
  }

  function say(place, lines, tag = "p") {
    if (!place) return;
    place.replaceChildren(...lines.map((text) => {
      const part = document.createElement(tag);
      part.textContent = text;
      return part;
    }));
  }

  function worn(going) {
    if (!condition) return;
    condition.textContent = going ? "still going" : "not going";
    condition.className = `badge ${going ? "holds" : ""}`;
  }

  function tell(scene) {
    worn(scene.going);
    if (status.textContent !== scene.words) status.textContent = scene.words;
    say(document.getElementById("notes"), scene.notes ?? []);
    const verdicts = document.getElementById("verdicts");
    if (verdicts) {
      const block = document.getElementById("claims");
      block.hidden = !scene.verdicts?.length;
      block.querySelector("summary").textContent = scene.claims;
      verdicts.replaceChildren(...(scene.verdicts ?? []).map(([verdict, sentence]) => {
        const line = document.createElement("li");
        const badge = document.createElement("span");
        badge.className = `badge ${verdict}`;
        badge.textContent = `${{holds: "✓", fails: "✗", undecided: "?"}[verdict]} ${verdict}`;
        line.append(badge, sentence);
        return line;
      }));
    }
    const diagnosis = document.getElementById("diagnosis");
    if (diagnosis) say(diagnosis, scene.diagnosis ?? []);
  }

  function hear(part) {
    if (part.sorry) {
      status.textContent = part.sorry;
      if (!stamp) figures.replaceChildren();
      return LATER;
    }
    if (part.figure) return drawFigure(part).then(() => undefined);
    if (!part.same) {
      stamp = part.stamp;
      tell(part);
      lay(part.figures);
    } else if (!part.going) {
      worn(false);
    }
    return part.going ? SOON : LATER;
  }

  async function ask() {
    if (busy) return;
    busy = true;
    clearTimeout(timer);
    let again = LATER;
    try {
      const address = new URL(live.dataset.address, location.href);
      const have = [...figures.children].map((outer) => outer.dataset.print ?? "").join(" ");
      if (stamp) address.searchParams.set("stamp", stamp);
      if (have.trim()) address.searchParams.set("have", have);
      const answer = await fetch(address, {cache: "no-store"});
      await lines(answer, async (part) => { again = (await hear(part)) ?? again; });
      document.body.dataset.drawn = String(Number(document.body.dataset.drawn ?? 0) + 1);
    } catch (error) {
      console.error(error);
      const gone = error instanceof TypeError && /fetch/i.test(error.message);
      status.textContent = gone
        ? "The lab does not answer; asking again." : "This could not be drawn; trying again.";
      stamp = "";
    }
    busy = false;
    // Runs over each other are drawn once; only a live page has a condition.
    if (condition && !paused) timer = setTimeout(ask, again);
  }

  pause?.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
    if (paused) clearTimeout(timer); else ask();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) clearTimeout(timer); else if (!paused && condition) ask();
  });
  ask();
})();
