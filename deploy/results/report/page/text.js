// Builds elements of the page. What models and files wrote becomes text nodes, with what is not visible made so.
"use strict";
window.moot = window.moot || {};

(() => {
  // Control characters and marks that change the reading direction, as on a terminal; line ends and tabs stay.
  const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]|\p{Surrogate}/gu;

  function mark(found) {
    const code = found.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "\u2421" : `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
  }

  moot.visible = (text) => String(text).replaceAll("\r\n", "\n").replace(HIDDEN, mark);

  // An element with properties and children; a child that is no element is text.
  moot.element = (tag, properties = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name.includes("-") || name === "role") made.setAttribute(name, moot.visible(value));
      else made[name] = value;
    }
    for (const child of children.flat()) {
      if (child !== null && child !== undefined) made.append(child instanceof Node ? child : moot.visible(child));
    }
    return made;
  };

  // What was used, where some calls do not say what they used; null is unknown.
  moot.used = (value, callsWithoutUsage, written) =>
    (value === null ? "unknown" : `${callsWithoutUsage ? "at least " : ""}${written(value)}`);

  moot.dollars = (value) => `$${value.toFixed(2)}`;

  moot.clock = (time) => time.toLocaleTimeString("en-GB");

  moot.number = (value) => (value === null || value === undefined ? "unknown" : value.toLocaleString("en"));
})();
