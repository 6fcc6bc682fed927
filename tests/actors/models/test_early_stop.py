"""Replies that are stopped early: which, what the record keeps of them, and what they are counted as."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from openai_server import simulated_server, stats_of
from pydantic import ValidationError
from small_runs import stable_rows

import moot
from moot.actors.agent.agent import Agent
from moot.actors.agent.roles import RoleBinding, Roles
from moot.actors.models.early_stop import CUT, EarlyStop, stream_with_early_stop
from moot.actors.models.interface import Capabilities, ModelReply, ReplySchema, StreamPiece, TokenLogprobs
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.probe_calls import STEP_KEY
from moot.actors.simulated.answer_key import AnswerKey
from moot.protocols.errors import CapabilityMissing
from moot.protocols.messages import Ask, Decoding, LogprobStage, Usage
from moot.protocols.tasks import open_task
from moot.protocols.templates import Templates

KEEP_HIGH = EarlyStop(window=3, statistic="mean", keep="above", bound=-1.0)


@pytest.mark.parametrize(
    ("stop", "logprobs", "stops"),
    [
        (KEEP_HIGH, [-2.0, -2.0, -2.0], True),
        (KEEP_HIGH, [-2.0, -2.0, -2.0, 0.0, 0.0], True),
        (KEEP_HIGH, [0.0, 0.0, 0.0, -9.0, -9.0], False),
        (KEEP_HIGH, [-1.0, -1.0, -1.0], False),
        (KEEP_HIGH, [-2.0, -2.0], False),
        (KEEP_HIGH, [-2.0, float("nan"), -2.0], False),
        (KEEP_HIGH.model_copy(update={"keep": "below"}), [-0.1, -0.1, -0.1], True),
        (KEEP_HIGH.model_copy(update={"keep": "below"}), [-2.0, -2.0, -2.0], False),
        (KEEP_HIGH.model_copy(update={"statistic": "max"}), [-2.0, -2.0, -0.5], False),
    ],
)
def test_which_replies_are_stopped(stop: EarlyStop, logprobs: list[float], stops: bool) -> None:
    assert stop.stops(logprobs) is stops


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 0},
        {"statistic": "mode"},
        {"bound": float("nan")},
        {"resamples": 0},
        {"bound": 0.5},
        {"statistic": "std"},
        {"statistic": "slope", "window": 1},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EarlyStop.model_validate({**KEEP_HIGH.model_dump(), **wrong})


class ScriptedStream:
    """Streams one token a piece; knows whether its reader has closed it."""

    def __init__(self, logprobs: Sequence[float], *, silent: bool = False, hangs: bool = False) -> None:
        self._logprobs, self._silent, self._hangs = logprobs, silent, hangs
        self.sent = 0
        self.closed = False

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[StreamPiece, None]:
        try:
            for number, logprob in enumerate(self._logprobs):
                self.sent += 1
                last = number == len(self._logprobs) - 1
                yield StreamPiece(f"{number} ", self._tokens(number, logprob), "length" if last else "")
            if self._hangs:
                await asyncio.Event().wait()
            yield StreamPiece("", usage=Usage(7, len(self._logprobs)))
        finally:
            self.closed = True

    def _tokens(self, number: int, logprob: float) -> TokenLogprobs | None:
        if self._silent:
            return None
        one = np.array([logprob], np.float32)
        return TokenLogprobs([f"{number} "], one, [f"{number} "], one.reshape(1, 1))


async def _watch(
    stream: ScriptedStream, stop: EarlyStop = KEEP_HIGH, *, stage: LogprobStage = "raw", held: bool = False
) -> Any:
    given: Any = (stream, (), Decoding(top_logprobs=1), stop)
    return await stream_with_early_stop(
        *given, step_key="s", schema=ReplySchema("r", b"{}") if held else None, stage=stage
    )


async def test_a_stopped_stream_is_closed_at_once_and_its_usage_is_unknown() -> None:
    stream = ScriptedStream([-2.0] * 50)
    reply = await _watch(stream)
    assert (reply.finish_reason, reply.text, reply.usage) == (CUT, "0 1 2 ", Usage())
    assert reply.tokens is not None
    assert reply.tokens.logprob.tolist() == [-2.0] * 3
    assert (stream.sent, stream.closed) == (3, True)


@pytest.mark.parametrize("logprobs", [[-0.5] * 9, [-9.0] * 2, [-9.0] * 3], ids=["sure", "short", "just ended"])
async def test_any_other_is_read_to_its_end(logprobs: list[float]) -> None:
    reply = await _watch(ScriptedStream(logprobs))
    assert (reply.finish_reason, reply.usage) == ("length", Usage(7, len(logprobs)))
    assert reply.tokens is not None
    assert reply.tokens.tokens == [f"{i} " for i in range(len(logprobs))]
    assert reply.tokens.alt_logprob.shape == (len(logprobs), 1)


@pytest.mark.parametrize(
    ("stage", "held", "forced", "stops"),
    [
        ("raw", True, 0.0, True),
        ("unknown", False, 0.0, True),
        ("unknown", True, 0.0, False),
        ("masked", True, 0.0, False),
        ("masked", True, -0.5, True),
    ],
)
async def test_first_tokens_of_which_a_mask_may_have_forced_one_stop_nothing(
    stage: LogprobStage, held: bool, forced: float, stops: bool
) -> None:
    """As it was learned: their statistic is unknown."""
    stop = EarlyStop(window=8, statistic="mean", keep="below", bound=-0.9)
    logprobs = [-0.5, forced, -0.5, -0.5, -0.4, -0.1, -0.3, -0.2, -0.1]
    reply = await _watch(ScriptedStream(logprobs), stop, stage=stage, held=held)
    assert (reply.finish_reason == CUT) == stops


class SchemaStream:
    """Streams a reply that its schema holds; one of its first tokens has a probability of 1."""

    name = "held"
    capabilities = Capabilities(streaming=True, structured_output="yes")

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[StreamPiece, None]:
        assert kwargs["schema"] is not None
        for number, text in enumerate(('{"answer": "Yes", ', '"reasoning": "r", ', '"confidence": 0.5}')):
            one = np.array([-2.0 * (number > 0)], np.float32)
            yield StreamPiece(text, TokenLogprobs([text], one, [text], one.reshape(1, 1)))
        yield StreamPiece("", finish_reason="stop")

    async def complete(self, *args: Any, **kwargs: Any) -> ModelReply:
        return ModelReply('{"answer": "Yes", "reasoning": "r", "confidence": 0.5}', "stop", Usage())


@pytest.mark.parametrize(
    ("found", "declared", "outcomes"),
    [
        ("raw", "unknown", [CUT, "ok"]),
        ("masked", "unknown", ["ok"]),
        ("unknown", "unknown", ["ok"]),
        ("masked", "raw", [CUT, "ok"]),
        ("raw", "masked", ["ok"]),
    ],
)
async def test_an_agent_s_early_stop_goes_by_the_stage_of_its_model(
    found: Any, declared: LogprobStage, outcomes: list[str]
) -> None:
    """A backend that knows the stage of its log-probabilities is believed, else the trial."""
    model: Any = SchemaStream()
    model.capabilities = replace(SchemaStream.capabilities, logprob_stage=declared)
    stop = EarlyStop(window=2, statistic="mean", keep="above", bound=-0.5)
    profile = ModelProfile(schemas="portable", held_logprobs=found)
    roles = Roles({"agent": [RoleBinding(model="held", early_stop=stop, profile=profile)]})
    sink = Mock()
    slots = {"question": "?", "passage": "", "labels": ["Yes", "No"], "choices": [], "title": ""}
    ask = Ask(
        case_id="c", attempt=0, path="a", role="agent/0", template="selene/opening", slots=slots,
        reply="moot.protocols.replies:Position", labels=("Yes", "No"),
    )  # fmt: skip
    await Agent(model, roles, Templates(), sink).answer(ask)
    assert [columns["outcome"] for _, columns in (kept.args for kept in sink.put_reply.call_args_list)] == outcomes


async def test_a_reply_without_log_probabilities_is_never_stopped() -> None:
    reply = await _watch(ScriptedStream([-9.0] * 9, silent=True))
    assert (reply.finish_reason, reply.tokens) == ("length", None)


@pytest.fixture
def server() -> Iterator[str]:
    with simulated_server(AnswerKey.from_cases(open_task("sample").cases()), seed=3) as port:
        yield f"http://127.0.0.1:{port}/v1#simulated"


def _run(model: str, out: Path, stop: EarlyStop | None, **options: Any) -> Any:
    role = {"model": model, "top_logprobs": 5} | ({"early_stop": stop.model_dump()} if stop else {})
    settings: dict[str, Any] = {"engine": "inline", "protocol": "majority-vote", "limit": 4, "seed": 3, **options}
    return moot.run(roles={"agent": [role]}, out=out, **settings)


def _steps(model: str) -> dict[str, Any]:
    port = int(model.partition("/v1")[0].rpartition(":")[2])
    return {step: served for step, served in stats_of(port)["by_step"].items() if step != STEP_KEY}


def test_every_reply_of_an_impossible_bound_is_stopped_m_times_and_then_kept(server: str, tmp_path: Path) -> None:
    never = EarlyStop(window=2, statistic="mean", keep="above", bound=0.0, resamples=2)
    done = _run(server, tmp_path / "run", never)
    turns = done.table("turns").to_pylist()
    cut = [row for row in turns if row["outcome"] == "cut"]
    kept = [row for row in turns if row["outcome"] != "cut"]
    assert len(cut) == 2 * len(kept) > 0
    assert {row["path"].rpartition("~")[2] for row in cut} == {"cut1", "cut2"}
    assert all(row["completion_tokens"] is None and row["completion_tokens_estimate"] >= 2 for row in cut)
    assert all((row["unconfirmed_attempts"], row["unconfirmed_tokens_max"] > 400) == (1, True) for row in cut)
    assert all(row["answer"] and row["completion_tokens_estimate"] is None for row in kept)
    found = done.summary
    assert (found.stopped_early.replies, found.attempts_unconfirmed) == (len(cut), len(cut))
    by_path = {(row["case_id"], row["path"]): row for row in kept}
    instead = [(row, by_path[row["case_id"], row["path"].partition("~")[0]]) for row in cut]
    assert found.stopped_early.tokens_used_estimate == sum(
        kept_row["prompt_tokens"] + row["completion_tokens_estimate"] for row, kept_row in instead
    )
    assert found.stopped_early.tokens_saved_estimate == sum(
        kept_row["completion_tokens"] - row["completion_tokens_estimate"] for row, kept_row in instead
    )
    served = sum(each["prompt_tokens"] + each["completion_tokens"] for each in _steps(server).values())
    assert found.tokens_paid <= served <= found.tokens_paid + found.tokens_unconfirmed[1]


def test_a_stopped_reply_is_sampled_again_and_the_run_continues_with_it(server: str, tmp_path: Path) -> None:
    plain = _run(server, tmp_path / "plain", None)
    first = [np.mean(row["logprob"][:5]) for row in plain.table("tokens").to_pylist()]
    half = EarlyStop(window=5, statistic="mean", keep="above", bound=float(np.median(first)))
    done = _run(server, tmp_path / "run", half)
    stopped = done.summary.stopped_early
    assert 0.2 * len(first) < stopped.replies < 0.8 * len(first)
    tokens = {row["reply_id"]: row["logprob"] for row in done.table("tokens").to_pylist()}
    turns = done.table("turns").to_pylist()
    cut = {(row["case_id"], row["path"].partition("~")[0]): row for row in turns if row["outcome"] == "cut"}
    again = {(row["case_id"], row["path"]): row for row in turns if row["outcome"] != "cut"}
    assert all(np.mean(tokens[row["reply_id"]][:5]) < half.bound for row in cut.values())
    assert any(again[key]["text"][: len(row["text"])] != row["text"] for key, row in cut.items())
    assert all(np.mean(tokens[row["reply_id"]][:5]) >= half.bound for key, row in again.items() if key not in cut)
    more = _run(server, tmp_path / "run", half, limit=5)
    assert (more.left, more.done) == (0, 5)


def test_a_model_that_does_not_stream_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(CapabilityMissing, match="`early_stop`"):
        _run("simulated", tmp_path / "run", KEEP_HIGH)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("share", [0.6, *(pytest.param(share, marks=pytest.mark.slow) for share in (0.3, 0.8))])
def test_a_run_that_was_stopped_between_a_cut_and_its_end_pays_nothing_twice(tmp_path: Path, share: float) -> None:
    stop = EarlyStop(window=5, statistic="mean", keep="above", bound=-0.02, resamples=2)
    key = AnswerKey.from_cases(open_task("sample").cases())
    with simulated_server(key, seed=3, garble_rate=0.4) as port:
        whole = _run(f"http://127.0.0.1:{port}/v1#simulated", tmp_path / "whole", stop)
    with simulated_server(key, seed=3, garble_rate=0.4) as port:
        model = f"http://127.0.0.1:{port}/v1#simulated"
        most = whole.summary.tokens_paid + whole.summary.tokens_unconfirmed[1]
        sessions = 1
        while _run(model, tmp_path / "run", stop, max_tokens=int(share * most * sessions)).exit_code == 4:
            sessions += 1
        steps = _steps(model)
    run = moot.summarise(tmp_path / "run")
    assert sessions > 1
    outcomes = {row["outcome"] for row in whole.table("turns").to_pylist()}
    assert {"cut", "invalid", "reasked"} <= outcomes
    assert {step for step, served in steps.items() if served["calls"] > 1} == set()
    assert (run.tokens_paid, run.tokens_unconfirmed) == (whole.summary.tokens_paid, whole.summary.tokens_unconfirmed)
    assert run.stopped_early == whole.summary.stopped_early
    for table in ("verdicts", "turns"):
        one, other = (stable_rows(tmp_path / name, table, ["model", "fingerprint"]) for name in ("whole", "run"))
        assert one == other, table
    assert any(row["calls_without_usage"] for row in whole.table("verdicts").to_pylist())


def test_a_shared_ask_is_answered_with_the_reply_that_was_kept(server: str, tmp_path: Path) -> None:
    never = EarlyStop(window=2, statistic="mean", keep="above", bound=0.0, resamples=2)
    options: dict[str, Any] = {"protocol": "shared_ask:Shared"}
    _run(server, tmp_path / "run", never, limit=2, **options)
    done = _run(server, tmp_path / "run", never, limit=4, **options)
    said = {row["payload"] for row in done.table("verdicts").to_pylist()}
    assert (done.done, done.failed, len(said)) == (4, 0, 1)
    assert json.loads(said.pop())["said"].startswith("{")
    turns = [row["path"] for row in done.table("turns").to_pylist()]
    assert sorted(turns) == ["shared", "shared~cut1", "shared~cut2"]


async def test_a_cancelled_watch_closes_its_stream() -> None:
    stream = ScriptedStream([-0.5], hangs=True)
    task = asyncio.create_task(_watch(stream))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stream.closed
