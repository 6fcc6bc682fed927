// The forms of debates that wait for a person, each with a button for every answer; one that is being written in stays.
"use strict";

(() => {
  const { element } = moot;
  const ASK_MS = 1000; // between two looks for debates that wait

  const rowsOf = (draft) => Math.min(20, Math.max(3, draft.split("\n").reduce((rows, line) => rows + Math.max(1, Math.ceil(line.length / 90)), 1)));

  function lastReplies({ replies, stage }) {
    if (!replies.length) return null;
    const nodes = replies.flatMap(({ who, text }) => [element("h4", {}, who), element("pre", {}, text)]);
    return element("details", { open: true }, element("summary", {}, `What the debate said last: ${stage}`), element("div", { className: "last-replies" }, nodes));
  }

  moot.post = async (address, body) => {
    const answer = await fetch(address, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    const content = await answer.json();
    if (!answer.ok) throw new Error(content.error.message);
    return content.message;
  };

  moot.Forms = class {
    constructor(address) {
      this.address = address;
      this.heading = element("h2", {}, "Debates that wait for you");
      this.list = element("div", { "aria-live": "polite" });
      this.status = element("p", { className: "dim", role: "status" });
      this.box = element("section", { id: "decisions" }, this.list, this.status);
      this.forms = new Map();
      this.answered = ""; // the message of the last answer, shown once its form has left
      this.askedAt = -ASK_MS;
    }

    async update(waiting) {
      const time = performance.now();
      if ((!waiting && !this.list.children.length) || time - this.askedAt < ASK_MS) return;
      this.askedAt = time;
      const waits = await this.pending();
      if (!waits || this.askedAt !== time) return; // it was asked again since
      const keyed = waits.map((form) => [[form.case, form.title, form.body].join("\n"), form]);
      this.forms = new Map(keyed.map(([key, form]) => [key, this.forms.get(key) || this.form(form, key)]));
      this.show(this.forms.size ? [this.heading, ...this.forms.values()] : []);
    }

    // The debates that wait; null where the server does not say: it is asked again.
    async pending() {
      try {
        const answer = await fetch(this.address);
        return answer.ok ? await answer.json() : null;
      } catch {
        return null;
      }
    }

    // What stays is not moved, so that it keeps the focus.
    show(nodes) {
      const gone = [...this.list.children].filter((each) => !nodes.includes(each));
      if (!gone.length && nodes.length === this.list.children.length) return;
      gone.forEach((each) => each.remove());
      nodes.forEach((each, i) => {
        if (this.list.children[i] !== each) this.list.insertBefore(each, this.list.children[i] || null);
      });
      [this.status.textContent, this.answered] = [this.answered, ""];
    }

    // No answer is taken any more.
    close() {
      this.forms.clear();
      this.box.replaceChildren();
    }

    // A form that was answered is built again if it is asked again: a debate may ask the same twice.
    form(form, key) {
      const status = element("p", { className: "dim", role: "status" });
      const texts = new Map(form.actions.filter((each) => each.takes_text).map((each) =>
        [each.action, element("textarea", { "aria-label": `text for ${each.action}`, value: each.draft, rows: rowsOf(each.draft) })]));
      const buttons = form.actions.map((each) => {
        const button = element("button", { type: "button" }, each.takes_text ? `${each.action}, with this text` : each.action);
        button.addEventListener("click", async () => {
          try {
            const body = { case: form.case, action: each.action, text: each.takes_text ? texts.get(each.action).value : "" };
            status.textContent = moot.visible(await moot.post(this.address.replace(/\.json$/, ""), body));
            this.answered = moot.visible(`${form.case}: `) + status.textContent;
            buttons.forEach((one) => { one.disabled = true; });
            this.forms.delete(key);
            this.askedAt = -ASK_MS;
            await this.update(true);
          } catch (error) {
            status.textContent = moot.visible(error.message);
          }
        });
        return button;
      });
      const actions = form.actions.map((each, i) =>
        element("div", { className: "actions" }, texts.get(each.action) || null, buttons[i]));
      return element("div", { className: "form" },
        element("h3", {}, element("a", { href: `#case=${encodeURIComponent(form.case)}` }, form.case), `: ${form.title}`),
        form.question ? element("p", { className: "asked" }, form.question) : null,
        lastReplies(form), element("pre", {}, form.body), actions, status);
    }
  };

  // Of a run that is not under way, where nothing changes by itself.
  moot.showDecisions = (place, address) => {
    const forms = new moot.Forms(address);
    (place.querySelector("p.strong") || place.querySelector("h1")).after(forms.box);
    forms.update(true);
  };
})();
