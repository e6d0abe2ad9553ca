// The list of runs, and what comes from the server. charts.js comes before.
const max_selected = 8;
let token = "", runs = [], sort = {key: "changed_at", down: true}, selected = [], details = new Map(), shown_report = 0, chosen = false;

async function request(path) {
  const answer = await fetch(path, {headers: token ? {Authorization: "Bearer " + token} : {}, credentials: "omit"});
  if (answer.status === 401) get("token-field").classList.remove("hidden");
  if (!answer.ok) throw new Error(answer.status === 401 ? "This server needs its token." : "Status " + answer.status);
  return answer;
}
const ask = async (path) => (await request(path)).json();

// ---- numbers

const percent = (share) => share === null || share === undefined ? "–" : (100 * share).toFixed(2) + " %";
function ago(seconds) {
  if (!seconds) return "–";
  const past = Math.max(0, Date.now() / 1000 - seconds);
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) if (past >= size) return Math.floor(past / size) + " " + unit + " ago";
  return past < 5 ? "now" : Math.floor(past) + " s ago";
}

// ---- the list

const columns = [
  {key: "name", title: "Run", text: (run) => run.name},
  {key: "phase", title: "State", text: (run) => run.phase},
  {key: "data", title: "Data", wide: true, text: (run) => run.data},
  {key: "model", title: "Model", wide: true, text: (run) => run.model},
  {key: "epochs_done", title: "Epochs", number: true, text: (run) => run.epochs ? run.epochs_done + " / " + run.epochs : String(run.epochs_done)},
  {key: "best_accuracy", title: "Best accuracy", number: true, text: (run) => percent(run.best_accuracy)},
  {key: "loss", title: "Loss", number: true, wide: true, text: (run) => figure(run.loss)},
  {key: "samples_per_second", title: "Samples/s", number: true, wide: true, text: (run) => figure(run.samples_per_second)},
  {key: "changed_at", title: "Changed", number: true, text: (run) => ago(run.changed_at)}];

function show_columns() {
  const row = get("columns");
  row.append(make("th", "", ""));
  row.lastChild.append(make("span", "unseen", "Selected"));
  for (const column of columns) {
    const cell = make("th", (column.number ? "number " : "") + (column.wide ? "wide" : ""));
    cell.scope = "col";
    const button = make("button", "", column.title);
    button.type = "button";
    button.addEventListener("click", () => {
      sort = {key: column.key, down: sort.key === column.key ? !sort.down : Boolean(column.number)};
      show_runs();
    });
    cell.append(button);
    cell.dataset.key = column.key;
    row.append(cell);
  }
}
function compare_runs(a, b) {
  const left = a[sort.key], right = b[sort.key];
  if (left === right) return a.id - b.id;
  if (left === null || left === undefined) return 1;
  if (right === null || right === undefined) return -1;
  const order = typeof left === "string" ? left.localeCompare(right, "en", {numeric: true}) : left - right;
  return sort.down ? -order : order;
}
// Rows stay the same elements, so that a click or the focus is not lost when figures change.
const rows = new Map();
function make_row(id) {
  const row = make("tr"), pick = make("td"), box = make("input");
  box.type = "checkbox";
  box.id = "pick-" + id;
  box.addEventListener("change", () => {
    chosen = true;
    selected = box.checked ? [...selected, id] : selected.filter((other) => other !== id);
    show_runs();
    refresh();
  });
  pick.append(box);
  row.append(pick);
  for (const column of columns) {
    const cell = make(column.key === "name" ? "th" : "td", (column.number ? "number " : "") + (column.wide ? "wide " : "") + (column.key === "name" ? "name" : ""));
    if (column.key === "name") {
      cell.scope = "row";
      cell.append(make("span", "swatch"));
    }
    cell.append(make("span"));
    row.append(cell);
  }
  return row;
}
function show_row(run) {
  if (!rows.has(run.id)) rows.set(run.id, make_row(run.id));
  const row = rows.get(run.id), box = row.querySelector("input");
  box.checked = selected.includes(run.id);
  box.disabled = !box.checked && selected.length >= max_selected;
  box.setAttribute("aria-label", "Show " + run.name);
  row.querySelector(".swatch").style.background = box.checked ? color_of({color: selected.indexOf(run.id)}) : "";
  columns.forEach((column, i) => {
    const cell = row.children[i + 1], text = column.text(run);
    if (cell.lastChild.textContent !== text) cell.lastChild.textContent = text;
    if (column.key === "phase") cell.lastChild.className = "phase-" + run.phase;
  });
  return row;
}
function show_runs() {
  for (const cell of get("columns").querySelectorAll("[data-key]"))
    if (cell.dataset.key === sort.key) cell.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  const body = get("runs"), wanted = [...runs].sort(compare_runs).map(show_row);
  if (runs.length === 0) {
    const row = make("tr"), cell = make("td", "quiet", "No runs yet. Start one with: tandem train digits --out runs/first");
    cell.colSpan = columns.length + 1;
    row.append(cell);
    wanted.push(row);
  }
  if (wanted.length !== body.children.length || wanted.some((row, i) => body.children[i] !== row)) {
    const focused = document.activeElement;
    body.replaceChildren(...wanted);
    if (body.contains(focused)) focused.focus();
  }
}

// ---- options, warnings, reports

