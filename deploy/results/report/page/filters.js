// A column of a table: how it is shown, sorted and filtered.
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

  // "> 0.5", "<= 3", "1..2" or "4"; what is not understood filters nothing. A number alone is every value
  // that a cell shows so: cells have three decimals. case_filters.py is the same at a server.
  const NUMBER = String.raw`(-?(?:\d+\.?\d*|\.\d+))`;
  const SPAN = new RegExp(String.raw`^\s*${NUMBER}\s*\.\.\s*${NUMBER}\s*$`);
  const BOUND = new RegExp(String.raw`^\s*(<=|>=|<|>|=)?\s*${NUMBER}\s*$`);

  // Half a unit of a cell's last decimal, and a little more: halves are not exact in binary.
  const HALF_UNIT = 5.000001e-4;

  moot.numberFilter = (wanted, value) => {
    const [span, found] = [SPAN.exec(wanted), BOUND.exec(wanted)];
    if (!span && !found) return true;
    if (value === null || value === undefined) return false;
    if (span) return value >= Number(span[1]) && value <= Number(span[2]);
    const bound = Number(found[2]);
    const isLike = Math.abs(value - bound) <= HALF_UNIT;
    return { "<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound }[found[1]] ?? isLike;
  };

  moot.textFilter = (wanted, value) => String(value ?? "").toLowerCase().includes(String(wanted).toLowerCase());

  const titleWidth = (title) => Math.min(240, 46 + 8.5 * title.length);  // with the arrow that shows how it is sorted
  const MOST_WRAPPED = 130; // pixels of a title on several lines
  const wrappedWidth = (title) => Math.min(MOST_WRAPPED, Math.max(...title.split(/(?<=:) /).map(titleWidth)));

  // What Tabulator needs of a column; the formatter gives a node, so that no value can become markup.
  moot.tableColumn = ({ name, title, note, isNumber, width = 80, grow = 1, wraps = false }, formatter, more = {}) => ({
    title, titleFormatter: (cell) => moot.element("span", {}, cell.getValue()), field: name, formatter,
    sorter: moot.compare, headerSortTristate: true, hozAlign: isNumber ? "right" : "left", headerHozAlign: isNumber ? "right" : "left",
    minWidth: Math.max(width, wraps ? wrappedWidth(title) : titleWidth(title)), widthGrow: grow, headerWordWrap: wraps,
    headerTooltip: () => moot.element("div", {}, note ? `${title}: ${note}` : title),
    headerFilter: "input", headerFilterLiveFilter: true, headerFilterPlaceholder: isNumber ? "> 0.5" : "contains",
    headerFilterFunc: isNumber ? moot.numberFilter : moot.textFilter,
    headerFilterParams: { elementAttributes: { "aria-label": `Filter by ${title}` } }, ...more,
  });

  // Whether a table has columns to the right of what is shown: its edge has a shadow then.
  moot.markScrolling = (table) => {
    const mark = () => {
      const holder = table.element.querySelector(".tabulator-tableholder");
      if (holder) table.element.classList.toggle("scrolls", holder.scrollLeft + holder.clientWidth < holder.scrollWidth - 2);
    };
    for (const event of ["tableBuilt", "renderComplete", "scrollHorizontal", "columnResized"]) table.on(event, mark);
    new ResizeObserver(mark).observe(table.element);
  };

  // Acts when a person has stopped typing.
  moot.afterTyping = (act) => {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(act, 200);
    };
  };
})();
