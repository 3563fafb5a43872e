"use strict";

// Curves over steps: hover, legend, zoom by dragging, keyboard. Words are drawn on a canvas or set as
// text, so that no word of the data becomes markup. What `overview.js` draws shares the axes.
const attnscopeAxes = (function () {
  const short = (value) => {
    const size = Math.abs(value);
    if (size >= 1e6 || (size < 1e-3 && size > 0)) {
      return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
    }
    return String(Number(value.toPrecision(4)));
  };
  // Logarithmic steps have room for step 0.
  const scales = {
    linear: {to: (v) => v, from: (v) => v},
    log: {to: (v) => Math.log10(v), from: (v) => 10 ** v},
    steps: {to: (v) => Math.log10(1 + v), from: (v) => 10 ** v - 1},
  };

  function axis(kind, low, high, start, end) {
    const scale = scales[kind], a = scale.to(low), b = scale.to(high);
    const wide = b - a || 1;
    return {
      kind, low, high, start, end,
      at: (v) => start + (end - start) * (scale.to(v) - a) / wide,
      value: (p) => scale.from(a + wide * (p - start) / (end - start)),
    };
  }

  function ticks({kind, low, high}, count) {
    if (kind === "linear") {
      const rough = (high - low) / Math.max(1, count) || 1;
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = power * ([1, 2, 5].find((m) => m * power >= rough) ?? 10);
      const found = [];
      for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) found.push(k * step);
      return found;
    }
    const found = kind === "steps" && low <= 0 ? [0] : [];
    const first = Math.floor(Math.log10(Math.max(low, kind === "steps" ? 1 : Number.MIN_VALUE)));
    const last = Math.ceil(Math.log10(high));
    const every = Math.max(1, Math.ceil((last - first) / Math.max(1, count)));
    const parts = last - first <= 2 ? [1, 2, 5] : [1];
    for (let k = first; k <= last; k += every) {
      for (const part of parts) {
        const value = part * 10 ** k;
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) found.push(value);
      }
    }
    return found;
  }

  function range(values, log) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value === null || !Number.isFinite(value) || (log && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low > high) return log ? [1, 10] : [0, 1];
    if (low === high) return log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) / 2, high + (Math.abs(low) || 1) / 2];
    if (log) return [low / (high / low) ** 0.05, high * (high / low) ** 0.05];
    return [low - 0.05 * (high - low), high + 0.05 * (high - low)];
  }

  function prepare(canvas, high) {
    const width = canvas.clientWidth;
    if (!width) return null;  // folded away; it is drawn when it is opened
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${high}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(high * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    const look = getComputedStyle(canvas);
    const named = (name, other) => look.getPropertyValue(name).trim() || other;
    return {pen, width, ink: look.color, soft: named("--soft", "#666666"),
      edge: named("--edge", "#cccccc"),
      card: named("--card", "#ffffff"), bad: named("--bad", "#94200c"),
      stage: named("--open", "#674900"), good: named("--good", "#0b5a3a")};
  }

  function frame({pen, soft, edge}, x, y, {bottom = true, count = 6} = {}) {
    pen.lineWidth = 1;
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const value of ticks(y, Math.max(2, Math.abs(y.start - y.end) / 45))) {
      const p = Math.round(y.at(value)) + 0.5;
      pen.strokeStyle = edge;
      pen.globalAlpha = 0.6;
      pen.beginPath(); pen.moveTo(x.start, p); pen.lineTo(x.end, p); pen.stroke();
      pen.globalAlpha = 1;
      pen.fillStyle = soft;
      pen.fillText(short(value), x.start - 6, p);
    }
    pen.strokeStyle = edge;
    pen.strokeRect(x.start + 0.5, y.end + 0.5, x.end - x.start - 1, y.start - y.end - 1);
    if (bottom) stepTicks({pen, soft, edge}, x, y.start, count);
  }

  function stepTicks({pen, soft, edge}, x, top, count) {
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "top";
    pen.textAlign = "center";
    let free = -Infinity;
    for (const value of ticks(x, count)) {
      const p = x.at(value), text = short(value), half = pen.measureText(text).width / 2;
      pen.strokeStyle = edge;
      pen.beginPath(); pen.moveTo(p, top); pen.lineTo(p, top + 4); pen.stroke();
      if (p - half < free) continue;
      pen.fillStyle = soft;
      pen.fillText(text, p, top + 6);
      free = p + half + 6;
    }
  }

  function stroke(pen, x, y, xs, ys) {
    pen.save();
    pen.beginPath();
    pen.rect(x.start, Math.min(y.start, y.end), x.end - x.start, Math.abs(y.end - y.start));
    pen.clip();
    pen.beginPath();
    let joined = false, last = -1;
    for (let k = 0; k < xs.length; k++) {
      if (ys[k] === null || xs[k] === null) { joined = false; continue; }
      const px = x.at(xs[k]), py = y.at(ys[k]);
      if (joined) pen.lineTo(px, py); else pen.moveTo(px, py);
      // A point between two gaps would not be seen.
      const lonely = !joined && (k + 1 >= xs.length || ys[k + 1] === null);
      if (lonely) { pen.rect(px - 1, py - 1, 2, 2); }
      joined = true;
      last = k;
    }
    if (last >= 0) pen.stroke();
    pen.restore();
  }

  function nearest(xs, value) {
    let low = 0, high = xs.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= value) low = middle; else high = middle;
    }
    return Math.abs(xs[low] - value) <= Math.abs(xs[high] - value) ? low : high;
  }

  // Whether steps are drawn logarithmically, on all charts of the page alike.
  const steps = {log: false};
  return {axis, frame, nearest, prepare, range, short, steps, stepTicks, stroke, ticks};
})();

