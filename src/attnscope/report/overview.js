"use strict";

// The first screen of a watched run: the loss, what began when, and a map of one reading, all over
// the same steps. Words are drawn on a canvas or set as text, so that none becomes markup.
(function () {
  const {axis, frame, nearest, prepare, range, short, steps, stepTicks, stroke} = attnscopeAxes;
  const LOSS = 190, GAP = 12, BOTTOM = 36, BAR = 62, TALLEST = 300, FLAG = 15, TOP = 22;

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const raw = new DataView(await new Response(stream).arrayBuffer());
    return Float32Array.from({length: raw.byteLength / 4}, (_, k) => raw.getFloat32(4 * k, true));
  }

  const channels = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

  function share(map, value) {
    const [low, high] = map.log ? map.span.map(Math.log) : map.span;
    return Math.max(0, Math.min(1, ((map.log ? Math.log(value) : value) - low) / (high - low)));
  }

  // Every column of pixels shows the reading that is nearest to its step.
  function picture(data, map, x) {
    const wide = Math.max(1, Math.round(x.end - x.start)), rows = map.rows.length;
    const canvas = document.createElement("canvas");
    canvas.width = wide;
    canvas.height = rows;
    const pen = canvas.getContext("2d"), image = pen.createImageData(wide, rows);
    for (let p = 0; p < wide; p++) {
      const column = nearest(map.steps, x.value(x.start + p + 0.5));
      for (let row = 0; row < rows; row++) {
        const value = map.values[row * map.steps.length + column];
        if (!Number.isFinite(value) || (map.log && value <= 0)) continue;
        const color = data.ramp[Math.round(share(map, value) * (data.ramp.length - 1))];
        image.data.set(color, 4 * (row * wide + p));
        image.data[4 * (row * wide + p) + 3] = 255;
      }
    }
    pen.putImageData(image, 0, 0);
    return canvas;
  }

  function plan(data, view, width) {
    const map = data.maps[view.map];
    const loss = data.losses.length || data.events.length ? LOSS : 0;
    const rows = map ? map.rows.length : 0;
    const tall = rows ? Math.max(Math.min(rows * 16, TALLEST), Math.min(rows * 2, 2 * TALLEST), 90) : 0;
    const top = loss ? loss + GAP : TOP;
    const narrow = width < 560;
    return {loss, top, tall, left: narrow ? 56 : 92, right: narrow ? 46 : BAR,
      high: (map ? top + tall : loss) + BOTTOM, each: rows ? tall / rows : 0, narrow};
  }

  function draw(canvas, data, view) {
    const size = plan(data, view, canvas.clientWidth);
    const look = prepare(canvas, size.high);
    if (!look) return;
    const {pen, width} = look;
    const map = data.maps[view.map];
    let low = Infinity, high = -Infinity;
    const clocks = [...data.losses.map((line) => line.x), ...(map ? [map.steps] : [])];
    for (const clock of clocks) {
      if (clock.length) { low = Math.min(low, clock[0]); high = Math.max(high, clock[clock.length - 1]); }
    }
    if (!(low < high)) [low, high] = [low - 1, low + 1];
    const x = axis(steps.log && low >= 0 ? "steps" : "linear", low, high, size.left, width - size.right);
    canvas.overview = {x, size};
    if (size.loss) losses(look, data, view, x, size);
    if (map) {
      readings(look, data, map, x, size);
      bar(look, data, map, x.end + 10, size);
    }
    stepTicks(look, x, size.high - BOTTOM, (x.end - x.start) / 80);
    pen.fillStyle = look.soft;
    pen.textAlign = "center";
    pen.fillText("step", (x.start + x.end) / 2, size.high - 13);
    if (view.step !== null) cursor(look, map, view, x, size);
  }

  function losses(look, data, view, x, size) {
    const {pen, ink} = look;
    const values = data.losses.flatMap((line) => line.y.filter((v) => v !== null));
    const [small, large] = [Math.min(...values), Math.max(...values)];
    const log = values.length > 0 && small > 0 && large > 20 * small;
    const y = axis(log ? "log" : "linear", ...range(values, log), size.loss, TOP + FLAG);
    frame(look, x, y, {bottom: false});
    canvasTitle(look, log ? "loss (log)" : "loss", x.start, TOP - 8);
    let at = x.start + pen.measureText("loss (log)").width + 16;
    for (const line of data.losses) {
      pen.strokeStyle = pen.fillStyle = line.color;
      pen.lineWidth = 1.5;
      stroke(pen, x, y, line.x, line.y);
      if (data.losses.length < 2) continue;
      pen.fillRect(at, TOP - 13, 14, 3);
      pen.fillStyle = ink;
      pen.textAlign = "left";
      pen.textBaseline = "alphabetic";
      pen.font = "12px system-ui, sans-serif";
      pen.fillText(line.label, at + 18, TOP - 8);
      at += pen.measureText(line.label).width + 34;
    }
    flags(look, data, x, y, size);
  }

  function canvasTitle({pen, ink}, text, left, base) {
    pen.fillStyle = ink;
    pen.font = "600 12px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.textBaseline = "alphabetic";
    pen.fillText(text, left, base);
  }

  // A numbered flag for each thing that began; neighbours that would cover each other share a line.
  function flags({pen, bad, stage, good, card}, data, x, y, size) {
    let last = -Infinity;
    data.events.forEach((event, index) => {
      const p = x.at(event.step), color = {fault: bad, stage, good}[event.kind];
      pen.strokeStyle = color;
      pen.lineWidth = 1.2;
      pen.setLineDash([4, 3]);
      pen.beginPath(); pen.moveTo(p, y.end); pen.lineTo(p, size.high - BOTTOM); pen.stroke();
      pen.setLineDash([]);
      const middle = Math.min(x.end - 8, Math.max(p, last + FLAG + 2));
      last = middle;
      pen.fillStyle = color;
      pen.beginPath(); pen.arc(middle, y.end - FLAG / 2, FLAG / 2, 0, 7); pen.fill();
      pen.fillStyle = card;
      pen.font = "600 10px system-ui, sans-serif";
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillText(String(index + 1), middle, y.end - FLAG / 2 + 0.5);
    });
  }

  function readings(look, data, map, x, size) {
    const {pen, ink, soft, edge, card} = look;
    pen.imageSmoothingEnabled = false;
    pen.globalCompositeOperation = "destination-over";  // below the lines of events
    pen.drawImage(picture(data, map, x), x.start, size.top, x.end - x.start, size.tall);
    pen.globalCompositeOperation = "source-over";
    pen.strokeStyle = edge;
    pen.strokeRect(x.start - 0.5, size.top - 0.5, x.end - x.start + 1, size.tall + 1);
    let row = 0;
    let free = -Infinity;
    for (const [name, count] of map.groups) {
      const top = size.top + row * size.each, tall = count * size.each;
      if (row) {
        pen.strokeStyle = card;
        pen.lineWidth = tall > 6 ? 1.5 : 0.5;
        pen.beginPath(); pen.moveTo(x.start, top); pen.lineTo(x.end, top); pen.stroke();
      }
      pen.textBaseline = "middle";
      pen.textAlign = "right";
      const middle = top + tall / 2;
      if (middle >= free) {
        pen.fillStyle = ink;
        pen.font = "12px system-ui, sans-serif";
        const inner = size.each >= 10 && map.rows[row] !== "" ? 22 : 6;
        pen.fillText(size.narrow ? name.replace(/^layer /, "") : name, x.start - inner, middle, x.start - inner - 2);
        free = middle + 13;
      }
      if (size.each >= 10) {
        pen.fillStyle = soft;
        pen.font = "10px system-ui, sans-serif";
        for (let k = 0; k < count; k++) {
          pen.fillText(map.rows[row + k].replace(/^head /, ""), x.start - 6, top + (k + 0.5) * size.each);
        }
      }
      row += count;
    }
  }

  function bar({pen, ink, soft}, data, map, left, size) {
    const count = data.ramp.length, top = size.top, tall = size.tall;
    data.ramp.forEach((color, k) => {
      pen.fillStyle = `rgb(${color.join(",")})`;
      pen.fillRect(left, top + tall * (1 - (k + 1) / count), 10, tall / count + 1);
    });
    pen.fillStyle = soft;
    pen.font = "10px system-ui, sans-serif";
    pen.textAlign = "left";
    const marks = Math.max(1, Math.min(4, Math.floor(tall / 40)));
    for (let k = 0; k <= marks; k++) {
      const [low, high] = map.span;
      const value = map.log ? low * (high / low) ** (k / marks) : low + (high - low) * k / marks;
      pen.textBaseline = k === 0 ? "bottom" : k === marks ? "top" : "middle";
      pen.fillText(short(Number(value.toPrecision(2))), left + 13, top + tall * (1 - k / marks), size.right - 24);
    }
  }

  function cursor({pen, ink, card}, map, view, x, size) {
    const p = x.at(view.step);
    pen.strokeStyle = ink;
    pen.globalAlpha = 0.6;
    pen.lineWidth = 1;
    pen.beginPath(); pen.moveTo(p, TOP + FLAG); pen.lineTo(p, size.high - BOTTOM); pen.stroke();
    pen.globalAlpha = 1;
    if (!map || view.row === null) return;
    for (const [color, thick] of [[ink, 4], [card, 2]]) {
      pen.strokeStyle = color;
      pen.lineWidth = thick;
      pen.strokeRect(x.start, size.top + view.row * size.each, x.end - x.start, size.each);
    }
  }

  function place(map, row) {
    let first = 0;
    for (const [group, [name, count]] of map.groups.entries()) {
      if (row < first + count) return {group, name, inner: row - first, row: map.rows[row]};
      first += count;
    }
    return null;
  }

  function say(data, view) {
    const map = data.maps[view.map], parts = [];
    for (const line of data.losses) {
      const k = nearest(line.x, view.step);
      if (line.y[k] !== null) parts.push(`${line.label} ${short(line.y[k])}`);
    }
    if (map && view.row !== null) {
      const column = nearest(map.steps, view.step), where = place(map, view.row);
      const value = map.values[view.row * map.steps.length + column];
      const name = [where.name, where.row].filter(Boolean).join(", ");
      parts.push(`${name}: ${map.name} ${Number.isFinite(value) ? short(value) : "nothing"}`);
    }
    for (const [index, event] of data.events.entries()) {
      if (Math.abs(canvasAt(data, event.step) - canvasAt(data, view.step)) < 6) parts.push(`${index + 1}: ${event.text}`);
    }
    return `Step ${short(view.step)}: ${parts.join("; ")}`;
  }

  const canvasAt = (data, step) => data.canvas.overview.x.at(step);

  function live(card, data) {
    const canvas = data.canvas = card.querySelector("canvas"), told = card.querySelector(".map-read");
    const chooser = card.querySelector("[data-overview=reading]");
    const log = card.querySelector("[data-overview=log]");
    const view = {map: -1, step: null, row: null};  // no map before it is unpacked
    let waiting = false;
    const redraw = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(canvas, data, view); });
    };
    const meaning = () => {
      const map = data.maps[view.map];
      const more = map && map.meaning ? `: ${map.meaning}` : "";
      told.textContent = map ? `Shown is ${map.name}${more}.` : "";
    };
    const tell = () => { told.textContent = say(data, view); redraw(); };
    const choose = async () => {
      const index = chooser ? Number(chooser.value) : 0, map = data.maps[index];
      if (map) map.values ??= await unpack(map.packed);
      view.map = index;
      view.row = null;
      canvas.dataset.reading = map ? map.name : "";
      meaning();
      redraw();
    };
    const open = () => {
      const map = data.maps[view.map];
      if (!map || view.row === null || map.kind === "matrices" || map.kind === "blocks") return;
      const {group, inner} = place(map, view.row);
      const detail = {layer: group, head: map.kind === "heads" ? inner : null, step: view.step};
      document.dispatchEvent(new CustomEvent("attnscope-map", {detail}));
    };
    const point = (event) => {
      const {x, size} = canvas.overview, map = data.maps[view.map];
      const step = x.value(Math.max(x.start, Math.min(x.end, event.offsetX)));
      const row = map ? Math.floor((event.offsetY - size.top) / size.each) : -1;
      view.row = row >= 0 && map && row < map.rows.length ? row : null;
      const clock = view.row === null && data.losses.length ? data.losses[0].x : map?.steps;
      if (!clock?.length) return;
      view.step = clock[nearest(clock, step)];
      tell();
    };
    canvas.addEventListener("pointermove", (event) => { if (canvas.overview) point(event); });
    canvas.addEventListener("click", (event) => { if (canvas.overview) { point(event); open(); } });
    canvas.addEventListener("pointerleave", () => { view.step = view.row = null; meaning(); redraw(); });
    const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const map = data.maps[view.map];
      const clock = map ? map.steps : data.losses[0]?.x;
      if (!clock?.length) return;
      if (event.key === "Escape") {
        view.step = view.row = null;
        meaning();
        redraw();
      } else if (event.key === "Enter") {
        open();
      } else if (event.key in moves) {
        const [down, right] = moves[event.key];
        const now = view.step === null ? clock.length - 1 : nearest(clock, view.step) + right;
        view.step = clock[Math.max(0, Math.min(clock.length - 1, now))];
        if (map) view.row = view.row === null ? 0 : Math.max(0, Math.min(map.rows.length - 1, view.row + down));
        tell();
      } else {
        return;
      }
      event.preventDefault();
    });
    const rescale = () => {
      steps.log = log.checked;
      document.dispatchEvent(new CustomEvent("attnscope-steps"));
      redraw();
    };
    chooser?.addEventListener("change", choose);
    log.addEventListener("change", rescale);
    card.querySelector(".map-tools").hidden = false;
    new ResizeObserver(redraw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    rescale();
    choose().catch((error) => {
      told.textContent = "The map could not be drawn here: this browser is too old to unpack it.";
      console.error(error);
    });
  }

  for (const script of document.querySelectorAll("script[data-overview-of]")) {
    const data = JSON.parse(script.textContent);
    data.ramp = data.colors.map(channels);
    live(document.getElementById(script.dataset.overviewOf), data);
  }
})();
