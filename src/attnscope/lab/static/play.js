"use strict";

// The play page: controls ask, the server answers with numbers, nothing waits in a queue.
(function () {
  const config = JSON.parse(document.getElementById("config").textContent);
  const worlds = Object.fromEntries(config.worlds.map((world) => [world.key, world]));
  const {make} = attnscopeAttention;
  const places = document.getElementById("benches");
  const benches = [];
  let socket = null;

  const raised = (text) => [...text].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] || (c === "-" ? "⁻" : "")).join("");
  function shown(value) {
    if (typeof value !== "number") return value;
    if (value !== 0 && Math.abs(value) < 0.001) {
      const [digits, power] = value.toExponential().split("e");
      return `${digits === "1" ? "" : `${digits} × `}10${raised(power)}`;
    }
    return value.toLocaleString("en", {maximumSignificantDigits: 6});
  }
  function brief(value) {
    if (value === null || value === undefined) return "not known";
    if (value === 0) return "0";
    const size = Math.abs(value);
    return size >= 1e5 || size < 1e-3 ? value.toExponential(1).replace("e+", "e")
      : String(Number(value.toPrecision(3)));
  }

  // ---- address

  function query() {
    const parts = new URLSearchParams();
    benches.forEach((bench, index) => {
      const prefix = index ? "b." : "";
      parts.set(`${prefix}world`, bench.world.key);
      for (const [name, value] of Object.entries(bench.setting)) {
        if (value !== bench.world.defaults[name]) parts.set(prefix + name, value);
      }
    });
    return parts.toString();
  }
  let written = 0;
  function remember() {
    clearTimeout(written);
    written = setTimeout(() => history.replaceState(null, "", `?${query()}`), 150);
  }

  // ---- socket

  function connect() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(`${scheme}//${location.host}/play/socket`);
    socket.onopen = () => benches.forEach(ask);
    let why = "The lab does not answer. If it has ended, start attnscope lab again; this page " +
      "goes on by itself.";
    let pause = 1500;
    socket.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (message.kind === "full") { why = message.sentence; pause = 10000; return; }
      document.getElementById("gone")?.remove();
      hear(message);
    };
    socket.onclose = () => {
      document.getElementById("gone")?.remove();
      places.before(make("p", {id: "gone", class: "card notes", role: "alert"}, why));
      setTimeout(connect, pause);
    };
  }
  function ask(bench) {
    bench.asked += 1;
    bench.busy(true);
    remember();
    if (socket.readyState !== WebSocket.OPEN) return;
    socket.send(JSON.stringify({side: bench.side, ask: bench.asked, world: bench.world.key,
      setting: bench.setting, have: bench.have()}));
  }
  function hear(message) {
    const bench = benches.find((each) => each.side === message.side);
    if (!bench) return;
    bench.hear(message);
  }

  // ---- one setting: its controls and what came of it

  function Bench(side, key, setting) {
    const bench = {side, world: worlds[key], setting: {...setting}, asked: 0, drawn: 0};
    const letter = () => (benches.length > 1 ? ` (${side.toUpperCase()})` : "");
    const root = make("section", {class: "bench", "data-side": side});
    const tabs = make("div", {class: "worlds", role: "group", "aria-label": "World"});
    const sentence = make("p", {class: "lead"});
    const form = make("form", {class: "card controls", "aria-label": "Controls"});
    const sliders = make("div", {class: "sliders"});
    const draw = make("button", {type: "button", class: "primary"}, "Draw again");
    const reset = make("button", {type: "button"}, "Reset");
    const stop = make("button", {type: "button", disabled: true}, "Stop");
    const outcome = make("p", {class: "outcome", role: "status", "aria-live": "polite"},
      "The first run is on its way.");
    const notes = make("p", {class: "notes card", role: "alert", hidden: true});
    const claims = make("ul", {class: "claims", "aria-label": "Claims"});
    const figures = make("div", {class: "figures"});
    const attention = make("section", {class: "card attention", "aria-label": "Attention"});
    const timing = make("p", {class: "soft small timing"});
    const python = make("pre", {tabindex: "0"}), command = make("pre", {tabindex: "0"});
    const code = make("details", {class: "card code"},
      make("summary", {}, "Get the code"),
      make("p", {class: "soft"}, "Either of these makes exactly this run, number by number."),
      copyable("Python", python), copyable("Command line", command));
    const scene = make("div", {class: "scene"}, notes, outcome, claims, figures, attention, code,
      timing);
    form.append(make("div", {class: "row buttons"}, draw, reset, stop), sliders);
    form.addEventListener("submit", (event) => event.preventDefault());
    root.append(tabs, sentence, make("div", {class: "bench-body"}, form, scene));
    const played = attnscopeAttention.player(attention, letter(), (time) => {
      for (const entry of drawnFigures.values()) attnscopePlots.move(entry.place, time);
    });
    const drawnFigures = new Map();
    let chain = Promise.resolve();

    function copyable(name, pre) {
      const button = make("button", {type: "button", "aria-label": `Copy ${name}`}, "Copy");
      button.addEventListener("click", () => copy(pre.textContent, button));
      return make("div", {class: "copyable"},
        make("div", {class: "row"}, make("h3", {}, name), button), pre);
    }

    function controls() {
      root.setAttribute("aria-label", `${bench.world.title}${letter()}`);
      tabs.replaceChildren(...config.worlds.map((world) => {
        const here = world.key === bench.world.key;
        const tab = make("button", {type: "button", "aria-pressed": String(here)}, world.title);
        tab.addEventListener("click", () => choose(world.key));
        return tab;
      }));
      sentence.textContent = bench.world.sentence;
      sliders.replaceChildren(...bench.world.controls.map((control) => {
        const id = `${side}-${control.name}`;
        const help = control.help
          ? make("p", {class: "soft small", id: `${id}-help`}, control.help) : "";
        const described = control.help ? `${id}-help` : null;
        return control.values ? slider(control, id, help, described)
          : choice(control, id, help, described);
      }));
      told();
    }
    function slider(control, id, help, described) {
      const {values} = control;
      const output = make("output", {class: "value", for: id});
      const input = make("input", {type: "range", id, min: 0, max: values.length - 1, step: 1,
        "aria-describedby": described});
      const tell = () => {
        const value = bench.setting[control.name];
        input.value = values.indexOf(value);
        output.textContent = shown(value);
        input.setAttribute("aria-valuetext", shown(value));
      };
      tell();
      input.addEventListener("input", () => {
        bench.setting[control.name] = values[Number(input.value)];
        tell();
        ask(bench);
      });
      return make("div", {class: "control"},
        make("div", {class: "name"}, make("label", {for: id}, control.label), output), input, help);
    }
    function choice(control, id, help, described) {
      const select = make("select", {id, "aria-describedby": described},
        ...control.options.map(([value, name]) => make("option", {value}, name)));
      select.value = bench.setting[control.name];
      select.addEventListener("change", () => {
        bench.setting[control.name] = select.value;
        ask(bench);
      });
      return make("div", {class: "control"},
        make("div", {class: "name"}, make("label", {for: id}, control.label)), select, help);
    }
    function told() { draw.title = `Seed ${bench.setting.draw}`; }
    function choose(key) {
      bench.world = worlds[key];
      bench.setting = {...bench.world.defaults};
      played.stop();
      controls();
      [...tabs.children].find((tab) => tab.getAttribute("aria-pressed") === "true").focus();
      ask(bench);
    }
    draw.addEventListener("click", () => {
      bench.setting.draw = 1 + Math.floor(Math.random() * config.last_draw);
      told();
      ask(bench);
    });
    reset.addEventListener("click", () => {
      bench.setting = {...bench.world.defaults};
      controls();
      ask(bench);
    });
    stop.addEventListener("click", () => socket.send(JSON.stringify({side, stop: true,
      ask: bench.asked})));

    bench.busy = (is) => {
      root.classList.toggle("busy", is);
      root.setAttribute("aria-busy", String(is));
      stop.disabled = !is;
    };
    bench.have = () => [...drawnFigures.values()].map((entry) => entry.signature);
    bench.hear = (message) => {
      if (message.ask < bench.drawn || (message.world && message.world !== bench.world.key)) return;
      if (message.ask === bench.asked) bench.busy(false);
      if (message.kind === "scene") {
        bench.drawn = message.ask;
        chain = chain.then(() => show(message)).catch((error) => {
          console.error(error);
          say("This run could not be drawn here.");
        });
      } else if (message.ask === bench.asked) {
        say(message.kind === "stopped" ? "Stopped. What is drawn is the run before."
          : message.sentence);
        scene.classList.add("old");
      }
    };
    function say(text) { notes.textContent = text; notes.hidden = !text; }

    async function show(message) {
      if (message.ask < bench.drawn) return;  // something newer is here already
      const found = message.scene;
      scene.classList.remove("old");
      say(message.notes.join(" "));
      for (const [name, entry] of drawnFigures) {
        if (!found.figures.some((figure) => figure.name === name)) {
          entry.frame.remove();
          drawnFigures.delete(name);
        }
      }
      for (const figure of found.figures) await plot(figure);
      outcome.textContent = found.outcome;
      verdicts(found.findings);
      played.show(found.attention);
      python.textContent = found.python;
      command.textContent = found.command;
      timing.textContent = `The run took ${found.seconds.toFixed(2)} s, theory and drawing ` +
        `${found.drawing_seconds.toFixed(2)} s. Seed ${message.setting.draw}.`;
      level();
      requestAnimationFrame(() => requestAnimationFrame(() => {
        root.dataset.drawn = message.ask;
        root.dispatchEvent(new CustomEvent("attnscope-drawn", {bubbles: true,
          detail: {side, ask: message.ask, seconds: found.seconds,
            processor: found.processor_seconds}}));
      }));
    }
    async function plot(figure) {
      let entry = drawnFigures.get(figure.name);
      if (!entry) {
        const place = make("div", {class: "plot", role: "img", "aria-label": figure.title});
        const frame = make("figure", {class: "card"}, make("h3", {}, figure.title), place,
          make("figcaption", {class: "small"}));
        figures.append(frame);
        entry = {frame, place, signature: "", items: new Map()};
        drawnFigures.set(figure.name, entry);
      }
      entry.frame.querySelector("figcaption").textContent = figure.caption;
      entry.place.setAttribute("aria-label", `${figure.title}. ${figure.caption}`);
      if (entry.signature !== figure.signature) {
        if (!figure.item) { ask(bench); return; }
        entry.place.style.minHeight = `${entry.place.offsetHeight}px`;
        await attnscopePlots.draw(entry.place, figure.item);
        entry.signature = figure.signature;
      }
      attnscopePlots.update(entry.place, figure.data);  // A document may be of another setting.
    }
    function verdicts(findings) {
      claims.replaceChildren(...findings.map((finding) => {
        const mark = {holds: "✓ holds", fails: "✗ fails", undecided: "? undecided"}[finding.verdict];
        return make("li", {class: "claim", "data-key": finding.key, "data-verdict": finding.verdict},
          make("span", {class: `badge ${finding.verdict}`}, mark),
          make("span", {class: "said"}, finding.sentence),
          make("span", {class: "soft small"}, `${finding.measure}: ${brief(finding.ours)}, ` +
            `expected ${finding.criterion}. ${finding.source}.`));
      }));
    }
    bench.places = () => [...drawnFigures.values()].map((entry) => entry.place);
    bench.root = root;
    bench.end = () => { played.stop(); root.remove(); };
    bench.relabel = () => root.setAttribute("aria-label", `${bench.world.title}${letter()}`);
    controls();
    return bench;
  }

  // Two settings of one world have the same axes, or eyes compare what numbers do not.
  function level() {
    if (benches.length < 2 || benches[0].world.key !== benches[1].world.key) return;
    const [left, right] = benches.map((bench) => bench.places());
    left.forEach((place, index) => attnscopePlots.share([place, right[index]]));
  }

  function sit(side, key, setting) {
    const bench = Bench(side, key, setting);
    benches.push(bench);
    places.append(bench.root);
    places.classList.toggle("two", benches.length > 1);
    document.getElementById("compare").setAttribute("aria-pressed", String(benches.length > 1));
    benches.forEach((each) => each.relabel());
    return bench;
  }

  async function copy(text, button) {
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { button.textContent = before; }, 1800);
  }

  document.getElementById("compare").addEventListener("click", () => {
    if (benches.length > 1) {
      const gone = benches.pop();
      socket.send(JSON.stringify({side: gone.side, stop: true}));
      gone.end();
      places.classList.remove("two");
      document.getElementById("compare").setAttribute("aria-pressed", "false");
      benches[0].relabel();
      benches[0].places().forEach(attnscopePlots.alone);
      remember();
    } else {
      ask(sit("b", benches[0].world.key, benches[0].setting));
    }
  });
  document.getElementById("link").addEventListener("click", (event) =>
    copy(`${location.origin}/?${query()}`, event.currentTarget));
  window.addEventListener("popstate", () => location.reload());

  config.benches.forEach((bench, index) => sit("ab"[index], bench.world, bench.setting));
  connect();
})();
