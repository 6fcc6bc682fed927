"""Dry run: estimates calls and tokens by running the protocol on the real floor with stub replies.

Each sampled case runs twice: once every agent gives the same short, confident answer, and once all disagree at the full
length of a reply. No model is called, and nothing is written.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import structlog

from moot.actors.agent.request_fingerprint import sent_decoding
from moot.actors.agent.roles import Roles
from moot.actors.debate.context_factory import build_debate_context
from moot.actors.debate.floor import CaseFloor
from moot.actors.encoders.hashed_ngrams import HASHED_NGRAMS
from moot.actors.encoders.resolve import is_served
from moot.actors.models.reply_schema import reply_schema, slot_sizes
from moot.actors.models.token_bounds import estimated_length
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.recovery import History
from moot.actors.retrieval.documents.docs import DocumentSet
from moot.actors.retrieval.library import LibraryChunk, LibraryFolder
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.prior_runs import reusable_replies
from moot.protocols.case import Case
from moot.protocols.errors import MootError
from moot.protocols.lookups import Passage
from moot.protocols.messages import Ask, AskResult, Event, Intrinsic, Usage
from moot.protocols.replies import FreeText
from moot.protocols.reply_ids import load_reply
from moot.protocols.reply_parsing import InvalidReply, Parsed, parse_reply
from moot.protocols.templates import Templates

_log = structlog.get_logger(__name__)

CHARACTERS_PER_TOKEN = 4
LOOKED_AT = 20
"""Maximum cases of a dry run, as a sample of the task."""

_SAME = "as it is "
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class CallEstimate:
    """Calls of some debates, without retries and re-asks.

    Attributes:
        count: calls.
        prompt_tokens, reply_tokens: prompts at four characters a token, or one in other scripts than Latin.
        longest_prompt: of one call, in tokens.
    """

    count: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    longest_prompt: int = 0

    def __add__(self, other: CallEstimate) -> CallEstimate:
        return CallEstimate(
            self.count + other.count,
            self.prompt_tokens + other.prompt_tokens,
            self.reply_tokens + other.reply_tokens,
            max(self.longest_prompt, other.longest_prompt),
        )

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies."""
        return self.prompt_tokens + self.reply_tokens


@dataclass(frozen=True)
class DryRunPlan:
    """Estimated calls and tokens of a run, without retries and re-asks.

    Attributes:
        protocol: its name.
        cases: how many; None for a source that cannot be read twice.
        least, most: calls over all cases, extrapolated from the sample; None without `cases`, and when the protocol
            does not run on stub replies.
        least_tokens, most_tokens: prompts at four characters per token, or one in other scripts than Latin; replies at
            their full length.
        reusable: replies of the other run that can answer identical requests; None without such a run. How many will
            is known only when the debates run, so the other figures count every call.
        documents: the library's size, and what is still to embed; empty for a run without documents.
    """

    protocol: str
    cases: int | None
    least: int | None
    most: int | None
    least_tokens: int | None
    most_tokens: int | None
    reusable: int | None = None
    documents: str = ""
    looked_at: int = 0

    def lines(self) -> list[str]:
        """The plan as text."""
        calls = (
            "unknown until the cases are read" if self.cases is None else "unknown: no stub reply suits this protocol"
        )
        tokens = calls
        if self.least is not None and self.most is not None:
            calls = f"{self.least:,} to {self.most:,}"
            if self.cases:
                calls += f" ({self.least / self.cases:.4g} to {self.most / self.cases:.4g} a case)"
            tokens = f"at most about {self.most_tokens:,} (at least {self.least_tokens:,} if every debate is short)"
        reuse = [] if self.reusable is None else [f"reuse     {self.reusable:,} recorded replies are reused at no cost"]
        return [
            f"protocol  {self.protocol}",
            f"cases     {'unknown' if self.cases is None else f'{self.cases:,}'}",
            f"calls     {calls}",
            f"tokens    {tokens}",
            "          prompts at 4 characters a token (not Latin: 1), replies at full length, no retries or re-asks",
            *([f"          counted on {self.looked_at:,} of the cases"] if self.looked_at < (self.cases or 0) else []),
            *reuse,
            *([f"documents {self.documents}"] if self.documents else []),
            "dry run: no requests, no cost, nothing written",
        ]


