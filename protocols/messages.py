"""Typed messages of a debate: requests, replies, and the verdict.

Messages between actors are `msgspec.Struct`s, because thousands are sent each second; input of users and models is
validated by pydantic before it becomes one of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import msgspec
from pydantic import BaseModel

from moot.protocols.case import Image

R = TypeVar("R", bound=BaseModel, covariant=True)

Slots = Mapping[str, Any]
"""Values for a template's slots: JSON-like data only."""


LogprobStage = Literal["before", "after", "raw", "masked", "unknown"]
"""Sampling stage of log-probabilities; see `Intrinsic.stage`."""


class Message(msgspec.Struct, frozen=True):
    """Chat message exactly as it is sent to a model."""

    role: Literal["system", "user", "assistant"]
    content: str
    images: tuple[Image, ...] = ()


class Decoding(msgspec.Struct, frozen=True, kw_only=True):
    """Sampling parameters of a reply.

    Attributes:
        temperature: 0 and up; None leaves the server's default.
        top_p: nucleus share in (0, 1]; None leaves the server's default.
        max_tokens: upper bound of the reply's length.
        top_logprobs: requested alternatives per token; None requests no log-probabilities.
        seed: base of the server's sampling seed, together with the step; None for a random one.
        stop: texts that end the reply.
        repetition_penalty: above 1 makes repetition less likely; None uses the server's default.
        reasoning_effort: amount of reasoning before the reply; None uses the server's default.
        extra: a JSON object whose keys are sent unchanged; empty for none.
        bounds_completion: whether the length limit is sent as `max_completion_tokens`, for servers that refuse
            `max_tokens`.
        stream_usage: whether to request the usage of a streamed reply (`stream_options`).
        forbids_storing: whether to forbid a service to store replies (`store` of the Responses API).
    """

    temperature: float | None = 0.3
    top_p: float | None = 0.9
    max_tokens: int = 400
    top_logprobs: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    repetition_penalty: float | None = None
    reasoning_effort: str | None = None
    extra: str = ""
    bounds_completion: bool = False
    stream_usage: bool = True
    forbids_storing: bool = True


class Usage(msgspec.Struct, frozen=True):
    """Billed tokens as the server reports them; None where it does not.

    Attributes:
        prompt_tokens: of the prompt.
        completion_tokens: of the reply, hidden reasoning included where the server counts it there.
        reasoning_tokens: of hidden reasoning alone.
        cached_tokens: of the prompt, read from a cache; not every server counts them in `prompt_tokens`.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        counts = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Usage(*(None if a is None or b is None else a + b for a, b in counts))

    @property
    def tokens(self) -> int | None:
        """Tokens of prompt and reply together; None if either is unknown."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


class Intrinsic(msgspec.Struct, frozen=True, kw_only=True):
    """Probability of the chosen answer from token probabilities.

    Attributes:
        normalised: probability of the answer among the case's labels, in [0, 1]; None when unknown.
        printed: sigma(l) = p/(1+p) with p the answer's raw probability, as printed in SELENE eq. 3.
        raw: the answer's raw probability at its first token.
        bound_shift: how far `normalised` could move because a label was not among the listed alternatives; None when no
            label was.
        stage: whether probabilities are taken before or after temperature, both before a schema's mask; `raw` when it
            is only known that no mask has changed them; `masked` when they are taken after one (then `raw` and
            `printed` are unknown); `unknown` otherwise.
        reason: why `normalised` is None; empty otherwise.
    """

    normalised: float | None = None
    printed: float | None = None
    raw: float | None = None
    bound_shift: float | None = None
    stage: LogprobStage = "unknown"
    reason: str = ""


