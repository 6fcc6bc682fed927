// How a column of cases is sorted and filtered.
"use strict";

(() => {
  const collator = new Intl.Collator("en", { numeric: true });

  moot.compare = (a, b, _one, _other, _column, direction) => {
    if (a === b) return 0;
    // What is unknown comes last, whichever way the table is sorted.
    if (a === null || a === undefined) return direction === "asc" ? 1 : -1;
    if (b === null || b === undefined) return direction === "asc" ? -1 : 1;
    return typeof a === "number" ? a - b : collator.compare(a, b);
  };

  // "> 0.5", "<= 3", "1..2" or "4"; what is not understood filters nothing. case_filters.py is the same at a server.
  const NUMBER = String.raw`(-?(?:\d+\.?\d*|\.\d+))`;
  const SPAN = new RegExp(String.raw`^\s*${NUMBER}\s*\.\.\s*${NUMBER}\s*$`);
  const BOUND = new RegExp(String.raw`^\s*(<=|>=|<|>|=)?\s*${NUMBER}\s*$`);

  moot.numberFilter = (wanted, value) => {
    const [span, found] = [SPAN.exec(wanted), BOUND.exec(wanted)];
    if (!span && !found) return true;
    if (value === null || value === undefined) return false;
    if (span) return value >= Number(span[1]) && value <= Number(span[2]);
    const bound = Number(found[2]);
    return { "<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound }[found[1]] ?? value === bound;
  };

  moot.textFilter = (wanted, value) => String(value ?? "").toLowerCase().includes(String(wanted).toLowerCase());

  // Acts when a person has stopped typing.
  moot.afterTyping = (act) => {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(act, 200);
    };
  };
})();
