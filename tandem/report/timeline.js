// The timeline of a run: a lane for the trainer, each worker, the GPU and its copies. charts.js comes before.
const timeline = {runs: [], chosen: 0, begin: 0, end: 1, all: [0, 1]};

function timeline_names(lanes) {
  return [...new Set(lanes.flatMap((lane) => lane.names))];
}
const duration = (ms) => ms >= 1e4 ? figure(ms / 1e3) + " s" : ms >= 1 || ms === 0 ? figure(ms) + " ms" : figure(1e3 * ms) + " µs";

function draw_timeline() {
  const svg = get("timeline"), {lanes} = timeline.runs[timeline.chosen].timeline, names = timeline_names(lanes);
  const width = Math.max(svg.clientWidth, 200), narrow = width < 600, left = narrow ? 4 : 150, row = narrow ? 40 : 26, bar = 18;
  const height = lanes.length * row + 28, {begin, end} = timeline;
  svg.style.height = height + "px";
  svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  svg.replaceChildren();
  const x = (ms) => left + (ms - begin) / (end - begin) * (width - left - 4);
  for (const at of ticks(begin, end, Math.max(2, Math.floor(width / 130)))) {
    svg.append(draw("line", {class: "grid", x1: x(at), x2: x(at), y1: 0, y2: height - 22}));
    svg.append(draw("text", {x: Math.min(x(at), width - 24), y: height - 6, "text-anchor": at === begin ? "start" : "middle"}, duration(at)));
  }
  lanes.forEach((lane, i) => {
    const top = i * row + (narrow ? 18 : 2), short = lane.name.length > 22 && !narrow ? "…" + lane.name.slice(-21) : lane.name;
    svg.append(draw("text", {x: narrow ? left : left - 8, y: narrow ? top - 5 : top + 13, "text-anchor": narrow ? "start" : "end"}, short));
    for (const [name, from, to, count, busy] of lane.spans) {
      if (to < begin || from > end) continue;
      const x0 = Math.max(x(from), left), x1 = Math.min(x(to), width - 4);
      const box = draw("rect", {x: x0, y: top, width: Math.max(x1 - x0, .5), height: bar, rx: x1 - x0 > 6 ? 2 : 0,
        fill: "var(--run-" + names.indexOf(lane.names[name]) % 8 + ")", opacity: lane.names[name].startsWith("wait") ? .3 : .9});
      box.dataset.text = lane.name + ": " + (count > 1 ? count.toLocaleString("en-US") + " × " : "") + lane.names[name] + ", " + duration(busy) +
        (count > 1 ? " in all" : "") + ", from " + duration(from);
      svg.append(box);
    }
  });
  svg.setAttribute("aria-label", "Timeline of " + lanes.length + " lanes from " + duration(begin) + " to " + duration(end) +
    ". The keys + and - zoom, the arrows move, Home shows all. The table below has the same in figures.");
  const is_all = begin <= timeline.all[0] && end >= timeline.all[1];
  for (const id of ["timeline-out", "timeline-earlier", "timeline-later"]) get(id).disabled = is_all;
}

function move_timeline(scale, shift) {
  const [low, high] = timeline.all, size = Math.min(Math.max((timeline.end - timeline.begin) * scale, (high - low) / 1e5), high - low);
  const middle = (timeline.begin + timeline.end) / 2 + shift * (timeline.end - timeline.begin);
  timeline.begin = Math.min(Math.max(middle - size / 2, low), high - size);
  timeline.end = timeline.begin + size;
  draw_timeline();
}

// What each lane did, in figures.
function show_timeline_table(lanes) {
  get("timeline-rows").replaceChildren();
  const [low, high] = timeline.all;
  for (const lane of lanes)
    lane.names.forEach((name, index) => {
      const spans = lane.spans.filter(([of]) => of === index), busy = spans.reduce((sum, span) => sum + span[4], 0);
      const row = make("tr"), head = make("th", "", lane.name);
      head.scope = "row";
      row.append(head, make("td", "", name), make("td", "number", spans.reduce((sum, span) => sum + span[3], 0).toLocaleString("en-US")),
        make("td", "number", duration(busy)), make("td", "number", (100 * busy / (high - low)).toFixed(1) + " %"));
      get("timeline-rows").append(row);
    });
}

function show_timeline(runs) {
  timeline.runs = runs.filter((run) => run.timeline && Array.isArray(run.timeline.lanes) && run.timeline.lanes.some((lane) => lane.spans.length));
  show_section("timeline", timeline.runs.length > 0);
  if (timeline.runs.length === 0) return;
  timeline.chosen = Math.min(timeline.chosen, timeline.runs.length - 1);
  const select = get("timeline-run"), run = timeline.runs[timeline.chosen], {lanes, complete} = run.timeline;
  select.replaceChildren(...timeline.runs.map((one, i) => new Option(one.name, i, false, i === timeline.chosen)));
  select.parentElement.classList.toggle("hidden", timeline.runs.length < 2);
  const names = timeline_names(lanes);
  get("timeline-legend").replaceChildren(...names.map((name, i) => {
    const item = make("span", "", name), box = make("span", "swatch");
    box.style.background = "var(--run-" + i % 8 + ")";
    box.style.opacity = name.startsWith("wait") ? .3 : .9;
    item.prepend(box);
    return item;
  }));
  const times = lanes.flatMap((lane) => lane.spans.flatMap(([, from, to]) => [from, to]));
  timeline.all = times.reduce(([low, high], at) => [Math.min(low, at), Math.max(high, at)], [times[0], times[0] + .001]);
  [timeline.begin, timeline.end] = timeline.all;
  get("timeline-value").textContent = (complete ? "" : "Only the first part of the run was recorded. ") + "Point at a bar to read it.";
  show_timeline_table(lanes);
  draw_timeline();
}

function start_timeline() {
  const svg = get("timeline"), zoom = (id, scale, shift) => get(id).addEventListener("click", () => move_timeline(scale, shift));
  zoom("timeline-in", .5, 0);
  zoom("timeline-out", 2, 0);
  zoom("timeline-earlier", 1, -.5);
  zoom("timeline-later", 1, .5);
  svg.addEventListener("keydown", (event) => {
    const [scale, shift] = {"+": [.5, 0], "=": [.5, 0], "-": [2, 0], ArrowLeft: [1, -.25], ArrowRight: [1, .25], Home: [Infinity, 0]}[event.key] || [];
    if (scale === undefined || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move_timeline(scale, shift);
  });
  svg.addEventListener("pointermove", (event) => { if (event.target.dataset.text) get("timeline-value").textContent = event.target.dataset.text; });
  get("timeline-run").addEventListener("input", () => { timeline.chosen = Number(get("timeline-run").value); show_timeline(timeline.runs); });
  addEventListener("resize", () => { if (timeline.runs.length) draw_timeline(); });
}
