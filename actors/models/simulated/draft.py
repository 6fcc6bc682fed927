"""A simulated reply before its tokens are drawn: the text, and where in it the decision stands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class Draft:
    """A reply in three pieces, so that token probabilities can be laid over the decision.

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


def json_draft(
    form: Sequence[str], values: Mapping[str, object], decisive: str, belief: Mapping[str, float], invented: str = ""
) -> Draft:
    """A JSON object with `values` in the order of `form`; keys of the form without a value are left out.

    Args:
        decisive: the key whose value is the decision; one that is no string is spelled as JSON spells it.
        belief: probability of every value that it could have, each as text.
        invented: words in one of the other values that are made up; empty when there are none.
    """
    keys = [key for key in form if key in values]
    members = [f"{_encode(key)}: {_encode(values[key])}" for key in keys]
    place = keys.index(decisive)
    decision = values[decisive]
    spelled, quote = (_spelled(decision), '"') if isinstance(decision, str) else (_encode(decision), "")
    before = "".join(f"{member}, " for member in members[:place])
    after = "".join(f", {member}" for member in members[place + 1 :])
    return Draft(
        before=f"{{{before}{_encode(decisive)}: {quote}",
        decision=spelled,
        after=f"{quote}{after}}}",
        belief={_spelled(label): probability for label, probability in belief.items()},
        invented=_spelled(invented),
    )


def _spelled(label: str) -> str:
    return _encode(label)[1:-1]