(function () {
  const {axis, frame, nearest, prepare, range, short, steps, stroke} = attnscopeAxes;
  const HIGH = 230, LEFT = 56, RIGHT = 10, TOP = 24, BOTTOM = 40, TOLD = 8;

  function draw(chart) {
    const {canvas, panel, data, hidden, zoom} = chart;
    const look = prepare(canvas, HIGH);
    if (!look) return;
    const {pen, width, ink, soft} = look;
    const lines = panel.lines.filter((line) => !hidden.has(line.label));
    const known = (line) => data.xs[line.x];
    const every = lines.flatMap((line) => known(line)).concat(
      panel.rules.filter((rule) => rule.vertical).map((rule) => rule.at));
    let [low, high] = zoom ?? [Infinity, -Infinity];
    if (!zoom) for (const v of every) { if (v !== null) { low = Math.min(low, v); high = Math.max(high, v); } }
    if (!(low < high)) [low, high] = Number.isFinite(low) ? [low - 1, low + 1] : [0, 1];
    const kind = steps.log && low >= 0 ? "steps" : "linear";
    const x = axis(kind, low, high, LEFT, width - RIGHT);
    const shown = lines.flatMap((line) => line.y.filter((_, k) => {
      const at = known(line)[k];
      return at >= low && at <= high;
    })).concat(panel.rules.filter((rule) => !rule.vertical && !hidden.has(rule.label)).map((rule) => rule.at));
    const y = axis(panel.log ? "log" : "linear", ...range(shown, panel.log), HIGH - BOTTOM, TOP);
    pen.fillStyle = ink;
    pen.font = "600 12px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.textBaseline = "alphabetic";
    pen.fillText(panel.title || panel.ylabel, LEFT, 14, width - LEFT);
    frame(look, x, y, {count: width / 80});
    pen.fillStyle = soft;
    pen.textAlign = "center";
    pen.fillText(panel.xlabel, (x.start + x.end) / 2, HIGH - 16);
    for (const rule of panel.rules) {
      if (hidden.has(rule.label)) continue;
      const p = rule.vertical ? x.at(rule.at) : y.at(rule.at);
      pen.strokeStyle = soft;
      pen.lineWidth = 1.3;
      pen.setLineDash(rule.dash);
      pen.beginPath();
      if (rule.vertical) { pen.moveTo(p, y.end); pen.lineTo(p, y.start); }
      else { pen.moveTo(x.start, p); pen.lineTo(x.end, p); }
      pen.stroke();
    }
    for (const line of lines) {
      pen.strokeStyle = line.color || ink;
      pen.setLineDash(line.dash);
      pen.lineWidth = line.thin ? 0.8 : 1.7;
      pen.globalAlpha = line.thin ? 0.65 : 1;
      stroke(pen, x, y, known(line), line.y);
    }
    pen.globalAlpha = 1;
    pen.setLineDash([]);
    chart.axes = {x, y};
    if (chart.cursor !== null) point(chart, look, lines);
    if (chart.dragged) {
      pen.fillStyle = ink;
      pen.globalAlpha = 0.12;
      pen.fillRect(chart.dragged[0], y.end, chart.dragged[1] - chart.dragged[0], y.start - y.end);
      pen.globalAlpha = 1;
    }
  }

  function told(chart, lines) {
    const found = [];
    for (const line of lines) {
      const xs = chart.data.xs[line.x];
      if (!xs.length) continue;
      const k = nearest(xs, chart.cursor);
      if (line.y[k] !== null) found.push({line, x: xs[k], y: line.y[k]});
    }
    if (chart.height !== null && found.length > TOLD) {
      const away = (each) => Math.abs(chart.axes.y.at(each.y) - chart.height);
      found.sort((a, b) => away(a) - away(b));
    }
    return found;
  }

  function point(chart, {pen, edge, ink, card}, lines) {
    const {x, y} = chart.axes, found = told(chart, lines);
    if (!found.length) return;
    const p = x.at(found[0].x);
    pen.strokeStyle = edge;
    pen.beginPath(); pen.moveTo(p, y.end); pen.lineTo(p, y.start); pen.stroke();
    for (const each of found.slice(0, TOLD)) {
      pen.fillStyle = each.line.color || ink;
      pen.strokeStyle = card;
      pen.beginPath(); pen.arc(x.at(each.x), y.at(each.y), 3.5, 0, 7); pen.fill(); pen.stroke();
    }
    const said = found.slice(0, TOLD).map((each) => `${each.line.label || chart.panel.ylabel} ${short(each.y)}`);
    const more = found.length > TOLD ? ` and ${found.length - TOLD} more` : "";
    chart.said.textContent = `${chart.panel.title || chart.panel.ylabel}, ${chart.panel.xlabel} ${short(found[0].x)}: ${said.join(", ")}${more}`;
  }

  function live(chart) {
    const {canvas} = chart;
    let waiting = false, from = null;
    const redraw = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(chart); });
    };
    chart.redraw = redraw;
    canvas.addEventListener("pointermove", (event) => {
      if (!chart.axes) return;
      const {x} = chart.axes;
      const p = Math.max(x.start, Math.min(x.end, event.offsetX));
      chart.cursor = x.value(p);
      chart.height = event.offsetY;
      if (from !== null) chart.dragged = [Math.min(from, p), Math.max(from, p)];
      redraw();
    });
    canvas.addEventListener("pointerdown", (event) => {
      // A finger scrolls past; the mouse chooses a range.
      if (event.pointerType === "mouse" && chart.axes) from = event.offsetX;
    });
    const release = () => {
      const drawn = chart.dragged;
      from = null;
      chart.dragged = null;
      if (drawn && drawn[1] - drawn[0] > 8) chart.zoomTo(drawn.map(chart.axes.x.value));
      redraw();
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointerleave", () => { chart.cursor = null; release(); });
    canvas.addEventListener("dblclick", () => chart.zoomTo(null));
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const line = chart.panel.lines.find((each) => !chart.hidden.has(each.label));
      const move = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (event.key === "Escape") { chart.cursor = null; chart.zoomTo(null); return; }
      if (!move || !line) return;
      event.preventDefault();
      const xs = chart.data.xs[line.x];
      const now = chart.cursor === null ? (move > 0 ? -1 : xs.length) : nearest(xs, chart.cursor);
      chart.cursor = xs[Math.max(0, Math.min(xs.length - 1, now + move))];
      chart.height = null;
      redraw();
    });
    new ResizeObserver(redraw).observe(canvas);
  }

  function entry(label, data, hidden, redraw) {
    const button = document.createElement("button");
    const line = data.panels.flatMap((panel) => panel.lines).find((each) => each.label === label);
    const swatch = document.createElement("span");
    swatch.className = line ? "swatch" : "swatch rule";
    if (line && line.color) swatch.style.setProperty("--color", line.color);
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(swatch, label);
    button.addEventListener("click", () => {
      if (hidden.has(label)) hidden.delete(label); else hidden.add(label);
      button.setAttribute("aria-pressed", String(!hidden.has(label)));
      redraw();
    });
    return button;
  }

  function build(place, data) {
    const hidden = new Set(), charts = [];
    const all = () => charts.forEach((chart) => chart.redraw());
    const tools = document.createElement("div");
    tools.className = "legend small";
    tools.append(...data.legend.map((label) => entry(label, data, hidden, all)));
    const reset = document.createElement("button");
    reset.type = "button";
    reset.textContent = "All steps";
    reset.hidden = true;
    tools.append(reset);
    const said = document.createElement("p");
    said.className = "small map-read";
    said.setAttribute("role", "status");
    const grid = document.createElement("div");
    grid.className = "panels";
    const zoomTo = (range) => {
      charts.forEach((chart) => { chart.zoom = range; });
      reset.hidden = range === null;
      all();
    };
    reset.addEventListener("click", () => zoomTo(null));
    for (const panel of data.panels) {
      const canvas = document.createElement("canvas");
      canvas.tabIndex = 0;
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `${panel.title || panel.ylabel} over ${panel.xlabel}`);
      grid.append(canvas);
      const chart = {canvas, panel, data, hidden, said, zoomTo, zoom: null, cursor: null, height: null, dragged: null, axes: null};
      charts.push(chart);
      live(chart);
    }
    place.append(tools, grid, said);
    document.addEventListener("attnscope-steps", all);
    addEventListener("beforeprint", () => charts.forEach(draw));  // no frame comes before paper
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  }

  for (const script of document.querySelectorAll("script[data-curves]")) {
    build(document.getElementById(script.dataset.curves), JSON.parse(script.textContent));
  }
})();