function show_options() {
  const head = get("option-columns"), body = get("options");
  head.replaceChildren(make("th", "", "Option"));
  for (const run of shown) head.append(make("th", "", run.name));
  for (const cell of head.children) cell.scope = "col";
  body.replaceChildren();
  get("differences-bar").classList.toggle("hidden", shown.length < 2);
  const keys = [...new Set(shown.flatMap((run) => run.config.map(([key]) => key)))];
  for (const key of keys) {
    const values = shown.map((run) => (run.config.find(([name]) => name === key) || [key, "–"])[1]);
    const differs = values.some((value) => value !== values[0]);
    if (shown.length > 1 && get("differences").checked && !differs) continue;
    const row = make("tr", differs ? "differs" : ""), name = make("th", "", key);
    name.scope = "row";
    if (differs) name.append(make("span", "unseen", " (differs)"));
    row.append(name);
    for (const value of values) row.append(make("td", "", value));
    body.append(row);
  }
}
function show_warnings() {
  const box = get("warnings");
  box.replaceChildren();
  for (const run of shown)
    for (const warning of run.warnings) box.append(make("p", "warning", (shown.length > 1 ? run.name + ": " : "") + warning));
  show_section("warnings", box.children.length > 0);
}

// Files of runs by their addresses, which change with the files: promises of what was read.
const files = new Map();
function file_of(address, read) {
  if (!files.has(address)) files.set(address, request(address).then(read).catch(() => null));
  return files.get(address);
}
async function show_files() {
  const runs_now = shown, box = get("batches");
  const read = await Promise.all(runs_now.map(async (run) => ({...run,
    sheet: run.batch_sheet && await file_of(run.batch_sheet, async (answer) => URL.createObjectURL(await answer.blob())),
    timeline: run.timeline_address && await file_of(run.timeline_address, (answer) => answer.json())})));
  if (runs_now !== shown) return;  // others were selected meanwhile
  const key = read.map((run) => [run.id, run.batch_sheet, run.timeline_address]).join();
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.replaceChildren();
  for (const run of read.filter(({sheet}) => sheet)) {
    const image = make("img", "sheet");
    image.alt = "The first training images of " + run.name + ", each with its class below";
    image.src = run.sheet;
    box.append(...(read.length > 1 ? [make("h3", "", run.name)] : []), image);
  }
  if (box.children.length) box.prepend(make("p", "", "The first training images of the first epoch, augmented, with their classes."));
  show_section("batches", box.children.length > 0);
  show_timeline(read);
}
function show_reports() {
  const box = get("reports"), list = shown.filter((run) => run.report);
  show_section("reports", list.length > 0);
  const key = list.map((run) => run.report).join() + "/" + shown_report;
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.replaceChildren();
  if (list.length === 0) return;
  const bar = make("div", "bar");
  for (const run of list) {
    const button = make("button", "", shown_report === run.id ? "Hide " + run.name : "Show " + run.name);
    button.type = "button";
    button.setAttribute("aria-expanded", String(shown_report === run.id));
    button.addEventListener("click", () => { shown_report = shown_report === run.id ? 0 : run.id; show_reports(); });
    bar.append(button);
  }
  box.append(bar);
  const run = list.find(({id}) => id === shown_report);
  if (!run) return;
  const frame = make("iframe");
  frame.title = "Report of " + run.name;
  frame.setAttribute("sandbox", "");
  frame.src = run.report;
  box.append(frame);
}

// ---- what comes from the server

let refreshing = false, again = false;
async function refresh() {
  if (refreshing) { again = true; return; }
  refreshing = true;
  try {
    do {
      again = false;
      await Promise.all(selected.map(async (id) => {
        const summary = runs.find((run) => run.id === id);
        if (summary && details.get(id)?.version !== summary.version) details.set(id, await ask("/v1/run?id=" + id));
      }));
    } while (again);
    get("error").textContent = "";
  } catch (error) {
    get("error").textContent = error.message;
  }
  refreshing = false;
  shown = selected.filter((id) => details.has(id)).map((id) => ({...details.get(id), color: selected.indexOf(id)}));
  for (const id of ["charts", "options"]) show_section(id, shown.length > 0);
  show_charts();
  show_warnings();
  show_options();
  show_files();
  show_reports();
}
function take(list) {
  runs = list.runs;
  get("folder").textContent = list.folder;
  selected = selected.filter((id) => runs.some((run) => run.id === id));
  if (!chosen && selected.length === 0 && runs.length)
    selected = [[...runs].sort((a, b) => b.changed_at - a.changed_at)[0].id];
  show_runs();
  refresh();
}

// Events are read with fetch(), which can send the token; EventSource cannot.
async function follow() {
  for (let wait = 1000;; wait = Math.min(wait * 2, 30000)) {
    try {
      const answer = await request("/v1/events");
      get("state").textContent = "live";
      get("error").textContent = "";
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = "";;) {
        const {done, value} = await reader.read();
        if (done) break;
        wait = 1000;
        text += value;
        const events = text.split("\n\n");
        text = events.pop();
        const last = events.filter((event) => event.startsWith("data: ")).pop();
        if (last) take(JSON.parse(last.slice(6)));
      }
    } catch (error) {
      if (error.message.includes("token")) get("error").textContent = error.message;
    }
    get("state").textContent = "not connected; trying again";
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

get("token-field").addEventListener("submit", (event) => {
  event.preventDefault();
  token = get("token").value.trim();
  ask("/v1/runs").then((list) => { get("token-field").classList.add("hidden"); take(list); }).catch((error) => { get("error").textContent = error.message; });
});
get("differences").addEventListener("input", show_options);
setInterval(show_runs, 10000);
start_charts();
start_timeline();
show_columns();
show_runs();
follow();
