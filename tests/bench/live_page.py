"""The live page bench: a page of a run that writes 2,000 events a second, by its frames and its memory.

    python tests/bench/live_page.py [--json FILE] [--minutes 10] [--rate 2000]

One process writes a record as a run does, with 200 debates open; `moot view` in a second one follows it; a browser
without a screen shows the page. Each frame's length is taken in the page, memory every 10 seconds: of the page's
objects, after they were collected, and of the server. The first minute is for both to fill up; the bars are on what
comes after it. Exits with 1 when one is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
from harness import ReportRows, finish, options, parsed

from moot.actors.record.debate_result import DebateResult
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership
from moot.actors.record.record_writer import RecordWriter
from moot.actors.record.rows import batch_of
from moot.actors.record.sealed_yaml import seal_yaml
from moot.actors.record.tables import read_table
from moot.protocols.case import Case, LabelledCase
from moot.protocols.messages import Event

BAR_FRAME_MS = 200.0
"""The longest frame: what a person does on the page is answered within it."""

BAR_GROWTH_MIB = 20.0
"""By how much the page's objects may grow from the first minute's end to the last."""

OPEN, AGENTS, TICK_S = 200, 3, 0.05
PATHS = [f"{stage}/agent/{i}" for stage in ("opening", "round/1") for i in range(AGENTS)]
PATHS += ["round/1/judge/0", "round/1/judge/1"]
STEPS = len(PATHS) + 2
"""Events of a debate: its replies, the round, and the verdict."""

TOKENS = [-0.1] * 120

BROWSER = "/usr/bin/chromium"

FRAMES = """() => {
  window.frames_ms = [];
  let last = performance.now();
  const next = (now) => { window.frames_ms.push(now - last); last = now; requestAnimationFrame(next); };
  requestAnimationFrame(next);
}"""


def main() -> int:
    """Run the bench; returns the exit code."""
    parser = options(__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=2000, help="events a second")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    if "--write" in sys.argv:
        given = parser.parse_args()
        asyncio.run(write(given.write, given.rate))
        return 0
    given = parsed(parser)
    rows = ReportRows()
    with tempfile.TemporaryDirectory() as home, ExitStack() as processes:
        folder = Path(home) / "runs" / "live"
        folder.mkdir(parents=True)
        writer = processes.enter_context(started(__file__, "--write", str(folder), "--rate", str(given.rate)))
        while not (folder / "run.yaml").exists():
            time.sleep(0.1)
        viewer = processes.enter_context(started("-m", "moot", "view", str(folder.parent), "--port", "0"))
        assert viewer.stdout is not None
        address = next(word for word in viewer.stdout.readline().split() if word.startswith("http"))
        rows.add(watch(f"{address}runs/live/", viewer.pid, folder, 60.0 * given.minutes, given.rate))
        assert writer.poll() is None, "the writer has ended"
    return finish(given, pages=rows)


def watch(address: str, server: int, folder: Path, seconds: float, rate: int) -> dict[str, Any]:
    """Look at the page for so long."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1600})
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(address)
        page.evaluate(FRAMES)
        began, before = time.monotonic(), len_of(folder)
        process = psutil.Process(server)
        memory: list[tuple[float, float]] = []
        warm_s = min(60.0, seconds / 2)
        while (elapsed := time.monotonic() - began) < seconds:
            page.wait_for_timeout(1000 * min(10.0, seconds - elapsed))
            used = page.evaluate("() => { window.gc(); return performance.memory.usedJSHeapSize; }")
            if time.monotonic() - began >= warm_s:
                if not memory:
                    page.evaluate("() => { window.frames_ms.length = 0; }")
                memory.append((used / 2**20, process.memory_info().rss / 2**20))
        frames = sorted(page.evaluate("() => window.frames_ms"))
        shown = page.locator("main .strong").first.inner_text()
        browser.close()
    written = (len_of(folder) - before) / (time.monotonic() - began)
    growth = max(memory[-3:])[0] - memory[0][0]
    return {
        "minutes": round(seconds / 60, 1),
        "events/s": round(written * STEPS),
        "frames": len(frames),
        "frame p99 ms": round(frames[int(0.99 * len(frames))], 1),
        "longest frame ms": round(frames[-1], 1),
        "page MiB": round(memory[-1][0], 1),
        "its growth MiB": round(growth, 1),
        "server MiB": round(memory[-1][1]),
        "server growth MiB": round(memory[-1][1] - memory[0][1]),
        "console": "; ".join(said[:3]),
        "shown": shown,
        "ok": frames[-1] <= BAR_FRAME_MS and growth <= BAR_GROWTH_MIB and not said and written * STEPS > 0.9 * rate,
    }


