// What is said of a run under way, and of its end: the first line of its page, and its figures.
"use strict";

(() => {
  const count = (value) => (value === null ? "unknown" : Math.round(value).toLocaleString("en"));
  const rate = (value) => (value === null ? "unknown" : value.toLocaleString("en", { maximumSignificantDigits: 3 }));
  const percent = (value) => (100 * value).toFixed(1);

  moot.count = count;

  moot.duration = (seconds) => {
    if (seconds === null) return "unknown";
    const whole = Math.round(seconds);
    const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    const two = (value) => String(value).padStart(2, "0");
    return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
  };

  // As in the summary: with its interval, unless several cases are about one text.
  moot.accuracy = ({ accuracy, accuracy_interval: ends, scored }) =>
    `${percent(accuracy)} %${ends ? ` [${percent(ends[0])}, ${percent(ends[1])}]` : ""} (n = ${count(scored)})`;

  function accuracyOf(of, name) {
    if (of.accuracy !== null) return ` ${name}: ${moot.accuracy(of)}.`;
    if (!of.finished) return "";
    return of.has_gold ? ` ${name}: no verdict to compare yet.` : " There is no right answer to compare with.";
  }

  function verdicts(of) {
    const done = of.finished + of.failed;
    const share = of.total ? `${count(done)} of ${count(of.total)}` : count(done);
    return `${share} cases have a verdict${of.failed ? `, ${count(of.failed)} failed` : ""}.`;
  }

  const AGAIN = "The same command resumes it.";
  const ENDS = {
    finished: ["Finished", ""],
    waiting: ["Ended with debates that wait for a person", `When they are answered: ${AGAIN}`],
    stopped: ["Stopped", "The same command resumes it; after a budget stop, with a larger budget."],
    interrupted: ["Interrupted", AGAIN],
    failed: ["Ended with an error, which its terminal shows", AGAIN],
    killed: ["Its process has died", AGAIN],
  };

  const waiting = ({ waiting: n }) => (n ? ` ${count(n)} ${n === 1 ? "debate waits" : "debates wait"} for a person.` : "");

  moot.headline = (of) => `${of.phase || "Under way"}: ${verdicts(of)}${accuracyOf(of, "Accuracy so far")}${waiting(of)}`;

  // The first line of a run that has ended; `of` is null where no figures have arrived.
  moot.endLine = (of, { status, stopped_by: by, hint }) => {
    const [what, advice] = ENDS[status] || ["The run is not under way any more", ""];
    const figures = of ? `: ${verdicts(of)}${accuracyOf(of, "Accuracy")}` : ".";
    return [`${what}${by ? ` (${by})` : ""}${figures}`, advice, hint ? `To read it: ${hint}` : ""].filter(Boolean).join(" ");
  };

  // Names and values; those that only a run under way has are left out at the end.
  moot.figureRows = (of, isEnd) => {
    const used = (value, written) => moot.used(value, of.calls_without_usage, written);
    const rows = [
      ["verdicts scored", count(of.scored)],
      ["failed", count(of.failed)],
      ...(isEnd ? [] : [["debates per second", rate(of.debates_per_s)], ["time left", moot.duration(of.left_s)]]),
      ["tokens", used(of.tokens, count)],
      ...(isEnd ? [] : [["tokens per second", rate(of.tokens_per_s)]]),
      ["cost", used(of.cost_usd, moot.dollars)],
      ["replies", count(of.replies)],
      ["debates open", count(of.open)],
    ];
    if (of.skipped) rows.push(["debates skipped", count(of.skipped)]);
    if (of.untested) rows.push(["gates without a test", count(of.untested)]);
    for (const budget of of.budgets || []) {
      rows.push([`budget, ${budget.name}`, `${rate(budget.left)} left of ${rate(budget.cap)}`]);
    }
    for (const limit of of.limits || []) rows.push([`limiter, ${limit.endpoint}`, limit.words]);
    return rows;
  };
})();
