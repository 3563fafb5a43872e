"use strict";

// Attention on one sentence over time. Words are set as text, so that none becomes markup.
window.attnscopeAttention = (function () {
  const FRAMES_PER_SECOND = 20, SECONDS = 6;
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") element.className = value;
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };
  const percent = (weight) => weight < 0.095 ? `${(100 * weight).toFixed(1)} %`
    : `${Math.round(100 * weight)} %`;
  const amount = (time) => time >= 100 ? Math.round(time).toLocaleString("en")
    : String(Number(time.toPrecision(3)));

  // onMoment(time) moves the rule in the curves.
  function player(place, name, onMoment) {
    const title = make("h3");
    const words = make("div", {class: "words"});
    const caption = make("p", {class: "soft small"});
    const button = make("button", {type: "button", class: "primary play"}, "▶ Play");
    const moment = make("output", {class: "value"});
    const slider = make("input", {type: "range", min: 0, max: 0, value: 0,
      "aria-label": `Moment of training${name}`});
    place.append(title, make("div", {class: "row"}, button,
      make("span", {class: "grow"}, slider), moment), words, caption);
    let data = null, timer = 0, cells = [], pinned = true;

    function frame(index, tell = true) {
      const keys = data.keys.length, queries = data.queries.length;
      slider.value = index;
      const time = data.times[index], said = `${data.unit} ${amount(time)}`;
      moment.textContent = said;
      let top = 0;
      for (let q = 0; q < queries; q++) for (let k = 0; k < keys; k++) {
        const weight = data.weights[(index * queries + q) * keys + k];
        if (weight > data.weights[(index * queries + 0) * keys + top] && q === 0) top = k;
        const {bar, text, cell} = cells[q * keys + k];
        if (bar) {
          bar.style.height = `${Math.max(1, 100 * weight / data.most)}%`;
          text.textContent = percent(weight);
        } else {
          cell.style.setProperty("--weight", Math.min(1, weight / data.most).toFixed(3));
          cell.classList.toggle("strong", weight / data.most > 0.55);
          cell.title = `${data.queries[q]} looks at ${data.keys[k]}: ${percent(weight)}`;
          text.textContent = weight >= 0.095 ? Math.round(100 * weight) : "";
        }
      }
      slider.setAttribute("aria-valuetext", queries === 1
        ? `${said}, most attention on ${data.keys[top]}` : said);
      if (tell) onMoment(time);
    }

    function stop() {
      clearInterval(timer);
      timer = 0;
      button.textContent = "▶ Play";
    }

    function play() {
      const last = Number(slider.max);
      let index = Number(slider.value) >= last ? 0 : Number(slider.value);
      const step = Math.max(1, Math.round(last / (FRAMES_PER_SECOND * SECONDS)));
      const pause = Math.max(1000 / FRAMES_PER_SECOND, SECONDS * 1000 * step / Math.max(1, last));
      pinned = false;
      button.textContent = "⏸ Pause";
      frame(index);
      timer = setInterval(() => {
        index = Math.min(last, index + step);
        frame(index);
        if (index === last) { pinned = true; stop(); }
      }, pause);
    }

    button.addEventListener("click", () => timer ? stop() : play());
    slider.addEventListener("input", () => {
      stop();
      pinned = Number(slider.value) === Number(slider.max);
      frame(Number(slider.value));
    });

    function sentence() {
      const list = make("ul", {class: "sentence", "aria-label": "Words and their attention"});
      data.keys.forEach((word, k) => {
        const bar = make("span", {class: "fill"});
        const text = make("span", {class: "weight"});
        const right = data.right[0] === k;
        cells.push({bar, text});
        list.append(make("li", {class: right ? "word right" : "word"},
          make("span", {class: "column", "aria-hidden": "true"}, bar), text,
          make("span", {class: "name"}, word)));
      });
      words.replaceChildren(list);
    }

    function matrix() {
      const head = make("tr", {}, make("td"));
      data.keys.forEach((word, k) => head.append(
        make("th", {scope: "col", class: data.groups[k] < 0 ? "" : `group-${data.groups[k] % 7}`},
          make("span", {}, word))));
      const body = make("tbody");
      data.queries.forEach((query, q) => {
        const line = make("tr", {}, make("th", {scope: "row"}, query));
        data.keys.forEach((_, k) => {
          const text = make("span");
          const cell = make("td", {class: data.right[q] === k ? "cell right" : "cell"}, text);
          cells.push({cell, text});
          line.append(cell);
        });
        body.append(line);
      });
      const table = make("table", {class: "matrix"}, make("caption", {class: "hidden-words"},
        "Rows look at columns; numbers are percent"), make("thead", {}, head), body);
      words.replaceChildren(make("div", {class: "scroll", tabindex: "0", role: "region",
        "aria-label": "Attention weights"}, table));
    }

    function show(next) {
      const same = data && data.keys.length === next.keys.length
        && data.queries.length === next.queries.length
        && next.keys.every((word, k) => word === data.keys[k])
        && next.queries.every((word, q) => word === data.queries[q]);
      const share = data ? Number(slider.value) / Math.max(1, Number(slider.max)) : 1;
      data = {...next, times: attnscopePlots.decode(next.times),
        weights: attnscopePlots.decode(next.weights)};
      data.most = Math.max(0.2, Math.min(1, data.weights.reduce((a, b) => Math.max(a, b), 0)));
      title.textContent = data.title;
      caption.textContent = data.caption;
      slider.max = data.times.length - 1;
      if (!same) {
        cells = [];
        if (data.queries.length === 1) sentence(); else matrix();
      }
      frame(pinned ? data.times.length - 1 : Math.round(share * (data.times.length - 1)));
    }

    return {show, stop};
  }

  return {player, make};
})();
