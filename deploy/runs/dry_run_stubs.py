"""Stubs of a dry run: agents, a library and a record client that call no model and store nothing."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from moot.actors.agent.request_fingerprint import sent_decoding
from moot.actors.agent.roles import Roles
from moot.actors.models.reply_schema import reply_schema, slot_sizes
from moot.actors.models.token_bounds import estimated_length
from moot.actors.models.usage_totals import UsageTotals
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.recovery import History
from moot.actors.retrieval.library import LibraryChunk
from moot.protocols.errors import ConfigError
from moot.protocols.lookups import Passage
from moot.protocols.messages import Ask, AskResult, Event, Intrinsic, Usage
from moot.protocols.replies import FreeText
from moot.protocols.reply_ids import load_reply
from moot.protocols.reply_parsing import InvalidReply, Parsed, parse_reply
from moot.protocols.templates import Templates

CHARACTERS_PER_TOKEN = 4

_SAME = "as it is "
_NUMBER = re.compile(r"\d+")
_MAX_CALLS = 10_000
"""Maximum calls, and maximum decisions, of a debate: with stub replies it may never end."""


class CallEstimate(UsageTotals):
    """Estimated calls of a debate, without retries and re-asks; four characters a token, or one in non-Latin scripts.

    Attributes:
        longest_prompt: tokens of the longest prompt.
    """

    longest_prompt: int = 0


@dataclass
class StubAgentPool:
    """Stub `AgentPool`: answers every request by the schema of its reply, and counts calls.

    Attributes:
        roles: bindings of the roles.
        templates: every prompt.
        differ: whether agents give different answers at the full length of a reply, or the same short one.
        calls: the calls so far.
        unfit: number of requests that no stub reply fits.
        unrendered: error of the first template that could not be rendered; None without one.
    """

    roles: Roles
    templates: Templates
    differ: bool
    calls: CallEstimate = field(default_factory=CallEstimate)
    unfit: int = 0
    unrendered: ConfigError | None = None

    async def answer(self, ask: Ask) -> AskResult:
        """See `AgentPool.answer`."""
        binding = self.roles.binding(ask.role)
        max_tokens = sent_decoding(binding, ask.decoding).max_tokens
        if self.calls.calls >= _MAX_CALLS:
            raise RuntimeError(f"no end after {_MAX_CALLS:,} calls")
        try:
            messages = self.templates.render(ask.template, ask.slots)
        except ConfigError as error:
            self.unrendered = self.unrendered or error
            raise
        prompt = _tokens(sum(estimated_length(message.content) for message in messages))
        text, parsed = self._reply(ask, max_tokens)
        usage = Usage(prompt, max_tokens if self.differ else _tokens(len(text)))
        self.calls.add(usage.prompt_tokens, usage.completion_tokens)
        self.calls.longest_prompt = max(self.calls.longest_prompt, prompt)
        answered = AskResult(path=ask.path, reply_id=ask.path, model=binding.model, text=text, usage=usage)
        if parsed is None:
            self.unfit += 1
            wrong = {"outcome": "failed", "failure": "invalid_reply", "error": "no stub reply fits"}
            return msgspec.structs.replace(answered, **wrong)
        confidence = 0.5 if self.differ else 1.0
        intrinsic = Intrinsic(normalised=confidence, printed=confidence, raw=confidence)
        return msgspec.structs.replace(answered, data=parsed.data, answer=parsed.answer, intrinsic=intrinsic)

    def _reply(self, ask: Ask, max_tokens: int) -> tuple[str, Parsed | None]:
        model = load_reply(ask.reply)
        if model is FreeText:
            text = _text(max_tokens * CHARACTERS_PER_TOKEN if self.differ else 1)
            return text, parse_reply(text, model)
        schema = msgspec.json.decode(
            reply_schema(model, "vllm", ask.labels, max_tokens, sizes=slot_sizes(model, ask.slots)).body
        )
        option, turn = _last_number(ask.role), _last_number(ask.path.replace(ask.role, ""))
        # Texts are alternately all equal and all different, so that successive rounds differ.
        mark = ask.step_key if self.differ and turn % 2 == 0 else ""
        option = option if self.differ else 0
        for full in (self.differ, False):
            text = msgspec.json.encode(_stub_value(schema, full, option, mark)).decode()
            try:
                return text, parse_reply(text, model, ask.labels, ask.choices, ask.aliases)
            except InvalidReply:
                option = 0
        return text, None

    async def drain(self) -> None:
        """See `AgentPool.drain`."""


def _stub_value(schema: Mapping[str, Any], full: bool, option: int, mark: str, index: int = 0) -> object:
    """Value that fits a schema: the smallest, or the largest permitted one.

    Args:
        schema: a JSON schema.
        full: whether the value is the largest.
        option: index of the chosen option of an enumeration.
        mark: seed of texts and numbers; empty for equal ones.
        index: index of the list item that contains the value.
    """
    if "enum" in schema:
        return schema["enum"][option % len(schema["enum"])]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return _stub_value(schema["anyOf"][0], full, option, mark, index)
    match schema.get("type"):
        case "object":
            parts: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
            return {name: _stub_value(part, full, option, mark, index) for name, part in parts.items()}
        case "array":
            minimum = max(1, schema.get("minItems", 0))
            count = max(minimum, schema.get("maxItems", minimum)) if full else minimum
            marks = [mark and f"{mark}/{item}" for item in range(count)]
            return [_stub_value(schema["items"], full, option + item, of, item) for item, of in enumerate(marks)]
        case "string" if "pattern" not in schema:
            minimum = schema.get("minLength", 1)
            return _text(max(minimum, schema.get("maxLength", minimum)) if full else minimum, mark)
        case "string":
            return "0"
        case "number" | "integer":
            low, high = schema.get("minimum", 0), schema.get("maximum", 1)
            if schema["type"] == "integer":
                return low + index % (high - low + 1) if full else high
            return low + (_drawn(mark) if mark else 0.9 if full else 1.0) * (high - low)
        case "boolean":
            return not full
    return None


def _text(length: int, mark: str = "") -> str:
    """Text of the given length, at least five characters, with words derived from the mark."""
    digests = (blake2b(f"{mark}{part}".encode()).hexdigest() for part in range(1 + length // 128))
    words = " ".join(digests) if mark else _SAME
    return (words * (length // len(words) + 1))[: max(length, 5)]


def _drawn(mark: str) -> float:
    return int.from_bytes(blake2b(mark.encode(), digest_size=4).digest(), "big") / 2**32


def _last_number(name: str) -> int:
    return int(found[-1]) if (found := _NUMBER.findall(name)) else 0


def _tokens(characters: int) -> int:
    return math.ceil(characters / CHARACTERS_PER_TOKEN)


@dataclass
class StubLibrary:
    """Stub `Retriever`: returns the library's first chunks for every query, or one stub chunk if it has none."""

    chunks: Sequence[LibraryChunk]

    async def search(self, vector: npt.NDArray[np.float32], n: int) -> list[Passage]:
        """See `Library.search`."""
        stub = [LibraryChunk(document="document", chunk=0, page=None, text=_text(1000))]
        return [
            Passage(document=each.document, chunk=each.chunk, text=each.text, page=each.page, similarity=1.0)
            for each in list(self.chunks or stub)[:n]
        ]

    async def close(self) -> None:
        """Nothing to close."""


class NullRecordClient:
    """Null `RecordClient`: stores nothing."""

    def __init__(self) -> None:
        self._decisions: Counter[str] = Counter()

    def put_reply(self, case_id: str, columns: dict[str, Any]) -> None:
        """Count a decision; stub agents write no replies."""
        self._decisions[case_id] += 1
        if self._decisions[case_id] > _MAX_CALLS:
            raise RuntimeError(f"no end after {_MAX_CALLS:,} decisions")

    def put_event(self, case_id: str, attempt: int, event: Event) -> None:
        """Does nothing."""

    def end(self, case_id: str, attempt: int) -> None:
        """Forget the decisions of a debate."""
        self._decisions.pop(case_id, None)

    async def commit(self, closing: DebateResult) -> bool:
        """Does nothing."""
        return True

    async def history(self, case_id: str, attempt: int) -> History:
        """Always empty."""
        return History()

    async def acquire_lease(self, key: str) -> tuple[bool, History]:
        """Grants the lease to every caller."""
        return True, History()

    async def has_shared(self, key: str) -> bool:
        """Always true."""
        return True

    async def release_lease(self, key: str) -> None:
        """Does nothing."""

    def put_vectors(self, case_id: str, attempt: int, encoder: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """Does nothing."""
