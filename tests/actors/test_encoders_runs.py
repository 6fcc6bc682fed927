"""Runs with an encoder behind a server: batches across debates, failed cases, and vectors read back."""

from __future__ import annotations

import asyncio
import json
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast
from urllib.request import urlopen

import numpy as np
import pytest
from houses import Held, hold, make_spec, same_for_all
from openai_server import simulated_server

from moot.actors.arena import Arena
from moot.actors.floor import CaseFloor
from moot.actors.household import build_house
from moot.actors.record.recovery import History, vector_key
from moot.protocols.case import Case, LabelledCase
from moot.protocols.errors import EncoderFailed
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict

SEED = 11
CASES = 40


def stats(port: int) -> Any:
    with urlopen(f"http://127.0.0.1:{port}/stats") as response:
        return json.load(response)


class Embeds:
    """Embeds the case's words; nothing is asked."""

    roles = ("agent",)
    name = "embeds"
    needs_logprobs = False

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        vectors = await floor.embed([case.question, case.passage, "the same for all"])
        return Verdict(answer=None, how="done", payload={"d": [float(x) for x in vectors[:, 0]]})


def embed_cases(count: int) -> list[LabelledCase]:
    return [LabelledCase(Case(id=f"c{i}", question=f"question {i}?", passage=f"passage {i}"), i) for i in range(count)]


async def embed(kind: str, folder: Path, encoder: str, count: int = CASES, **changes: Any) -> Held:
    return await hold(kind, folder, Embeds(), embed_cases(count), same_for_all("simulated"), encoder=encoder, **changes)


def test_texts_of_many_debates_leave_in_few_requests(tmp_path: Path) -> None:
    with simulated_server(None, latency_ms=20) as port:
        held = asyncio.run(embed("inline", tmp_path / "run", f"http://127.0.0.1:{port}/v1#m"))
        served = stats(port)
    assert not any(row["failed"] for row in held.rows("verdicts"))
    assert len(held.rows("embeddings")) == 3 * CASES
    assert served["embedded_texts"] < 2 * CASES + CASES / 2, "what all share is sent once per batch that wants it"
    assert served["embedding_calls"] <= CASES / 4


def test_a_failing_encoder_fails_cases_not_the_run(tmp_path: Path) -> None:
    with simulated_server(None, fail_rate=1.0) as port:
        encoder = f"http://127.0.0.1:{port}/v1#m"
        held = asyncio.run(embed("inline", tmp_path / "run", encoder, 5))
    rows = held.rows("verdicts")
    assert [row["failure"] for row in rows] == ["encoder_failed"] * 5
    assert rows[0]["error"] == f"encoder {encoder}: server: HTTP 500: the server failed on purpose (fail rate)"
    with simulated_server(None, port=port):
        again = asyncio.run(embed("inline", tmp_path / "run", encoder, 5, retry_failed=True))
    assert [(row["attempt"], row["failure"]) for row in again.rows("verdicts")[:2]] == [(0, "encoder_failed"), (1, "")]


def test_on_a_replay_vectors_are_read_back_and_no_encoder_is_asked(tmp_path: Path) -> None:
    folder, cases = tmp_path / "run", embed_cases(3)

    class Halts(Embeds):
        """Stands still after embedding, the first time."""

        async def run(self, case: Case, floor: Floor) -> Verdict:
            """Debate one case."""
            verdict = await super().run(case, floor)
            if encoded is not None:
                encoded.release()
                await asyncio.Event().wait()
            return verdict

    async def stop(arena: Arena) -> None:
        assert encoded is not None
        for _ in cases:
            await encoded.acquire()
        arena.stop()

    encoded: asyncio.Semaphore | None = asyncio.Semaphore(0)
    roles = same_for_all("simulated")
    with simulated_server(None) as port, pytest.MonkeyPatch.context() as patch:
        patch.setattr("moot.actors.arena.DRAIN_S", 0.1)
        encoder = f"http://127.0.0.1:{port}/v1#m"
        asyncio.run(hold("inline", folder, Halts(), cases, roles, encoder=encoder, meanwhile=stop))
    encoded = None  # and the server is gone
    held = asyncio.run(hold("inline", folder, Halts(), cases, roles, encoder=encoder))
    assert [row["failure"] for row in held.rows("verdicts")] == [""] * 3
    assert len(held.rows("embeddings")) == 9


async def test_vectors_that_do_not_fit_the_record_fail_the_case(tmp_path: Path) -> None:
    """Another model under the same name: its vectors are of another size than those that are read back."""
    house = build_house(make_spec(tmp_path, same_for_all("simulated")), cast("Any", None), cast("Any", _NoScribe()))
    text_hash = blake2b(b"recorded", digest_size=16).hexdigest()
    recorded = {vector_key(house.encoder.name, text_hash): np.ones(4, np.float32).tobytes()}
    floor = CaseFloor(Case(id="c", question="?"), 0, house, History(vectors=recorded))
    np.testing.assert_array_equal(await floor.embed(["recorded"]), np.ones((1, 4)))
    with pytest.raises(EncoderFailed, match="size"):
        await floor.embed(["recorded", "new"])


class _NoScribe:
    """Takes vectors and forgets them."""

    def put_vectors(self, *row: Any) -> None:
        """See `Scribe.put_vectors`."""
