"use strict";

// Attention maps: a slider, a button or the keyboard go through the steps of training.
// Words are drawn on a canvas or set as text, so that no word of the data becomes markup.
(function () {
  const GAP = 14, TITLE = 18, BAR = 64, PAUSE = 250, WORD = 88, FEWEST_PIXELS = 9, FEW_HEADS = 8;

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  const channels = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  const weight = (data, level) => ((level - 1) / data.levels) ** 2;
  const short = (value) => String(Number(value.toPrecision(2)));

  function at(data, step, row, head, query, key) {
    const [, rows, heads, queries, keys] = data.shape;
    return data.cells[
      (((step * rows + row) * heads + head) * queries + query) * keys + key];
  }

  function picture(data, step, row, head) {
    const [, , , queries, keys] = data.shape;
    const canvas = document.createElement("canvas");
    canvas.width = keys;
    canvas.height = queries;
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(keys, queries);
    const start = (((step * data.shape[1] + row) * data.shape[2] + head) * queries) * keys;
    for (let cell = 0; cell < queries * keys; cell++) {
      const level = data.cells[start + cell];
      if (!level) continue;
      const share = Math.min(1, (level - 1) / (data.top - 1));
      const color = data.ramp[Math.round(share * (data.ramp.length - 1))];
      image.data.set(color, 4 * cell);
      image.data[4 * cell + 3] = 255;
    }
    pen.putImageData(image, 0, 0);
    return canvas;
  }

  // Where each head's map stands; one head alone has room for words.
  function layout(data, view, width) {
    const [, , heads, queries, keys] = data.shape;
    const room = width - BAR;
    const alone = view.head !== "all";
    const shown = alone ? [Number(view.head)] : [...Array(heads).keys()];
    const most = alone ? 560 : 300;
    // All heads together have words if their cells are large enough for letters.
    const fits = (left, columns) => Math.min(
      (room - left - (columns - 1) * GAP) / columns / keys, most / queries, most / keys);
    const usual = Math.max(1, Math.min(heads, Math.floor(room / 190)));
    const fewest = heads <= FEW_HEADS ? Math.ceil(usual / 2) : usual;
    let left = alone ? data.wordRoom : 1, columns = alone ? 1 : usual;
    for (let count = usual; !alone && left === 1 && width >= 560 && count >= fewest; count--) {
      if (fits(data.wordRoom, count) >= FEWEST_PIXELS) [left, columns] = [data.wordRoom, count];
    }
    const fit = fits(left, columns), below = left > 1 ? left : 0;
    // Cells of whole pixels are all equally large.
    const ratio = window.devicePixelRatio || 1;
    const scale = fit * ratio < 1 ? fit : Math.floor(fit * ratio) / ratio;
    const size = [scale * keys, scale * queries];
    const boxes = shown.map((head, index) => {
      const column = index % columns, line = Math.floor(index / columns);
      return {head, x: left + column * (size[0] + GAP),
        y: TITLE + line * (size[1] + TITLE + GAP), wide: size[0], tall: size[1]};
    });
    const lines = Math.ceil(shown.length / columns);
    const high = lines * (size[1] + TITLE) + (lines - 1) * GAP + below + 4;
    return {boxes, scale, columns, high: Math.max(high, 150), words: left > 1};
  }

  function draw(canvas, data, view) {
    const width = canvas.clientWidth;
    if (!width) return;  // folded away; it is drawn when it is opened
    const plan = layout(data, view, width);
    canvas.style.height = `${plan.high}px`;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(plan.high * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const look = getComputedStyle(canvas);
    const ink = look.color, edge = look.getPropertyValue("--edge").trim() || "#cccccc";
    pen.font = "12px system-ui, sans-serif";
    pen.imageSmoothingEnabled = false;
    for (const box of plan.boxes) {
      pen.fillStyle = ink;
      pen.textAlign = "left";
      pen.textBaseline = "alphabetic";
      pen.fillText(`head ${box.head}`, box.x, box.y - 5);
      pen.drawImage(picture(data, view.step, view.row, box.head), box.x, box.y, box.wide, box.tall);
      pen.strokeStyle = edge;
      pen.strokeRect(box.x - 0.5, box.y - 0.5, box.wide + 1, box.tall + 1);
      if (view.cell) mark(pen, box, view.cell, plan.scale);
    }
    if (plan.words) words(pen, data, view, plan, ink);
    const right = Math.max(...plan.boxes.map((box) => box.x + box.wide));
    bar(pen, data, right + 14, Math.min(plan.high, 260), ink);
    canvas.mapPlan = plan;
  }

  function mark(pen, box, [query, key], scale) {
    for (const [color, thick] of [["#000000", 4], ["#ffffff", 2]]) {
      pen.strokeStyle = color;
      pen.lineWidth = thick;
      pen.strokeRect(box.x + key * scale, box.y + query * scale, scale, scale);
    }
    pen.lineWidth = 1;
  }

  // Every word has its line if there is room; else every so many of them.
  function words(pen, data, view, plan, ink) {
    const scale = plan.scale, every = Math.max(1, Math.ceil(FEWEST_PIXELS / scale));
    const rows = plan.boxes.filter((_, index) => index % plan.columns === 0);
    const lowest = plan.boxes.slice(-plan.columns), bottom = Math.max(...lowest.map((box) => box.y + box.tall));
    const columns = lowest.filter((box) => box.y + box.tall === bottom);
    pen.fillStyle = ink;
    pen.font = `${Math.max(9, Math.min(12, scale * every))}px system-ui, sans-serif`;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    data.queries[view.row].forEach((word, index) => {
      if (index % every) return;
      for (const box of rows) pen.fillText(cut(pen, word), box.x - 5, box.y + (index + 0.5) * scale);
    });
    data.keys[view.row].forEach((word, index) => {
      if (index % every) return;
      for (const box of columns) {
        pen.save();
        pen.translate(box.x + (index + 0.5) * scale, box.y + box.tall + 5);
        pen.rotate(-Math.PI / 2);
        pen.fillText(cut(pen, word), 0, 0);
        pen.restore();
      }
    });
  }

  // Words get as much room as the longest of them needs.
  function roomFor(data) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = "12px system-ui, sans-serif";
    const all = new Set([...data.queries, ...data.keys].flat());
    const longest = Math.max(...[...all].map((word) => pen.measureText(word).width));
    return Math.min(WORD, Math.ceil(10 + longest));
  }

  function cut(pen, word) {
    let text = word.replace(/\s/g, "␣");
    if (pen.measureText(text).width <= WORD - 8) return text;
    while (text && pen.measureText(`${text}…`).width > WORD - 8) text = text.slice(0, -1);
    return `${text}…`;
  }

  function bar(pen, data, left, high, ink) {
    const top = TITLE + 6, tall = high - TITLE - 18;
    const count = data.ramp.length;
    data.ramp.forEach((color, k) => {
      pen.fillStyle = `rgb(${color.join(",")})`;
      pen.fillRect(left, top + tall * (1 - (k + 1) / count), 12, tall / count + 1);
    });
    pen.fillStyle = ink;
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.textBaseline = "alphabetic";
    pen.fillText("weight", left, TITLE - 5, BAR - 14);
    pen.textBaseline = "middle";
    for (let k = 0; k <= 4; k++) {
      const level = 1 + (data.top - 1) * k / 4;
      pen.fillText(short(weight(data, level)), left + 16, top + tall * (1 - k / 4));
    }
  }

  function largest(data, view, head) {
    const [, , , queries, keys] = data.shape;
    let best = [0, 0, 0];
    for (let query = 0; query < queries; query++) {
      for (let key = 0; key < keys; key++) {
        const level = at(data, view.step, view.row, head, query, key);
        if (level > best[0]) best = [level, query, key];
      }
    }
    return best;
  }

  function say(data, view, head, level, query, key) {
    const value = level ? short(weight(data, level)) : "nothing";
    const asks = data.queries[view.row][query], looked = data.keys[view.row][key];
    return `Step ${data.steps[view.step]}, head ${head}: from ` +
      `${data.firstQuery + data.pooled * query} “${asks}” to ${data.pooled * key} “${looked}” ${value}`;
  }

  function read(data, view) {
    const heads = view.head === "all" ? [...Array(data.shape[2]).keys()] : [Number(view.head)];
    if (view.cell) {
      const [query, key] = view.cell;
      return heads.map((head) => say(data, view, head,
        at(data, view.step, view.row, head, query, key), query, key)).join("; ");
    }
    const head = heads.length === 1 ? heads[0] : 0;
    return `${say(data, view, head, ...largest(data, view, head))}, its largest weight.`;
  }

  function live(place, data) {
    const canvas = place.querySelector("canvas"), told = place.querySelector(".map-read");
    const part = (name) => place.querySelector(`[data-map="${name}"]`);
    const slider = part("step"), play = part("play"), head = part("head"), row = part("row");
    const view = {step: Number(slider.value), row: 0, head: head.value, cell: null};
    let waiting = false, timer = null;
    const redraw = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(canvas, data, view); });
    };
    const change = () => {
      part("said").textContent = String(data.steps[view.step]);
      slider.setAttribute("aria-valuetext", `step ${data.steps[view.step]}`);
      canvas.dataset.step = String(data.steps[view.step]);
      // While it plays a reader would never come to an end.
      if (timer === null) told.textContent = read(data, view);
      redraw();
    };
    const show = (step) => {
      view.step = Math.max(0, Math.min(data.steps.length - 1, step));
      slider.value = String(view.step);
      change();
    };
    const stop = () => {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
      play.setAttribute("aria-pressed", "false");
      change();
    };
    const start = () => {
      if (view.step === data.steps.length - 1) show(0);
      play.textContent = "Pause";
      play.setAttribute("aria-pressed", "true");
      timer = setInterval(() => {
        if (view.step + 1 < data.steps.length) show(view.step + 1);
        if (view.step + 1 >= data.steps.length) stop();
      }, PAUSE);
    };
    play.addEventListener("click", () => (timer === null ? start() : stop()));
    slider.addEventListener("input", () => {
      if (timer !== null) stop();
      show(Number(slider.value));
    });
    head.addEventListener("change", () => { view.head = head.value; change(); });
    row?.addEventListener("change", () => { view.row = Number(row.value); change(); });
    const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key === "Escape") {
        view.cell = null;
      } else if (event.key in moves) {
        const [, , , queries, keys] = data.shape, [down, right] = moves[event.key];
        const [query, key] = view.cell ?? [-down, -right].map((n) => Math.min(0, n));
        view.cell = [Math.max(0, Math.min(queries - 1, query + down)),
          Math.max(0, Math.min(keys - 1, key + right))];
      } else {
        return;
      }
      event.preventDefault();
      change();
    });
    canvas.addEventListener("pointermove", (event) => {
      const {boxes, scale} = canvas.mapPlan;
      const box = boxes.find((b) => event.offsetX >= b.x && event.offsetX < b.x + b.wide &&
        event.offsetY >= b.y && event.offsetY < b.y + b.tall);
      if (!box) return;
      const query = Math.floor((event.offsetY - box.y) / scale);
      const key = Math.floor((event.offsetX - box.x) / scale);
      told.textContent = say(data, view, box.head,
        at(data, view.step, view.row, box.head, query, key), query, key);
    });
    // A click on the map of readings asks for a layer at a step.
    document.addEventListener("attnscope-map", ({detail}) => {
      if (place.id !== `maps-layer-${detail.layer}`) return;
      place.open = true;
      if (detail.head !== null && [...head.options].some((o) => o.value === String(detail.head))) {
        view.head = head.value = String(detail.head);
      }
      const away = data.steps.map((step) => Math.abs(step - detail.step));
      show(away.indexOf(Math.min(...away)));
      place.scrollIntoView({block: "start", behavior: "smooth"});
    });
    place.querySelector(".map-tools").hidden = false;
    new ResizeObserver(redraw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    change();
  }

  for (const script of document.querySelectorAll("script[data-maps]")) {
    const place = document.getElementById(script.dataset.maps);
    const data = JSON.parse(script.textContent);
    data.ramp = data.colors.map(channels);
    data.wordRoom = roomFor(data);
    unpack(data.packed).then((cells) => {
      data.cells = cells;
      live(place, data);
    }).catch((error) => {
      place.querySelector(".map-read").textContent =
        "The maps could not be drawn here: this browser is too old to unpack them.";
      console.error(error);
    });
  }
})();