def len_of(folder: Path) -> int:
    """Verdicts in the record."""
    return int(read_table(folder, "verdicts", []).num_rows)


@contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A process of this interpreter, killed at the end."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True, env=os.environ)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def write(folder: Path, rate: int) -> None:
    """Write a record at so many events a second, until this process is killed."""
    run = RunFolder(folder)
    owner = Ownership.acquire(run)
    session = {"epoch": owner.epoch, "status": "running"}
    settings = {"schema_version": 1, "protocol": "bench", "cases": 10_000_000, "sessions": [session]}
    run.put("run.yaml", seal_yaml(settings))
    writer = RecordWriter(run, owner.epoch)
    await writer.load()
    debates: deque[Debate] = deque()
    commits: set[asyncio.Task[list[bool]]] = set()
    began, done, number = time.monotonic(), 0, 0
    while True:
        due = min(int((time.monotonic() - began) * rate) - done, rate // 4)
        done += max(0, due)
        replies: list[dict[str, Any]] = []
        ended: list[Debate] = []
        for _ in range(due):
            while len(debates) < OPEN:
                debates.append(Debate(number))
                await writer.register([debates[-1].case])
                number += 1
            debate = debates.popleft()
            debate.step += 1
            if debate.step <= len(PATHS):
                replies.append(debate.reply())
            elif debate.step == len(PATHS) + 1:
                writer.add_events([debate.round()])
            (ended if debate.step > len(PATHS) + 1 else debates).append(debate)
        if replies:
            writer.add_replies(batch_of("replies", replies))
        if ended:
            task = asyncio.create_task(writer.commit([debate.result() for debate in ended]))
            commits.add(task)
            task.add_done_callback(commits.discard)
        await asyncio.sleep(TICK_S)


class Debate:
    """One debate, an event at each step."""

    def __init__(self, number: int) -> None:
        self.number, self.id, self.step = number, f"case-{number:07d}", 0
        question = Case(id=self.id, question=f"Is {number} even?", labels=("Yes", "No"))
        self.case = LabelledCase(question, number, "Yes")

    def reply(self) -> dict[str, Any]:
        """A row of the journal's replies."""
        path = PATHS[self.step - 1]
        return {
            "case_id": self.id, "attempt": 0, "path": path, "role": "/".join(path.split("/")[-2:]), "answer": "Yes",
            "model": "simulated", "fingerprint": "f", "outcome": "ok", "text": "It is, for it can be halved. " * 20,
            "data": "{}", "reply_id": f"{self.id}-{path}", "prompt_tokens": 300, "completion_tokens": 120,
            "logprob": TOKENS, "at": time.time(), "latency_s": 0.5,
        }  # fmt: skip

    def round(self) -> tuple[str, int, Event, float]:
        """Its round."""
        figures = {"round": 1, "d": self.number % 97 / 97, "jsd": self.number % 89 / 89, "entropy": {"agent/0": 0.5}}
        return self.id, 0, Event("round", "round/1", figures), time.time()

    def result(self) -> DebateResult:
        """Its verdict."""
        answer, replies = "Yes" if self.number % 5 else "No", {path: f"{self.id}-{path}" for path in PATHS}
        return DebateResult(case_id=self.id, attempt=0, answer=answer, how="vote", rounds=1, replies=replies)


if __name__ == "__main__":
    sys.exit(main())
