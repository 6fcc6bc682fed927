"""What a run would cost, before anything is paid: its protocol runs on the real floor, answered by stub replies.

Twice for each case that is looked at: once every agent gives the same answer, surely and in few words, and once nobody
agrees with anybody, at the full length that a reply may have. No model is asked, and nothing is written.
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
from moot.protocols.replies import FreeText, InvalidReply, Parsed, parse_reply
from moot.protocols.reply_ids import load_reply
from moot.protocols.selene.settings import DEFAULT_ENCODER
from moot.protocols.templates import Templates

_log = structlog.get_logger(__name__)

CHARACTERS_PER_TOKEN = 4
LOOKED_AT = 20
"""Cases that are run dry; what they give stands for the others."""

_SAME = "as it is "
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class CallEstimate:
    """What the debates of some cases ask, without retries and re-asks.

    Attributes:
        count: asks.
        prompt_tokens, reply_tokens: prompts at four characters a token, or one in other scripts than Latin.
        longest_prompt: of one ask, in tokens.
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
        """Of prompts and replies."""
        return self.prompt_tokens + self.reply_tokens


@dataclass(frozen=True)
class DryRunPlan:
    """A run's cost in advance, without retries and without second asks after an unreadable reply.

    Attributes:
        protocol: its name.
        cases: how many; None for a source that cannot be read twice.
        least, most: calls over all cases, from those that were looked at; None without `cases`, and where the protocol
            cannot be run on stub replies.
        least_tokens, most_tokens: prompts at four characters per token, or one in other scripts than Latin; replies at
            their full length.
        reusable: replies of the other run that can answer equal asks; None without such a run. How many of them will
            is known only when the debates are held, so the other figures count every call.
        documents: what the library holds, and what is still to be embedded for it; empty for a run without documents.
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
    """Count what a run would do, on cases spread over the task; asks nobody, writes nothing."""
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
    """The documents in words; what one run embeds into a library that others share is embedded for all of them."""
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
    """The fewest and the most calls of each case, as far as stub replies bring them out; none where they suit none."""
    return asyncio.run(_all_calls(prepared, list(cases)))


async def _all_calls(prepared: Prepared, cases: Sequence[Case]) -> list[tuple[CallEstimate, CallEstimate]]:
    few, many = [await _calls(prepared, cases, differ=differ) for differ in (False, True)]
    return [] if few is None or many is None else list(zip(few, many, strict=True))


async def _calls(prepared: Prepared, cases: Sequence[Case], *, differ: bool) -> list[CallEstimate] | None:
    """By case; None where a debate breaks off for want of a fitting reply, or by a fault of the protocol's own."""
    plain = {"encoder": DEFAULT_ENCODER, "library": None, "reuse": None, "attended": False}
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
                with suppress(MootError):  # a case that does not suit the protocol asks nothing, or little
                    await prepared.protocol.run(case, CaseFloor(case, 0, context))
            except Exception as error:  # anything, of a protocol of somebody's own
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
    """Answers every ask by its reply's schema, and counts. See `moot.actors.debate.context.AgentPool`."""

    roles: Roles
    templates: Templates
    differ: bool
    calls: CallEstimate = field(default_factory=CallEstimate)
    unfit: int = 0

    async def answer(self, ask: Ask) -> AskResult:
        """See `Crew.answer`."""
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
        # What agents write alternates between all alike and all different, so that no round looks like the one before.
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
        """See `Crew.drain`."""


def _stub_value(schema: Mapping[str, Any], full: bool, place: int, mark: str, index: int = 0) -> object:
    """A value that fits: the smallest one, or the largest that the schema permits.

    Args:
        place: chooses among options.
        mark: what texts are made of; empty for the same words in all of them.
        index: of the list's item that the value belongs to.
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
    """A text of so many characters, five at least, whose words hang on the mark."""
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
    """A library that finds its first chunks, whatever is searched; see
    `moot.actors.debate.context.Retriever`."""

    chunks: Sequence[LibraryChunk]

    async def search(self, vector: npt.NDArray[np.float32], n: int) -> list[Passage]:
        """See `Library.search`."""
        stub = [LibraryChunk(document="document", chunk=0, page=None, text=_text(1000))]
        return [
            Passage(document=each.document, chunk=each.chunk, text=each.text, page=each.page, similarity=1.0)
            for each in list(self.chunks or stub)[:n]
        ]

    async def close(self) -> None:
        """There is nothing to let go."""


class _NullRecordClient:
    """Keeps nothing; see `moot.actors.debate.context.RecordClient`."""

    def put_reply(self, case_id: str, columns: dict[str, Any]) -> None:
        """Nothing is kept."""

    def put_event(self, case_id: str, attempt: int, event: Event) -> None:
        """Nothing is kept."""

    async def commit(self, closing: DebateResult) -> bool:
        """No verdict is kept."""
        return True

    async def history(self, case_id: str, attempt: int) -> History:
        """There is none."""
        return History()

    async def acquire_lease(self, key: str) -> tuple[bool, History]:
        """Whoever asks first pays."""
        return True, History()

    async def has_shared(self, key: str) -> bool:
        """It is there as soon as it was given."""
        return True

    async def release_lease(self, key: str) -> None:
        """Nothing was claimed."""

    def put_vectors(self, case_id: str, attempt: int, encoder: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """Nothing is kept."""
