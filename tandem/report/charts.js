"use strict";
// The curves of runs, live and in a report: values under the pointer and the arrow keys, smoothing, logarithmic loss.
const get = (id) => document.getElementById(id);
let shown = [];  // runs: {name, color, validated_on, curves, steps}

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}
function draw(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}
const color_of = (run) => "var(--run-" + run.color + ")";
function show_section(id, visible) {
  get(id).closest("section").classList.toggle("hidden", !visible);
}

function figure(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) return value.toExponential(2);
  return size >= 1000 ? Math.round(value).toLocaleString("en-US") : String(+value.toPrecision(4));
}

// Epochs and steps, in full.
const position = (value) => Number.isInteger(value) ? value.toLocaleString("en-US") : figure(value);

// ---- axes

function smoothed(points, weight) {
  if (weight === 0) return points;
  let mean = 0, total = 0;
  return points.map(([x, y]) => {
    mean = weight * mean + (1 - weight) * y;
    total = weight * total + (1 - weight);
    return [x, mean / total];
  });
}
function ticks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) found.push(+value.toPrecision(12));
  return found;
}
function log_ticks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
    for (const factor of high / low > 1000 ? [1] : [1, 2, 5]) {
      const value = +(factor * 10 ** power).toPrecision(6);
      if (value >= low && value <= high) found.push(value);
    }
  }
  return found.length > 1 ? found : [low, high];
}

// ---- charts

// What a chart shows of a run: curves by name; `dashed` for training, solid for validation, where both are there.
const charts = {
  epochs: [
    {title: "Loss", loss: true, curves: [["train_loss", "training", true], ["val_loss", "validation", false]]},
    {title: "Accuracy", share: true, curves: [["train_accuracy", "training", true], ["val_accuracy", "validation", false]]},
    {title: "Learning rate", optional: true, curves: [["learning_rate", "learning rate", false]]}],
  steps: [
    {title: "Loss", loss: true, curves: [["loss", "training", false]]},
    {title: "Learning rate", curves: [["learning_rate", "learning rate", false]]},
    {title: "Samples/s", curves: [["samples_per_second", "samples/s", false]]},
    {title: "Waiting for images", share: true, curves: [["waited_share", "waiting", false]]},
    {title: "CPU cores in use", optional: true, curves: [["cpu_cores", "CPU cores", false]]},
    {title: "Memory in MB", curves: [["memory_mb", "memory", false]]},
    {title: "GPU in use", optional: true, share: true, curves: [["gpu_share", "GPU", false]]},
    {title: "GPU memory in MB", optional: true, curves: [["device_memory_mb", "this process", true], ["gpu_memory_mb", "all processes", false]]}]};

function series_of(chart) {
  const weight = Number(get("smooth").value), log = chart.loss && get("log").checked, list = [];
  for (const run of shown)
    for (const [key, name, dashed] of chart.curves) {
      const curves = get("axis").value === "steps" ? run.steps : run.curves;
      const raw = (curves[key] || []).filter(([, y]) => y !== null && (!log || y > 0));
      const label = name === "validation" ? run.validated_on || name : name;
      if (raw.length) list.push({run, name: label, dashed, raw, points: smoothed(raw, weight), color: color_of(run)});
    }
  return list;
}
function path_of(points, x, y) {
  return points.map(([px, py], i) => (i ? "L" : "M") + x(px).toFixed(1) + " " + y(py).toFixed(1)).join("");
}
const nearest = (points, x) => points.reduce((best, point) => Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best);

