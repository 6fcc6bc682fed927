// The table of cases: sorts, filters and searches; a click or Enter opens a case.
"use strict";

(() => {
  const { element, afterTyping } = moot;
  const SIGNS = { right: "✓", wrong: "✗", failed: "!", open: "…", unscored: "–", withdrawn: "×", "not begun": "·" };
  const PAGE = 200;
  const [LEAST_HEIGHT, MOST_HEIGHT] = [130, 560];  // of the table in pixels; it scrolls by itself from the latter on
  const MOST_PRINTED = 1000; // rows
  let table = null;
  let columns = [];
  let rows = [];
  let byId = new Map();
  let current = null;
  let order = null;
  let shown = 0; // how many cases match
  const chosen = { outcome: "all", words: "", filters: {} };  // the filters of columns, where a server applies them

  // Rows of a table that came as columns.
  function readRows(data) {
    const read = data.columns.map(({ name, values, words }) =>
      [name, words ? values.map((code) => (code === null ? null : words[code])) : values]);
    return (read[0] ? read[0][1] : []).map((_, i) => Object.fromEntries(read.map(([name, values]) => [name, values[i]])));
  }

  const isNumber = (column) => !column.words && (column.values || []).some((value) => typeof value === "number");

  const isChosen = (row, outcome) =>
    outcome === "all" || (outcome === "differ" ? row.differ === "differ" : outcome === "debated" ? row.debated === 1 : outcome === "here" ? isHere(row.case) : hasOutcome(row, outcome));
  // Of the first run, or of another one, whose place follows after a slash.
  function hasOutcome(row, name) {
    const [outcome, place] = name.split("/");
    return row[place ? `outcome_${place}` : "outcome"] === outcome;
  }
  const isHere = (id) => moot.data.server || Object.hasOwn((moot.data.transcripts || { packed: {} }).packed, id);
  const hasWords = (row, words) =>
    !words || columns.some(({ name }) => row[name] !== null && String(row[name]).toLowerCase().includes(words));

  function link(cell) {
    const id = String(cell.getValue());
    if (current === null) current = id;
    return element("a", { href: `#case=${encodeURIComponent(id)}`, tabIndex: id === current ? 0 : -1 }, id);
  }

  function text(cell) {
    const value = cell.getValue();
    const name = cell.getField();
    const kind = value === null || value === undefined ? "dim" : name.startsWith("outcome") ? `outcome ${value}` : "";
    return element("span", { className: kind }, written(name, value));
  }

  function written(name, value) {
    if (value === null || value === undefined) return "–";
    if (name.startsWith("outcome")) return `${SIGNS[value] || ""} ${value}`;
    return typeof value === "number" ? moot.number(value) : value;
  }

  // The filter of a column whose rows are at a server, which is asked again when the person has stopped typing.
  function remoteFilter(cell) {
    const { field, headerFilterPlaceholder, title } = cell.getColumn().getDefinition();
    const input = element("input", { type: "search", maxLength: 200, placeholder: headerFilterPlaceholder, "aria-label": `Filter by ${title}` });
    input.addEventListener("input", afterTyping(() => {
      chosen.filters = { ...chosen.filters, [field]: input.value.trim() };
      if (!chosen.filters[field]) delete chosen.filters[field];
      apply();
    }));
    return input;
  }

  const WIDTH = { case: 120, question: 140, outcome: 108, answer: 95, gold: 80, how: 170, disagreement: 70, failure: 120 };
  const MOST_WIDTH = { answer: 105, gold: 105, how: 297 };  // of columns as wide as their longest text, where it is known

  function widthOf(name, words) {
    const least = WIDTH[name], most = MOST_WIDTH[name];
    if (!most) return least;
    if (!words) return name === "how" ? most : least;
    return Math.max(least, Math.min(most, 14 + 7.4 * Math.max(0, ...words.map((word) => word.length))));
  }

  function definition({ name, title, note, number, ...values }) {
    const width = widthOf(name.replace(/_\d+$/, ""), values.words);
    const column = { name, title, note, isNumber: number ?? isNumber(values), width, grow: name === "question" ? 6 : 1, wraps: Boolean(moot.data.cases.runs) };
    const filter = moot.data.cases.server ? { headerFilter: remoteFilter, headerFilterLiveFilter: false } : {};
    return moot.tableColumn(column, name === "case" ? link : text, filter);
  }

  // The first verdict brings columns; those that are there keep their filters.
  function widen(now) {
    const before = new Set(columns.map(({ name }) => name));
    columns = now;
    now.forEach((column, i) => {
      if (!before.has(column.name)) table.addColumn(definition(column), false, now[i - 1].name);
    });
  }

  function settings(data) {
    const common = {
      index: "case", layout: "fitColumns", rowHeight: 30, minHeight: LEAST_HEIGHT, maxHeight: MOST_HEIGHT, columns: columns.map(definition),
      placeholder: "No case is like this.", columnDefaults: { resizable: true },
    };
    if (!data.server) return { ...common, data: rows };
    const answered = async (page, size, sort) => {
      const query = new URLSearchParams({ offset: (page - 1) * size, limit: size });
      if (sort && sort[0]) query.set("sort", sort[0].field);
      if (sort && sort[0] && sort[0].dir === "desc") query.set("desc", "1");
      if (chosen.words) query.set("q", chosen.words);
      if (chosen.outcome !== "all") query.set("outcome", chosen.outcome);
      if (Object.keys(chosen.filters).length) query.set("filters", JSON.stringify(chosen.filters));
      const answer = await fetch(`cases.json?${query}`);
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      const { total, rows: found, ...all } = await answer.json();
      refill(all);  // a run under way has more cases than when the page was opened, and more columns
      widen(all.columns);
      read = all;
      tell(total, all);
      return { last_page: Math.ceil(total / size), data: found };
    };
    const ask = (_url, _config, { page, size, sort }) => {
      const answer = answered(page, size, sort);
      asked = answer.catch(() => {});
      return answer;
    };
    return { ...common, ajaxURL: "cases.json", ajaxRequestFunc: ask, progressiveLoad: "scroll", paginationSize: PAGE, sortMode: "remote" };
  }

  let tell = () => {};
  let read = null; // what the server says of the table that is shown
  let isOld = false; // whether the table was not updated because somebody read in it
  let verdicts = null; // of the run under way, by its latest figures
  let asked = Promise.resolve(); // the last request to the server
  let turns = 0;

  // Until no request is under way, the further ones included that the table sends when it has room for more rows.
  async function settled() {
    let last = null;
    while (last !== asked) {
      last = asked;
      await last;
      await new Promise((done) => setTimeout(done));
    }
  }

  // The table would warn of an answer that it throws away: it is asked again once there is none to come.
  async function askAgain() {
    const turn = (turns += 1);
    await settled();
    if (turn === turns) table.setData();
  }

  // The table of a run under way follows its record, unless somebody reads in it.
  moot.growCases = () => {
    const isRead = !table || !table.initialized || table.element.contains(document.activeElement) || table.rowManager.scrollTop > 0;
    isOld = isRead;
    if (isRead || table.element.offsetParent === null) return;
    order = null;
    settled().then(() => table.replaceData());
  };

  function apply() {
    order = null;
    if (!table) return;
    if (moot.data.cases.server) askAgain();
    else table.setFilter((row) => isChosen(row, chosen.outcome) && hasWords(row, chosen.words));
  }

  // The latest figures of a run under way: the table says of which time it is if it has not as many verdicts.
  moot.compareTable = (now) => {
    verdicts = now;
    if (read) tell(shown, read);
  };

  const OUTCOMES = { right: "Right", wrong: "Wrong", unscored: "Not scored", failed: "Failed", open: "Open", withdrawn: "Withdrawn", "not begun": "Not begun" };

  // Names and labels of the buttons; those about one of several runs name it.
  function choices({ runs }) {
    const label = (run, text) => (run === undefined ? text : `${run}: ${text.toLowerCase()}`);
    const outcomes = (runs || [undefined]).flatMap((run, place) =>
      Object.entries(OUTCOMES).map(([name, text]) => [place ? `${name}/${place}` : name, label(run, text)]));
    return { all: "All", ...Object.fromEntries(outcomes), debated: label((runs || [])[0], "Debated"), differ: "Runs differ", here: "Transcript here" };
  }

  // Cases of the run that are not in the table, as they have not begun.
  const later = ({ all, of_run: ofRun }) => Math.max(0, (ofRun ?? 0) - all);

  function asOf({ counts = {}, read_at: at }) {
    const inTable = ["right", "wrong", "unscored", "failed"].reduce((sum, name) => sum + (counts[name] ?? 0), 0);
    if (verdicts === null || verdicts === inTable) return "";
    return `. The table is as of ${moot.clock(new Date(1000 * at))}; the figures above are newer.`;
  }

  // How many cases there are, by button.
  function totals(data, names) {
    const counts = data.server ? { ...data.counts, all: data.all }
      : Object.fromEntries(names.filter((name) => name !== "here" || rows.some((row) => !isHere(row.case)))
        .map((name) => [name, rows.filter((row) => isChosen(row, name)).length]));
    const more = later({ ...data, all: counts.all });
    return more ? { ...counts, all: counts.all + more, "not begun": (counts["not begun"] ?? 0) + more } : counts;
  }

  let refill = () => {};

  function buttons(data) {
    const group = element("div", { className: "buttons", role: "group", "aria-label": "Which cases" });
    const made = new Map();
    const labels = choices(data);
    const button = (name) => {
      const one = element("button", { type: "button", "aria-pressed": String(name === chosen.outcome) });
      one.addEventListener("click", () => {
        chosen.outcome = name;
        made.forEach((each) => each.setAttribute("aria-pressed", String(each === one)));
        apply();
      });
      return one;
    };
    refill = (now) => {
      const counts = totals({ ...data, ...now }, Object.keys(labels));
      for (const [name, label] of Object.entries(labels)) {
        if (!counts[name] && name !== "all" && !made.has(name)) continue;
        if (!made.has(name)) made.set(name, button(name));
        made.get(name).textContent = moot.visible(`${label} ${moot.number(counts[name] ?? 0)}`);
      }
      const order = Object.keys(labels).filter((name) => made.has(name)).map((name) => made.get(name));
      if (order.length !== group.children.length) group.replaceChildren(...order);
    };
    refill({});
    return group;
  }

  function search() {
    const input = element("input", { type: "search", id: "case-search", autocomplete: "off", maxLength: 500, placeholder: "id, question, answer ..." });
    input.addEventListener("input", afterTyping(() => {
      chosen.words = input.value.trim().toLowerCase();
      apply();
    }));
    return element("label", { className: "search" }, "Search ", input);
  }

  // Rows that came into view by scrolling are there after the next frame.
  const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

  // Tabulator complains on the console about a row that it does not have.
  function rowOf(id) {
    const there = moot.data.cases.server ? table.getData().some((row) => row.case === id) : byId.has(id);
    return there ? table.getRow(id) : null;
  }

  async function focusRow(row) {
    if (!row) return;
    current = row.getIndex();
    if (row.getElement().isConnected) row.getElement().scrollIntoView({ block: "nearest" });
    else await table.scrollToRow(row, "center", true).catch(() => {});
    await drawn();  // a row that is focused before would lose the focus when rows are drawn anew
    const target = row.getElement().querySelector("a");
    if (target && current === row.getIndex()) {
      table.element.querySelectorAll(".tabulator-cell a").forEach((each) => { each.tabIndex = each === target ? 0 : -1; });
      target.focus({ preventScroll: true });
    }
  }

  const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

  function onKey(event) {
    const inTable = event.target.closest(".tabulator-tableholder");
    const fromFilter = event.key === "ArrowDown" && event.target.closest(".tabulator-header-filter");
    if (!table || !(inTable || fromFilter)) return;
    if (event.key === "Enter" && inTable && current !== null) {
      event.preventDefault();  // the focus may still be on its way to the case
      moot.openCase(current);
    }
    const ends = { Home: 0, End: -1 }[event.key];
    let step = fromFilter ? 0 : STEPS[event.key];
    if (step === undefined && ends === undefined) return;
    event.preventDefault();
    const first = () => table.getRows("active")[0];
    if (ends !== undefined) return void focusRow(table.getRows("active").at(ends));
    let row = event.target.tagName === "A" ? rowOf(current) : null;
    if (!row) return void focusRow(first());
    while (step) {
      const next = step > 0 ? row.getNextRow() : row.getPrevRow();
      if (!next) break;
      row = next;
      step -= Math.sign(step);
    }
    focusRow(row);
  }

  function build(place, data) {
    table = new Tabulator(place, settings(data));
    table.on("rowClick", (event, row) => {
      if (event.target.closest("a")) return;
      if (String(window.getSelection())) return;  // somebody marks a text to copy it
      moot.openCase(row.getIndex());
    });
    table.on("dataFiltered", (_filters, found) => {
      order = null;
      if (!data.server) tell(found.length, { ...data, all: rows.length });
    });
    moot.markScrolling(table);
    table.on("dataSorted", () => { order = null; });
    if (!data.server) table.on("tableBuilt", apply); // a server has been asked already
    place.addEventListener("keydown", onKey);
    place.addEventListener("focusout", () => setTimeout(() => isOld && moot.growCases()));
  }

  // On paper the cases that are shown, without what only a screen needs; a long table is cut, and says so.
  function print(place) {
    const found = !table ? rows : table.getRows("active").map((row) => row.getData());
    const head = element("tr", {}, columns.map(({ title }) => element("th", { scope: "col" }, title)));
    const cell = (name, value) =>
      element("td", { className: typeof value === "number" || name.startsWith("outcome") ? "whole" : `of-${name}` }, written(name, value));
    const body = found.slice(0, MOST_PRINTED).map((row) => element("tr", {}, columns.map(({ name }) => cell(name, row[name]))));
    const n = Math.min(MOST_PRINTED, found.length);
    const cut = n < shown ? [element("p", { className: "dim" }, `The first ${moot.number(n)} of them.`)] : [];
    place.replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, body)), ...cut);
  }

  function idsInOrder() {
    if (!order) {
      const ids = table && table.initialized ? table.getRows("active").map((row) => row.getIndex()) : rows.map((row) => row.case);
      order = ids.filter(isHere);
    }
    return order;
  }

  moot.hasCase = (id) => Boolean(moot.data.cases && moot.data.cases.server) || byId.has(id);

  moot.neighbours = (id) => {
    const ids = idsInOrder();
    const at = ids.indexOf(id);
    return at < 0 ? {} : { before: ids[at - 1], after: ids[at + 1] };
  };

  moot.caseFacts = (id) => {
    const row = byId.get(id) || {};
    return columns.filter(({ name }) => row[name] !== null && row[name] !== undefined).map(({ name, title }) => [title, String(row[name])]);
  };

  // Back from a transcript: the table stands where it stood, at the case that was read last.
  moot.returnToCases = (id) => {
    if (!table || !table.initialized) return;
    table.redraw();
    drawn().then(() => focusRow(rowOf(id)));
  };

  moot.showCases = (place, data) => {
    columns = data.columns.filter((column) => !column.hidden);
    rows = data.server ? [] : readRows(data);
    byId = new Map(rows.map((row) => [row.case, row]));
    const status = element("p", { role: "status", className: "dim" });
    tell = (n, all) => {
      shown = n;
      const more = later(all);
      const others = more ? `; ${moot.number(more)} have not begun and are not listed yet` : "";
      status.textContent = `${moot.number(n)} of ${moot.number(all.all + more)} cases shown${others}${asOf(all)}`;
    };
    const box = element("div", { className: "case-table" });
    const help = "Click a case or press Enter to read its transcript. Arrow keys move; a column's title sorts. Columns of numbers take > 0.5, <= 3, 4 or 1..2.";
    const printed = element("div", { className: "printed wide" });
    place.append(buttons(data), search(), status, box, printed, element("p", { className: "dim on-screen" }, help));
    window.addEventListener("beforeprint", () => print(printed));
    window.addEventListener("afterprint", () => printed.replaceChildren());
    place.hidden = false;
    if (!data.server) tell(rows.length, { ...data, all: rows.length });
    // Built when it comes into view: a page with 100,000 cases opens as fast as one with none.
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      build(box, data);
    }, { rootMargin: "600px" });
    seen.observe(box);
  };
})();
