// Streams of a server's events: whether it answers, and why it refuses.
"use strict";

(() => {
  const LOST_MS = 5000; // without a connection, until the server counts as silent
  const SILENT_MS = 20000; // without an event: the server sends one every five seconds at least
  const RETRY_MS = 1000; // before a stream that was closed is opened again
  const REFUSAL_MS = 5000; // for the answer that says why a stream is refused

  // Why the server refuses a stream, which an EventSource does not say; null where it does not refuse it, or not answer.
  const refusalOf = async (address) => {
    try {
      const answer = await fetch(address, { signal: AbortSignal.timeout(REFUSAL_MS) });
      if (answer.ok) {
        await answer.body.cancel();
        return null;
      }
      return { message: (await answer.json()).error.message, retryMs: 1000 * (answer.headers.get("Retry-After") || Infinity) };
    } catch {
      return null; // no answer, or that of a proxy
    }
  };

  moot.unreadable = (reason, then) => `The record can no longer be followed: ${reason}. ${then}`;

  // The server's events of a run or of one debate. A server that has died ends no stream in order, and one that hangs breaks no connection.
  moot.LiveStream = class {
    constructor(address, handlers) {
      [this.address, this.handlers] = [address, handlers];
      this.open();
      this.heard();
    }

    open() {
      this.isClosed = false;
      this.source = new EventSource(this.address);
      for (const [name, handle] of Object.entries(this.handlers)) {
        this.source.addEventListener(name, ({ data }) => {
          this.heard();
          handle(JSON.parse(data));
        });
      }
      this.source.onopen = () => this.heard();
      this.source.onerror = () => this.failed();
    }

    heard() {
      [this.heardAt, this.lostAt, this.refusal] = [performance.now(), null, ""];
    }

    async failed() {
      this.lostAt = this.lostAt ?? performance.now();
      if (this.source.readyState !== EventSource.CLOSED) return; // it connects again by itself
      const refusal = await refusalOf(this.address);
      if (this.isClosed) return; // in the meantime
      this.refusal = refusal ? refusal.message : "";
      this.reopen(refusal ? refusal.retryMs : RETRY_MS);
    }

    reopen(afterMs = RETRY_MS) {
      this.close();
      if (afterMs < Infinity) this.timer = setTimeout(() => this.open(), afterMs);
    }

    close() {
      this.isClosed = true;
      this.source.close();
      clearTimeout(this.timer);
    }

    get isSilent() {
      const now = performance.now();
      return this.lostAt === null ? now - this.heardAt > SILENT_MS : now - this.lostAt > LOST_MS;
    }
  };
})();
