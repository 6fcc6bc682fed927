// A run under way: its figures, charts and open debates, updated in place as the server sends them, a few times a second.
"use strict";

(() => {
  const MOST_ROWS = 200; // of a chart's table
  const GROW_MS = 3000; // between two updates of the table of cases
  const OLD_MS = 20000; // after which figures are said to be old: they come every two seconds at least
  const AGAIN_MS = 3000; // between two requests of whether a run that has ended was resumed
  const REPORT = "Report so far";
  const READING = "Reading the record ...";

  function make(tag, className, text, ...children) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text) made.textContent = moot.visible(text);
    made.append(...children);
    return made;
  }

  // Writes a text only where it has changed, so that what is selected stays selected.
  function write(node, text) {
    const shown = moot.visible(text);
    if (node.textContent !== shown) node.textContent = shown;
  }

  class Facts {
    constructor() {
      this.list = make("dl", "live-facts");
      this.values = new Map();
    }

    update(rows) {
      const names = rows.map(([name]) => name);
      if (names.join("\n") !== [...this.values.keys()].join("\n")) {
        this.values = new Map(names.map((name) => [name, make("dd")]));
        this.list.replaceChildren(...names.map((name) => make("div", "", "", make("dt", "", name), this.values.get(name))));
      }
      for (const [name, text] of rows) write(this.values.get(name), text);
    }
  }

  class Debates {
    constructor() {
      const head = ["case", "replies", "last step", "open for"];
      const table = make("table");
      table.createTHead().insertRow().append(...head.map((name) => Object.assign(make("th", "", name), { scope: "col" })));
      this.body = table.createTBody();
      this.note = make("p", "dim");
      this.box = make("section", "", "", make("h2", "", "Debates under way"), make("div", "wide", "", table), this.note);
      this.rows = new Map();
    }

    row(id) {
      const link = make("a", "", id);
      link.href = `#case=${encodeURIComponent(id)}`;
      const cells = [make("td", "", "", link), make("td"), make("td"), make("td")];
      return { tr: make("tr", "", "", ...cells), cells };
    }

    update(debates, open) {
      const now = new Map();
      for (const each of debates) {
        const known = this.rows.get(each.case) || this.row(each.case);
        write(known.cells[1], moot.count(each.replies));
        write(known.cells[2], each.waits ? `waits for a person: ${each.step}` : each.step || "asked");
        write(known.cells[3], each.open_s === null ? "unknown" : moot.duration(each.open_s));
        now.set(each.case, known);
      }
      const order = [...now.values()].map(({ tr }) => tr);
      if (order.length !== this.body.rows.length || order.some((tr, i) => this.body.rows[i] !== tr)) {
        this.body.replaceChildren(...order);
      }
      this.rows = now;
      const more = open > debates.length ? `The ${moot.count(debates.length)} that have been open longest, of ${moot.count(open)}.` : "";
      write(this.note, open ? more : "No debate is open.");
    }
  }

  class Charts {
    constructor() {
      this.box = make("section", "live-charts");
      this.drawn = new Map();
      this.seen = new IntersectionObserver((entries) => {
        for (const { isIntersecting, target } of entries) {
          const known = this.drawn.get(target.id);
          known.isSeen = isIntersecting;
          this.draw(known);
        }
      }, { rootMargin: "200px" });
    }

    figure(data) {
      const canvas = make("canvas");
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `${data.title}. The numbers stand in the table below.`);
      const table = make("details", "", "", make("summary", "", "Numbers of this figure"));
      const [title, note] = [make("figcaption", "", data.title), make("p", "dim", data.note)];
      const figure = make("figure", "chart", "", title, make("div", "plot", "", canvas), note, table);
      figure.id = `chart-${data.name}`;
      const known = { figure, canvas, title, note, table, data, isSeen: false, isNew: true };
      table.addEventListener("toggle", () => this.fill(known));
      return known;
    }

    draw(known) {
      if (!known.isSeen || !known.isNew || document.hidden) return;
      known.isNew = false;
      moot.updateChart(known.canvas, known.data);
      this.fill(known);
    }

    fill(known) {
      if (!known.table.open) return;
      const { x, y, series } = known.data;
      const table = make("table");
      const head = ["series", x.label, y.label, "low", "high"];
      table.createTHead().insertRow().append(...head.map((name) => Object.assign(make("th", "", name), { scope: "col" })));
      const body = table.createTBody();
      for (const one of series) {
        for (let i = 0; i < one.x.length && body.rows.length < MOST_ROWS; i++) {
          const cells = [one.name, one.x[i], ...["y", "low", "high"].map((name) => (one[name] ? one[name][i] ?? "unknown" : ""))];
          body.insertRow().append(...cells.map((cell) => make("td", "", String(cell))));
        }
      }
      known.table.replaceChildren(known.table.firstChild, make("div", "wide", "", table));
    }

    update(charts) {
      for (const data of charts) {
        const id = `chart-${data.name}`;
        if (!this.drawn.has(id)) {
          const known = this.figure(data);
          this.drawn.set(id, known);
          this.seen.observe(known.figure);
        }
        const known = this.drawn.get(id);
        known.data = data;
        known.title.textContent = data.title;
        known.note.textContent = data.note;
        known.isNew = true;
        this.draw(known);
      }
      charts.forEach(({ name }, i) => {
        const { figure } = this.drawn.get(`chart-${name}`);
        if (this.box.children[i] !== figure) this.box.insertBefore(figure, this.box.children[i] || null);
      });
    }
  }

  function stopButton() {
    const button = make("button", "", "Stop after what is under way");
    button.type = "button";
    const status = make("span", "dim");
    status.setAttribute("role", "status");
    const is = { alive: true, used: false };
    const set = (state) => {
      Object.assign(is, state);
      button.disabled = !is.alive || is.used; // once: a second interrupt would end calls in flight
    };
    button.addEventListener("click", async () => {
      set({ used: true });
      try {
        write(status, await moot.post("stop", {}));
      } catch (error) {
        write(status, error.message);
        set({ used: false });
      }
    });
    return { button, status, setAlive: (alive) => set({ alive }) };
  }

  moot.showLive = (place, address) => {
    const head = make("p", "strong", READING);
    head.setAttribute("role", "status");
    const bar = make("progress");
    bar.setAttribute("aria-label", "cases with a verdict");
    const { button, status, setAlive } = stopButton();
    const report = make("a", "", REPORT);
    report.href = "?report";
    const [figures, charts, debates, forms] = [new Facts(), new Charts(), new Debates(), new moot.Forms("decisions.json")];
    const simulated = make("p", "warning");
    simulated.hidden = true;
    const others = make("p", "dim", moot.data.others ? `This page shows this run only, while it is under way. All runs beside it: ${moot.data.others}` : "");
    place.querySelector("h1").after(simulated, head, bar, figures.list, make("div", "actions", "", button, report, status), others, forms.box, charts.box, debates.box);

    let [grown, grownAt] = ["", 0];
    let [of, at] = [null, null]; // the latest figures, and when they came

    function showState() {
      const isAlive = !stream.refusal && !stream.isSilent;
      if (isAlive !== (head.className === "strong")) {
        setAlive(isAlive);
        if (of) figures.update(moot.figureRows(of, !isAlive));
      }
      head.className = isAlive ? "strong" : "warning";
      const old = at ? `The figures are those of ${at.clock}.` : "No figures have arrived.";
      if (stream.refusal) write(head, `This run cannot be followed: ${stream.refusal}. ${old}`);
      else if (!isAlive) write(head, `The server does not answer. ${old} If the run has ended early, the same command resumes it.`);
      else if (!at) write(head, READING);
      else write(head, performance.now() - at.ms > OLD_MS ? `${READING} ${old}` : moot.headline(of));
    }

    function showFigures(latest) {
      of = latest;
      at = { ms: performance.now(), clock: moot.clock(new Date()) };
      simulated.hidden = !of.simulated;
      write(simulated, of.simulated || "");
      showState();
      if (of.total) bar.max = of.total;
      bar.value = of.finished + of.failed;
      button.hidden = !of.can_stop;
      figures.update(moot.figureRows(of, false));
      debates.update(of.debates, of.open);
      forms.update(of.waiting);
      moot.compareTable(of.finished + of.failed);
      const state = [of.finished, of.failed, of.open].join();
      const isOver = moot.data.others && !of.open; // the server ends with the run, and would break a request off
      if (state !== grown && !isOver && performance.now() - grownAt > GROW_MS) {
        [grown, grownAt] = [state, performance.now()];
        moot.growCases();
      }
    }

    // The same command resumes a run that has ended: the page then follows it again.
    async function awaitResumption() {
      for (;;) {
        await new Promise((done) => setTimeout(done, document.hidden ? 5 * AGAIN_MS : AGAIN_MS));
        const answer = await fetch("live.json").catch(() => null); // null: the server does not answer
        if (answer && answer.ok && (await answer.json()).live) break;
      }
      write(report, REPORT);
      stream.open();
      stream.heard();
      watch = setInterval(showState, 1000);
      moot.readOn();
    }

    function showEnd(end) {
      if (end.status === "live" && !end.reason && !end.hint) {
        stream.reopen(); // the server has stopped, or the run was resumed as it ended
        return;
      }
      stream.close();
      clearInterval(watch);
      button.hidden = true;
      report.hidden = Boolean(end.hint);
      if (end.reason) {
        head.className = "warning";
        const next = end.hint ? ` To read it: ${end.hint}` : "";
        write(head, moot.unreadable(end.reason, `These figures no longer change; the run may still be under way.${next}`));
        return;
      }
      write(head, moot.endLine(of, end));
      write(report, "Open its report");
      if (of) figures.update(moot.figureRows(of, true));
      if (!end.hint) {
        moot.growCases();
        if (of) forms.update(of.waiting);
        awaitResumption();
        return;
      }
      debates.box.hidden = others.hidden = true;
      forms.close();  // the server ends with the run: nothing more can be asked of it
      for (const gone of document.querySelectorAll("#cases, header a[href='#cases']")) gone.hidden = true;
    }

    const stream = new moot.LiveStream(address, {
      figures: showFigures, charts: (data) => charts.update(data), heartbeat: showState, end: showEnd,
    });
    let watch = setInterval(showState, 1000);
  };
})();