def plan(prepared: Prepared) -> DryRunPlan:
    """Estimate a run from cases spread over the task; calls no model, writes nothing."""
    name, total = prepared.protocol.name, prepared.total
    documents = _documents(prepared, prepared.docs, prepared.library) if prepared.docs and prepared.library else ""
    reusable = None if prepared.reuse is None else reusable_replies(prepared.reuse)
    if total is None:
        return DryRunPlan(name, total, None, None, None, None, reusable, documents)
    found = estimate_calls(
        prepared, (each.case for each in islice(prepared.cases(), 0, None, -(-total // LOOKED_AT) or 1))
    )
    if not found:
        return DryRunPlan(name, total, None, None, None, None, reusable, documents)
    few, many = (sum((each[way] for each in found), CallEstimate()) for way in (0, 1))
    least, most, least_tokens, most_tokens = (
        round(part * total / len(found)) for part in (few.count, many.count, few.tokens, many.tokens)
    )
    return DryRunPlan(name, total, least, most, least_tokens, most_tokens, reusable, documents, len(found))


def _documents(prepared: Prepared, docs: DocumentSet, library: Path) -> str:
    """Text about the documents; a shared library is embedded once for all runs."""
    chunks = f"{docs.size:,} {'chunk' if docs.size == 1 else 'chunks'}"
    if docs.documents is None:
        return f"a library of {chunks}, made before"
    files = LibraryFolder(library)
    done = files.embedded(files.manifest()) if files.exists() else 0
    texts = len({chunk.text for chunk in docs.chunks[done:]})
    once = "" if library.is_relative_to(prepared.folder) else ", once for all runs that share them"
    encoder = prepared.config.encoder
    by = f", {texts:,} texts to embed with {encoder}{once}" if is_served(encoder) else ""
    return f"{docs.documents:,} in {chunks}{by}"


def estimate_calls(prepared: Prepared, cases: Iterable[Case]) -> list[tuple[CallEstimate, CallEstimate]]:
    """Fewest and most calls of each case under stub replies; empty when no stub reply fits."""
    return asyncio.run(_all_calls(prepared, list(cases)))


async def _all_calls(prepared: Prepared, cases: Sequence[Case]) -> list[tuple[CallEstimate, CallEstimate]]:
    few, many = [await _calls(prepared, cases, differ=differ) for differ in (False, True)]
    return [] if few is None or many is None else list(zip(few, many, strict=True))


async def _calls(prepared: Prepared, cases: Sequence[Case], *, differ: bool) -> list[CallEstimate] | None:
    """Calls by case; None when a debate fails because no stub reply fits, or by an error of the protocol."""
    plain = {"encoder": HASHED_NGRAMS, "library": None, "reuse": None, "attended": False}
    spec = prepared.spec(0, {}, False).model_copy(update=plain)
    agents = _StubAgentPool(Roles(spec.roles), prepared.templates, differ=differ)
    context = build_debate_context(spec, agents, _NullRecordClient())
    if prepared.docs is not None:
        context = replace(context, retriever=_StubLibrary(prepared.docs.chunks))
    found = []
    try:
        for case in cases:
            agents.calls = CallEstimate()
            try:
                with suppress(MootError):  # a case that does not fit the protocol makes few or no calls
                    await prepared.protocol.run(case, CaseFloor(case, 0, context))
            except Exception as error:  # a user's own protocol may raise anything
                _log.debug("the protocol fails on stub replies", case=case.id, error=repr(error))
                return None
            if agents.unfit:
                return None
            found.append(agents.calls)
    finally:
        await context.close()
    return found


@dataclass
class _StubAgentPool:
    """Stub `AgentPool`: answers every request by its reply's schema, and counts."""

    roles: Roles
    templates: Templates
    differ: bool
    calls: CallEstimate = field(default_factory=CallEstimate)
    unfit: int = 0

    async def answer(self, ask: Ask) -> AskResult:
        """See `AgentPool.answer`."""
        binding = self.roles.binding(ask.role)
        most = sent_decoding(binding, ask.decoding).max_tokens
        messages = self.templates.render(ask.template, ask.slots)
        prompt = _tokens(sum(estimated_length(message.content) for message in messages))
        text, parsed = self._reply(ask, most)
        usage = Usage(prompt, most if self.differ else _tokens(len(text)))
        self.calls += CallEstimate(1, prompt, usage.completion_tokens or 0, prompt)
        answered = AskResult(path=ask.path, reply_id=ask.path, model=binding.model, text=text, usage=usage)
        if parsed is None:
            self.unfit += 1
            wrong = {"outcome": "failed", "failure": "invalid_reply", "error": "no stub reply fits"}
            return msgspec.structs.replace(answered, **wrong)
        sure = 0.5 if self.differ else 1.0
        seen = Intrinsic(normalised=sure, printed=sure, raw=sure)
        return msgspec.structs.replace(answered, data=parsed.data, answer=parsed.answer, intrinsic=seen)

    def _reply(self, ask: Ask, most: int) -> tuple[str, Parsed | None]:
        model = load_reply(ask.reply)
        if model is FreeText:
            text = _text(most * CHARACTERS_PER_TOKEN if self.differ else 1)
            return text, parse_reply(text, model)
        schema = msgspec.json.decode(
            reply_schema(model, "vllm", ask.labels, most, sizes=slot_sizes(model, ask.slots)).body
        )
        place, turn = _last_number(ask.role), _last_number(ask.path.replace(ask.role, ""))
        # Texts alternate between all equal and all different, so that no round looks like the one before.
        mark = ask.step_key if self.differ and turn % 2 == 0 else ""
        place = place if self.differ else 0
        for full in (self.differ, False):
            text = msgspec.json.encode(_stub_value(schema, full, place, mark)).decode()
            try:
                return text, parse_reply(text, model, ask.labels, ask.choices, ask.aliases)
            except InvalidReply:
                place = 0
        return text, None

    async def drain(self) -> None:
        """See `AgentPool.drain`."""


def _stub_value(schema: Mapping[str, Any], full: bool, place: int, mark: str, index: int = 0) -> object:
    """A value that fits a schema: the smallest, or the largest permitted one.

    Args:
        place: chooses among options.
        mark: seed of texts; empty for the same words in all of them.
        index: index of the value's list item.
    """
    if "enum" in schema:
        return schema["enum"][place % len(schema["enum"])]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return _stub_value(schema["anyOf"][0], full, place, mark, index)
    match schema.get("type"):
        case "object":
            parts: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
            return {name: _stub_value(part, full, place, mark, index) for name, part in parts.items()}
        case "array":
            least = max(1, schema.get("minItems", 0))
            count = max(least, schema.get("maxItems", least)) if full else least
            marks = [mark and f"{mark}/{item}" for item in range(count)]
            return [_stub_value(schema["items"], full, place + item, of, item) for item, of in enumerate(marks)]
        case "string" if "pattern" not in schema:
            least = schema.get("minLength", 1)
            return _text(max(least, schema.get("maxLength", least)) if full else least, mark)
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
    """A text of the given length, five characters at least, with words derived from the mark."""
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
class _StubLibrary:
    """Stub `Retriever`: returns its first chunks for every query."""

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


class _NullRecordClient:
    """Null `RecordClient`: stores nothing."""

    def put_reply(self, case_id: str, columns: dict[str, Any]) -> None:
        """Does nothing."""

    def put_event(self, case_id: str, attempt: int, event: Event) -> None:
        """Does nothing."""

    async def commit(self, closing: DebateResult) -> bool:
        """Does nothing."""
        return True

    async def history(self, case_id: str, attempt: int) -> History:
        """Always empty."""
        return History()

    async def acquire_lease(self, key: str) -> tuple[bool, History]:
        """The first caller gets the lease."""
        return True, History()

    async def has_shared(self, key: str) -> bool:
        """True once the reply was shared."""
        return True

    async def release_lease(self, key: str) -> None:
        """Does nothing."""

    def put_vectors(self, case_id: str, attempt: int, encoder: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """Does nothing."""
