// Shows a reply's tokens, shaded by probability; the alternatives stand in a note at the token that is pointed at.
"use strict";

(() => {
  const { element } = moot;
  const ONE = 1000;
  const STEPS = [100, 300, 600, 900];
  const tip = element("div", { id: "token-tip", role: "tooltip", hidden: true });

  const shade = (p) => (p === null ? "unknown" : STEPS.filter((step) => p >= step).length);
  const words = (p) => (p === null ? "unknown" : p === 0 ? "< 0.001" : (p / ONE).toFixed(3));
  const spoken = (token) => (token === "" ? "(empty)" : JSON.stringify(token).slice(1, -1).replaceAll('\\"', '"'));

  function show(span, tokens, i) {
    const rows = [[words(tokens.p[i]), `${spoken(tokens.token[i])} (chosen)`]];
    (tokens.other ? tokens.other[i] : []).forEach((other, k) => rows.push([words(tokens.q[i][k]), spoken(other)]));
    const cells = rows.map((row) => element("tr", {}, row.map((text) => element("td", {}, text))));
    const note = tokens.other ? "" : "The record has no alternatives.";
    const caption = element("caption", {}, "probability, token");
    tip.replaceChildren(element("table", {}, caption, element("tbody", {}, cells)), note);
    tip.hidden = false;
    const box = span.getBoundingClientRect();
    const left = Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 8);
    const below = box.bottom + tip.offsetHeight + 8 < window.innerHeight;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${below ? box.bottom + 4 : Math.max(8, box.top - tip.offsetHeight - 4)}px`;
    span.setAttribute("aria-describedby", tip.id);
  }

  function hide(span) {
    tip.hidden = true;
    if (span) span.removeAttribute("aria-describedby");
  }

  // One stop of the Tab key for a reply, not one for each token: the arrow keys move inside.
  function move(box, event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape" && !tip.hidden) {
      hide(event.target);
      event.preventDefault();  // a second Escape leaves the case
    }
    if (step === undefined || !event.target.dataset.i) return;
    event.preventDefault();
    const last = box.children.length - 1;
    const next = box.children[Math.min(last, Math.max(0, Number(event.target.dataset.i) + step))];
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  moot.shadedTokens = (tokens) => {
    const spans = tokens.token.map((token, i) =>
      element("span", { className: `token p${shade(tokens.p[i])}`, tabIndex: i ? -1 : 0, "data-i": i }, token));
    const box = element("div", {
      className: "said tokens", role: "group",
      "aria-label": "The reply's tokens: arrow keys move, the probability and the alternatives are read at each",
    }, spans);
    const at = (event) => event.target.closest(".token");
    for (const name of ["mouseover", "focusin"]) {
      box.addEventListener(name, (event) => at(event) && show(at(event), tokens, Number(at(event).dataset.i)));
    }
    for (const name of ["mouseout", "focusout"]) box.addEventListener(name, (event) => hide(at(event)));
    box.addEventListener("keydown", (event) => move(box, event));
    if (!tip.isConnected) document.body.append(tip);
    return box;
  };

  moot.hideTokenTip = () => hide(null);

  moot.tokenStage = (stage) =>
    (stage === "unknown" ? null : element("p", { className: "dim" }, `Probabilities of the stage "${stage}".`));

  moot.tokenLegend = () =>
    element("p", { className: "dim legend" }, "Probability of the chosen token: ",
      [[0, "under 0.1"], [1, "0.1 to 0.3"], [2, "0.3 to 0.6"], [3, "0.6 to 0.9"], [4, "0.9 or more"], ["unknown", "unknown"]].map(
        ([name, text]) => element("span", { className: `token p${name}` }, text)));
})();
