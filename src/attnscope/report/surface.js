"use strict";

// Surfaces in three dimensions: a mouse, a finger, the arrow keys or the buttons turn them.
// Texts are drawn on a canvas or set as text, so that no word of the data becomes markup.
(function () {
  const START = {turn: -0.65, lift: 0.55};
  const STEP = Math.PI / 24;

  function draw(canvas, data, view) {
    const width = canvas.clientWidth, height = canvas.clientHeight;
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const look = getComputedStyle(canvas);
    const ink = look.color, card = look.getPropertyValue("--card").trim() || "#ffffff";
    const edge = look.getPropertyValue("--edge").trim() || "#cccccc";
    const bar = 74;
    const size = Math.min((width - bar) / 1.75, height / 1.6);
    const center = [(width - bar) / 2, height / 2];
    const place = projector(data, view, size, center);
    pen.font = "12px system-ui, sans-serif";
    pen.lineJoin = "round";
    drawBox(pen, data, place, width - bar, ink, edge);
    const cells = [];
    const rows = data.y.length - 1, columns = data.x.length - 1;
    const spots = data.y.map((y, i) => data.x.map((x, j) => place(x, y, data.z[i][j])));
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++) {
        const around = [[i, j], [i, j + 1], [i + 1, j + 1], [i + 1, j]];
        const heights = around.map(([r, c]) => data.z[r][c]);
        if (heights.includes(null)) continue;
        const corners = around.map(([r, c]) => spots[r][c]);
        cells.push([corners.reduce((sum, p) => sum + p[2], 0), corners, mean(heights)]);
      }
    }
    cells.sort((a, b) => b[0] - a[0]);
    pen.strokeStyle = "rgba(0, 0, 0, 0.25)";
    pen.lineWidth = 0.6;
    for (const [, corners, value] of cells) {
      pen.beginPath();
      corners.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.closePath();
      pen.fillStyle = color(data, value);
      pen.fill();
      // The mesh shows the shape where colours are alike, and closes the seams.
      pen.stroke();
    }
    drawPath(pen, data, place, card);
    drawBar(pen, data, width, height, ink);
    canvas.surfaceSpots = spots;
  }

  function projector(data, view, size, center) {
    const [x0, x1] = ends(data.x), [y0, y1] = ends(data.y), [z0, z1] = data.range;
    const [c, s, cl, sl] = [Math.cos(view.turn), Math.sin(view.turn),
      Math.cos(view.lift), Math.sin(view.lift)];
    return (x, y, z) => {
      if (z === null) return [NaN, NaN, NaN];
      const u = (x - x0) / (x1 - x0) - 0.5, v = (y - y0) / (y1 - y0) - 0.5;
      const w = 0.7 * ((z - z0) / (z1 - z0) - 0.5);
      const right = c * u - s * v, away = s * u + c * v;
      return [center[0] + size * right, center[1] - size * (cl * w + sl * away),
        cl * away - sl * w];
    };
  }

  function drawBox(pen, data, place, room, ink, edge) {
    const [x0, x1] = ends(data.x), [y0, y1] = ends(data.y), [z0, z1] = data.range;
    const floor = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
    pen.strokeStyle = edge;
    pen.lineWidth = 1;
    for (const z of [z0, z1]) {
      pen.beginPath();
      floor.forEach(([x, y], k) => {
        const [px, py] = place(x, y, z);
        if (k) pen.lineTo(px, py); else pen.moveTo(px, py);
      });
      pen.closePath();
      pen.stroke();
    }
    for (const [x, y] of floor) {
      pen.beginPath();
      pen.moveTo(...place(x, y, z0).slice(0, 2));
      pen.lineTo(...place(x, y, z1).slice(0, 2));
      pen.stroke();
    }
    pen.fillStyle = ink;
    pen.textBaseline = "middle";
    // Labels stand at the two edges of the floor that are nearest to the eye.
    const nearY = place(0.5 * (x0 + x1), y0, z0)[2] < place(0.5 * (x0 + x1), y1, z0)[2] ? y0 : y1;
    const nearX = place(x0, 0.5 * (y0 + y1), z0)[2] < place(x1, 0.5 * (y0 + y1), z0)[2] ? x0 : x1;
    const middle = place(0.5 * (x0 + x1), 0.5 * (y0 + y1), z0);
    const edges = [
      [0.5 * (x0 + x1), nearY, data.labels[0], [[x0, nearY, x0], [x1, nearY, x1]]],
      [nearX, 0.5 * (y0 + y1), data.labels[1], [[nearX, y0, y0], [nearX, y1, y1]]],
    ];
    for (const [x, y, name, ticks] of edges) {
      // All texts of an edge move out the same way, so that those at a corner stay apart.
      const [ex, ey] = place(x, y, z0);
      const length = Math.hypot(ex - middle[0], ey - middle[1]) || 1;
      const dx = (ex - middle[0]) / length, dy = Math.max(0.4, (ey - middle[1]) / length);
      const say = (text, px, py) => {
        const wide = Math.min(pen.measureText(text).width, room);
        const left = px - wide * (Math.abs(dx) < 0.25 ? 0.5 : dx < 0 ? 1 : 0);
        pen.fillText(text, Math.max(0, Math.min(room - wide, left)), py, room);
      };
      pen.textAlign = "left";
      say(name, ex + 24 * dx, ey + 24 * dy);
      for (const [tx, ty, value] of ticks) {
        const [px, py] = place(tx, ty, z0);
        say(short(value), px + 11 * dx, py + 11 * dy);
      }
    }
  }

  function drawPath(pen, data, place, card) {
    if (!data.path.length) return;
    const points = data.path.map(([x, y, z]) => place(x, y, z));
    for (const [line, width] of [[card, 5], [data.pathColor, 2]]) {
      pen.beginPath();
      points.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.strokeStyle = line;
      pen.lineWidth = width;
      pen.stroke();
    }
    const [x, y] = points.at(-1);
    pen.beginPath();
    pen.arc(x, y, 4.5, 0, 2 * Math.PI);
    pen.fillStyle = data.pathColor;
    pen.strokeStyle = card;
    pen.lineWidth = 1.5;
    pen.fill();
    pen.stroke();
  }

  function drawBar(pen, data, width, height, ink) {
    const left = width - 56, top = 0.14 * height, tall = 0.72 * height;
    const count = data.colors.length;
    data.colors.forEach((fill, k) => {
      pen.fillStyle = fill;
      pen.fillRect(left, top + tall * (1 - (k + 1) / count), 12, tall / count + 1);
    });
    pen.fillStyle = ink;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    const [low, high] = data.range;
    for (let k = 0; k <= 4; k++) {
      pen.fillText(short(low + (high - low) * k / 4), left + 16, top + tall * (1 - k / 4));
    }
    pen.save();
    pen.translate(left - 9, top + tall / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(data.labels[2], 0, 0);
    pen.restore();
  }

  function color(data, value) {
    const [low, high] = data.range;
    const at = Math.floor((value - low) / (high - low) * data.colors.length);
    return data.colors[Math.max(0, Math.min(data.colors.length - 1, at))];
  }

  const ends = (axis) => [axis[0], axis[axis.length - 1]];
  const mean = (values) => values.reduce((sum, v) => sum + v, 0) / values.length;
  const short = (value) => String(Number(value.toPrecision(3)));

  function read(canvas, data, output, x, y) {
    let best = null, least = 14;
    canvas.surfaceSpots.forEach((row, i) => row.forEach(([px, py, depth], j) => {
      const off = Math.hypot(px - x, py - y);
      if (off < 14 && off + 20 * depth < least + (best ? 20 * best.depth : Infinity)) {
        best = {i, j, depth};
        least = off;
      }
    }));
    output.textContent = best === null ? "" :
      `${data.labels[0]} ${short(data.x[best.j])}, ${data.labels[1]} ${short(data.y[best.i])}: ` +
      `${data.labels[2]} ${short(data.z[best.i][best.j])}`;
  }

  function live(place, data) {
    const canvas = place.querySelector("canvas"), output = place.querySelector("output");
    const view = {...START};
    let waiting = false;
    const redraw = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(canvas, data, view); });
    };
    const turn = (right, up) => {
      view.turn += right;
      view.lift = Math.max(0, Math.min(Math.PI / 2, view.lift + up));
      canvas.dataset.view = `${view.turn.toFixed(3)} ${view.lift.toFixed(3)}`;
      redraw();
    };
    const moves = {
      left: () => turn(STEP, 0),
      right: () => turn(-STEP, 0),
      up: () => turn(0, STEP),
      down: () => turn(0, -STEP),
      reset: () => { Object.assign(view, START); turn(0, 0); },
    };
    const keys = {ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down",
      Home: "reset"};
    canvas.addEventListener("keydown", (event) => {
      if (!(event.key in keys) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      moves[keys[event.key]]();
    });
    let last = null;
    canvas.addEventListener("pointerdown", (event) => {
      last = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (last === null) {
        read(canvas, data, output, event.offsetX, event.offsetY);
        return;
      }
      turn((event.clientX - last[0]) / 120, (event.clientY - last[1]) / 120);
      last = [event.clientX, event.clientY];
    });
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, () => { last = null; });
    }
    place.querySelector(".turns").hidden = false;
    for (const button of place.querySelectorAll("button[data-turn]")) {
      button.addEventListener("click", () => moves[button.dataset.turn]());
    }
    new ResizeObserver(redraw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    turn(0, 0);
  }

  for (const script of document.querySelectorAll("script[data-surface]")) {
    live(document.getElementById(script.dataset.surface), JSON.parse(script.textContent));
  }
})();
