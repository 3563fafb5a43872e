"use strict";

// Bokeh documents on a page that stays open: drawn once, fed with new columns, in both themes.
window.attnscopePlots = (function () {
  const documents = new Map();
  // What the report draws on white, and what takes its place on dark paper.
  const LIGHTER = {"#0072b2": "#4aa8e0", "#d55e00": "#f58a3c", "#009e73": "#2cc79b"};
  const THEORY = "#1a1a1a", RULE = "#6b6b6b";

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function decode(value) {
    if (Array.isArray(value)) return value.map(decode);
    if (value && value.f32 !== undefined) {
      const bytes = Uint8Array.from(atob(value.f32), (letter) => letter.charCodeAt(0));
      return new Float32Array(bytes.buffer);
    }
    return value;
  }

  function recolor(view) {
    const ink = style("--plot-ink"), grid = style("--plot-grid"), paper = style("--plot");
    const theory = style("--plot-theory"), rule = style("--plot-rule");
    const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark");
    const worn = (color) => {
      const name = String(color).toLowerCase();
      if (name === THEORY) return theory;
      if (name === RULE) return rule;
      return dark ? LIGHTER[name] || color : color;
    };
    for (const model of view.models) {
      switch (model.type) {
        case "Figure":
          model.setv({background_fill_color: paper, border_fill_color: paper,
            outline_line_color: model.outline_line_color ? grid : null});
          break;
        case "LinearAxis": case "LogAxis":
          model.setv({axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: ink,
            major_tick_line_color: ink});
          break;
        case "Grid": model.grid_line_color = grid; break;
        case "Title": model.text_color = ink; break;
        case "Legend":
          model.setv({label_text_color: ink, background_fill_color: paper});
          break;
        case "Line": case "Scatter": case "VSpan": case "HSpan": case "Patches":
          for (const name of ["line_color", "fill_color"]) {
            const kept = `attnscope_${name}`;
            const spec = model[name];
            if (!spec || spec.value === undefined || spec.value === null) continue;
            if (model[kept] === undefined) model[kept] = spec.value;
            model[name] = {value: worn(model[kept])};
          }
          break;
      }
    }
  }

  async function draw(place, item) {
    place.replaceChildren();
    const views = await Bokeh.embed.embed_item(item, place);
    const [root] = [...(views.roots || views)];
    const doc = root.model.document;
    const view = {doc, models: [...doc.all_models]};
    if (matchMedia("(pointer: coarse)").matches) {
      for (const model of view.models) if (model.type === "PanTool") model.active = false;
    }
    documents.set(place, view);
    recolor(view);
    return doc;
  }

  function update(place, data) {
    const view = documents.get(place);
    if (!view) return;
    for (const [name, columns] of Object.entries(data)) {
      const source = view.doc.get_model_by_name(name);
      if (!source) continue;
      const decoded = {};
      for (const [column, values] of Object.entries(columns)) decoded[column] = decode(values);
      source.data = decoded;
    }
  }

  // Give two places that show the same figure the same axes.
  function share(places) {
    const views = places.map((place) => documents.get(place)).filter(Boolean);
    if (views.length < 2) return;
    for (let index = 0; ; index++) {
      const plots = views.map((view) => view.doc.get_model_by_name(`p${index}`));
      if (plots.some((plot) => !plot)) return;
      for (const axis of ["x", "y"]) {
        const log = plots[0][`${axis}_scale`].type === "LogScale";
        let low = Infinity, high = -Infinity;
        for (const plot of plots) {
          for (const renderer of plot.renderers) {
            const data = renderer.data_source.data;
            const columns = data[`${axis}s`] || (data[axis] ? [data[axis]] : []);
            for (const column of columns) for (const value of column) {
              if (!Number.isFinite(value) || (log && value <= 0)) continue;
              if (value < low) low = value;
              if (value > high) high = value;
            }
          }
        }
        if (low > high) continue;
        const pad = log ? Math.pow(high / low, 0.05) : (high - low) * 0.05;
        for (const plot of plots) {
          const range = plot[`${axis}_range`];
          range.have_updated_interactively = true;
          range.setv(log ? {start: low / pad, end: high * pad} : {start: low - pad, end: high + pad});
        }
      }
    }
  }

  function alone(place) {
    const view = documents.get(place);
    if (!view) return;
    for (const model of view.models) {
      if (model.type !== "DataRange1d") continue;
      model.have_updated_interactively = false;
      model.reset();
    }
  }

  function move(place, time) {
    const view = documents.get(place);
    if (!view) return;
    for (const model of view.models) {
      if (model.type !== "ColumnDataSource" || !/^p\d+-now/.test(model.name || "")) continue;
      model.data = {...model.data, at: [time]};
    }
  }

  document.addEventListener("attnscope-theme", () => {
    for (const [place, view] of documents) {
      if (place.isConnected) recolor(view);
      else documents.delete(place);
    }
  });

  return {draw, update, share, alone, move, decode, sources: (place) => documents.get(place)};
})();
