"""A recorded debate as data, and the words and blocks that any part of it can have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeVar

from moot.deploy.results.figures.round_trace import RoundTrace
from moot.deploy.results.report.blocks import Block, Items, Note, Table
from moot.deploy.results.report.display import DisplayMixin, FrozenModel
from moot.deploy.results.text import calls, count, number
from moot.protocols.events import DebateEvent

E = TypeVar("E", bound=DebateEvent)

_LIKELIHOOD = {"label", "probability"}
_LONG = 40
"""Length in characters above which texts of a list have lines of their own."""

State = Literal["finished", "failed", "parked", "withdrawn", "open"]
"""State of a debate: `parked` is waiting for a person, `withdrawn` was cancelled, `open` has no verdict yet."""


class EventView(FrozenModel):
    """Recorded event of a debate, such as signals, a decision or a judging."""

    kind: str
    path: str
    data: dict[str, Any]

    def read_as(self, event_type: type[E]) -> E | None:
        """The event as a type; None for one of another kind or form."""
        return event_type.read(self.data, self.path) if self.kind == event_type.kind else None


class TurnView(FrozenModel):
    """Reply of a model, or decision of a person.

    Attributes:
        path, role, model: path of the ask, its role, and the role's model.
        answer: canonical label or case-folded free text; None when the reply has none.
        confidence: the stated confidence; None without one.
        p: the model's own probability of the answer among the labels; None when unknown.
        p_reason: the reason why `p` is unknown; empty when it is known.
        data: the parsed reply; None when it could not be parsed.
        text: the raw text of the reply.
        outcome: `ok`, `repaired`, `reasked`, `failed`, `invalid` (an unreadable first reply), or `cut` (stopped early).
        failure, error: kind and message of a failure; empty without one.
        prompt_tokens, completion_tokens: None when the server did not report them.
        asked: number of asks; more than one after a crash.
        superseded: whether a later reply on the same path replaced it.
        reused: whether it was taken from another run.
        truncated: whether it was truncated at its token limit.
        reading: deviations in parsing the reply; see `moot.actors.record.rows`.
    """

    path: str
    role: str
    model: str
    answer: str | None
    confidence: float | None
    p: float | None
    p_reason: str
    data: dict[str, Any] | None
    text: str
    outcome: str
    failure: str
    error: str
    prompt_tokens: int | None
    completion_tokens: int | None
    asked: int
    superseded: bool
    reused: bool
    truncated: bool = False
    reading: str = ""

    @property
    def tokens(self) -> int | None:
        """Billed tokens; None unless both parts are known."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


class Section(FrozenModel):
    """Stage of a debate: its replies in order of path, then its events."""

    title: str
    turns: list[TurnView]
    events: list[EventView]


class VerdictView(FrozenModel):
    """Recorded verdict of a debate.

    It is not a `DebateResult`: it has `correct` (None when it cannot be scored), probabilities of its distribution may
    be unknown, and its fields are the documented JSON of `moot show`.
    """

    answer: str | None
    how: str
    confidence: float | None
    distribution: dict[str, float | None] | None
    rounds: int
    flags: list[str]
    payload: dict[str, Any]
    failed: bool
    failure: str
    error: str
    correct: bool | None


class AttemptCost(FrozenModel):
    """Cost of an attempt; `tokens` is a lower bound if `calls_without_usage` is not 0, None without any known usage."""

    calls: int
    tokens: int | None
    tokens_reused: int | None
    calls_without_usage: int


class JudgedReplyView(FrozenModel):
    """Reply that is only judged: its role, the messages that it answers (speaker and text), and its text."""

    role: str
    domain: str
    sent: list[tuple[str, str]]
    reply: str


class AttemptView(DisplayMixin, FrozenModel):
    """Attempt at a case.

    Attributes:
        attempt: its number.
        attempts: numbers of all attempts in the record.
        state: the debate's state.
    """

    schema_version: int
    run: str
    simulated: bool
    case_id: str
    attempt: int
    attempts: list[int]
    state: State

    def display_name(self) -> str:
        """See `DisplayMixin`."""
        return f"{self.case_id} of {self.run}"


