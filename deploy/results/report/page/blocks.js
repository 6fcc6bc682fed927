// Writes blocks of a report that come as data: what was noted in a debate.
"use strict";

(() => {
  const { element } = moot;
  const MANY = 16;

  function table(block) {
    const head = element("tr", {}, block.header.map((text) => element("th", { scope: "col" }, text)));
    const rows = block.table.map((row) => element("tr", {}, row.map((cell) => element("td", {}, cell))));
    const made = element("table", {}, element("thead", {}, head), element("tbody", {}, rows));
    const label = block.title || "table";
    return element("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": label }, made);
  }

  moot.pairs = (rows) =>
    element("dl", {}, rows.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));

  const folded = (pairs, i) =>
    element("details", { "data-key": `values ${i}` }, element("summary", {}, `${pairs.length} values`), moot.pairs(pairs));

  moot.blocks = (blocks) =>
    blocks.map((block, i) => {
      if (block.note !== undefined) return element("p", { className: block.style === "strong" ? "title" : block.style }, block.note);
      if (block.table) return table(block);
      if (block.pairs) return block.pairs.length > MANY ? folded(block.pairs, i) : moot.pairs(block.pairs);
      if (block.heading !== undefined) return element(`h${block.level + 2}`, {}, block.heading);
      if (block.quote !== undefined) {
        return element("figure", {}, element("figcaption", {}, block.head), element("pre", {}, block.quote));
      }
      if (block.code !== undefined) return element("pre", {}, block.code);
      return element("ul", {}, block.items.map((item) => element("li", {}, item)));
    });
})();
