// One debate of a run under way: its transcript, again whenever something was added, and whether it is followed.
"use strict";

(() => {
  const AGAIN_MS = 1000; // before a transcript that has grown is shown again

  class Reading {
    constructor(article, id) {
      [this.article, this.id, this.isDue] = [article, id, false];
      this.warning = moot.element("p", { className: "warning", role: "status" });
      this.showing = moot.showTranscript(article, id);
      this.stream = new moot.LiveStream(`cases/${encodeURIComponent(id)}/events`, {
        note: () => this.refresh(), heartbeat: () => this.showState(), end: ({ reason }) => this.end(reason),
      });
      this.observe();
    }

    observe() {
      this.watch = setInterval(() => this.showState(), 1000);
    }

    // After the debate, or its run, has ended: the run was resumed.
    resume() {
      this.close();
      this.stream.open();
      this.stream.heard();
      this.observe();
    }

    refresh() {
      if (this.isDue) return;
      this.isDue = true;
      setTimeout(async () => {
        await this.showing;
        this.isDue = false;
        if (reading !== this) return;
        this.showing = moot.refreshTranscript(this.article, this.id);
        this.place();
      }, AGAIN_MS);
    }

    showState() {
      const { refusal, isSilent } = this.stream;
      this.warn(refusal ? `This debate cannot be followed: ${refusal}. Its transcript is that of before.`
        : isSilent ? "The server does not answer. The transcript is that of before." : "");
    }

    warn(text) {
      const shown = moot.visible(text);
      if (this.warning.textContent !== shown) this.warning.textContent = shown;
      this.place();
    }

    // A transcript that is shown again takes the place of the article's whole content.
    async place() {
      await this.showing;
      if (reading !== this) return;
      if (!this.warning.textContent) this.warning.remove();
      else if (this.article.firstChild !== this.warning) this.article.prepend(this.warning);
    }

    end(reason) {
      this.close();
      this.warn(reason ? moot.unreadable(reason, "This transcript no longer grows.") : "");
      if (!reason) this.refresh();
    }

    close() {
      this.stream.close();
      clearInterval(this.watch);
    }
  }

  let reading = null;

  function stopReading() {
    if (reading) reading.close();
    reading = null;
  }

  window.addEventListener("hashchange", () => {
    if (!location.hash.startsWith("#case=")) stopReading();
  });
  moot.readOn = () => reading && reading.resume();
  moot.openTranscript = (article, id) => {
    stopReading();
    reading = new Reading(article, id);
  };
})();
