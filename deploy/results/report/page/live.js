// A run under way: its figures, charts and open debates, updated in place as the server sends them, a few times a second.
"use strict";

(() => {
  const MOST_ROWS = 200; // of a chart's table
  const unreadable = (reason, then) => `The record can no longer be followed: ${reason}. ${then}`;
  const count = (value) => (value === null ? "unknown" : Math.round(value).toLocaleString("en"));
  const rate = (value) => (value === null ? "unknown" : value.toLocaleString("en", { maximumSignificantDigits: 3 }));
  const percent = (value) => `${(100 * value).toFixed(1)} %`;

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

  function duration(seconds) {
    if (seconds === null) return "unknown";
    const whole = Math.round(seconds);
    const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    const two = (value) => String(value).padStart(2, "0");
    return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
  }

  function accuracy(of) {
    if (of.accuracy === null) return "no verdict to compare yet";
    const ends = of.accuracy_interval;
    return percent(of.accuracy) + (ends ? ` [${(100 * ends[0]).toFixed(1)}, ${(100 * ends[1]).toFixed(1)}]` : "");
  }

  function facts(of) {
    const used = (value, written) => moot.used(value, of.calls_without_usage, written);
    const rows = [
      ["verdicts scored", count(of.scored)],
      ["failed", count(of.failed)],
      ["debates per second", rate(of.debates_per_s)],
      ["time left", duration(of.left_s)],
      ["tokens", used(of.tokens, count)],
      ["tokens per second", rate(of.tokens_per_s)],
      ["cost", used(of.cost_usd, moot.dollars)],
      ["replies", count(of.replies)],
      ["debates open", count(of.open)],
    ];
    if (of.skipped) rows.push(["debates skipped", count(of.skipped)]);
    for (const budget of of.budgets || []) {
      rows.push([`budget, ${budget.name}`, `${rate(budget.left)} left of ${rate(budget.cap)}`]);
    }
    for (const limit of of.limits || []) rows.push([`limiter, ${limit.endpoint}`, limit.words]);
    return rows;
  }

  function headline(of) {
    const done = of.finished + of.failed;
    const share = of.total ? `${count(done)} of ${count(of.total)} cases have a verdict` : `${count(done)} cases have a verdict`;
    return `${of.phase || "Under way"}: ${share}. Accuracy so far: ${accuracy(of)}.`;
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
        write(known.cells[1], count(each.replies));
        write(known.cells[2], each.waits ? `waits for a person: ${each.step}` : each.step || "asked");
        write(known.cells[3], each.open_s === null ? "unknown" : duration(each.open_s));
        now.set(each.case, known);
      }
      const order = [...now.values()].map(({ tr }) => tr);
      if (order.length !== this.body.rows.length || order.some((tr, i) => this.body.rows[i] !== tr)) {
        this.body.replaceChildren(...order);
      }
      this.rows = now;
      const more = open > debates.length ? `The ${count(debates.length)} that have been open longest, of ${count(open)}.` : "";
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
      const figure = make("figure", "chart", "", make("figcaption", "", data.title), make("div", "plot", "", canvas), make("p", "dim", data.note), table);
      figure.id = `chart-${data.name}`;
      const known = { figure, canvas, table, data, isSeen: false, isNew: true };
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
    const told = make("span", "dim");
    told.setAttribute("role", "status");
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        told.textContent = await moot.post("stop", {});
      } catch (error) {
        told.textContent = error.message;
        button.disabled = false;
      }
    });
    return { button, told };
  }

  moot.showLive = (place, address) => {
    const head = make("p", "strong", "Reading the record ...");
    head.setAttribute("role", "status");
    const bar = make("progress");
    bar.setAttribute("aria-label", "cases with a verdict");
    const { button, told } = stopButton();
    const report = make("a", "", "Report so far");
    report.href = "?report";
    const [figures, charts, debates, forms] = [new Facts(), new Charts(), new Debates(), new moot.Forms("decisions.json")];
    const simulated = make("p", "warning");
    simulated.hidden = true;
    place.querySelector("h1").after(simulated, head, bar, figures.list, make("div", "actions", "", button, report, told), forms.box, charts.box, debates.box);

    const stream = new EventSource(address);
    stream.addEventListener("figures", ({ data }) => {
      const of = JSON.parse(data);
      simulated.hidden = !of.simulated;
      write(simulated, of.simulated || "");
      write(head, headline(of));
      if (of.total) bar.max = of.total;
      bar.value = of.finished + of.failed;
      button.hidden = !of.can_stop;
      figures.update(facts(of));
      debates.update(of.debates, of.open);
      forms.update(of.waiting);
    });
    stream.addEventListener("charts", ({ data }) => charts.update(JSON.parse(data)));
    stream.addEventListener("end", ({ data }) => {
      const { hint, reason } = JSON.parse(data);
      stream.close();
      button.hidden = true;
      report.hidden = Boolean(hint);
      const next = hint ? ` Continue with: ${hint}` : "";
      if (reason) {
        head.className = "warning";
        write(head, unreadable(reason, `These figures no longer change; the run may still be under way.${next}`));
        return;
      }
      write(head, `The run is not under way any more.${next}`);
      write(report, "Open its report");
    });
    stream.onerror = () => {
      const isRefused = stream.readyState === EventSource.CLOSED;
      write(told, isRefused ? "The server does not send this run's figures: reload the page." : "No connection to the server: trying again.");
    };
    stream.onopen = () => write(told, "");
  };

  // One debate, read as it is written: its transcript, again whenever something was added, at most once a second.
  let reading = null;

  function readLive(article, id) {
    if (reading) reading.close();
    const stream = new EventSource(`cases/${encodeURIComponent(id)}/events`);
    reading = stream;
    let due = false;
    let showing = moot.showTranscript(article, id);
    const refresh = () => {
      if (due) return;
      due = true;
      setTimeout(async () => {
        await showing.catch(() => {});
        due = false;
        if (reading === stream) showing = moot.refreshTranscript(article, id);
      }, 1000);
    };
    stream.addEventListener("note", refresh);
    stream.addEventListener("end", async ({ data }) => {
      const { reason } = JSON.parse(data);
      stream.close();
      if (!reason) return refresh();
      await showing.catch(() => {});
      if (reading === stream) article.prepend(make("p", "warning", unreadable(reason, "This transcript no longer grows.")));
    });
  }

  window.addEventListener("hashchange", () => {
    if (reading && !location.hash.startsWith("#case=")) {
      reading.close();
      reading = null;
    }
  });
  moot.openTranscript = readLive;
})();
