// The list of runs, kept up to date while something in it changes; and the page that waits for a report.
"use strict";

(() => {
  const { element } = moot;
  const AGAIN_MS = 3000;
  const MOST_COMPARED = 6;
  const MOST_ROWS = 300; // of a table as high as it needs; a longer one scrolls by itself
  const known = (value, written) => (value === null || value === undefined ? "unknown" : written(value));

  // Values by which the table sorts and filters; `of` has what they are written from.
  function row(run) {
    const of = run.figures;
    return {
      name: run.name, state: stateWords(run), of: run,
      accuracy: of && of.accuracy !== null ? Number((100 * of.accuracy).toFixed(1)) : null,
      cases: of ? of.finished + of.failed : null, tokens: of ? of.tokens_paid : null, cost: of ? of.cost_usd : null,
      protocol: run.preset || run.protocol || "", task: run.task || "", model: modelWords(run),
      started: run.started_at ? run.started_at.replace("T", " ").slice(0, 16) : null,
    };
  }

  function stateWords(run) {
    const words = run.stopped_by ? `${run.state}: ${run.stopped_by}` : run.state;
    return run.figures && run.figures.failed ? `${words}, ${moot.number(run.figures.failed)} failed` : words;
  }

  // A simulated model may be behind a URL, or that of a role.
  function modelWords({ model, figures }) {
    const name = model || "";
    if (!figures || !figures.simulated || name.startsWith("simulated")) return name;
    return name ? `simulated: ${name}` : "simulated";
  }

  const isNarrow = window.matchMedia("(max-width: 40rem)");

  // A narrow window has the state beside the accuracy, whose interval is in its tooltip.
  const accuracy = (of, whole) => (of.accuracy === null ? "–" : moot.accuracy(whole ? of : { ...of, accuracy_interval: null }));

  const WRITTEN = {
    accuracy: (_value, of) => accuracy(of, true),
    cases: (value, of) => (value === of.cases ? moot.number(value) : `${moot.number(value)} of ${moot.number(of.cases)}`),
    tokens: (value, of) => moot.used(value, of.calls_without_usage, moot.number),
    cost: (value, of) => moot.used(value, of.calls_without_usage, moot.dollars),
  };

  function written(name, data) {
    if (!(name in WRITTEN)) return known(data[name], String);
    const { figures, is_pending: isPending } = data.of;
    return figures ? WRITTEN[name](data[name], figures) : isPending ? "..." : "unknown";
  }

  function cell(of) {
    const [name, data] = [of.getField(), of.getData()];
    const text = written(name, data);
    if (name === "name") return element("a", { href: `runs/${encodeURIComponent(data.name)}/`, title: moot.visible(data.name) }, text);
    const shown = name === "accuracy" && isNarrow.matches && data.of.figures ? accuracy(data.of.figures, false) : text;
    return element("span", { title: moot.visible(text), className: name === "state" ? `run-${data.of.state}` : "" }, shown);
  }

  const PIXELS = 7.3; // of a character of a number

  // Wide enough for the longest accuracy of the list.
  function columns(rows) {
    const longest = Math.max(0, ...rows.map(({ of: { figures } }) => (figures ? accuracy(figures, !isNarrow.matches).length : 0)));
    const width = Math.max(isNarrow.matches ? 0 : 196, 14 + PIXELS * longest);
    return COLUMNS.map((column) => (column.name === "accuracy" ? { ...column, width } : column));
  }

  const COLUMNS = [
    { name: "name", title: "Run", width: 90, grow: 4 },
    { name: "accuracy", title: "Accuracy", isNumber: true, grow: 0, note: "in percent, with Wilson's 95 % interval, of the n verdicts that can be compared with a right answer" },
    { name: "state", title: "State", width: 92, grow: 2 },
    { name: "cases", title: "Cases", isNumber: true, note: "with a verdict or failed" }, { name: "tokens", title: "Tokens", isNumber: true, width: 90 },
    { name: "cost", title: "Cost", isNumber: true }, { name: "protocol", title: "Protocol", grow: 2 }, { name: "task", title: "Task", grow: 2 },
    { name: "model", title: "Model", width: 100, grow: 2 }, { name: "started", title: "Started (UTC)", width: 150 },
  ];

  // The chosen runs, and the link to their common report.
  class Chosen {
    constructor() {
      this.names = new Set();
      this.box = element("p", { role: "status", className: "dim" });
      this.show();
    }

    show() {
      const n = this.names.size;
      const query = new URLSearchParams([...this.names].map((name) => ["run", name]));
      const [first] = this.names;
      const link = element("a", { href: `compare?${query}` }, `Report of the ${n} chosen runs`, ` (compared with ${first})`);
      const advice = n > MOST_COMPARED ? `At most ${MOST_COMPARED} runs are compared.` : "Choose two or more runs to compare them.";
      this.box.replaceChildren(n > 1 && n <= MOST_COMPARED ? link : advice);
    }

    checkbox(cell) {
      const { name } = cell.getData();
      const box = element("input", { type: "checkbox", checked: this.names.has(name), "aria-label": `Compare ${name}` });
      box.addEventListener("change", () => {
        this.names[box.checked ? "add" : "delete"](name);
        this.show();
      });
      return box;
    }
  }

  function build(place, chosen, rows) {
    const choice = { title: "", titleFormatter: () => element("span", { title: "Compare", "aria-label": "Compare", role: "img" }, "⇄"), formatter: (cell) => chosen.checkbox(cell), headerSort: false, width: 36, hozAlign: "center" };
    const made = new Tabulator(place, {
      index: "name", layout: "fitColumns", rowHeight: 30, data: rows, columns: [choice, ...columns(rows).map((column) => moot.tableColumn(column, cell, column.isNumber ? { headerFilterPlaceholder: column.name === "accuracy" ? "> 80" : "> 10" } : {}))],
      placeholder: "No run is like this.", columnDefaults: { resizable: true }, ...(rows.length > MOST_ROWS ? { maxHeight: "85vh" } : {}),
    });
    moot.markScrolling(made);
    return made;
  }

  // Rows that have changed are written again; the table keeps its order, its filters and its place.
  async function update(table, was, rows) {
    if (rows.length !== was.size || rows.some(({ name }) => !was.has(name))) return table.replaceData(rows);
    for (const each of rows) {
      if (JSON.stringify(was.get(each.name)) === JSON.stringify(each)) continue;
      const shown = table.getRow(each.name);
      const focused = shown.getElement().contains(document.activeElement) ? document.activeElement.tagName : null;
      await shown.update(each);
      shown.reformat();
      if (focused) shown.getElement().querySelector(focused).focus();
    }
  }

  moot.showRuns = (place, address) => {
    const chosen = new Chosen();
    const note = element("p", { className: "dim", role: "status" });
    const box = element("div", { className: "run-table" });
    place.append(chosen.box, box, note);
    let [table, was] = [null, new Map()];

    async function show(runs) {
      const rows = runs.map(row);
      if (table) await update(table, was, rows);
      else {
        table = build(box, chosen, rows);
        await new Promise((done) => table.on("tableBuilt", done));
      }
      was = new Map(rows.map((each) => [each.name, each]));
      note.replaceChildren(...(runs.length ? [] : ["No run is here yet. ", element("code", {}, "moot run"), " writes one into runs/ by default."]));
    }

    async function refresh() {
      let wait = AGAIN_MS;
      try {
        const answer = await fetch(address);
        if (!answer.ok) throw new Error((await answer.json()).error.message);
        const runs = await answer.json();
        await show(runs);
        if (runs.some((run) => run.is_pending)) wait = 500;
      } catch (error) {
        note.textContent = moot.visible(`The list is old: ${error.message}. Trying again.`);
      }
      setTimeout(refresh, document.hidden ? 5 * AGAIN_MS : wait);
    }
    refresh();
  };

  // The report takes this page's place when it is ready; whoever does something here already is asked first.
  moot.awaitReport = async (address) => {
    let touched = Boolean(location.hash);
    for (const kind of ["pointerdown", "keydown", "wheel"]) {
      window.addEventListener(kind, () => { touched = true; }, { once: true });
    }
    for (;;) {
      try {
        const answer = await fetch(address);
        if (!answer.ok || (await answer.json()).ready) break;
      } catch {
        await new Promise((done) => setTimeout(done, AGAIN_MS)); // the server does not answer
      }
    }
    if (!touched) return location.reload();
    const link = document.createElement("a");
    link.href = "";
    link.textContent = "The figures are ready: show them";
    document.querySelector("main .strong").replaceChildren(link);
  };
})();
