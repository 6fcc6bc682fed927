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
        decision: the answer (or the judge's support) as spelled in the text; empty when there is none.
        after: the rest.
        belief: probability of every spelling that could have stood there; sums to 1; may be empty.
        invented: words of the text that are made up, as spelled in it; empty when there are none.
        surety: how sure its tokens are, in [0, 1], words and marks alike; None: words are less sure than marks.
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
        values: by key of the form; those that it does not ask for are left out, and so is what has the value `...`.
        decisive: the key whose value is the decision; empty when there is none.
        belief: probability of every value that the decision could have, each as text.
        invented: words in one of the other values that are made up.
        about: what the other texts speak for.
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
        random: the draws of this one reply.
        greedy: whether the most believed answer is always the one given.
        seed: the run's.
        key: what agents may know; None lets them answer at random. Judges never look at it.
    """

    prompt: ParsedPrompt
    random: Random
    greedy: bool
    settings: SimulatedSettings
    seed: int
    key: AnswerKey | None

    def about(self, **changes: Any) -> SimulatedTurn:
        """The same turn, with the same draws, on a modified prompt."""
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