function show_chart(chart, box) {
  const [title, svg, values] = box.children, list = series_of(chart);
  const width = Math.max(svg.clientWidth, 200), height = svg.clientHeight || 240, left = 58, right = 10, top = 8, bottom = 24;
  svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  if (list.length === 0) {
    svg.append(draw("text", {x: left, y: height / 2}, "nothing measured yet"));
    svg.setAttribute("aria-label", chart.title + ": nothing measured yet");
    return;
  }
  const log = chart.loss && get("log").checked, weight = Number(get("smooth").value);
  const xs = list.flatMap(({points}) => [points[0][0], points[points.length - 1][0]]);
  const ys = list.flatMap(({points, raw}) => (weight ? [...points, ...raw] : points).map(([, y]) => y));
  let [x_low, x_high] = [Math.min(...xs), Math.max(...xs)], y_low = Infinity, y_high = -Infinity;
  for (const y of ys) { y_low = Math.min(y_low, y); y_high = Math.max(y_high, y); }
  if (x_low === x_high) { x_low -= .5; x_high += .5; }
  // Smoothing rounds: a constant curve has a range that no axis can show.
  if (y_high - y_low <= 1e-9 * Math.max(Math.abs(y_low), Math.abs(y_high))) { const by = log ? y_low / 10 : Math.abs(y_low) / 10 || .5; y_low -= by; y_high += by; }
  else if (!log) { const by = (y_high - y_low) * .05; y_low -= by; y_high += by; }
  if (!log && ys.every((value) => value >= 0)) y_low = Math.max(y_low, 0);
  if (chart.share) y_high = Math.min(y_high, 1);
  const scale = log ? Math.log10 : (value) => value;
  const x = (value) => left + (value - x_low) / (x_high - x_low) * (width - left - right);
  const y = (value) => height - bottom - (scale(value) - scale(y_low)) / (scale(y_high) - scale(y_low)) * (height - top - bottom);
  const label = chart.share ? (value) => +(100 * value).toPrecision(4) + " %" : figure;
  for (const value of log ? log_ticks(y_low, y_high) : ticks(y_low, y_high, 5)) {
    svg.append(draw("line", {class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value)}));
    svg.append(draw("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, label(value)));
  }
  for (const value of ticks(x_low, x_high, Math.max(2, Math.floor(width / 110))))
    if (get("axis").value === "steps" || Number.isInteger(value)) {
      const text = position(value), at_edge = x(value) + 3.5 * text.length > width;  // half of a digit's width
      svg.append(draw("text", {x: at_edge ? width : x(value), y: height - 6, "text-anchor": at_edge ? "end" : "middle"}, text));
    }
  const names = [...new Set(list.map(({name}) => name))], both = names.length > 1;
  if (both) title.append(make("span", "quiet legend", "dashed: " + chart.curves[0][1] + ", solid: " + names.filter((name) => name !== chart.curves[0][1]).join(", ")));
  for (const {points, raw, dashed, color} of list) {
    if (weight) svg.append(draw("path", {class: "line faint", d: path_of(raw, x, y), stroke: color}));
    svg.append(draw("path", {class: "line" + (dashed && both ? " dashed" : ""), d: path_of(points, x, y), stroke: color}));
    if (points.length === 1) svg.append(draw("circle", {cx: x(points[0][0]), cy: y(points[0][1]), r: 3, fill: color}));
  }
  const cursor = draw("line", {class: "cursor hidden", y1: top, y2: height - bottom});
  svg.append(cursor);
  const several = shown.length > 1, text_of = ({run, name}) => (several ? run.name + " " : "") + (both ? name + " " : "");
  const show_values = (at) => {
    values.replaceChildren(make("span", "", get("axis").value.slice(0, -1) + " " + position(at)));
    for (const series of list) {
      const [where, value] = nearest(series.points, at);
      const span = make("span", "", text_of(series) + label(value) + (where === at ? "" : " (at " + position(where) + ")"));
      span.style.color = series.color;
      values.append(span);
    }
  };
  show_values(x_high);
  svg.setAttribute("aria-label", chart.title + ", " + list.map((series) => text_of(series) + "from " + label(series.points[0][1]) + " to " + label(series.points[series.points.length - 1][1])).join(", ") +
    ". Arrow keys read the values.");
  const all = [...new Set(list.flatMap(({points}) => points.map(([px]) => px)))].sort((a, b) => a - b);
  let place = all.length - 1;
  const move = (index, announce) => {
    place = Math.min(Math.max(index, 0), all.length - 1);
    cursor.classList.remove("hidden");
    cursor.setAttribute("x1", x(all[place]));
    cursor.setAttribute("x2", x(all[place]));
    show_values(all[place]);
    if (announce) get("live").textContent = values.textContent;
  };
  svg.addEventListener("pointermove", (event) => {
    const at = x_low + (event.offsetX * width / svg.clientWidth - left) / (width - left - right) * (x_high - x_low);
    move(all.indexOf(nearest(all.map((value) => [value]), at)[0]), false);
  });
  svg.addEventListener("pointerleave", () => { cursor.classList.add("hidden"); show_values(x_high); });
  svg.addEventListener("keydown", (event) => {
    const by = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -all.length, End: all.length}[event.key];
    if (by === undefined) return;
    event.preventDefault();
    move(place + by, true);
  });
}
function show_charts() {
  const focused = [...get("charts").querySelectorAll("svg")].indexOf(document.activeElement);
  get("charts").replaceChildren();
  const boxes = charts[get("axis").value].filter((chart) => !chart.optional || series_of(chart).length).map((chart) => {
    const box = make("div", "chart");
    box.append(make("h3", "", chart.title), draw("svg", {tabindex: "0", role: "img"}), make("div", "values quiet"));
    get("charts").append(box);
    return [chart, box];
  });
  for (const [chart, box] of boxes) show_chart(chart, box);  // when all are there, and have their width
  if (focused >= 0) get("charts").querySelectorAll("svg")[focused]?.focus();
}

function start_charts() {
  document.documentElement.classList.add("with-script");
  for (const id of ["axis", "smooth", "log"]) get(id).addEventListener("input", () => { get("smooth-value").textContent = get("smooth").value; show_charts(); });
  addEventListener("resize", () => { if (shown.length) show_charts(); });
}

// A report has the figures of its run in the file.
function start_report(run) {
  shown = [{...run, color: 0}];
  start_charts();
  if (get("timeline")) {
    start_timeline();
    show_timeline(shown);
  }
  if (!Object.values(run.steps).some((points) => points.length)) get("axis").parentElement.classList.add("hidden");
  show_charts();
}
