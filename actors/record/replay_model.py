"""Replay model (`replay/RUN`): answers only from the record of a run, step by step, and fails on any difference."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from moot.actors.models.interface import Capabilities, ModelError, ModelReply, ReplaySource, ReplySchema, TokenLogprobs
from moot.actors.record.folder import RunFolder
from moot.actors.record.recorded_replies import RecordedReplies
from moot.actors.record.recorded_run import HashIndex, RecordedRun, Row
from moot.actors.record.rows import (
    FROM_REASONING,
    INVALID_SUFFIX,
    NO_LOGPROBS,
    OVERLONG,
    PROMPT_CUT,
    SHARED,
    has_reading_mark,
    image_hashes,
    messages_json,
)
from moot.actors.record.run_yaml import read_run_yaml
from moot.protocols.case import Image, is_shared_id
from moot.protocols.errors import REPLAY_DIVERGED, ConfigError, ModelUnavailable, RecordError
from moot.protocols.messages import Decoding, Message, Usage

MAX_ALTERNATIVES = 20
"""Assumed number of recorded alternatives where run.yaml does not say how many were requested."""

_SHOWN = 40
"""Most characters of a differing message in an error."""

_SHARED_SLASHES = 2
"""Slashes in the step key of a shared ask: neither its case id nor its path contains one."""


class ReplayModel:
    """Replay model: a `Model` that returns the replies of one recorded run.

    A reply is looked up by its step (case id, attempt and path), and returned only if the rendered messages, the
    temperature, `top_p`, the length and the pictures equal those of the recorded call. A recorded failure is raised
    again, and an unparsable first reply is returned first. Anything else fails the case.

    Args:
        folder: the recorded run's folder; only read.

    Raises:
        ConfigError: the folder has no run.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = RunFolder(folder)
        if not self._folder.exists():
            raise ConfigError(f"model 'replay/{folder}': no run in {folder} (no run.yaml)")
        self.name = f"replay/{self._folder.path.name}"
        self.capabilities = recorded_capabilities(read_run_yaml(self._folder))
        self._replies = RecordedReplies(folder, _Steps)

    async def complete(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> ModelReply:
        """Recorded reply to the step; `schema` is ignored.

        Raises:
            ModelError: the recorded failure, or `replay_diverged` when the step is missing or differs.
        """
        try:
            run, steps = await self._replies.opened()
            found = steps.find(step_key, messages)
            if len(found) != 1:
                holds = f"{len(found)} replies" if found else "no reply"
                raise self._diverged(step_key, f"{self.name} holds {holds} to this step")
            (number,) = found
            row = await self._replies.row(number)
        except RecordError as error:
            raise self._diverged(step_key, str(error)) from None
        difference = next(_differences(row, messages, decoding), None)
        if difference is not None:
            raise self._diverged(step_key, f"not as {self.name} has it: {difference}")
        if row["outcome"] == "failed" and row["text"] is None:
            raise ModelError(row["failure"], row["error"] or "", replayed=run.label(number))
        return _reply(row, decoding, run.label(number))

    def _diverged(self, step_key: str, why: str) -> ModelError:
        source = f"{self._folder.path.name}:{step_key}"
        return ModelError(REPLAY_DIVERGED, f"{step_key}: {why}", replayed=source)

    async def check(self) -> None:
        """Load the run's index.

        Raises:
            ModelUnavailable: the run cannot be read.
        """
        try:
            await asyncio.to_thread(RecordedRun, self._folder.path)
        except RecordError as error:
            raise ModelUnavailable(f"{self.name}: {error}") from None

    async def close(self) -> None:
        """See `Model.close`; there is nothing to release."""


def recorded_capabilities(facts: dict[str, Any]) -> Capabilities:
    """Capabilities of the recorded models, as far as recorded.

    Args:
        facts: of the run's run.yaml; missing ones are assumed at their maximum.
    """
    bindings = facts.get("bindings") or {}
    asked = [member.get("top_logprobs") or 0 for members in bindings.values() for member in members]
    alternatives = max(asked, default=MAX_ALTERNATIVES) if facts.get("save_tokens", "all") == "all" else 0
    return Capabilities(
        max_alternatives=alternatives,
        images=True,
        seeds=True,
        settings=frozenset({"seed", "stop", "repetition_penalty", "reasoning_effort", "extra"}),
        simulated=bool(facts.get("simulated", False)),
        in_process=True,
    )


class _Steps:
    """Index of a run's replies by step, and of shared replies by their messages.

    The case id of a shared ask is a hash that includes its model's name, so a replay has another one.
    """

    def __init__(self, run: RecordedRun) -> None:
        self._run = run
        columns = (run.replies[name].to_pylist() for name in ("case_id", "attempt", "path"))
        keys = list(zip(*columns, strict=True))
        self._by_step = HashIndex([_step(*key) for key in keys])
        self._shared: dict[str, list[int]] = {}
        shared = [number for number, (case_id, _, path) in enumerate(keys) if _is_shared(case_id, path)]
        for number, row in sorted(run.read(shared).items()):
            self._shared.setdefault(_sent(row["messages"], row["image_hashes"] or ()), []).append(number)

    def find(self, step_key: str, messages: Sequence[Message]) -> list[int]:
        """Replies to the first ask of a step, or to the second, whose key ends in the mark of an unparsable first
        reply.

        The record has it the other way round: there the unparsable first reply has the mark.
        """
        case_id, _, path = step_key.split("/", 2) if step_key.count("/") == _SHARED_SLASHES else ("", "", "")
        if _is_shared(case_id, path):
            return self._shared.get(_sent(messages_json(messages), image_hashes(_images(messages))), [])
        again = step_key.endswith(INVALID_SUFFIX)
        for step in [step_key.removesuffix(INVALID_SUFFIX)] if again else [step_key + INVALID_SUFFIX, step_key]:
            found = [number for number in self._by_step.find(step) if _step(*self._run.key(number)) == step]
            if found:
                return found
        return []


def _step(case_id: str, attempt: int, path: str) -> str:
    return f"{case_id}/{attempt}/{path}"


def _is_shared(case_id: str, path: str) -> bool:
    return is_shared_id(case_id) and path.removesuffix(INVALID_SUFFIX) == SHARED


def _sent(messages: str, images: Sequence[str]) -> str:
    return "\n".join((messages, *images))


def _images(messages: Sequence[Message]) -> list[Image]:
    return [image for message in messages for image in message.images]


def _differences(row: Row, messages: Sequence[Message], decoding: Decoding) -> Iterator[str]:
    now = messages_json(messages)
    if row["messages"] != now:
        yield _message_difference(msgspec.json.decode(row["messages"] or "[]"), msgspec.json.decode(now))
    for name in ("temperature", "top_p", "max_tokens"):
        if row[name] != getattr(decoding, name):
            yield f"`{name}` was {row[name]}, is {getattr(decoding, name)}"
    if (row["image_hashes"] or []) != image_hashes(_images(messages)):
        yield "other pictures"
    if decoding.top_logprobs and row["logprob_stage"] is not None and "alt_token" not in row:
        yield "its log-probabilities were not kept (--save-tokens)"


def _message_difference(was: list[tuple[str, str]], now: list[tuple[str, str]]) -> str:
    if len(was) != len(now):
        return f"{len(was)} messages were sent, now {len(now)}"
    number, (old, new) = next((i, pair) for i, pair in enumerate(zip(was, now, strict=True), 1) if pair[0] != pair[1])
    if old[0] != new[0]:
        return f"message {number} was the {old[0]}'s, is the {new[0]}'s"
    common = next((i for i, (a, b) in enumerate(zip(old[1], new[1], strict=False)) if a != b), None)
    start = min(len(old[1]), len(new[1])) if common is None else common
    before, after = (text[start : start + _SHOWN] for text in (old[1], new[1]))
    return f"message {number} ({new[0]}) differs from character {start}: was {before!r}, is {after!r}"


def _reply(row: Row, decoding: Decoding, source: str) -> ModelReply:
    failed = row["outcome"] == "failed"
    return ModelReply(
        text=row["text"] or "",
        finish_reason=row["finish_reason"] or "",
        usage=Usage(row["prompt_tokens"], row["completion_tokens"], row["reasoning_tokens"]),
        tokens=_tokens(row) if decoding.top_logprobs is not None else None,
        replayed=ReplaySource(
            source,
            row["logprob_stage"] or "unknown",
            (failed and row["error"]) or "",
            constrained=row["held"] is not False,
        ),
        stated=_stated(row),
        reasoning=row["reasoning"] or "",
        from_reasoning=has_reading_mark(row["reading"], FROM_REASONING),
        prompt_cut=has_reading_mark(row["reading"], PROMPT_CUT),
        overlong=has_reading_mark(row["reading"], OVERLONG),
        without_logprobs=has_reading_mark(row["reading"], NO_LOGPROBS),
    )


def _stated(row: Row) -> Usage | None:
    stated = Usage(row["prompt_tokens_stated"], row["completion_tokens_stated"])
    return None if stated == Usage() else stated


def _tokens(row: Row) -> TokenLogprobs | None:
    if "token" not in row:
        return None
    tokens, count = row["token"].to_pylist(), row.get("alternatives") or 0
    probabilities = row["alt_logprob"].to_numpy(zero_copy_only=False) if count else np.empty(0, np.float32)
    return TokenLogprobs(
        tokens=tokens,
        logprob=row["logprob"].to_numpy(zero_copy_only=False),
        alt_tokens=row["alt_token"].to_pylist() if count else [],
        alt_logprob=probabilities.reshape(len(tokens), count),
    )
