"""Simulated turn: the parsed prompt, the random draws, the settings and the answer key of one reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import NormalDist
from typing import Any, TypeVar

from moot.actors.simulated.answer_key import AnswerKey
from moot.actors.simulated.prompt import ParsedPrompt
from moot.actors.simulated.settings import SimulatedSettings

T = TypeVar("T")

_NORMAL = NormalDist()
_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class ReplyDraft:
    """Draft of a reply in three pieces, so that token probabilities can be assigned to the decision.

    Attributes:
        before: the text up to the decision.
        decision: the answer (or the judge's support) as spelled in the text; empty without one.
        after: the remaining text.
        belief: probability of every spelling that the decision could have; sums to 1; may be empty.
        invented: fabricated words, as spelled in the text; empty without any.
        surety: confidence of its tokens in [0, 1], equal for words and marks; None: words are less sure than marks.
    """

    before: str
    decision: str = ""
    after: str = ""
    belief: Mapping[str, float] = field(default_factory=dict)
    invented: str = ""
    surety: float | None = None

    @property
    def text(self) -> str:
        """The whole reply."""
        return f"{self.before}{self.decision}{self.after}"


@dataclass(frozen=True, slots=True)
class DraftSignals:
    """Signals of a reply: fields drawn with a meaning; the form filler generates all others.

    Attributes:
        values: by key of the form; keys that the form lacks are omitted, and so are values `...`.
        decisive: key of the decision; empty without one.
        belief: probability of every value that the decision could have, as text.
        invented: fabricated words in one of the other values.
        about: position that the other texts argue for.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    decisive: str = ""
    belief: Mapping[str, float] = field(default_factory=dict)
    invented: str = ""
    about: str = "this"


@dataclass(frozen=True, slots=True)
class SimulatedTurn:
    """Simulated turn: one reply to be generated.

    Attributes:
        random: source of the draws of this reply.
        greedy: whether the reply gives the most believed answer.
        seed: of the run.
        key: answer key of agents; None makes them answer at random. Judges never use it.
    """

    prompt: ParsedPrompt
    random: Random
    greedy: bool
    settings: SimulatedSettings
    seed: int
    key: AnswerKey | None

    def about(self, **changes: Any) -> SimulatedTurn:
        """Copy of the turn, with the same draws, on a modified prompt."""
        return replace(self, prompt=replace(self.prompt, **changes))

    def pick(self, options: Sequence[T]) -> T:
        """Uniform choice of one of the options."""
        return options[int(self.random.random() * len(options))]

    def noise(self) -> float:
        """Judge noise: normal with the configured standard deviation."""
        drawn = _NORMAL.inv_cdf(min(1.0 - 1e-9, max(1e-9, self.random.random())))
        return self.settings.judge_noise * drawn

    def mark(self, share: float) -> float:
        """Judge score from 0 to 10 of a value in [0, 1]; noisy unless the turn is greedy."""
        noise = self.noise()
        return 10.0 * min(1.0, max(0.0, share + (0.0 if self.greedy else noise)))


def json_draft(values: Mapping[str, object], signals: DraftSignals) -> ReplyDraft:
    """Draft of a JSON object with the values in order; a decision that is no string is written as JSON."""
    members = [f"{_encode(key)}: {_encode(value)}" for key, value in values.items()]
    if signals.decisive not in values:
        return ReplyDraft(f"{{{', '.join(members)}}}")
    place, decision = list(values).index(signals.decisive), values[signals.decisive]
    spelled, quote = (_spelled(decision), '"') if isinstance(decision, str) else (_encode(decision), "")
    before = "".join(f"{member}, " for member in members[:place])
    after = "".join(f", {member}" for member in members[place + 1 :])
    return ReplyDraft(
        before=f"{{{before}{_encode(signals.decisive)}: {quote}",
        decision=spelled,
        after=f"{quote}{after}}}",
        belief={_spelled(label): probability for label, probability in signals.belief.items()},
        invented=_spelled(signals.invented),
    )


def _spelled(label: str) -> str:
    return _encode(label)[1:-1]
