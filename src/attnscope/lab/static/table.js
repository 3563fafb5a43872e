"use strict";

// A table is sent once; afterwards the page asks by the key that came back. If the lab has
// forgotten the table, it is sent again.
(function () {
  const at = (id) => document.getElementById(id);
  const config = JSON.parse(at("config").textContent);
  let key = "", sentences = [], moments = [], weights = [], running = null, asked = 0;

  function slider(name, values, index) {
    const input = at(name);
    input.max = values.length - 1;
    input.value = index;
    const show = () => { at(`${name}-value`).textContent = values[input.value].toLocaleString("en"); };
    input.addEventListener("input", show);
    show();
    return () => values[input.value];
  }
  const smoothing = slider("smoothing", config.smoothings, config.smoothings.indexOf(1));
  const epochs = slider("epochs", config.epochs, 3);

  function trouble(sentence) {
    at("trouble").textContent = sentence;
    at("trouble").hidden = !sentence;
    at("box").setAttribute("aria-invalid", sentence ? "true" : "false");
  }

  function wish(whole) {
    const found = {smoothing: smoothing(), epochs: epochs(), sentence: at("sentence").value,
      label: at("label-column").value, text: at("text-column").value};
    if (!whole && key) return {...found, key};
    if (at("choice").value) return {...found, name: at("choice").value};
    return {...found, table: at("box").value};
  }

  // Reads lines as they come; returns false if the lab has forgotten the table.
  async function send(body, hear) {
    running?.abort();
    const control = running = new AbortController();
    const mine = ++asked;
    const answer = await fetch("/data/scene", {method: "POST", signal: control.signal,
      headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)});
    if (!answer.ok && answer.status !== 200) throw new Error(`The lab answered ${answer.status}.`);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", known = true;
    for (;;) {
      const {value, done} = await reader.read();
      rest += value ?? "";
      const lines = rest.split("\n");
      rest = done ? "" : lines.pop();
      for (const line of lines.filter(Boolean)) {
        const part = JSON.parse(line);
        if (mine !== asked) return true;
        if (part.sorry !== undefined) { trouble(part.sorry); return true; }
        if (part.kind === "gone") known = false;
        else await hear(part);
      }
      if (done) return known;
    }
  }

  function line(kind, name, words) {
    const outer = document.createElement("p");
    outer.className = kind;
    const who = document.createElement("span");
    who.className = "who";
    who.textContent = name;
    outer.append(who);
    for (const word of words) {
      const span = document.createElement("span");
      span.className = "word";
      span.textContent = word;
      outer.append(" ", span);
    }
    return outer;
  }

  function shade(outer, values) {
    const most = Math.max(...values, 1e-12);
    outer.querySelectorAll(".word").forEach((span, i) => {
      const value = values[i] ?? 0;
      span.style.setProperty("--shade", (value / most).toFixed(3));
      span.title = value.toPrecision(3);
    });
  }

  function showSentences() {
    const outer = at("sentences");
    outer.replaceChildren();
    for (const each of sentences) {
      const pair = document.createElement("div");
      pair.className = "pair";
      const note = document.createElement("div");
      note.className = "note";
      note.textContent = each.note;
      const said = line("said", "said", each.words), learned = line("learned", "learned", each.words);
      shade(said, each.said);
      learned.hidden = true;
      pair.append(note, said, learned);
      outer.append(pair);
    }
    at("shown").hidden = false;
  }

  function showMoment() {
    const index = Number(at("moment").value);
    if (!moments.length) return;
    at("moment-value").textContent = `epoch ${Math.round(moments[index]).toLocaleString("en")}`;
    document.querySelectorAll("#sentences .learned").forEach((outer, i) => {
      outer.hidden = false;
      shade(outer, weights[i]?.[index] ?? []);
    });
  }

  function forgetTraining() {
    moments = [];
    weights = [];
    at("moments").hidden = true;
    at("outcome").hidden = true;
    at("plot").replaceChildren();
  }

  async function heard(part) {
    if (part.kind === "progress") { at("status").textContent = `${part.said} …`; return; }
    if (part.kind === "said") {
      key = part.key;
      sentences = part.sentences;
      forgetTraining();
      showSentences();
      const cards = part.sections.map((section) => {
        const outer = document.createElement("section");
        outer.className = "card";
        outer.id = `section-${section.name}`;
        const title = document.createElement("h2");
        title.textContent = section.title;
        outer.append(title);
        // Markup of the lab's own templates, in which all data are escaped.
        outer.insertAdjacentHTML("beforeend", section.html);
        return outer;
      });
      at("verdict").replaceChildren(cards[0]);
      at("sections").replaceChildren(...cards.slice(1));
      at("train").disabled = false;
      at("status").textContent = `Said of ${part.title}.`;
      document.body.dataset.said = part.smoothing;
    }
    if (part.kind === "part") {
      moments.push(...part.epochs);
      part.weights.forEach((rows, i) => { (weights[i] ??= []).push(...rows); });
      at("moments").hidden = false;
      const input = at("moment");
      input.max = moments.length - 1;
      input.value = moments.length - 1;
      showMoment();
      if (part.item) await attnscopePlots.draw(at("plot"), part.item);
      else attnscopePlots.update(at("plot"), part.data);
      const epoch = Math.round(moments.at(-1)).toLocaleString("en");
      at("status").textContent = `training: epoch ${epoch}, loss ${part.loss}`;
    }
    if (part.kind === "trained") {
      at("outcome").textContent = part.said;
      at("outcome").hidden = false;
      at("status").textContent = "Trained.";
      document.body.dataset.trained = String(moments.length);
    }
  }

  async function go(body, again) {
    trouble("");
    at("told").classList.add("old");
    try {
      if (!await send(body, heard) && again) await again();
    } catch (error) {
      if (error.name === "AbortError") return;
      trouble(`The lab did not answer: ${error.message}`);
    }
    at("told").classList.remove("old");
    if (!at("trouble").hidden) at("status").textContent = "";
  }

  const say = (whole) => {
    const body = wish(whole);
    if ((body.table ?? "").length > config.largest * 0.95) {
      trouble(`The table has ${body.table.length.toLocaleString("en")} letters: expected at most `
        + `${Math.round(config.largest * 0.95).toLocaleString("en")}. attnscope predict takes larger ones.`);
      return undefined;
    }
    return go(body, () => { key = ""; return go(wish(true)); });
  };

  at("ask").addEventListener("submit", (event) => { event.preventDefault(); key = ""; say(true); });
  at("choice").addEventListener("change", () => {
    at("pasting").hidden = Boolean(at("choice").value);
    key = "";
  });
  for (const id of ["box", "label-column", "text-column"]) at(id).addEventListener("input", () => { key = ""; });
  at("smoothing").addEventListener("change", () => { if (key) say(false); });
  at("sentence").addEventListener("change", () => { if (key) say(false); });
  at("moment").addEventListener("input", showMoment);
  at("train").addEventListener("click", async () => {
    forgetTraining();
    delete document.body.dataset.trained;
    if (!key) await say(true);
    if (!key) return;
    await go({...wish(false), train: true}, async () => {
      await say(true);
      await go({...wish(false), train: true});
    });
  });
})();