class Transcript(AttemptView):
    """Transcript of one attempt.

    Attributes:
        aliases: other spellings by label, in the labels' order; empty when no label has any.
        judged: the judged reply; None where a case is debated.
        gold: the gold label, never shown to a model; None without one.
        accepted: all accepted answers, if there are several; never shown to a model.
        ratings: scores of human raters, None for a missing one; never shown to a model.
        trace: figures of the rounds; None for a protocol without rounds or without known figures.
        verdict: None while there is none.
    """

    question: str
    labels: list[str]
    choices: list[str]
    aliases: list[list[str]]
    title: str
    passage: str
    judged: JudgedReplyView | None
    gold: str | None
    accepted: list[str]
    ratings: list[float | None]
    invalid: str
    sections: list[Section]
    trace: RoundTrace | None
    verdict: VerdictView | None
    cost: AttemptCost


def titled_blocks(
    title: str,
    header: Sequence[str] = (),
    rows: Sequence[Sequence[str]] = (),
    lines: Sequence[str] = (),
) -> list[Block]:
    """Report blocks of an event: a title, a table if there are rows, and further lines."""
    found: list[Block] = [Note(title, "strong")]
    found += [Table("", header, rows)] if rows else []
    return found + ([Items(lines)] if lines else [])


def place_words(path: str, role: str = "") -> str:
    """Text of a path; that of a reply is without its role.

    >>> place_words("judge/candidate/0/judge/1/variant/2/pass/0"), place_words("round/2"), place_words("gate")
    ('candidate 0, judge 1, evidence variant 2, pass 0', 'round 2', 'gate')
    """
    step = f"{path}/".replace(f"/{role}/", "/").rstrip("/") if role else path
    return ", ".join(numbered_places(step)) or path.replace("/", " ")


def numbered_places(path: str) -> list[str]:
    """Texts of the numbered parts of a path.

    >>> numbered_places("judge/candidate/0/variant/2"), numbered_places("gate")
    (['candidate 0', 'evidence variant 2'], [])
    """
    return [
        f"{'evidence variant' if name == 'variant' else name} {number}"
        for name, number in pairwise(path.split("/"))
        if number.isdecimal() and not name.isdecimal()
    ]


def plain_pairs(data: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Pairs of dotted keys and formatted values of nested data."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from plain_pairs(value, f"{name}.")
        elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
            yield from plain_pairs({str(i): each for i, each in enumerate(value)}, f"{name}.")
        elif isinstance(value, list):
            yield name, ", ".join(map(_word, value)) or "-"
        else:
            yield name, _word(value)


def _word(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == {}:
        return "-"
    return number(value, 4) if isinstance(value, float) else str(value)


def reply_lines(data: Mapping[str, Any]) -> Iterator[str]:
    """Lines of keys and values of a reply; objects and long texts in a list have a line each.

    >>> list(reply_lines({"claim": "Flu", "reasons": [{"text": "fever", "validity": 8, "is_claim": True}]}))
    ['claim: Flu', 'reasons:', '  - fever (validity 8, is_claim)']
    """
    for key, value in data.items():
        several = value if isinstance(value, list) else []
        if several and all(isinstance(item, Mapping) and item.keys() == _LIKELIHOOD for item in several):
            yield f"{key}: " + ", ".join(f"{item['label']} {item['probability']}" for item in several)
        elif any(isinstance(item, Mapping) or len(str(item)) > _LONG for item in several):
            yield f"{key}:"
            yield from (f"  - {_item(item)}" for item in several)
        else:
            yield from (f"{name}: {text}" for name, text in plain_pairs({key: value}))


def _item(item: Any) -> str:
    if not isinstance(item, Mapping):
        return next((text for _, text in plain_pairs({"": item})), "-")
    named = {key: value for key, value in item.items() if value is not False and value not in ([], "", None)}
    first = next((key for key, value in named.items() if isinstance(value, str)), None)
    numbers = plain_pairs({key: value for key, value in named.items() if key != first})
    rest = ", ".join(key if text == "yes" else f"{key} {text}" for key, text in numbers)
    if first is None:
        return rest or "-"
    return f"{named[first]} ({rest})" if rest else str(named[first])


def cost_words(cost: AttemptCost) -> str:
    """Text of the cost."""
    without_usage = cost.calls_without_usage
    at_least = "at least " if without_usage and cost.tokens is not None else ""
    words = f"{at_least}{count(cost.tokens)} tokens in {calls(cost.calls)}"
    if without_usage:
        words += f", {without_usage} of them with unknown usage"
    return words + (f"; {count(cost.tokens_reused)} tokens reused" if cost.tokens_reused != 0 else "")
