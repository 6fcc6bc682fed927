// The list of runs, kept up to date while something in it changes; and the page that waits for a report.
"use strict";

(() => {
  const AGAIN_MS = 3000;
  const HEAD = ["run", "state", "protocol", "task", "model", "cases", "accuracy", "tokens", "cost", "started"];
  const count = (value) => (value === null ? "unknown" : value.toLocaleString("en"));

  function link(run) {
    const anchor = document.createElement("a");
    anchor.href = `runs/${encodeURIComponent(run.name)}/`;
    anchor.textContent = moot.visible(run.name);
    return anchor;
  }

  function cases(figures) {
    const done = figures.finished + figures.failed;
    const failed = figures.failed ? `, ${count(figures.failed)} failed` : "";
    return (done === figures.cases ? count(done) : `${count(done)} of ${count(figures.cases)}`) + failed;
  }

  function cells(run) {
    const of = run.figures;
    const known = (text) => (of ? text(of) : run.is_pending ? "..." : "unknown");
    return [
      link(run),
      run.stopped_by ? `${run.state}: ${run.stopped_by}` : run.state,
      run.preset || run.protocol || "", run.task || "", run.model || "",
      known(cases),
      known((f) => (f.accuracy === null ? "-" : `${(100 * f.accuracy).toFixed(1)} % of ${count(f.scored)}`)),
      known((f) => moot.used(f.tokens_paid, f.calls_without_usage, count)),
      known((f) => moot.used(f.cost_usd, f.calls_without_usage, moot.dollars)),
      run.started_at ? run.started_at.replace("T", " ").replace("Z", " UTC") : "unknown",
    ];
  }

  function row(run) {
    const made = document.createElement("tr");
    made.className = `run-${run.state}`;
    for (const cell of cells(run)) made.insertCell().append(cell instanceof Node ? cell : moot.visible(cell));
    return made;
  }

  moot.showRuns = (place, address) => {
    const box = document.createElement("div");
    box.className = "wide";
    const table = box.appendChild(document.createElement("table"));
    table.createTHead().insertRow().append(...HEAD.map((name) => {
      const head = document.createElement("th");
      head.scope = "col";
      head.textContent = name;
      return head;
    }));
    const body = table.createTBody();
    const note = document.createElement("p");
    note.className = "dim";
    note.setAttribute("role", "status");
    place.append(box, note);

    async function refresh() {
      let wait = AGAIN_MS;
      try {
        const answer = await fetch(address);
        if (!answer.ok) throw new Error((await answer.json()).error.message);
        const runs = await answer.json();
        body.replaceChildren(...runs.map(row));
        note.textContent = runs.length ? "" : "No run is here yet. `moot run` writes one into runs/ by default.";
        if (runs.some((run) => run.is_pending)) wait = 500;
      } catch (error) {
        note.textContent = `The list is old: ${error.message}. Trying again.`;
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
      const answer = await fetch(address);
      if (!answer.ok || (await answer.json()).ready) break;
    }
    if (!touched) return location.reload();
    const link = document.createElement("a");
    link.href = "";
    link.textContent = "The figures are ready: show them";
    document.querySelector("main .strong").replaceChildren(link);
  };
})();