class Unreadable(msgspec.Struct, frozen=True):
    """Unparsable first reply, whose model is asked again.

    Attributes:
        reply_id: of the ask's reply; the record adds a suffix for the first one.
        text: original text.
        error: why it could not be parsed.
        usage: tokens billed for it.
    """

    reply_id: str
    text: str
    error: str
    usage: Usage = Usage()


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Request to an agent or judge: everything needed to render, send and parse it.

    Attributes:
        case_id, attempt, path: key in the journal.
        role: the role's full name, e.g. `agent/1`.
        template: name of the prompt template.
        slots: the template's slots.
        reply: import path `module:Class` of the pydantic model that the reply must fit.
        labels, choices, aliases: the closed answer set, when the reply has an answer; see `Case`.
        sample: number of the sample among otherwise equal asks.
        fingerprint: hash of model, decoding, template text, persona, slots and images.
        earlier_fingerprints: further fingerprints of the same request in older records.
        seconds_left: deadline, counted from the receipt of the message.
        supersedes: id of the recorded reply that this one replaces, because its fingerprint no longer fits.
        unreadable: the recorded first reply, when the run ended before its model was asked again.
        cuts: number of replies to the next call that were stopped early before the run ended.
        plain: whether the reply is asked for, and read, as plain text.
        traceparent: W3C context of the debate's trace. Not part of the fingerprint or of the record.
    """

    case_id: str
    attempt: int
    path: str
    role: str
    template: str
    slots: dict[str, Any]
    reply: str
    labels: tuple[str, ...] | None = None
    choices: tuple[str, ...] = ()
    aliases: tuple[tuple[str, ...], ...] = ()
    sample: int = 0
    images: tuple[Image, ...] = ()
    decoding: Decoding | None = None
    fingerprint: str = ""
    earlier_fingerprints: tuple[str, ...] = ()
    seconds_left: float = 120.0
    supersedes: str = ""
    unreadable: Unreadable | None = None
    cuts: int = 0
    plain: bool = False
    traceparent: str = ""

    @property
    def key(self) -> tuple[str, int, str]:
        """Key of this ask in the journal."""
        return (self.case_id, self.attempt, self.path)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """All fingerprints under which a reply to this request may be recorded, its own first."""
        return (self.fingerprint, *self.earlier_fingerprints)

    @property
    def step_key(self) -> str:
        """Identifies the step across processes and servers: seeds and server-side counts depend on it."""
        return f"{self.case_id}/{self.attempt}/{self.path}"


class AskResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an ask, without token arrays (those go to the record writer).

    Attributes:
        path: the ask's path.
        reply_id: unique for each paid reply; names the winning row of the record.
        model: the model's name as configured.
        text: original text of the reply.
        data: the validated reply as plain data; None when the ask failed.
        answer: the canonical label, or the normalised free text; None when the reply has no answer.
        intrinsic: probability of the answer from token probabilities; None without log-probabilities.
        usage: tokens of every call made for this ask.
        outcome: `ok`, `repaired` (JSON was repaired), `reasked` (second call), `failed`, or `unpaid`: not asked,
            because the run is stopping.
        failure: kind of failure (see `AskFailed.kind`), or why the run stops; empty unless `failed` or `unpaid`.
        error: message of the failure.
        reasked: the first reply's text and its error, when the model was asked again.
        stopped: whether replies to it were stopped early: their usage is not in `usage`.
        free: whether it certainly used nothing, though no server reports so: each attempt was refused before it was
            worked on.
        prompt_cut: whether the server of one of its calls seems to have read only a part of the prompt.
    """

    path: str
    reply_id: str
    model: str
    text: str = ""
    data: dict[str, Any] | None = None
    answer: str | None = None
    intrinsic: Intrinsic | None = None
    usage: Usage = Usage()
    outcome: Literal["ok", "repaired", "reasked", "failed", "unpaid"] = "ok"
    failure: str = ""
    error: str = ""
    reasked: tuple[str, str] | None = None
    stopped: bool = False
    free: bool = False
    prompt_cut: bool = False


@dataclass(frozen=True, slots=True)
class Turn(Generic[R]):
    """A usable reply of a model, parsed into the requested type.

    Attributes:
        path: step of the debate.
        role: author.
        model: the model's name as configured.
        text: original text of the reply.
        reply: the reply, validated.
        answer: canonical label or normalised free text; None when the reply has no answer.
        intrinsic: probability of the answer from token probabilities; None without any.
        usage: tokens billed.
    """

    path: str
    role: str
    model: str
    text: str
    reply: R
    answer: str | None
    intrinsic: Intrinsic | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class Failure:
    """Ask that ended without a usable reply; see `AskFailed` for the kinds."""

    path: str
    role: str
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Judgment:
    """Judge's score of one candidate under one evidence variant.

    Attributes:
        score: judged correctness in [0, 1].
        support: relation of the evidence to the candidate.
    """

    path: str
    judge: str
    model: str
    variant: int
    pass_index: int
    score: float
    support: Literal["supported", "contradicted", "not covered"]
    rationale: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Missing judgment: the judge failed or abstained. It is never a score of 0."""

    path: str
    judge: str
    variant: int
    pass_index: int
    reason: str


class Event(msgspec.Struct, frozen=True):
    """Event of a debate; `data` is JSON-like. The last event per (kind, path) counts."""

    kind: str
    path: str
    data: dict[str, Any] = {}


class Form(msgspec.Struct, frozen=True):
    """Question to a person.

    Attributes:
        title: subject, in a few words.
        body: the text to read.
        actions: choices.
        needs_text: actions that require a text, such as `ask`.
        drafts: current text by action, for a person to change; these actions also require a text.
    """

    title: str
    body: str = ""
    actions: tuple[str, ...] = ("go on",)
    needs_text: tuple[str, ...] = ()
    drafts: dict[str, str] = {}

    def takes_text(self, action: str) -> bool:
        """Whether an action requires a text."""
        return action in self.needs_text or action in self.drafts


class Decision(msgspec.Struct, frozen=True):
    """Decision of a person: an action of the form and free text. Unattended runs answer `go on`."""

    action: str
    text: str = ""
    by: Literal["person", "unattended"] = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict of a debate.

    Attributes:
        answer: the chosen answer; None when the protocol reached none.
        how: e.g. `skipped`, `unanimous`, `stable-agree`, `stable-disagree`, `diverging`, `t_max`, `single`, `vote`.
        confidence: in [0, 1]; None when unknown.
        distribution: probability per label; None without one.
        rounds: debate rounds after the independent answers.
        flags: short marks for the reader, e.g. `judge-below-half`.
        payload: the protocol's own JSON-like result.
    """

    answer: str | None
    how: str
    confidence: float | None = None
    distribution: Mapping[str, float] | None = None
    rounds: int = 0
    flags: tuple[str, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)


def family_of(role: str) -> str:
    """Family of a role: `agent` for `agent/1`."""
    return role.partition("/")[0]


_ATTEMPT = re.compile(r"/\d+/")


def debate_of(step_key: str) -> str:
    """Id of the debate in a step key, which is CASE/ATTEMPT/PATH.

    Case ids that continue alike after such a number count as one debate; only the order of calls and the choice of a
    server depend on it.

    >>> debate_of("case-1/0/opening/agent/0"), debate_of("a probe")
    ('case-1/0', 'a probe')
    """
    found = _ATTEMPT.search(step_key)
    return step_key if found is None else step_key[: found.end() - 1]
