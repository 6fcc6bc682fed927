"""The ingestion bench: tokens a second that one writer takes in while somebody follows the run.

    python tests/bench/ingest.py [--json FILE] [--seconds 20]

One writer actor, held to one core, is sent what a run's processes send it: replies of 200 tokens with 5 alternatives
each, an assessment of each reply by three judges, and a verdict for every two replies. Meanwhile a subscriber asks it
for counts, events and signals every 0.2 s. The clock stops when the last verdict is durable. Afterwards the signals are
compared with the record's row counts. Exits with 1 when the bar is missed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import ray
from bench_runs import bench_spec, ray_session
from harness import ReportRows, finish, options, parsed

from moot.actors.agent.roles import RoleBinding
from moot.actors.debate.run_spec import RunSpec
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.progress import Counts, StreamedEvent
from moot.actors.record.rows import batch_of
from moot.actors.record.signals import Signals, decode_signals
from moot.actors.record.tables import read_table
from moot.actors.remote.metrics_actor import MetricsActor
from moot.actors.remote.record_client import pack
from moot.actors.remote.run_actor import ActorDirectory
from moot.protocols.case import Case, LabelledCase
from moot.protocols.messages import Event

BAR_TOKENS_PER_S = 200_000
ALTERNATIVES, MEAN_TOKENS, ROWS = 5, 200, 128
VARIANTS, AT_ONCE, POLL_S = 16, 4, 0.2
ROLES = ("constructor", "auditor")
DIMENSIONS = ("instruction following", "justification quality", "evidence grounding")


class BenchWriter(MetricsActor):
    """The writer actor, on one core, with its CPU time."""

    async def pin(self) -> None:
        """Stay on one core from now on."""
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        for thread in Path("/proc/self/task").iterdir():
            os.sched_setaffinity(int(thread.name), os.sched_getaffinity(0))

    async def used(self) -> float:
        """CPU seconds so far."""
        return time.process_time()


def token_columns(draw: np.random.Generator) -> dict[str, Any]:
    """One reply's token columns."""
    count = int(draw.integers(MEAN_TOKENS // 2, MEAN_TOKENS * 3 // 2 + 1))
    words = np.array([f" word{i}" for i in range(5000)])
    alternatives = -np.sort(draw.exponential(1.5, (count, ALTERNATIVES)).astype(np.float32), axis=1)
    return {
        "token": pa.array(draw.choice(words, count)),
        "logprob": pa.array(alternatives[:, 0]),
        "alternatives": ALTERNATIVES,
        "alt_token": pa.array(draw.choice(words, count * ALTERNATIVES)),
        "alt_logprob": pa.array(alternatives.ravel()),
    }


def variant(draw: np.random.Generator) -> pa.RecordBatch:
    """`ROWS` replies without the columns that name them."""
    prompt = json.dumps([["system", "Argue. " * 40], ["user", "The case. " * 60]])
    rows = [
        {
            "attempt": 0,
            "role": f"{ROLES[row % 2]}/0",
            "model": "bench",
            "template": "bench/say",
            "fingerprint": "0" * 32,
            "temperature": 0.3,
            "top_p": 0.9,
            "messages": prompt,
            "text": "word " * MEAN_TOKENS,
            "outcome": "ok",
            "prompt_tokens": 300,
            "completion_tokens": MEAN_TOKENS,
            **token_columns(draw),
        }
        for row in range(ROWS)
    ]
    return batch_of("replies", rows)


def assessment(role: str, draw: np.random.Generator) -> Event:
    """What three judges say of a reply."""
    judges: list[dict[str, Any]] = []
    for judge in range(3):
        scores = {name: int(draw.integers(1, 4)) for name in DIMENSIONS}
        told = {"judge": f"judge/{judge}", "model": "bench", "pass": 0, "scores": scores, "flag": False}
        judges.append(told | {"total": sum(scores.values()), "missing": ""})
    data = {
        "reply": f"say/{role}",
        "role": role,
        "domain": "mathematics",
        "rubric": "reasoning",
        "judges": judges,
        "scores": {name: sum(one["scores"][name] for one in judges) / 3 for name in DIMENSIONS},
        "flag": 0.0,
        "quality": sum(one["total"] for one in judges) / 3,
        "missing": 0,
    }
    return Event("assessment", f"assessment/say/{role}", data)


class ReplyBatch:
    """What `ROWS` replies bring with them, as it crosses to the writer."""

    def __init__(self, number: int, replies: pa.RecordBatch, draw: np.random.Generator) -> None:
        self.number = number + 1
        self.case_ids = [f"case-{number}-{i}" for i in range(ROWS // 2)]
        named = {
            "case_id": [case_id for case_id in self.case_ids for _ in ROLES],
            "path": [f"say/{ROLES[row % 2]}" for row in range(ROWS)],
            "reply_id": [f"r-{number}-{row}" for row in range(ROWS)],
        }
        arrays = [pa.array(named[name]) if name in named else replies[name] for name in replies.schema.names]
        self.tokens = len(replies["logprob"].values)
        self.packed = pack(pa.RecordBatch.from_arrays(arrays, schema=replies.schema))
        at = time.time()
        events = [
            (case_id, 0, event, at)
            for case_id in self.case_ids
            for role in ROLES
            for event in (Event("asked", f"say/{role}"), assessment(role, draw))
        ]
        self.rest = msgspec.msgpack.encode((events, []))
        cases = [
            LabelledCase(Case(id=case_id, question="?", labels=("Yes", "No")), 0, "Yes") for case_id in self.case_ids
        ]
        self.cases = msgspec.msgpack.encode(cases)
        closings = [self._closing(case_id, number * ROWS + 2 * i, draw) for i, case_id in enumerate(self.case_ids)]
        self.closings = msgspec.msgpack.encode(closings)

    @staticmethod
    def _closing(case_id: str, first: int, draw: np.random.Generator) -> DebateResult:
        ids = {f"say/{role}": f"r-{first // ROWS}-{first % ROWS + i}" for i, role in enumerate(ROLES)}
        return DebateResult(
            case_id=case_id, attempt=0, replies=ids, answer="Yes" if draw.random() < 0.7 else "No", how="said"
        )

    async def send(self, writer: Any) -> None:
        """Hand it over, and wait until its verdicts are durable."""
        await writer.register.remote(self.cases, self.number)
        await writer.take_rows.remote(self.packed, self.rest)
        assert all(await writer.commit.remote(self.closings))


class Subscriber:
    """Follows the writer as a stream does."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self.counts, self.signals = Counts(), Signals()
        self.version = ("", -1)
        self.life, self.events = "", 0
        self.polls = 0

    async def follow(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(POLL_S)
            await self.poll()
            self.polls += 1

    async def poll(self) -> None:
        """Ask for everything that is new."""
        self.counts = msgspec.msgpack.decode(await self._writer.counts.remote(), type=Counts)
        more = True
        while more:
            raw = await self._writer.events_since.remote(self.life, self.events)
            self.life, self.events, found = msgspec.msgpack.decode(raw, type=tuple[str, int, list[StreamedEvent]])
            more = bool(found)
        incarnation, version, raw = await self._writer.signals.remote(*self.version)
        if raw:
            self.version, self.signals = (incarnation, version), decode_signals(raw)


async def ingest(folder: Path, spec: RunSpec, seconds: float) -> dict[str, Any]:
    """Send for so many seconds."""
    draw = np.random.default_rng(0)
    variants = [variant(draw) for _ in range(VARIANTS)]
    directory = ActorDirectory(namespace="bench", writers=["writer"], moderators=[], agents=[])
    writer = (
        ray.remote(BenchWriter).options(num_cpus=0, max_concurrency=1000).remote(spec.model_dump_json(), directory, 0)
    )
    subscriber, numbers, sent = Subscriber(writer), iter(range(10**9)), [0, 0]
    for _ in range(AT_ONCE):
        await ReplyBatch(next(numbers), variants[0], draw).send(writer)
    await writer.pin.remote()
    cpu_before = await writer.used.remote()
    following = asyncio.create_task(subscriber.follow())
    began = time.perf_counter()

    async def keep_sending() -> None:
        while time.perf_counter() < began + seconds:
            number = next(numbers)
            parcel = ReplyBatch(number, variants[number % VARIANTS], draw)
            await parcel.send(writer)
            sent[0] += parcel.tokens
            sent[1] += len(parcel.case_ids)

    await asyncio.gather(*(keep_sending() for _ in range(AT_ONCE)))
    wall_s = time.perf_counter() - began
    following.cancel()
    cpu = await writer.used.remote()
    await subscriber.poll()
    closing = time.perf_counter()
    await writer.close.remote(True)
    verdicts = read_table(folder, "verdicts", []).num_rows
    judged = subscriber.signals.replies
    assert judged == 2 * verdicts == 2 * subscriber.counts.finished, (judged, verdicts, subscriber.counts)
    return {
        "tokens_per_s": sent[0] / wall_s,
        "bar": BAR_TOKENS_PER_S,
        "ok": sent[0] / wall_s >= BAR_TOKENS_PER_S,
        "verdicts_per_s": sent[1] / wall_s,
        "writer_cpu_share": (cpu - cpu_before) / wall_s,
        "cpu_us_per_token": (cpu - cpu_before) / sent[0] * 1e6,
        "polls": subscriber.polls,
        "close_s": time.perf_counter() - closing,
        "judged_replies": judged,
    }


def main() -> int:
    """Run it; 1 when the bar is missed."""
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parsed(parser)
    rows = ReportRows()
    with ray_session(), tempfile.TemporaryDirectory() as place:
        folder, owner, spec = bench_spec(Path(place), {role: [RoleBinding()] for role in ROLES}, protocol="bench")
        rows.add(asyncio.run(ingest(folder.path, spec, given.seconds)))
        owner.release()
    return finish(given, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
