// One debate: gold and verdict, then stage by stage what was said, each agent in a column of its own.
"use strict";

(() => {
  const { element } = moot;
  const LONG = 6000;

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  }

  // A debate as data; null for one that is neither in this file nor at a server.
  moot.fetchTranscript = async (id) => {
    const { packed } = moot.data.transcripts || { packed: {} };
    if (Object.hasOwn(packed, id)) return unpacked(packed[id]);
    if (!moot.data.server) return null;
    const answer = await fetch(`cases/${encodeURIComponent(id)}.json`);
    if (answer.status === 404) return null;
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    return answer.json();
  };

  // Made when it is opened. Its key, inside of what it stands in, names it when the transcript is shown again.
  function details(key, summary, fill, className = "") {
    const made = element("details", { className, "data-key": key }, element("summary", {}, summary));
    made.fill = () => {
      if (made.children.length === 1) made.append(...[fill()].flat());
    };
    made.addEventListener("toggle", () => made.open && made.fill());
    return made;
  }

  function said(text) {
    const long = text.length > LONG;
    return element("div", long ? { className: "said long", tabIndex: 0 } : { className: "said" }, text);
  }

  function asSent(sent, texts) {
    if (sent.why) return element("p", { className: "dim" }, sent.why);
    const made = details("sent", "As sent", () => [
      sent.messages.map(([role, place]) =>
        element("figure", {}, element("figcaption", {}, role), element("pre", {}, texts[place]))),
      sent.pictures.length
        ? element("p", {}, `With ${sent.pictures.length} pictures, of which the record keeps only hashes: ${sent.pictures.join(", ")}`)
        : null,
      moot.pairs(sent.settings),
    ].flat().filter(Boolean), "sent");
    const [summary] = made.children;  // its card has the whole width while it is open, and may be in another row
    summary.addEventListener("click", () => requestAnimationFrame(() => summary.scrollIntoView({ block: "nearest" })));
    return made;
  }

  function written(turn) {
    if (turn.tokens) {
      return details("written", "As written, with token probabilities",
        () => [moot.shadedTokens(turn.tokens), moot.tokenStage(turn.tokens.stage)].filter(Boolean), "with-tokens");
    }
    return turn.written === undefined ? null : details("written", "As written", () => element("pre", {}, turn.written));
  }

  function judging(judged, texts) {
    const scores = judged.scores.length ? judged.scores.join("; ") : "no score";
    return element("aside", { className: "judging", "aria-label": "Judges" },
      element("p", { className: "title" }, `Judges: ${scores}`),
      judged.notes.length ? details("found", "What they found", () => moot.blocks(judged.notes)) : null,
      judged.turns.length
        ? details("judges", `Their replies (${judged.turns.length})`, () => judged.turns.map((turn) => card(turn, texts)))
        : null);
  }

  // Whether the reply is shown as it was written, so that its own text can be shaded.
  const isPlain = (turn) => Boolean(turn.tokens) && turn.tokens.token.join("").trim() === turn.body.trim();

  function card(turn, texts) {
    const [who, ...facts] = turn.facts;
    const plain = isPlain(turn);
    return element("article", { className: turn.failed ? "turn failed" : "turn", "data-key": turn.path },
      element("h3", {}, who),
      element("p", { className: "facts" }, facts.join(" · ")),
      turn.marks.map((mark) => element("p", { className: "mark" }, `! ${mark}`)),
      turn.changes.length
        ? element("ul", { className: "changes" }, turn.changes.map(([sign, text]) =>
          element("li", { className: sign === "≠" ? "changed" : "" },
            element("span", { className: "sign", "aria-hidden": "true" }, sign), ` ${text}`)))
        : null,
      plain ? moot.shadedTokens(turn.tokens) : said(turn.body || "(nothing)"),
      moot.blocks(turn.notes),
      turn.judging ? judging(turn.judging, texts) : null,
      plain ? null : written(turn),
      asSent(turn.sent, texts));
  }

  const notes = ({ folded, notes: blocks }) =>
    (folded ? details("notes", folded, () => moot.blocks(blocks)) : moot.blocks(blocks));

  // Agents keep their columns through the stages; who is of none has the whole width.
  function stage(part, columns, texts) {
    const beside = part.turns.filter((turn) => columns.includes(turn.role));
    const alone = part.turns.filter((turn) => !columns.includes(turn.role));
    const grid = element("div", { className: "agents" }, beside.map((turn) => card(turn, texts)));
    beside.forEach((turn, i) => {
      grid.children[i].style.setProperty("--column", String(columns.indexOf(turn.role) + 1));
    });
    grid.style.setProperty("--columns", String(columns.length));
    const others = alone.map((turn) => card(turn, texts));
    const several = others.length > 3 ? [details("replies", `${others.length} replies`, () => others)] : others;
    return element("section", { className: "stage", "data-key": part.title },
      element("h2", {}, part.title),
      beside.length ? grid : null,
      several,
      part.notes.length ? element("div", { className: "notes" }, notes(part)) : null);
  }

  function verdict(debate) {
    const [sign, word] = debate.state === "failed" ? ["!", "failed"]
      : debate.state === "parked" ? ["…", "waits for a person"]
      : debate.state !== "finished" ? ["…", debate.state]
      : debate.correct === null ? ["–", debate.answer === null ? "no answer" : "not scored"]
      : debate.correct ? ["✓", "right"] : ["✗", "wrong"];
    const tell = (value) => (value === null ? "none" : value);
    const form = debate.state === "parked" && moot.data.decisions
      ? [" · ", element("a", { href: "#decisions" }, "Answer its form on the run's page")] : [];
    return element("p", { className: `result ${word.replaceAll(" ", "-")}` },
      element("strong", {}, `${sign} ${word}`), " ",
      `Answer: ${tell(debate.answer)}`, " · ", `Gold: ${debate.gold === null ? "unknown" : debate.gold}`, ...form);
  }

  function way(text, id, label) {
    return id === undefined || id === null
      ? element("span", { className: "dim" }, text)
      : element("a", { href: `#case=${encodeURIComponent(id)}`, "aria-label": `${label}: ${id}` }, text);
  }

  function bar(id) {
    const { before, after } = moot.neighbours ? moot.neighbours(id) : {};
    return element("nav", { className: "ways", "aria-label": "Cases" },
      element("a", { href: "#cases" }, "All cases"), way("‹ Previous", before, "Previous case"), way("Next ›", after, "Next case"));
  }

  function openTokens(article) {
    const button = element("button", { type: "button", "aria-pressed": "false" }, "Token probabilities");
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(open));
      article.querySelectorAll("details.with-tokens").forEach((each) => { each.open = open; });
    });
    return button;
  }

  function asDocument(blocks) {
    const made = details("document", "The debate as a document", () => moot.blocks(blocks), "document");
    made.open = true;
    return made;
  }

  // What is under the title: of one run, or of each of several, side by side.
  function parts(debate, box) {
    const turns = debate.stages.flatMap((part) => part.turns);
    const withTokens = turns.some((turn) => turn.tokens);
    const folded = turns.some((turn) => turn.tokens && !isPlain(turn));
    box.append(...[
      moot.blocks(debate.banner),
      verdict(debate),
      element("div", { className: "facts-of-case" },
        element("section", {}, element("h2", {}, "Verdict"), moot.pairs(debate.verdict)),
        element("section", {}, element("h2", {}, "The case"), moot.pairs(debate.about))),
      debate.document.length ? asDocument(debate.document) : null,
      folded ? openTokens(box) : null,
      withTokens ? moot.tokenLegend() : null,
      debate.stages.map((part) => stage(part, debate.columns, debate.texts)),
      debate.trace.length ? element("section", { "data-key": "trace" }, element("h2", {}, "Round by round"), moot.blocks(debate.trace)) : null,
    ].flat().filter(Boolean));
    return box;
  }

  async function ofOtherRuns(id) {
    const others = (moot.data.transcripts || {}).others || [];
    return Promise.all(others.map(async ({ run, packed }) =>
      [run, Object.hasOwn(packed, id) ? await unpacked(packed[id]) : null]));
  }

  function whole(debate, others, id) {
    const title = [bar(id), element("h1", {}, `Case ${debate.case}`), element("p", { className: "question" }, debate.question)];
    if (!others.length) return [...title, parts(debate, element("div")), bar(id)];
    const runs = [[debate.run, debate], ...others].map(([run, held]) => {
      const box = element("section", { className: "run" }, element("h2", {}, `Run ${run}`));
      return held ? parts(held, box) : (box.append("The run has no transcript of this case here."), box);
    });
    return [...title, element("div", { className: "side-by-side" }, runs), bar(id)];
  }

  function missing(id) {
    const known = moot.hasCase ? moot.hasCase(id) : true;
    const command = (moot.data.transcripts || {}).command;
    const text = !known ? ["The run has no case of this name."]
      : moot.data.server ? ["Nothing is recorded of this case yet, or the run has no such case."]
      : command ? ["This transcript is not in the file; ", element("code", {}, command), " shows all."]
      : ["This transcript is not in the file."];
    return [bar(id), element("h1", {}, `Case ${id}`), element("p", { className: "warning" }, ...text),
      known && moot.caseFacts ? moot.pairs(moot.caseFacts(id)) : null].filter(Boolean);
  }

  let wanted = null;

  moot.showTranscript = async (article, id) => {
    wanted = id;
    moot.hideTokenTip();
    article.replaceChildren(element("p", { className: "dim" }, "Loading ..."));
    let shown;
    try {
      const debate = await moot.fetchTranscript(id);
      shown = debate === null ? missing(id) : whole(debate, await ofOtherRuns(id), id);
    } catch (error) {
      shown = [bar(id), element("p", { className: "warning" }, `The transcript cannot be shown: ${error.message}`)];
    }
    if (wanted === id) article.replaceChildren(...shown);
  };

  function placeOf(node) {
    const outer = node.parentElement.closest("[data-key]");
    return outer ? `${placeOf(outer)}\n${node.dataset.key}` : node.dataset.key;
  }

  const detailsOf = (box) => [...box.querySelectorAll("details[data-key]")];

  // Outermost first: what stands inside of another is there once that has been filled.
  function reopen(box, open) {
    for (const each of detailsOf(box)) {
      each.open = open.get(placeOf(each)) ?? each.open;
      if (!each.open || !each.fill) continue;
      each.fill();
      reopen(each, open);
    }
  }

  // The same debate again, which has grown: what was open stays open, and who reads its end sees what is new.
  moot.refreshTranscript = async (article, id) => {
    const debate = await moot.fetchTranscript(id).catch(() => null);
    if (debate === null || wanted !== id) return;
    const open = new Map(detailsOf(article).map((each) => [placeOf(each), each.open]));
    const atEnd = window.innerHeight + window.scrollY > document.body.scrollHeight - 80;
    moot.hideTokenTip();
    article.replaceChildren(...whole(debate, [], id));
    reopen(article, open);
    if (atEnd) window.scrollTo(0, document.body.scrollHeight);
  };
})();
