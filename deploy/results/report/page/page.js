// Starts the page: reads its data, draws the charts that come into view, and opens the case that the address names.
"use strict";

(() => {
  moot.data = JSON.parse(document.getElementById("data").textContent);
  const report = document.getElementById("report");
  const transcript = document.getElementById("transcript");
  let place = 0;
  let opened = null;

  moot.openCase = (id) => {
    if (moot.data.cases) location.hash = `case=${encodeURIComponent(id)}`;
  };

  // Charts are drawn when they come into view: a page with twenty opens as fast as one with none.
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      moot.drawChart(target, moot.data.charts[Number(target.dataset.chart)]);
    }
  }, { rootMargin: "400px" });
  document.querySelectorAll("canvas[data-chart]").forEach((canvas) => seen.observe(canvas));

  function drawAll() {
    document.querySelectorAll("canvas[data-chart]").forEach((canvas) => {
      seen.unobserve(canvas);
      if (!Chart.getChart(canvas)) moot.drawChart(canvas, moot.data.charts[Number(canvas.dataset.chart)]);
    });
  }
  window.addEventListener("beforeprint", drawAll);

  function nameOfCase() {
    const found = /^#case=(.*)$/.exec(location.hash);
    if (!found) return null;
    try {
      return decodeURIComponent(found[1]);
    } catch {
      return found[1];
    }
  }

  // The report stays where it was read while a transcript is open.
  function route() {
    const id = nameOfCase();
    const wasOpen = !transcript.hidden;
    if (id !== null && !wasOpen) place = report.hidden ? null : window.scrollY;
    transcript.hidden = id === null;
    report.hidden = id !== null;
    if (id !== null) {
      opened = id;
      (moot.openTranscript || moot.showTranscript)(transcript, id);
      window.scrollTo(0, 0);
      transcript.focus();
    } else if (wasOpen) {
      const part = location.hash === "#cases" ? null : document.getElementById(location.hash.slice(1));
      if (part) {
        part.scrollIntoView();  // a link of the header: the browser looked for it while the report was hidden
        return;
      }
      moot.returnToCases(opened);  // first, as the page is as high as before only with its table
      if (place) window.scrollTo(0, place);
      else document.getElementById("cases").scrollIntoView();
    }
  }
  window.addEventListener("hashchange", route);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !transcript.hidden && !event.defaultPrevented) location.hash = "cases";
  });
  if (moot.data.home) {
    const home = document.createElement("a");
    home.href = moot.data.home;
    home.textContent = "All runs";
    document.querySelector("header nav").prepend(home);
  }
  if (moot.data.runs) moot.showRuns(report, moot.data.runs);
  if (moot.data.live) moot.showLive(report, moot.data.live);
  else if (moot.data.decisions) moot.showDecisions(report, moot.data.decisions);
  if (moot.data.ready) moot.awaitReport(moot.data.ready);
  if (moot.data.cases) {
    moot.showCases(document.getElementById("cases"), moot.data.cases);
    route();
  }
})();
